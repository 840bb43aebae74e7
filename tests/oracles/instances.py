"""Small data sets that are rich in ties, and chains: as hypothesis strategies, and as seeded generators.

Ties are where optimal-tree code goes wrong, so columns are copied, complemented and held constant, rows are
repeated with other labels, classes are made interchangeable, and leaf penalties are drawn such that the price
of a leaf is often a multiple of a sample's weight.

Random data rarely makes a deep and narrow tree pay, so bounds that count the leaves of such trees are slack on it.
Chains are the data on which they are tight.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from hypothesis import strategies as st

from accel_oct.data import BinaryDataset

REAL_WEIGHTS = (0.1, 0.2, 0.3, 1 / 3, 0.5, 0.7, 1.0, 1.7, 2.5, 3.141592653589793)
COLUMN_KINDS = ("copy", "flip", "zeros", "ones", "and")
WEIGHT_KINDS = ("none", "integer", "real")


@dataclass(frozen=True)
class Instance:
    """What one call of the library needs."""

    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray | None
    leaf_penalty: float
    max_depth: int

    @cached_property
    def dataset(self) -> BinaryDataset:
        return BinaryDataset.from_arrays(self.X, self.y, self.sample_weight)

    @cached_property
    def leaf_price(self) -> float:
        return self.dataset.leaf_price(self.leaf_penalty)

    def __repr__(self) -> str:
        weights = None if self.sample_weight is None else self.sample_weight.tolist()
        return (
            f"Instance(X=np.array({self.X.astype(int).tolist()}), y=np.array({self.y.tolist()}), "
            f"sample_weight={weights}, leaf_penalty={self.leaf_penalty!r}, max_depth={self.max_depth})"
        )


def leaf_penalties(n_samples: int) -> tuple[float, ...]:
    """From free leaves to a price that leaves one leaf best, with multiples of one sample's share."""
    share = 1 / n_samples
    return (0.0, 0.0, 0.01, share / 2, share, share, 2 * share, 3 * share, 0.05, 0.1, 0.25, 1.0, 3.0)


def derive_column(X: np.ndarray, kind: str, a: int, b: int) -> np.ndarray:
    """A column that ties with the columns a and b of X."""
    if kind == "copy":
        return X[:, a]
    if kind == "flip":
        return ~X[:, a]
    if kind == "and":
        return X[:, a] & X[:, b]
    return np.full(len(X), kind == "ones")


def mirror(X: np.ndarray, y: np.ndarray, n_classes: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Append the given rows again with the next class: identical points that no tree can separate."""
    return np.concatenate([X, X[rows]]), np.concatenate([y, (y[rows] + 1) % n_classes])


def random_instance(
    rng: np.random.Generator,
    *,
    max_samples: int = 40,
    max_features: int = 6,
    max_classes: int = 4,
    max_depth: int = 3,
    weights: tuple[str, ...] = WEIGHT_KINDS,
) -> Instance:
    """One random instance; the same `rng` state gives the same instance."""
    n_base = int(rng.integers(1, max_features + 1))
    n_samples = int(rng.integers(1, max(2, 2 * max_samples // 3 + 1)))
    n_classes = int(rng.integers(2, max_classes + 1))
    X = rng.random((n_samples, n_base)) < rng.choice([0.2, 0.5, 0.5, 0.8])
    for _ in range(int(rng.integers(0, max_features - n_base + 1))):
        a, b = rng.integers(0, X.shape[1], 2)
        X = np.column_stack([X, derive_column(X, str(rng.choice(COLUMN_KINDS)), int(a), int(b))])
    y = rng.integers(0, n_classes, n_samples)
    if rng.random() < 0.5:  # a hidden rule with some noise, else pure noise
        a, b = rng.integers(0, X.shape[1], 2)
        rule = (X[:, a] ^ X[:, b]) if rng.random() < 0.5 else (X[:, a] & X[:, b])
        y = np.where(rng.random(n_samples) < 0.2, y, rule.astype(np.int64))
    room = max_samples - n_samples
    if room > 0 and rng.random() < 0.6:
        rows = np.arange(n_samples) if rng.random() < 0.3 else rng.integers(0, n_samples, room)
        X, y = mirror(X, y, n_classes, rows[:room])
    X = X[:, rng.permutation(X.shape[1])]
    n_samples = len(y)
    kind = str(rng.choice(weights))
    sample_weight = None
    if kind == "integer":
        sample_weight = rng.integers(0, 4, n_samples).astype(float)
        sample_weight[rng.integers(n_samples)] += 1
    elif kind == "real":
        sample_weight = rng.choice(REAL_WEIGHTS, n_samples)
    penalty = float(rng.choice(leaf_penalties(n_samples)))
    return Instance(X, y, sample_weight, penalty, int(rng.integers(0, max_depth + 1)))


def chain_instance(
    rng: np.random.Generator,
    length: int,
    *,
    n_classes: int = 2,
    n_noise: int = 0,
    weights: str = "none",
) -> Instance:
    """Data whose best tree is a decision list of `length` steps, one on each of as many columns.

    The positives have ones in all columns of the list, and the sibling of a step has one zero there and another class:
    every step is needed to keep its sibling out. At some steps heavy rows with the zero in the same place and anything
    behind it go the same way. A sibling alone is worth one to two leaf prices, a positive more than all the leaves. So
    the list makes no mistake and has ``length + 1`` leaves, no tree is better, and what one level less costs lies
    between one and two leaf prices: a bound on deep trees that charges one leaf too many falls below the optimum.
    """
    X, y, counts = _chain_rows(rng, length, n_classes, 0, n_noise)
    return _chain(rng, X, (y + rng.integers(n_classes)) % n_classes, counts, weights, length)


def fork_instance(
    rng: np.random.Generator,
    lengths: tuple[int, int],
    *,
    n_classes: int = 2,
    n_noise: int = 0,
    weights: str = "none",
) -> Instance:
    """Data whose best tree is one split with a decision list, as in `chain_instance`, on either side.

    Both lists use the same columns, for other classes: only the column of the split can come first, and what is best
    below it differs from side to side.
    """
    longest = max(lengths)
    parts = []
    for side, length in enumerate(lengths):
        rows, y, counts = _chain_rows(rng, length, n_classes, side, n_noise)
        columns = rng.permutation(longest)[:length]
        X = np.zeros((len(y), 1 + longest + n_noise), dtype=bool)
        X[:, 0] = side
        X[:, 1 + columns] = rows[:, :length]
        X[:, 1 + longest :] = rows[:, length:]
        parts.append((X, y, counts))
    X, y, counts = (np.concatenate(both) for both in zip(*parts, strict=True))
    return _chain(rng, X, y, counts, weights, 1 + longest)


def _chain_rows(
    rng: np.random.Generator, length: int, n_classes: int, positive: int, n_noise: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a decision list with columns of noise behind them, their classes, and how many units each is worth."""
    ones = np.ones(length, dtype=bool)
    n_positives = 2**n_noise
    rows, classes, counts = [ones] * n_positives, [0] * n_positives, [length + 1] * n_positives
    bare = rng.integers(length)  # its loss is what one level less costs
    for step in range(length):
        sibling = ones.copy()
        sibling[step] = False
        heavy = [sibling.copy() for _ in range(0 if step == bare else int(rng.integers(0, 3)))]
        for row in heavy:
            row[step + 1 :] = rng.random(length - 1 - step) < 0.5
        rows += [sibling, *heavy]
        classes += [int(rng.integers(1, n_classes))] * (1 + len(heavy))
        counts += [1] + [2] * len(heavy)
    noise = rng.random((len(rows), n_noise)) < 0.5
    # A positive for every pattern of noise: no column of noise can stand in for a step.
    noise[:n_positives] = np.arange(n_positives)[:, None] >> np.arange(n_noise) & 1
    return np.column_stack([np.array(rows), noise]), (np.array(classes) + positive) % n_classes, np.array(counts)


def _chain(
    rng: np.random.Generator, X: np.ndarray, y: np.ndarray, counts: np.ndarray, weights: str, max_depth: int
) -> Instance:
    """The instance of these rows: weighted or repeated, columns flipped, everything shuffled, and a fitting price."""
    unit, sample_weight = 1.0, None
    if weights == "none":
        X, y = np.repeat(X, counts, axis=0), np.repeat(y, counts)
    elif weights == "integer":
        sample_weight = counts + (counts > 1) * rng.integers(0, 3, len(y)).astype(float)
    else:
        unit = float(rng.choice(REAL_WEIGHTS))
        sample_weight = unit * (counts + (counts > 1) * rng.random(len(y)))
    X = X ^ (rng.random(X.shape[1]) < 0.5)
    order = rng.permutation(len(y))
    sample_weight = None if sample_weight is None else sample_weight[order]
    total = len(y) if sample_weight is None else float(sample_weight.sum())
    penalty = unit * float(rng.choice([0.5, 0.55, 0.7, 0.9])) / total
    return Instance(X[order][:, rng.permutation(X.shape[1])], y[order], sample_weight, penalty, max_depth)


def chain_instances(lengths: tuple[int, ...], seed: int = 0) -> list[Instance]:
    """Chains in all variants: two and three classes, with and without noise columns, all kinds of weights."""
    variants = itertools.product(lengths, (2, 3), (0, 2), range(len(WEIGHT_KINDS)))
    return [
        chain_instance(
            np.random.default_rng([seed, length, n_classes, n_noise, kind]),
            length,
            n_classes=n_classes,
            n_noise=n_noise,
            weights=WEIGHT_KINDS[kind],
        )
        for length, n_classes, n_noise, kind in variants
    ]


def fork_instances(lengths: tuple[int, int], seed: int = 0, noise: tuple[int, ...] = (0, 2)) -> list[Instance]:
    """Forks in the same variants."""
    variants = itertools.product((2, 3), noise, range(len(WEIGHT_KINDS)))
    return [
        fork_instance(
            np.random.default_rng([seed, *lengths, n_classes, n_noise, kind]),
            lengths,
            n_classes=n_classes,
            n_noise=n_noise,
            weights=WEIGHT_KINDS[kind],
        )
        for n_classes, n_noise, kind in variants
    ]


@st.composite
def instances(
    draw: st.DrawFn,
    *,
    max_samples: int = 16,
    max_features: int = 4,
    max_classes: int = 3,
    min_depth: int = 0,
    max_depth: int = 3,
    weights: tuple[str, ...] = WEIGHT_KINDS,
) -> Instance:
    """Instances that shrink towards few samples, few features and plain weights."""
    n_samples = draw(st.integers(1, max(1, 2 * max_samples // 3)))
    n_base = draw(st.integers(1, max_features))
    n_classes = draw(st.integers(1, max_classes))
    row = st.lists(st.booleans(), min_size=n_base, max_size=n_base)
    X = np.array(draw(st.lists(row, min_size=n_samples, max_size=n_samples)), dtype=bool)
    for _ in range(draw(st.integers(0, max_features - n_base))):
        column = st.integers(0, X.shape[1] - 1)
        derived = derive_column(X, draw(st.sampled_from(COLUMN_KINDS)), draw(column), draw(column))
        X = np.column_stack([X, derived])
    label = st.integers(0, n_classes - 1)
    y = np.array(draw(st.lists(label, min_size=n_samples, max_size=n_samples)), dtype=np.int64)
    repeated = st.lists(st.integers(0, n_samples - 1), max_size=max_samples - n_samples)
    X, y = mirror(X, y, n_classes, np.array(draw(repeated), dtype=np.int64))
    n_samples = len(y)
    kind = draw(st.sampled_from(weights))
    sample_weight = None
    if kind == "integer":
        whole = st.lists(st.integers(0, 3), min_size=n_samples, max_size=n_samples).filter(any)
        sample_weight = np.array(draw(whole), dtype=float)
    elif kind == "real":
        real = st.lists(st.sampled_from(REAL_WEIGHTS), min_size=n_samples, max_size=n_samples)
        sample_weight = np.array(draw(real))
    penalty = draw(st.sampled_from(leaf_penalties(n_samples)))
    return Instance(X, y, sample_weight, penalty, draw(st.integers(min_depth, max_depth)))
