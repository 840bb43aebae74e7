"""Explanations: paths and effects by the tree, smallest changes against exhaustive search, and every kind of column."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracles.counterfactuals import smallest_change

from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.encoding import OneHotCategoryEncoder, TableEncoder
from accel_oct.errors import InvalidInputError

COLOURS = ("blue", "green", "red")
SIZES = ("small", "middle", "large", "huge")


def frame_of(rng: np.random.Generator, n_rows: int, missing: float) -> pd.DataFrame:
    """A table with whole numbers, decimals, categories, an order, booleans and times, and missing values in some."""
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 26, n_rows).astype(float),
            "rate": rng.integers(0, 6, n_rows) / 10,
            "colour": pd.Series(rng.choice(COLOURS, n_rows), dtype=object),
            "size": pd.Categorical(rng.choice(SIZES, n_rows), categories=SIZES, ordered=True),
            "member": rng.random(n_rows) < 0.5,
            "flag": rng.integers(0, 2, n_rows),
        }
    )
    for name in ("age", "colour", "size"):
        frame.loc[rng.random(n_rows) < missing, name] = np.nan if name == "age" else None
    return frame


def classes_of(rng: np.random.Generator, frame: pd.DataFrame) -> np.ndarray:
    """Classes that depend on several columns, with noise."""
    total = (
        (frame["age"].fillna(21) > 23).astype(int) * 2
        + (frame["colour"] == "red").astype(int)
        + (frame["rate"] > 0.2).astype(int)
        + (frame["size"].cat.codes > 1).astype(int)
        + frame["member"].astype(int)
    )
    return np.where(total + rng.normal(0, 0.7, len(frame)) > 2.5, "yes", "no")


def model_on(seed: int, missing: float, **settings: Any) -> tuple[OptimalTreeClassifier, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    frame = frame_of(rng, 70, missing)
    settings = {"max_depth": 3, "leaf_penalty": 0.0} | settings
    return OptimalTreeClassifier(**settings).fit(frame, classes_of(rng, frame)), frame


def values_to_try(model: Any) -> dict[str, list[Any]]:
    """Every value of each column that the tree asks about, on a grid that is finer than its thresholds."""
    every: dict[str, list[Any]] = {
        "age": np.arange(18.0, 28.0).tolist(),
        "rate": (np.arange(-1, 7) / 10).tolist(),
        "colour": list(COLOURS),
        "size": list(SIZES),
        "member": [False, True],
        "flag": [0, 1],
    }
    used = {model.encoder_.conditions_[feature].column for feature in model.tree_.tree.features_used}
    return {name: every[name] for column, name in enumerate(every) if column in used}


def distances_of(model: Any) -> dict[str, Any]:
    """Distances by their definition: differences in interquartile ranges, 1 for anything else."""
    place = {name: column for column, name in enumerate(model.feature_names_in_)}

    def ordered(name: str, number: Any) -> Any:
        def distance(old: Any, new: Any) -> float:
            if old is None or old != old:
                return 1.0
            return float(abs(number(new) - number(old)) / model.spreads_[place[name]].spread)

        return distance

    return {
        "age": ordered("age", float),
        "rate": ordered("rate", float),
        "size": ordered("size", SIZES.index),
        **{name: (lambda old, new: 1.0) for name in ("colour", "member", "flag")},
    }


def changed_row(frame: pd.DataFrame, row: int, change: Any) -> pd.DataFrame:
    """The row with its new values, in the types of the frame."""
    found = frame.iloc[[row]].copy()
    for edit in change.edits:
        found[edit.column] = pd.Series([edit.value], index=found.index, dtype=frame[edit.column].dtype)
    return found


@pytest.mark.parametrize("missing", [0.0, 0.25])
@pytest.mark.parametrize("seed", range(4))
def test_smallest_changes_against_exhaustive_search(seed: int, missing: float) -> None:
    """As few columns, and as small a distance, as the best of all combinations of values; and `predict` agrees."""
    model, frame = model_on(seed, missing)
    choices, distances = values_to_try(model), distances_of(model)
    rows = list(range(0, len(frame), 12))
    for row, explanation in zip(rows, model.explain(frame.iloc[rows]), strict=True):
        expected = smallest_change(model, frame.iloc[[row]], choices, distances)
        assert (explanation.change is None) == (expected is None)
        if explanation.change is not None and expected is not None:
            assert len(explanation.change.edits) == expected[0]
            assert explanation.change.distance == pytest.approx(expected[1], rel=1e-12)
            reached = changed_row(frame, row, explanation.change)
            assert model.predict(reached)[0] == explanation.change.prediction != explanation.prediction
            assert model.apply(reached)[0] == explanation.change.leaf


@pytest.mark.parametrize("seed", range(3))
def test_fixed_columns_and_directions_against_exhaustive_search(seed: int) -> None:
    """Columns that cannot change stay, others move only in their direction; nothing else is lost."""
    model, frame = model_on(seed, 0.2)
    choices, distances = values_to_try(model), distances_of(model)
    fixed = sorted(choices)[:1]
    choices = {name: values for name, values in choices.items() if name not in fixed}
    rows = list(range(0, len(frame), 14))
    direction = {"rate": 1, "age": -1, "size": 1}
    for row, explanation in zip(rows, model.explain(frame.iloc[rows], fixed=fixed, direction=direction), strict=True):
        one = frame.iloc[[row]]
        allowed = {}
        for name, values in choices.items():
            old, sign = one[name].iloc[0], direction.get(name, 0)
            known = not (old is None or old != old)
            number = SIZES.index if name == "size" else lambda value: value
            allowed[name] = [v for v in values if sign == 0 or (known and (number(v) - number(old)) * sign > 0)]  # type: ignore[operator]
        expected = smallest_change(model, one, allowed, distances)
        found = explanation.change
        assert (found is None) == (expected is None)
        if found is not None and expected is not None:
            assert (len(found.edits), found.distance) == (expected[0], pytest.approx(expected[1]))
            assert not {edit.column for edit in found.edits} & set(fixed)
            assert model.predict(changed_row(frame, row, found))[0] == found.prediction


def test_a_class_that_is_wanted() -> None:
    """With `to`, the change leads to that class; rows that have it need none."""
    rng = np.random.default_rng(5)
    frame = frame_of(rng, 90, 0.0)
    y = np.select([frame["age"] < 22, frame["rate"] > 0.3], ["young", "high"], "other")
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.0).fit(frame, y)
    for row, explanation in enumerate(model.explain(frame, to="high")):
        if explanation.prediction == "high":
            assert explanation.change is None
        else:
            assert explanation.change is not None
            assert model.predict(changed_row(frame, row, explanation.change))[0] == "high"


def test_effects_add_up_and_reasons_are_the_largest() -> None:
    """Prior plus effects is the probability of `predict_proba`; a reason is the sum over its column, if positive."""
    model, frame = model_on(1, 0.2)
    shares = model.predict_proba(frame)
    root = dict(zip(model.classes_, (model.tree_.class_counts[0] / len(frame)).tolist(), strict=True))
    for row, explanation in enumerate(model.explain(frame)):
        own = shares[row, list(model.classes_).index(explanation.prediction)]
        assert explanation.probability == own
        assert explanation.prior == pytest.approx(root[explanation.prediction], rel=1e-12)
        assert explanation.prior + sum(step.effect for step in explanation.steps) == pytest.approx(own, abs=1e-12)
        sums = {step.column: 0.0 for step in explanation.steps}
        for step in explanation.steps:
            sums[step.column] += step.effect
        expected = sorted((total for total in sums.values() if total > 0), reverse=True)[:4]
        assert [reason.effect for reason in explanation.reasons] == pytest.approx(expected)
        for reason in explanation.reasons:
            assert reason.effect == pytest.approx(sums[reason.column])


def test_paths_are_those_of_the_tree() -> None:
    """Each answer is a condition that the row fulfils, from the root to the leaf of `apply`."""
    model, frame = model_on(2, 0.2)
    path = model.decision_path(frame)
    for row, explanation in enumerate(model.explain(frame)):
        assert explanation.leaf == model.apply(frame.iloc[[row]])[0]
        assert len(explanation.steps) == path[row].sum() - 1


def test_times_durations_and_large_numbers() -> None:
    """New values of times and durations lie in the units of the column; whole numbers beyond 2**53 are exact."""
    n_rows = 40
    days = np.arange(n_rows)
    big = np.array([2**60 + 2 * int(day) for day in days], dtype=object)
    columns: dict[str, Any] = {
        "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D"),
        "zoned": pd.DatetimeIndex(pd.Timestamp("2024-01-01", tz="Europe/Berlin") + pd.to_timedelta(days, unit="h")),
        "took": pd.to_timedelta(days * 90, unit="s"),
        "big": big,
    }
    for name, values in columns.items():
        frame = pd.DataFrame({name: values})
        y = np.where(days < 17, "early", "late")
        model = OptimalTreeClassifier(max_depth=1, leaf_penalty=0.0).fit(frame, y)
        for row, explanation in enumerate(model.explain(frame)):
            assert explanation.change is not None
            reached = frame.iloc[[row]].copy()
            reached[name] = pd.Series([explanation.change.edits[0].value], index=reached.index).astype(
                frame[name].dtype
            )
            assert model.predict(reached)[0] == explanation.change.prediction != explanation.prediction


def test_narrow_intervals_get_other_decimals() -> None:
    """Where no number with the decimals of the column fits between two thresholds, the nearest float is taken."""
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 6})
    y = np.array([0, 1, 0, 0] * 6)
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.0).fit(X, y)
    model.spreads_ = {0: type(model.spreads_[0])(100.0, 0, 50.0)}
    for condition_free in (0.0, 9.0):
        row = pd.DataFrame({"x": [condition_free]})
        (explanation,) = model.explain(row)
        assert explanation.change is not None
        row["x"] = [float(explanation.change.edits[0].value)]
        assert model.predict(row)[0] == 1


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_numbers_in_single_precision(dtype: str) -> None:
    """New values reach the leaf also after the rounding of a column of single or half precision."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60)}).astype(dtype)
    model = OptimalTreeClassifier(max_depth=3).fit(X, rng.integers(0, 3, 60))
    short = [edit.new for each in model.explain(X) if each.change is not None for edit in each.change.edits]
    assert max(map(len, short)) <= 6  # three decimals
    for spreads in (model.spreads_, {k: type(entry)(100.0, 0, 50.0) for k, entry in model.spreads_.items()}):
        model.spreads_ = spreads  # the second ones have no decimals between the limits
        for row, explanation in enumerate(model.explain(X)):
            assert explanation.change is not None
            reached = changed_row(X, row, explanation.change)
            assert model.predict(reached)[0] == explanation.change.prediction != explanation.prediction
            assert model.apply(reached)[0] == explanation.change.leaf


def test_infrequent_and_unseen_categories() -> None:
    """ "is infrequent" is reached by a known category; an unseen category is a value like any other."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": rng.choice(["a", "b", "c", "d", "e"], 200, p=[0.4, 0.3, 0.1, 0.1, 0.1])})
    y = np.where(frame["town"].isin(["a", "b"]), 0, 1)
    encoder = TableEncoder(categorical=OneHotCategoryEncoder(max_categories=3))
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.0, encoder=encoder).fit(frame, y)
    rows = pd.DataFrame({"town": ["a", "c", "unseen"]})
    for row, explanation in enumerate(model.explain(rows)):
        assert explanation.steps[0].value == rows["town"][row]
        assert explanation.change is not None
        new = pd.DataFrame({"town": [explanation.change.edits[0].value]})
        assert new["town"][0] in set("abcde")
        assert model.predict(new)[0] != explanation.prediction


def test_a_value_that_was_missing_becomes_known() -> None:
    """The known value nearest to the median is taken; a known value never becomes missing."""
    X = pd.DataFrame({"x": [np.nan] * 10 + [1.0, 2.0, 3.0, 4.0, 5.0] * 4})
    model = OptimalTreeClassifier(max_depth=1, leaf_penalty=0.0).fit(X, X["x"].isna())
    missing, known = model.explain(X.iloc[[0, 10]])
    assert missing.change is not None
    assert missing.change.edits[0].value == 3
    assert known.change is None
    assert "smallest change: none" in str(known)


def test_leaves_of_one_tree_and_binary_columns() -> None:
    """A single leaf has neither path nor change; binary columns are written as 0 and 1."""
    X, y = np.array([[0, 1], [1, 1], [1, 0], [0, 0]] * 3), np.array([0, 1, 1, 0] * 3)
    leaf = OptimalTreeClassifier(max_depth=0).fit(X, y)
    (alone,) = leaf.explain(X[:1])
    assert (alone.steps, alone.reasons, alone.change) == ((), (), None)
    model = OptimalTreeClassifier(max_depth=1, leaf_penalty=0.0, encoder=None).fit(X, y)
    (explanation,) = model.explain(X[:1])
    assert explanation.change is not None
    assert [(edit.column, edit.old, edit.new, edit.value) for edit in explanation.change.edits] == [("x0", "0", "1", 1)]


def test_other_forms_hold_the_same() -> None:
    """Text, frame, dictionaries and JSON; a model from JSON explains in the same words."""
    model, frame = model_on(3, 0.2)
    found = model.explain(frame.iloc[:5])
    again = OptimalTreeClassifier.from_json(model.to_json()).explain(frame.iloc[:5])
    assert str(again) == str(found)
    assert json.loads(found.to_json()) == found.to_dicts()
    table = found.to_frame()
    assert table["prediction"].tolist() == model.predict(frame.iloc[:5]).tolist()
    assert table["reason 1"].tolist() == [
        " and ".join(each.reasons[0].conditions) if each.reasons else None for each in found
    ]
    assert len(found[1:3]) == 2


def test_cross_validated_and_encoded_models() -> None:
    """The classifier with cross-validation explains too; without rows, limits stand for the spread of a column."""
    model, frame = model_on(0, 0.0)
    y = model.predict(frame)
    chosen = OptimalTreeClassifierCV(2, leaf_penalties=[0.01], cv=2).fit(frame, y)
    assert len(chosen.explain(frame.iloc[:3])) == 3
    encoded = OptimalTreeClassifier(2, 0.0).fit(OptimalTreeClassifier(2, 0.0).encode(frame, y))
    for row, explanation in enumerate(encoded.explain(frame.iloc[:20])):
        if explanation.change is not None:
            assert encoded.predict(changed_row(frame, row, explanation.change))[0] == explanation.change.prediction


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fixed": "age"}, "fixed must be a list of columns"),
        ({"fixed": ["agee"]}, "fixed: X has no column 'agee'; did you mean 'age'"),
        ({"fixed": [17]}, "fixed must hold names or positions"),
        ({"direction": ["age"]}, "direction must map columns"),
        ({"direction": {"age": "up"}}, "direction must map columns to 1, -1 or 0"),
        ({"direction": {"colour": 1}}, "categories of column 'colour' have no order"),
        ({"to": "maybe"}, "to must be a class of the model"),
    ],
)
def test_invalid_arguments(arguments: dict[str, Any], message: str) -> None:
    """A sentence that names the argument."""
    model, frame = model_on(0, 0.0)
    with pytest.raises(InvalidInputError, match=message):
        model.explain(frame.iloc[:1], **arguments)


def test_encoders_of_other_libraries() -> None:
    """Their columns are not known: a sentence says so."""
    from sklearn.preprocessing import OneHotEncoder

    X = np.array([["a"], ["b"]] * 5)
    model = OptimalTreeClassifier(1, 0.0, encoder=OneHotEncoder()).fit(X, X[:, 0] == "a")
    with pytest.raises(InvalidInputError, match="explain needs an encoder of accel_oct"):
        model.explain(X)
