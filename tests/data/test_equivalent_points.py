"""Equivalent-point sets against their definition."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.enumeration import enumerate_trees
from oracles.instances import Instance, instances, random_instance

from accel_oct.data import BinaryDataset, EqpSets, equivalent_point_sets, equivalent_points
from accel_oct.errors import InvalidInputError

Listed = list[tuple[tuple[int, ...], list[int]]]


def by_definition(dataset: BinaryDataset, max_split_size: int) -> Listed:
    """Group by all features outside of F*; keep groups with a pair of classes that differs in exactly F*."""
    result: Listed = []
    rows = np.flatnonzero(dataset.weights > 0).tolist()
    for size in range(max_split_size + 1):
        for split_set in combinations(range(dataset.n_features), size):
            outside = [f for f in range(dataset.n_features) if f not in split_set]
            groups: dict[tuple[bool, ...], list[int]] = {}
            for i in rows:
                groups.setdefault(tuple(dataset.X[i, outside].tolist()), []).append(i)
            for group in sorted(groups.values()):
                if any(
                    dataset.y[i] != dataset.y[j]
                    and np.flatnonzero(dataset.X[i] != dataset.X[j]).tolist() == list(split_set)
                    for i, j in combinations(group, 2)
                ):
                    result.append((split_set, group))
    return result


def listed(sets: EqpSets) -> Listed:
    """Split sets and samples as plain lists."""
    return [(found.split_set, found.samples.tolist()) for found in sets]


@given(instances(max_samples=24, max_features=6, max_classes=4), st.integers(0, 2))
def test_definition(instance: Instance, max_split_size: int) -> None:
    """Exactly the sets of the definition are found, in the documented order."""
    dataset = instance.dataset
    assert listed(equivalent_point_sets(dataset, max_split_size)) == by_definition(dataset, max_split_size)


@pytest.mark.parametrize("seed", range(3))
def test_definition_on_seeded_instances(seed: int) -> None:
    """The same on larger data sets, where groups with three and four points are common."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        dataset = random_instance(rng, max_samples=40, max_features=6).dataset
        assert listed(equivalent_point_sets(dataset)) == by_definition(dataset, 2)


def test_definition_across_words_and_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of several machine words, and keys sorted in many small passes, change nothing."""
    rng = np.random.default_rng(0)
    base = rng.random((8, 130)) < 0.5
    X = base[rng.integers(0, 8, 40)]
    for row in X:
        row[rng.integers(0, 130, rng.integers(0, 3))] ^= True
    dataset = BinaryDataset.from_arrays(X, rng.integers(0, 3, 40))
    expected = listed(equivalent_point_sets(dataset))
    assert {len(split_set) for split_set, _ in expected} >= {1, 2}
    monkeypatch.setattr(equivalent_points, "_KEYS_PER_PASS", 50)
    assert listed(equivalent_point_sets(dataset)) == expected
    pairs = {
        tuple(np.flatnonzero(X[i] != X[j]).tolist())
        for i, j in combinations(range(40), 2)
        if dataset.y[i] != dataset.y[j]
    }
    assert {split_set for split_set, _ in expected} == {pair for pair in pairs if len(pair) <= 2}


def test_hash_collisions_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """With column keys of nine bits, where matches by chance abound, the sets stay the same."""

    class NineBits:
        def __init__(self, seed: int) -> None:
            self.rng = np.random.Generator(np.random.PCG64(seed))

        def integers(self, low: int, high: int, size: int, dtype: type) -> np.ndarray:
            return self.rng.integers(1, 2**9, size).astype(dtype)

    rng = np.random.default_rng(4)
    datasets = []
    for _ in range(30):
        X = (rng.random((4, 14)) < 0.5)[rng.integers(0, 4, 14)]
        for row in X:
            row[rng.integers(0, 14, rng.integers(0, 3))] ^= True
        datasets.append(BinaryDataset.from_arrays(X, rng.integers(0, 3, 14)))
    expected = [by_definition(dataset, 2) for dataset in datasets]
    monkeypatch.setattr(equivalent_points.np.random, "default_rng", NineBits)
    assert [listed(equivalent_point_sets(dataset)) for dataset in datasets] == expected


def test_the_paper_example() -> None:
    """Section 5.3: three samples that agree in all but the last feature, two of them identical."""
    dataset = BinaryDataset.from_arrays([[1, 0, 1], [1, 0, 1], [1, 0, 0]], [0, 1, 2])
    assert listed(equivalent_point_sets(dataset)) == [((), [0, 1]), ((2,), [0, 1, 2])]


def test_aggregation_needs_agreement_outside_of_the_split_set() -> None:
    """Two pairs with the same split set stay apart when they differ elsewhere, and join when they do not."""
    apart = BinaryDataset.from_arrays([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1]], [0, 1, 0, 1])
    assert listed(equivalent_point_sets(apart)) == [((0,), [0, 1]), ((0,), [2, 3])]
    together = BinaryDataset.from_arrays([[0, 0], [1, 1], [1, 1], [0, 1]], [0, 1, 1, 1])
    assert ((0, 1), [0, 1, 2, 3]) in listed(equivalent_point_sets(together))


def test_a_difference_in_part_of_the_split_set_is_not_enough() -> None:
    """Classes that only differ along one edge give a set of that size, not one of size two."""
    dataset = BinaryDataset.from_arrays([[0, 0], [0, 1]], [0, 1])
    assert listed(equivalent_point_sets(dataset)) == [((1,), [0, 1])]


@given(instances(max_samples=10, max_features=3))
def test_the_sets_bound_what_trees_can_classify(instance: Instance) -> None:
    """A tree that never branches on F* sends J to one leaf, so J scores at most its heaviest class."""
    dataset = instance.dataset
    sets = list(equivalent_point_sets(dataset))
    for tree in enumerate_trees(dataset, 2):
        leaf, predicted = tree.apply(dataset.X), tree.predict(dataset.X)
        for found in sets:
            if not set(found.split_set) & set(tree.features_used):
                rows = found.samples
                assert len(set(leaf[rows].tolist())) == 1
                score = dataset.weights[rows][predicted[rows] == dataset.y[rows]].sum()
                assert score <= dataset.class_weights(rows).max() < dataset.weights[rows].sum()


def test_sequence_behaviour() -> None:
    """The result is a sequence: length, negative positions, slices and out-of-range positions."""
    dataset = BinaryDataset.from_arrays([[1, 0, 1], [1, 0, 1], [1, 0, 0]], [0, 1, 2])
    sets = equivalent_point_sets(dataset)
    assert len(sets) == 2
    assert sets[-1].split_set == (2,)
    assert [found.split_set for found in sets[:1]] == [()]
    with pytest.raises(IndexError):
        sets[2]


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0], [1]], [0, 0]),
        ([[1]], [3]),
        ([[1, 0], [1, 0]], [0, 0]),
        (np.zeros((4, 3)), [1, 1, 1, 1]),
    ],
)
def test_nothing_to_find(X: object, y: object) -> None:
    """One class, one sample or constant columns give an empty sequence."""
    sets = equivalent_point_sets(BinaryDataset.from_arrays(X, y))
    assert len(sets) == 0
    assert list(sets) == []
    assert sets.indptr.tolist() == [0]


def test_rows_without_weight_do_not_count() -> None:
    """A sample of weight zero is in no set."""
    dataset = BinaryDataset.from_arrays([[0], [0], [1]], [0, 1, 1], [1, 0, 1])
    assert listed(equivalent_point_sets(dataset)) == [((0,), [0, 2])]


@pytest.mark.parametrize("size", [-1, 3, 1.5, None])
def test_bad_split_size(size: object) -> None:
    """Only 0, 1 and 2 are supported, and the error says so."""
    with pytest.raises(InvalidInputError, match="max_split_size must be 0, 1 or 2"):
        equivalent_point_sets(BinaryDataset.from_arrays([[0]], [0]), size)  # type: ignore[arg-type]


def test_speed() -> None:
    """Thousands of samples with a hundred features take seconds, not minutes."""
    rng = np.random.default_rng(0)
    X = np.zeros((7200, 100), dtype=bool)
    for block in range(20):  # one-hot blocks, as bucketed numbers give
        X[np.arange(7200), 5 * block + rng.integers(0, 5 if block < 4 else 1, 7200)] = True
    dataset = BinaryDataset.from_arrays(X, rng.integers(0, 3, 7200))
    started = time.perf_counter()
    sets = equivalent_point_sets(dataset)
    assert time.perf_counter() - started < 10
    assert len(sets) > 1000
