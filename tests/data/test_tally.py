"""Tallies: the weight of every set of columns by cell, and their sums over pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.set_weights import set_weights

from accel_oct import solve
from accel_oct.data import Tally
from accel_oct.data import tally as tally_module
from accel_oct.data.column_sets import all_sets, n_sets, place_of, places_of
from accel_oct.data.tally import counted
from accel_oct.errors import InvalidInputError


@pytest.mark.parametrize("size", range(5))
def test_places_of_sets(size):
    """Every set has its own place, in the order in which they are listed, however it is asked for."""
    sets = all_sets(7, size)
    assert [place_of(row) for row in sets] == list(range(len(sets)))
    assert places_of(sets).tolist() == list(range(len(sets)))
    assert n_sets(7, size) == sum(len(all_sets(7, smaller)) for smaller in range(size + 1))


@st.composite
def tables(draw):
    n_rows, n_features = draw(st.integers(1, 25)), draw(st.integers(1, 6))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, n_features)) < draw(st.sampled_from([0.1, 0.5, 0.9]))
    return X, rng.integers(0, 3, n_rows), rng.choice(np.array(["a", "b"]), n_rows), rng.integers(1, 6, n_rows)


@given(tables(), st.integers(0, 4))
def test_counts_are_those_of_the_rows(table, depth):
    """Each count is the weight of the rows of the cell that have all columns of the set."""
    X, y, groups, weights = table
    tally = Tally.of(X, y, depth=depth, sensitive_features=groups, sample_weight=weights)
    for size, counts in enumerate(tally.counts):
        for place, columns in enumerate(all_sets(X.shape[1], size)):
            for cell, count in enumerate(counts[:, place]):
                label, group = divmod(cell, tally.n_groups)
                rows = (y == tally.classes[label]) & (groups == tally.group_labels[group]) & X[:, columns].all(axis=1)
                assert count == weights[rows].sum()


@given(tables(), st.data())
def test_pieces_add_up(table, data):
    """The tally of all rows is the sum over pieces, in any order, though no piece has every class and group."""
    X, y, groups, weights = table
    piece = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X))))
    whole = Tally.of(X, y, depth=3, sensitive_features=groups, sample_weight=weights)
    order = data.draw(st.permutations(sorted(set(piece.tolist()))))
    parts = [
        Tally.of(
            X[piece == one],
            y[piece == one],
            depth=3,
            sensitive_features=groups[piece == one],
            sample_weight=weights[piece == one],
        )
        for one in order
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total.n_rows == whole.n_rows and total.unit == whole.unit
    assert total.classes.tolist() == whole.classes.tolist()
    assert total.group_labels.tolist() == whole.group_labels.tolist()
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(total.counts, whole.counts, strict=True))


@given(tables(), st.data())
def test_samples_on_a_path(table, data):
    """Inclusion and exclusion give the samples with some columns one and some zero."""
    X, y, groups, weights = table
    tally = Tally.of(X, y, depth=3, sensitive_features=groups, sample_weight=weights)
    columns = data.draw(st.lists(st.integers(0, X.shape[1] - 1), max_size=3, unique=True))
    split = data.draw(st.integers(0, len(columns)))
    ones, zeros = columns[:split], columns[split:]
    rows = X[:, ones].all(axis=1) & ~X[:, zeros].any(axis=1)
    assert tally.at(ones, zeros).sum() == weights[rows].sum()


@pytest.mark.parametrize("depth", range(6))
@pytest.mark.parametrize(("n_rows", "n_features"), [(0, 3), (40, 1), (700, 9), (300, 70)])
def test_bit_counts_are_the_sums(depth, n_rows, n_features):
    """Bit counts are the sums over rows: more columns than a word has bits, heavy weights, empty cells."""
    depth = min(depth, 2) if n_features > 64 else depth
    rng = np.random.default_rng(depth)
    X = rng.random((n_rows, n_features)) < rng.random(n_features)
    cells, weights = rng.choice([0, 2], n_rows), rng.choice(np.array([0, 1, 6, 2**40 + 1]), n_rows)
    found = counted(X, cells, weights, 3, depth)
    assert [part.tolist() for part in found] == set_weights(X, cells, weights, 3, depth)


def test_blocks_of_rows(monkeypatch):
    """Blocks add up, the last one is not full, and columns of a block that are left over from another do not count."""
    rng = np.random.default_rng(3)
    X, cells, weights = rng.random((1500, 8)) < 0.4, rng.integers(0, 2, 1500), np.ones(1500, dtype=np.int64)
    expected = set_weights(X, cells, weights, 2, 4)
    for rows in (512, 2**16):
        monkeypatch.setattr(tally_module, "_BLOCK_ROWS", rows)
        assert [part.tolist() for part in counted(X, cells, weights, 2, 4)] == expected


def test_too_many_sets():
    """What would not fit into any memory is refused before anything is counted."""
    with pytest.raises(InvalidInputError, match="1000 columns and depth 4 would take 620 GiB"):
        Tally.of(np.zeros((2, 1000)), [0, 1], depth=4)


def test_real_weights_add_exactly():
    """Real weights are rounded once; sums in any order are equal to the last bit, and close to the real ones."""
    rng = np.random.default_rng(1)
    X, y, weights = rng.random((90, 5)) < 0.5, rng.integers(0, 2, 90), rng.random(90) * 10.0 ** rng.integers(-3, 4, 90)
    parts = [
        Tally.of(X[rows], y[rows], depth=2, sample_weight=weights[rows])
        for rows in (slice(0, 30), slice(30, 31), slice(31, 90))
    ]
    one, other = parts[0] + parts[1] + parts[2], parts[2] + (parts[1] + parts[0])
    assert one.unit == other.unit
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(one.counts, other.counts, strict=True))
    assert abs(one.total_weight - weights.sum()) < 90 * weights.max() * 2.0**-30


def test_weights_of_another_scale():
    """Weights that a data set would scale are refused: the next piece would not be scaled."""
    for weight in (1e-200, 1e200):
        with pytest.raises(InvalidInputError, match="sample_weight must have its largest weight between"):
            Tally.of(np.ones((2, 1)), [0, 1], depth=1, sample_weight=[weight, 0])
    with pytest.raises(InvalidInputError, match="adds up to more than can be counted exactly"):
        Tally.of(np.ones((2, 1)), [0, 1], depth=1, sample_weight=[2.0**61, 2.0**61])
    with pytest.raises(InvalidInputError, match=r"row 1 has the weight .* would round to zero"):
        Tally.of(np.ones((2, 1)), [0, 1], depth=1, sample_weight=[1.0, 2.0**-40])
    small = Tally.of(np.ones((2, 1)), [0, 1], depth=1, sample_weight=[1.0, 2.0**-29])
    with pytest.raises(InvalidInputError, match="too large, or too far apart, to be added exactly"):
        small + Tally.of(np.ones((2, 1)), [0, 1], depth=1, sample_weight=[2.0**59, 1.0])


def test_what_does_not_add_up():
    """Other columns, encodings, depths, and groups on one side only: one sentence each."""
    X, y = np.eye(4, dtype=bool), [0, 1, 0, 1]
    tally = Tally.of(X, y, depth=2)
    for other, said in [
        (Tally.of(X, y, depth=2, feature_names=list("abcd")), "column 0 is 'x0' in one and 'a' in the other"),
        (Tally.of(X[:, :3], y, depth=2), "4 and 3 of them"),
        (Tally.of(X, y, depth=2, encoding="other"), "encoded in another way"),
        (Tally.of(X, y, depth=3), "depth 2 and 3"),
        (Tally.of(X, y, depth=2, sensitive_features=[1, 1, 2, 2]), "with groups and one without"),
        (Tally.of(X, ["a", "b", "a", "b"], depth=2), "no common order"),
    ]:
        with pytest.raises(InvalidInputError, match=said):
            tally + other


def test_labels_that_are_given():
    """A piece need not hold every class, nor any row at all; a label that is not among those given is an error."""
    empty = Tally.of(np.zeros((0, 3)), [], depth=2, classes=["no", "yes"])
    some = Tally.of(np.ones((2, 3)), ["yes", "yes"], depth=2)
    assert (empty + some).classes.tolist() == ["no", "yes"]
    assert (empty + some).at([0, 1]).tolist() == [0, 2]
    with pytest.raises(InvalidInputError, match="y holds 'maybe', which is not among `classes`"):
        Tally.of(np.ones((1, 3)), ["maybe"], classes=["no", "yes"])
    with pytest.raises(InvalidInputError, match="classes must be given where there are no rows"):
        Tally.of(np.zeros((0, 3)), [])
    with pytest.raises(InvalidInputError, match="made for depth 2, too small for 3 columns"):
        some.at([0, 1, 2])


def test_labels_of_several_types():
    """The labels of a sum do not depend on the order; those that could not be told apart in it are an error."""
    X, y = np.ones((4, 1)), np.array([0, 1, 1, 1])
    for one, two in ((y == 1, y), (y, y.astype(float)), (y == 1, y + 0.5)):
        first, second = (Tally.of(X, labels, depth=1) for labels in (one, two))
        assert (first + second).classes.dtype == (second + first).classes.dtype
        assert (first + second).total == 8
    large, half = Tally.of(X, y + 2**53, depth=1), Tally.of(X, y + 0.5, depth=1)
    with pytest.raises(InvalidInputError, match="too large to be exact as floats"):
        large + half
    days = Tally.of(X, np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")[y], depth=1)
    with pytest.raises(InvalidInputError, match="no common order"):
        days + Tally.of(X, y.astype(str), depth=1)


def test_arguments_that_a_file_could_not_hold():
    """What could not be loaded again is refused from the first."""
    X, y = np.ones((2, 1)), [0, 1]
    with pytest.raises(InvalidInputError, match="depth must be"):
        Tally.of(X, y, depth=10**9)
    with pytest.raises(InvalidInputError, match="encoding must be"):
        Tally.of(X, y, encoding=3)


def test_a_piece_without_any_weight():
    """It adds nothing but its labels; a tally of nothing else has no tree."""
    X, y = np.eye(3, dtype=bool), [0, 1, 2]
    light, heavy = Tally.of(X, y, depth=2, sample_weight=[0, 0, 0]), Tally.of(X[:2], y[:2], depth=2)
    for both in (light + heavy, heavy + light):
        assert both.total == 2 and both.n_rows == 5 and both.classes.tolist() == [0, 1, 2]
    with pytest.raises(InvalidInputError, match="none of any weight"):
        solve(light, max_depth=2, leaf_penalty=0.0)
