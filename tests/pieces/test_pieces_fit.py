"""A classifier fitted on data in pieces is the one fitted on the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pytest
from helpers.pieces_support import FEATURES, cut, mixed_table, parquet_folder

from accel_oct import OptimalTreeClassifier
from accel_oct.constraints import StatisticalParity
from accel_oct.encoding import AutoEncoder, QuantileThresholdEncoder, TableEncoder

TABLE = mixed_table(500, seed=4)
COLUMNS = [*FEATURES, "sex"]


@pytest.mark.daily(5)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"constraints": [StatisticalParity("sex", at_most=0.05)]},
        {"min_samples_leaf": 30},
        {"min_samples_leaf": 0.1},
        {"class_weight": "balanced"},
        {"class_weight": {"yes": 2, "no": 1}},
        {"exclude": ["sex"]},
    ],
)
@pytest.mark.parametrize("weight", [None, "times"])
def test_a_fit_on_pieces_is_the_fit_on_the_table(options: dict[str, Any], weight: str | None, tmp_path: Path) -> None:
    """Objective, bound, encoder, classes and predictions; by default the encoder sees all rows of small data."""
    names = [*COLUMNS, "answer", *([weight] if weight else [])]
    folder = parquet_folder(tmp_path, cut(TABLE[names], 6))
    one, two = (OptimalTreeClassifier(max_depth=2, leaf_penalty=0.002, **options) for _ in range(2))
    if "constraints" not in options:  # by default, rows in memory are searched over every split
        one.set_params(encoder=AutoEncoder(2))
    one.fit(TABLE[COLUMNS], TABLE["answer"], sample_weight=None if weight is None else TABLE[weight])
    two.fit(folder, "answer", sample_weight=weight)
    assert (two.objective_, two.bound_, two.status_) == (one.objective_, one.bound_, "optimal")
    assert two.encoder_.conditions_ == one.encoder_.conditions_
    assert two.classes_.tolist() == one.classes_.tolist()
    assert two.feature_names_in_.tolist() == one.feature_names_in_.tolist()
    assert two.score(TABLE[COLUMNS], TABLE["answer"], TABLE[weight] if weight else None) == one.score(
        TABLE[COLUMNS], TABLE["answer"], TABLE[weight] if weight else None
    )


def test_groups_that_come_beside_the_constraints() -> None:
    """`sensitive_features` names columns."""
    frame = dd.from_pandas(TABLE[[*COLUMNS, "answer"]], npartitions=4)
    rules = [StatisticalParity(at_most=0.05)]
    one, two = (OptimalTreeClassifier(max_depth=2, leaf_penalty=0.002, constraints=rules) for _ in range(2))
    one.fit(TABLE[COLUMNS], TABLE["answer"], sensitive_features=TABLE["sex"])
    two.fit(frame, "answer", sensitive_features="sex")
    assert (two.objective_, two.bound_) == (one.objective_, one.bound_)


def test_a_fit_on_a_tally(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where distinct rows are too many: the same objective, and the samples at the nodes of the tree."""
    monkeypatch.setattr("accel_oct.pieces.gathering.rows_limit", lambda *given: 20 if given[-1] == "auto" else None)
    encoder = TableEncoder(QuantileThresholdEncoder(4))
    folder = parquet_folder(tmp_path, cut(TABLE[[*COLUMNS, "answer"]], 6))
    one, two = (
        OptimalTreeClassifier(max_depth=3, leaf_penalty=0.002, encoder=encoder, min_samples_leaf=15) for _ in range(2)
    )
    one.fit(TABLE[COLUMNS], TABLE["answer"])
    two.fit(folder, "answer")
    assert (two.objective_, two.bound_, two.status_) == (one.objective_, one.bound_, "optimal")
    leaves = np.bincount(two.apply(TABLE[COLUMNS]), minlength=two.tree_.node_count)
    assert (
        two.tree_.n_node_samples[two.tree_.children_left < 0].tolist() == leaves[two.tree_.children_left < 0].tolist()
    )
