"""A classifier that is fitted on pieces whose rows became a tally, against the same data in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.pieces_support import cut, parquet_folder

from accel_oct import OptimalTreeClassifier
from accel_oct.constraints import ForbiddenFeatures, ForbiddenPairs, StatisticalParity
from accel_oct.encoding import QuantileThresholdEncoder
from accel_oct.pieces import gathering

RNG = np.random.default_rng(5)
TABLE = pd.DataFrame({name: RNG.integers(0, 6, 80) for name in "abc"} | {"same": np.ones(80)})
TABLE["s"], TABLE["w"] = TABLE["a"] % 2, RNG.integers(0, 4, 80)
TABLE["y"] = np.where((TABLE["a"] > 2) ^ (TABLE["b"] > 3) ^ (RNG.random(80) < 0.2), "yes", "no")


@pytest.fixture(params=["rows", "counts"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The table in three files; its rows stay rows, or become a tally as those of a large one would."""
    limit = None if request.param == "rows" else 0
    monkeypatch.setattr(gathering, "rows_limit", lambda features, cells, depth, keep: limit)
    return parquet_folder(tmp_path, cut(TABLE, 3))


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "class weights": {"class_weight": "balanced"},
    "samples of a leaf": {"min_samples_leaf": 12},
    "leaves": {"max_leaf_nodes": 2},
    "a group": {"constraints": [StatisticalParity("s", at_most=0.1)]},
    "a column": {"constraints": [ForbiddenFeatures(["a"])]},
    "a column without features": {"constraints": [ForbiddenFeatures(["same"])]},
    "pairs of columns": {"constraints": [ForbiddenPairs([("a", "b"), ("same", "c")])]},
    "weights": {"weight": "w"},
}


@pytest.mark.parametrize("case", CASES)
def test_as_in_memory(case: str, folder: Path) -> None:
    """The same classes, features, objective and accuracy, whatever is asked for; columns go by their names."""
    options = dict(CASES[case])
    weight = options.pop("weight", None)
    model = OptimalTreeClassifier(max_depth=2, encoder=QuantileThresholdEncoder(3), exclude=["w"], **options)
    given = TABLE if weight is None else TABLE[TABLE["w"] > 0]
    X, weights = TABLE.drop(columns="y"), None if weight is None else TABLE["w"]
    if weight is not None:
        model.set_params(exclude=None)
        X = X.drop(columns="w")
    expected = model.fit(X, TABLE["y"], sample_weight=weights)
    objective, classes, names = (
        expected.result_.objective,
        expected.classes_,
        list(expected.encoder_.get_feature_names_out()),
    )
    score = expected.score(X, TABLE["y"], sample_weight=weights)
    found = model.fit(folder, "y", sample_weight=weight)
    assert found.result_.objective == objective and found.result_.status == "optimal"
    assert found.classes_.tolist() == classes.tolist() and list(found.encoder_.get_feature_names_out()) == names
    if "class_weight" not in options:
        assert found.score(X, TABLE["y"], sample_weight=weights) == pytest.approx(score)
    # With weights a tally does not know how many samples there are in a node: about their share of the weight.
    samples = found.tree_.n_node_samples
    assert samples[0] == pytest.approx(len(given), abs=len(TABLE) - len(given) + 2)
    assert len(samples) == 1 or samples[1:].min() >= options.get("min_samples_leaf", 1)
