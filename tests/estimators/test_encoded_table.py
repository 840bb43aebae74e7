"""Tables that are read and encoded once: every question has the answer that it has on the raw table."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import KBinsDiscretizer

import accel_oct
from accel_oct import EncodedTable, OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.constraints import Recall, StatisticalParity
from accel_oct.encoding import QuantileThresholdEncoder, TableEncoder
from accel_oct.encoding.tables import Table
from accel_oct.errors import InvalidInputError
from accel_oct.objectives import InstanceCosts

N = 120
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "income": RNG.normal(3, 1, N).round(2),
        "town": RNG.choice(["north", "south", "west"], N),
        "sex": RNG.choice(["f", "m"], N),
    }
)
Y = np.where((X["age"] > 40) ^ (X["town"] == "north") ^ (RNG.random(N) < 0.15), "yes", "no")
WEIGHTS = RNG.integers(1, 4, N).astype(float)
ENCODER = TableEncoder(QuantileThresholdEncoder(4))


def model(**parameters: Any) -> OptimalTreeClassifier:
    """A classifier whose splits do not depend on the depth."""
    return OptimalTreeClassifier(**{"max_depth": 2, "leaf_penalty": 0.01, "encoder": ENCODER, **parameters})


@pytest.fixture(scope="module")
def table() -> EncodedTable:
    """With weights."""
    return model().encode(X, Y, WEIGHTS)


def test_a_fit_on_an_encoded_table_is_a_fit_on_the_raw_one(table: EncodedTable) -> None:
    """Tree, proof, names, predictions and columns are the same; only the raw table says what other splits bring."""
    raw, encoded = model().fit(X, Y, WEIGHTS), model().fit(table)
    assert encoded.to_text() == raw.to_text()
    assert (encoded.objective_, encoded.bound_, encoded.status_) == (raw.objective_, raw.bound_, raw.status_)
    assert raw.proof_ == f"{encoded.proof_}; a tree over other splits of the table is better by 0.02941 at most"
    assert encoded.table_bound_ is None
    assert encoded.result_.feature_names == raw.result_.feature_names == table.feature_names
    assert encoded.feature_names_in_.tolist() == list(table.features) == list(X.columns)
    np.testing.assert_array_equal(encoded.predict_proba(X), raw.predict_proba(X))


def test_functions_and_methods_answer_alike(table: EncodedTable) -> None:
    """`solve`, `frontier`, `solve_path` and `near_optimal` take the table; classifiers ask the same questions of it."""
    fitted = model().fit(table)
    found = accel_oct.solve(table, max_depth=2, leaf_penalty=0.01)
    assert (found.objective, found.status) == (fitted.objective_, "optimal")
    assert found.class_names == ("no", "yes") and found.feature_names == table.feature_names
    curve = accel_oct.frontier(table, max_depth=2)
    assert [each.objective_ for each in model().frontier(table)] == [point.score for point in curve]
    penalties = [0.05, 0.01]
    path = accel_oct.solve_path(table, max_depth=2, leaf_penalties=penalties)
    assert [each.objective_ for each in model().path(table, leaf_penalties=penalties)] == [r.objective for r in path]
    near = accel_oct.near_optimal(table, max_depth=2, leaf_penalty=0.01, within=0.01)
    assert model().near_optimal(table, within=0.01).count == near.count


def test_several_questions_of_one_table_read_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's table is taken apart once per fit, and once for all questions of an encoded table."""
    read = 0
    original = Table.read.__func__  # type: ignore[attr-defined]

    def counted(cls: Any, given: Any) -> Any:
        nonlocal read
        read += not isinstance(given, Table)
        return original(cls, given)

    monkeypatch.setattr(Table, "read", classmethod(counted))
    for classifier in (model(), OptimalTreeClassifier(2), OptimalTreeClassifier(None, 0.1)):
        read = 0
        classifier.fit(X, Y)
        assert read == 1
        classifier.predict(X)
        assert read == 2
    read = 0
    found = model().encode(X, Y)
    model().fit(found), model().frontier(found), model().near_optimal(found, within=0.0)
    assert read == 1


def test_constraints_name_columns_and_groups_of_the_table() -> None:
    """Columns that were excluded too; groups that were passed; trade-offs of their limits."""
    rule = StatisticalParity("sex", at_most=0.1)
    found = model(exclude=["sex"]).encode(X, Y)
    raw = model(exclude=["sex"], constraints=[rule]).fit(X, Y)
    encoded = model(constraints=[rule]).fit(found)
    assert encoded.to_text() == raw.to_text() and raw.proof_.startswith(encoded.proof_)
    assert "columns that are not excluded" in encoded.proof_
    assert encoded.constraints_[0].value == raw.constraints_[0].value
    assert accel_oct.solve(found, max_depth=2, leaf_penalty=0.01, constraints=[rule]).objective == raw.objective_

    groups = model().encode(X, Y, sensitive_features=X["sex"])
    unnamed = model(constraints=[StatisticalParity(at_most=0.1)])
    assert unnamed.fit(groups).objective_ == unnamed.fit(X, Y, sensitive_features=X["sex"]).objective_
    assert groups.sensitive_features == ("sex",)

    limited = model(constraints=[Recall("yes", at_least=0.5)])
    limits = [0.5, 0.8, 0.95]
    tables = [limited.trade_off(found, limits=limits), accel_oct.trade_off(limited, found, limits=limits)]
    tables.append(model(exclude=["sex"], constraints=limited.constraints).trade_off(X, Y, limits=limits))
    assert len({tuple(point.objective for point in each) for each in tables}) == 1


def test_costs_follow_the_table() -> None:
    """They are used by an objective that asks for them, and by no other."""
    costs = np.column_stack([X["age"] > 40, X["age"] <= 40]) + RNG.random((N, 2)) / 4
    found = model().encode(X, Y, costs=costs)
    raw = model(objective=InstanceCosts()).fit(X, Y, costs=costs)
    assert model(objective=InstanceCosts()).fit(found).objective_ == raw.objective_
    assert model().fit(found).objective_ == model().fit(X, Y).objective_


def test_class_weights_are_those_of_the_classifier(table: EncodedTable) -> None:
    """Not those of the one that encoded the table."""
    for weights in ("balanced", {"yes": 3, "no": 1}):
        raw = model(class_weight=weights).fit(X, Y, WEIGHTS)
        assert model(class_weight=weights).fit(table).objective_ == raw.objective_


def test_an_encoded_table_does_not_change() -> None:
    """Not when the user's arrays do, and not by assignment."""
    values, labels = RNG.random((40, 2)), RNG.integers(0, 2, 40)
    found = OptimalTreeClassifier(2).encode(values, labels)
    before = accel_oct.solve(found, max_depth=2, leaf_penalty=0.0).objective
    kept = values[:, 0].copy()
    values[:], labels[:] = 0.0, 0
    assert accel_oct.solve(found, max_depth=2, leaf_penalty=0.0).objective == before
    np.testing.assert_array_equal(found.data.values_named("x0"), kept)  # type: ignore[union-attr]
    assert not found.named and not hasattr(OptimalTreeClassifier(2).fit(found), "feature_names_in_")
    with pytest.raises(FrozenInstanceError):
        found.n_rows = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        found.data.y[0] = 1  # type: ignore[union-attr]


def test_an_encoder_of_another_library() -> None:
    """It sees the rows and labels as they were given."""
    numbers = X[["age", "income"]]
    encoder = KBinsDiscretizer(3, encode="onehot-dense", quantile_method="averaged_inverted_cdf")
    raw = model(encoder=encoder).fit(numbers, Y)
    encoded = model().fit(model(encoder=encoder).encode(numbers, Y))
    assert encoded.objective_ == raw.objective_
    np.testing.assert_array_equal(encoded.predict(numbers), raw.predict(numbers))


def test_gathered_tables_serve_classifiers(tmp_path: Any) -> None:
    """Rows that were gathered are asked as those in memory; a tally is fitted, and has no rows to list trees of."""
    frame = X.assign(answer=Y)
    rows = accel_oct.gather([frame[:50], frame[50:]], "answer", encoder=ENCODER, keep="rows", sensitive_features="sex")
    memory = model().encode(X, Y)
    assert model().fit(rows).objective_ == model().fit(memory).objective_
    assert [m.objective_ for m in model().frontier(rows)] == [m.objective_ for m in model().frontier(memory)]
    limited = model(constraints=[StatisticalParity(at_most=0.1)])
    assert limited.fit(rows).objective_ == limited.fit(X, Y, sensitive_features=X["sex"]).objective_
    counts = accel_oct.gather([frame], "answer", encoder=ENCODER, keep="counts", depth=2)
    assert model().fit(counts).objective_ == model().fit(memory).objective_
    for ask in (
        lambda: model().frontier(counts),
        lambda: model().path(counts, leaf_penalties=[0.1]),
        lambda: model().near_optimal(counts, within=0.0),
    ):
        with pytest.raises(InvalidInputError, match=r"^X: .* needs rows, but the table holds a tally"):
            ask()


@pytest.mark.parametrize("argument", ["y", "sample_weight", "sensitive_features", "costs"])
def test_what_the_table_holds_is_not_passed_again(argument: str, table: EncodedTable) -> None:
    """Each argument is named."""
    with pytest.raises(InvalidInputError, match=f"^{argument} must be None when X is an EncodedTable"):
        model().fit(table, **{argument: Y})


def test_what_needs_raw_rows_says_so(table: EncodedTable) -> None:
    """Folds learn their own encoding; a raw table needs y."""
    with pytest.raises(InvalidInputError, match="cross-validation needs the rows in memory"):
        OptimalTreeClassifierCV().fit(table, None)
    limited = model(constraints=[Recall("yes", at_least=0.5)])
    with pytest.raises(InvalidInputError, match="cross-validation needs the rows in memory"):
        limited.trade_off(table, limits=[0.5], cv=2)
    with pytest.raises(InvalidInputError, match="requires y to be passed"):
        model().fit(X)
