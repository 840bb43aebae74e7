"""Whatever a JSON document holds, a valid model comes out of it, or the library's own error."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.estimator_support import mixed_frame
from hypothesis import given
from hypothesis import strategies as st

from accel_oct import OptimalTreeClassifier, Solver
from accel_oct.constraints import StatisticalParity
from accel_oct.encoding import OneHotCategoryEncoder, TableEncoder
from accel_oct.errors import InvalidInputError
from accel_oct.solving.config import Config
from accel_oct.solving.result import STATUSES

X, Y = mixed_frame(60)
X = X.iloc[:, :9]  # every kind of column; few conditions, so that changes hit everything else too


def _documents() -> list[str]:
    weights, config = {"high": 2.0, "low": 1.0}, Config.preset("default")
    solver = Solver(threads=2, seed=3, options={"presolve": "on"})
    plain = OptimalTreeClassifier(2, 0.002, solver=solver, config=config, class_weight=weights).fit(X, Y)
    small = X[["age", "smoker", "plan"]]
    encoder = TableEncoder(categorical=OneHotCategoryEncoder(unknown="error"))
    checking = OptimalTreeClassifier(1, 0.002, encoder=encoder).fit(small, (Y == "high").astype(int))
    fair = OptimalTreeClassifier(
        2,
        0.002,
        constraints=[StatisticalParity("smoker", at_most=0.2)],
        exclude=["smoker"],
        max_leaf_nodes=4,
        objective="f1",
    ).fit(small, Y)
    return [plain.to_json(), checking.to_json(), fair.to_json()]


DOCUMENTS = _documents()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every entry of a document, itself included."""
    yield path
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from places(entry, (*path, key))
    elif isinstance(value, list):
        for key, entry in enumerate(value):
            yield from places(entry, (*path, key))


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = {"name": "TableEncoder", "parameters": {"numeric": value}}
    return value


NASTY = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 70),
    st.sampled_from([2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**200, 10**299, 10**301, 10**4000]),
    st.floats(),
    st.sampled_from([1e308, -1e308, 5e-324, -0.0]),
    st.text(max_size=3),
    st.sampled_from(["", "nan", "a\0", "\ud800", "optimal", "categorical", "x" * 5000, "auto", "TableEncoder"]),
    st.lists(st.one_of(st.integers(-1, 3), st.text(max_size=2)), max_size=3),
    st.just({}),
    st.just({"preset": ["default"]}),
    st.sampled_from([deep(3), deep(20), deep(300)]),
)

PLACES = [list(places(json.loads(text))) for text in DOCUMENTS]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A document with one to three entries replaced, removed, doubled or exchanged."""
    which = draw(st.integers(0, len(DOCUMENTS) - 1))
    document = json.loads(DOCUMENTS[which])
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(PLACES[which][1:]))
        place, key = document, path[-1]
        try:
            for step in path[:-1]:
                place = place[step]
            change = draw(st.sampled_from(["replace", "replace", "remove", "double", "copy"]))
            if change == "remove":
                del place[key]
            elif change == "double" and isinstance(place, list):
                place.insert(key, copy.deepcopy(place[key]))
            elif change == "copy":
                place[key] = copy.deepcopy(place[draw(st.sampled_from(sorted(place, key=str)))])
            else:
                place[key] = copy.deepcopy(draw(NASTY))  # or a later change may put it into itself
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    return json.dumps(document)


def use(text: str) -> None:
    """Read; what comes out must predict, print, and be written and read again the same."""
    try:
        model = OptimalTreeClassifier.from_json(text)
    except InvalidInputError as error:
        assert 0 < len(str(error)) < 1000
        return
    again = model.to_json()
    assert OptimalTreeClassifier.from_json(again).to_json() == again
    assert model.bound_ >= model.objective_
    assert model.status_ in STATUSES
    assert model.to_text()
    try:
        predicted = model.predict(X[list(getattr(model, "feature_names_in_", X.columns))])
    except (InvalidInputError, KeyError):  # the table does not fit the columns of the changed document
        return
    assert set(predicted.tolist()) <= set(model.classes_.tolist())


@given(mutated())
def test_changed_entries(text: str) -> None:
    """Any entry, anywhere, replaced by something of another type, size or meaning."""
    use(text)


@given(st.sampled_from(DOCUMENTS), st.data())
def test_changed_text(text: str, data: st.DataObject) -> None:
    """Stretches of the text removed, repeated or overwritten."""
    begin = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(begin, min(len(text), begin + 60)))
    middle = data.draw(
        st.sampled_from(["", text[begin:end] * 2, "1", "9" * 5000, "1e999", "NaN", '"', "[", "{", "null,"])
    )
    use(text[:begin] + middle + text[end:])


def entry(*path: Any, to: Any) -> str:
    document = json.loads(DOCUMENTS[0])
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return json.dumps(document)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("parameters", "solver", "seed"), 10**4000, "digits"),
        (("parameters", "max_depth"), "3", "max_depth"),
        (("parameters", "max_depth"), 10**200, "max_depth"),
        (("parameters", "leaf_penalty"), None, "leaf_penalty"),
        (("parameters", "leaf_penalty"), -1, "leaf_penalty"),
        (("parameters", "solver"), 3, "solver"),
        (("parameters", "solver", "threads"), 0, "threads"),
        (("parameters", "solver", "threads"), 1.5, "threads"),
        (("parameters", "solver", "backend"), 3, "backend"),
        (("parameters", "solver", "gap"), -1, "gap"),
        (("parameters", "solver", "options"), [], "options"),
        (("parameters", "config"), "fastest", "preset"),
        (("parameters", "time_limit"), True, "time_limit"),
        (("parameters", "class_weight"), [["a", 1], ["a", 2]], "twice"),
        (("parameters", "config", "warm_start"), ["cart"], "warm_start"),
        (("parameters", "config"), {"preset": ["default"]}, "preset"),
        (("parameters", "encoder"), deep(300), "deep"),
        (("parameters", "encoder"), deep(10), "numeric|name"),
        (("classes", "values"), ["a\0", "b"], "label"),
        (("classes", "values"), ["x" * 10**6, *map(str, range(10, 99))], "too long"),
        (("classes",), {"type": "int", "values": [2**64, 2**64 + 1]}, "64 bits"),
        (("classes",), {"type": "int", "values": [-1, 2**63]}, "64 bits"),
        (("columns", "names"), 3, "names must be a list"),
        (("columns", "names"), ["a"] * X.shape[1], "distinct"),
        (("encoder", "categories"), [[999, ["a"]]], "column 999"),
        (("encoder", "parameters", "missing"), ["error"], "plain"),
        (("encoder", "parameters", "numeric"), "x" * 5000, "numeric"),
        (("encoder",), {"name": "OneHotCategoryEncoder", "parameters": {"unknown": "x" * 5000}}, "unknown"),
        (("result", "bound"), -5.0, "contradict"),
        (("result", "bound"), 5.0, "contradict"),
        (("result", "history"), [[]], "three numbers"),
        (("result", "history"), [[0.0, 1.0, 0.5]], "above its bound"),
        (("result", "seconds"), -1.0, "seconds"),
        (("result", "stats"), deep(100), "deep"),
        (("library",), "\ud800", "lone surrogate"),
    ],
)
def test_known_attacks(path: tuple[Any, ...], value: Any, message: str) -> None:
    """Each of these once came out as another library's error, or as a model that could not be."""
    with pytest.raises(InvalidInputError, match=message) as caught:
        OptimalTreeClassifier.from_json(entry(*path, to=value))
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"seconds": ', '"seconds": 1e999, "x": ', "too large"),
        ('"seconds": ', '"seconds": ' + "9" * 5000 + ', "x": ', "5000 digits"),
        ('"seconds": ', '"seconds": 0, "seconds": ', "'seconds' twice"),
        ('"schema": 2', '"schema": 2, "schema": 2', "'schema' twice"),
        ('"type": "str"', '"type": "float"', "type float"),
    ],
)
def test_text_that_is_not_strict_json(old: str, new: str, message: str) -> None:
    """Numbers that overflow or go on, and keys that come twice."""
    assert old in DOCUMENTS[0]
    with pytest.raises(InvalidInputError, match=message):
        OptimalTreeClassifier.from_json(DOCUMENTS[0].replace(old, new, 1))


def test_infinite_classes_are_refused() -> None:
    """1e999 is how JSON would spell infinity."""
    model = OptimalTreeClassifier(max_depth=1).fit(np.arange(20.0)[:, None], np.array([1.0, 2.0] * 10))
    text = model.to_json()
    with pytest.raises(InvalidInputError, match="too large"):
        OptimalTreeClassifier.from_json(text.replace("2.0", "1e999", 1))


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_can_be_read_again(status: Any) -> None:
    """One definition of the statuses: none can be written that cannot be read."""
    model = OptimalTreeClassifier(max_depth=1).fit(np.arange(20.0)[:, None], [0, 1] * 10)
    model.result_ = replace(model.result_, status=status)
    again = OptimalTreeClassifier.from_json(model.to_json())
    assert again.status_ == again.result_.status == status


@pytest.mark.parametrize("dtype", [np.uint64, np.int64, np.uint8, np.int8])
def test_whole_labels_round_trip_to_the_limits_of_their_type(dtype: Any) -> None:
    """The smallest and the largest label, those of uint64 included."""
    y = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max] * 10, dtype=dtype)
    model = OptimalTreeClassifier(max_depth=1).fit(np.tile([0.0, 1.0], 10)[:, None], y)
    again = OptimalTreeClassifier.from_json(model.to_json())
    assert again.classes_.tolist() == [np.iinfo(dtype).min, np.iinfo(dtype).max]
    assert again.predict([[0.0], [1.0]]).tolist() == model.predict([[0.0], [1.0]]).tolist()


def test_what_could_not_be_read_is_not_written(tmp_path: Any) -> None:
    """A parameter that was changed to nonsense after fitting: refused, and the old file stays."""
    path = tmp_path / "model.json"
    model = OptimalTreeClassifier(max_depth=1).fit(pd.DataFrame({"a": range(20)}), [0, 1] * 10)
    old = model.to_json(path)
    model.set_params(max_depth="three")
    with pytest.raises(InvalidInputError, match=r"to_json cannot store.*max_depth"):
        model.to_json(path)
    assert path.read_text(encoding="utf-8") == old
