"""Values are counted exactly in any order; beyond a limit they are rounded, with an error that is known."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_oct.data import BinaryDataset, pack_rows
from accel_oct.encoding import QuantileThresholdEncoder
from accel_oct.errors import InvalidInputError
from accel_oct.pieces.batches import Batch, coded
from accel_oct.pieces.counting import ColumnCounts, Counted, Sample, WeightTotals
from accel_oct.pieces.encoders import fitted_on_counts
from accel_oct.pieces.reducing import DistinctRows

LARGE = 10**6


def counts_of(parts: list[Any], weights: list[Any] | None = None, limit: int = LARGE) -> ColumnCounts:
    """The parts counted by themselves and merged, as a cluster does."""
    total = ColumnCounts("v", limit)
    for place, part in enumerate(parts):
        one = ColumnCounts("v", limit)
        if len(part):
            one.add(coded(np.asarray(part), "v"), None if weights is None else weights[place], "a piece")
        total.merge(one)
    return total.compact()


@given(st.lists(st.lists(st.floats(allow_infinity=False, width=32), max_size=8), min_size=1, max_size=5))
def test_counts_add_up(parts: list[list[float]]) -> None:
    """The values of all parts together and how often each occurs, missing ones apart."""
    found = counts_of([np.array(part, dtype=float) for part in parts])
    every = np.array([value for part in parts for value in part], dtype=float)
    values, times = np.unique(every[~np.isnan(every)], return_counts=True)
    assert found.values.tolist() == values.tolist() and found.weights.tolist() == times.tolist()
    assert (found.missing or 0) == np.isnan(every).sum() and not found.level


@pytest.mark.parametrize(
    "parts",
    [
        [[1, 2], [2.0, 3.5]],
        [np.array([1, 200], dtype=np.uint8), np.array([-5, 1], dtype=np.int8)],
        [np.array([2**60, 1]), np.array([0.5])],
        [np.array([1, None], dtype=object), [1, 2]],
        [np.array(["b", None, "a"], dtype=object), np.array(["a"], dtype=object)],
        [np.array(["2024-01-01"], dtype="M8[D]"), np.array(["2024-01-01T12", "NaT"], dtype="M8[s]")],
        [np.array([True]), np.array([False, True])],
    ],
)
def test_types_of_one_family_are_put_together(parts: list[Any]) -> None:
    """Whole numbers and floats, also too large for floats; gaps beside whole numbers; times of other units."""
    for order in (parts, parts[::-1]):
        found = counts_of(order)
        expected: dict[Any, int] = {}
        for part in order:
            for value in np.asarray(part).tolist():
                if value is not None and value == value:
                    expected[value] = expected.get(value, 0) + 1
        if found.values.dtype.kind != "M":
            assert dict(zip(found.values.tolist(), found.weights.tolist(), strict=True)) == expected
        assert found.weights.sum() == sum(expected.values())


@given(
    st.lists(st.floats(-1e300, 1e300) | st.integers(-10, 10).map(float), min_size=1, max_size=200, unique=True)
    | st.lists(st.integers(-(2**62), 2**62) | st.integers(-300, 300), min_size=1, max_size=200, unique=True),
    st.integers(2, 20),
    st.randoms(use_true_random=False),
)
def test_rounded_values_keep_their_ranks(values: list[float], limit: int, random: Any) -> None:
    """Too many: every kept value stands for those from it up to the next, their counts are exact, order is nothing."""
    found = counts_of([np.array(values)], limit=limit)
    shuffled = random.sample(values, len(values))
    again = counts_of([np.array(shuffled[start : start + 7]) for start in range(0, len(values), 7)], limit=limit)
    assert again.values.tolist() == found.values.tolist() and again.weights.tolist() == found.weights.tolist()
    assert again.level == found.level and len(found.values) <= limit
    owner = np.searchsorted(found.values, np.array(values), side="right") - 1
    assert owner.min() >= 0
    assert np.bincount(owner, minlength=len(found.values)).tolist() == found.weights.tolist()
    assert found.rank_error == (found.weights.max() / len(values) if len(values) > limit else 0.0)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(12, 25),
)
def test_whole_numbers_and_floats_are_rounded_alike(seed: int, limit: int) -> None:
    """A column that is of floats in some pieces only is rounded as one of floats, whichever piece comes first.

    As long as numbers keep a digit at all, that is where no more are kept than there are powers of two.
    """
    rng = np.random.default_rng(seed)
    whole = (rng.integers(1024, 8192, 60) * rng.choice([-1, 1], 60)).tolist()
    real = (rng.uniform(1024, 8192, 60) * rng.choice([-1, 1], 60)).tolist()
    parts = [np.array(whole[:30]), np.array(real[:30]), np.array(whole[30:], dtype=np.int64), np.array(real[30:])]
    expected = counts_of([np.array([*whole, *real], dtype=float)], limit=limit)
    for order in (parts, parts[::-1], [parts[0], parts[2], parts[1], parts[3]]):
        found = counts_of([part for part in order if len(part)], limit=limit)
        assert found.values.tolist() == expected.values.tolist()
        assert found.weights.tolist() == expected.weights.tolist()


@pytest.mark.parametrize("kind", ["float", "int", "date"])
def test_quantiles_of_a_sketch_are_off_by_its_error(kind: str) -> None:
    """Each threshold cuts the data within `rank_error` of where the exact quantile cuts it."""
    rng = np.random.default_rng(0)
    values = rng.lognormal(3, 2, 20_000)
    if kind != "float":
        values = (values * 1000).astype(np.int64)
    if kind == "date":
        values = values.view("M8[s]")
    exact = QuantileThresholdEncoder(10).fit_transform(values.reshape(-1, 1))
    counts = counts_of(np.array_split(values, 20), limit=500)
    totals = WeightTotals()
    totals.add(len(values), None)
    rough = fitted_on_counts(QuantileThresholdEncoder(10), Counted({"v": counts}, Sample(0, 0), totals), ["v"])
    assert 0 < counts.rank_error < 0.05 and len(rough.conditions_) == 9
    del rough.feature_names_in_
    off = np.abs(rough.transform(values.reshape(-1, 1)).mean(axis=0) - exact.mean(axis=0))
    assert off.max() <= counts.rank_error
    assert rough.inexact_ == tuple(range(9))


def test_text_is_never_rounded() -> None:
    """Too many categories are an error that says what to do."""
    with pytest.raises(InvalidInputError, match="more than 3 distinct values, too many to count; raise max_distin"):
        counts_of([np.array(list("abcd"), dtype=object)], limit=3)


# ---------------------------------------------------------------- weights


@given(st.lists(st.floats(0, 1e300) | st.integers(0, 9).map(float), min_size=1, max_size=30).filter(any))
def test_weights_are_rounded_as_in_memory(weights: list[float]) -> None:
    """In pieces, in any order, each weight becomes what `BinaryDataset` makes of it when it knows all of them.

    But for weights that it rounds to zero: in pieces they are one step of the grid, so that no row is lost.
    """
    array = np.array(weights)
    totals = WeightTotals()
    for part in np.array_split(array[::-1], 3):
        other = WeightTotals()
        other.add(len(part), part)
        totals.merge(other)
    assert totals.total == sum(map(Fraction, weights))
    unit = totals.unit()
    expected = BinaryDataset.from_arrays(np.zeros((len(array), 1)), np.arange(len(array)) % 2, array)
    assert unit.grid_bits == expected.grid_bits
    step = float(unit.real(np.ones(1, dtype=np.int64))[0])
    nothing = (array > 0) & (expected.weights == 0)
    assert unit.real(unit.whole(array)).tolist() == np.where(nothing, step, expected.weights).tolist()
    assert float(totals.total) == math.fsum(weights)


# ---------------------------------------------------------------- rows and samples


@pytest.mark.parametrize("n_features", [0, 1, 7, 8, 63, 64, 65, 130])
def test_rows_are_packed_and_unpacked(n_features: int) -> None:
    """As `pack_rows` packs them; merging adds weights and samples, drops what weighs nothing, and sorts."""
    rng = np.random.default_rng(n_features)
    X = rng.random((60, n_features)) < 0.5
    X[30:] = X[:30]
    np.testing.assert_array_equal(pack_rows(np.asfortranarray(X)), pack_rows(X))
    cells, units = np.repeat(rng.integers(0, 2, 30), 2).reshape(2, 30, order="F").ravel(), rng.integers(0, 3, 60)
    parts = [
        DistinctRows.of(np.ascontiguousarray(X[rows].T), cells[rows], units[rows])
        for rows in np.array_split(rng.permutation(60), 4)
    ]
    found = parts[3] + (parts[1] + (DistinctRows.none(n_features) + (parts[0] + parts[2])))
    expected: dict[Any, tuple[int, int]] = {}
    for row, cell, unit in zip(X.tolist(), cells.tolist(), units.tolist(), strict=True):
        if unit:
            before = expected.get((*row, cell), (0, 0))
            expected[(*row, cell)] = before[0] + unit, before[1] + 1
    listed = zip(found.X.tolist(), found.cells, found.units, found.samples, strict=True)
    assert [((*row, cell), (unit, n)) for row, cell, unit, n in listed] == sorted(expected.items())


def test_a_sample_is_the_same_in_any_order() -> None:
    """Every row has the same chance, which does not depend on when its piece is read; few rows are all there."""
    frames = [Batch({"v": np.arange(100 * place, 100 * place + 100)}, 100) for place in range(10)]

    def taken(size: int, order: list[int], seed: int = 0) -> list[int]:
        whole = Sample(size, seed)
        for place in order:
            part = Sample(size, seed)
            for start in (0, 60):
                rows = slice(start, 60 if start == 0 else 100)
                values = frames[place].columns["v"][rows]  # type: ignore[index]
                part.add(Batch({"v": values}, len(values)), ["v"], None, (place, start))
            whole.merge(part)
        table, weights = whole.rows(["v"])
        assert weights.tolist() == [1.0] * len(table)
        return list(table.columns[0].tolist())

    order = list(range(10))
    assert taken(5000, order[::-1]) == list(range(1000))
    some = taken(200, order)
    assert some == taken(200, order[::-1]) and len(set(some)) == 200 and some == sorted(some)
    assert some != taken(200, order, seed=1)
    often = np.bincount([value // 100 for seed in range(30) for value in taken(200, order, seed)])
    assert often.min() > 450 and often.max() < 750  # 600 of each piece are expected


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u4", "i8", "u8"])
def test_whole_numbers_at_the_ends_of_their_type(kind):
    """The distinct values of a column are its own up to the least and the largest number there is."""
    ends = np.iinfo(kind)
    for start in (ends.min, ends.max - 5, 0):
        column = np.array([start + more for more in (3, 0, 1, 1, 5)], dtype=kind)
        found = coded(column, "a")
        assert found.decoded().tolist() == column.tolist()
        assert found.values.tolist() == sorted(set(column.tolist()))
