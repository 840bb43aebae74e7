"""What `fuzz` tries: instances by number, of three kinds."""

from __future__ import annotations

import numpy as np
from oracles.instances import COLUMN_KINDS, REAL_WEIGHTS, WEIGHT_KINDS, Instance, derive_column, mirror

#: Out of ten instances.
KINDS = ("ties",) * 4 + ("chain",) * 3 + ("random",) * 3


def draw(number: int, *, small: bool = False) -> tuple[str, Instance]:
    """Kind and instance of a number; small ones are those that branch and cut finishes quickly."""
    kind = KINDS[number % len(KINDS)]
    rng = np.random.default_rng([number, small])
    return kind, {"ties": _ties, "chain": _chain, "random": _random}[kind](rng, small)


def _size(rng: np.random.Generator, small: bool) -> tuple[int, int, int]:
    """Depth, samples, features."""
    if small:
        depth = int(rng.choice([1, 2, 2, 3]))
        samples, features = {1: (20, 5), 2: (14, 3), 3: (8, 2)}[depth]
    else:
        depth, samples, features = int(rng.integers(1, 5)), 20, 6
    return depth, int(rng.integers(min(6, samples), samples + 1)), int(rng.integers(min(3, features), features + 1))


def _weights(rng: np.random.Generator, n_samples: int) -> np.ndarray | None:
    kind = str(rng.choice(WEIGHT_KINDS))
    if kind == "none":
        return None
    if kind == "integer":
        weights = rng.integers(0, 6, n_samples).astype(float)
        weights[rng.integers(n_samples)] += 1
        return weights
    return rng.choice(REAL_WEIGHTS, n_samples) if rng.random() < 0.5 else rng.random(n_samples) + 0.01


def _penalty(rng: np.random.Generator, n_samples: int, weights: np.ndarray | None) -> float:
    """On the lattice of sample weights, near it, off it, and none at all."""
    share = 1 / n_samples if weights is None else float(weights.max() / weights.sum())
    choice = int(rng.integers(10))
    if choice < 2:
        return 0.0
    if choice < 5:
        return share * float(rng.choice([0.25, 0.5, 1.0, 1.0, 2.0, 3.0]))
    if choice == 5:
        return share * (1 + float(rng.choice([-1e-6, 1e-6])))
    if choice == 6:
        return float(rng.choice([1e-6, 1e-3, 0.3, 1.0]))
    return float(rng.uniform(0, 3 * share))


def _ties(rng: np.random.Generator, small: bool) -> Instance:
    """Columns copied, complemented, constant or joined; rows repeated with other classes; a rule with noise."""
    depth, room, n_features = _size(rng, small)
    n_samples, n_classes = max(1, 2 * room // 3), int(rng.integers(2, 5))
    X = rng.random((n_samples, max(1, n_features // 2))) < rng.choice([0.2, 0.5, 0.8])
    while X.shape[1] < n_features:
        a, b = rng.integers(0, X.shape[1], 2)
        X = np.column_stack([X, derive_column(X, str(rng.choice(COLUMN_KINDS)), int(a), int(b))])
    a, b = rng.integers(0, n_features, 2)
    rule = [X[:, a] ^ X[:, b], X[:, a] & X[:, b], X[:, a]][int(rng.integers(3))].astype(np.int64)
    y = np.where(rng.random(n_samples) < rng.choice([0.1, 0.5, 1.0]), rng.integers(0, n_classes, n_samples), rule)
    X, y = mirror(X, y, n_classes, rng.integers(0, n_samples, room - n_samples))
    X = X[:, rng.permutation(n_features)]
    weights = _weights(rng, len(y))
    return Instance(X, y, weights, _penalty(rng, len(y), weights), depth)


def _chain(rng: np.random.Generator, small: bool) -> Instance:
    """A decision list that is as long as the depth, sometimes one longer.

    Heavy positives go all the way. At each step a unit sibling of another class leaves, which pays for one leaf but not
    for two; at some steps heavy rows leave with it. So a tree of one level less loses between one and two leaf prices,
    and a bound that counts a leaf too many is below the optimum.
    """
    depth, _, n_features = _size(rng, small)
    length = min(depth + int(rng.random() < 0.25), n_features)
    n_classes = int(rng.integers(2, 5))
    ones = np.ones(length, dtype=bool)
    rows, classes, counts = [ones], [0], [length + int(rng.integers(3))]
    for step in range(length):
        sibling = ones.copy()
        sibling[step] = False
        label = int(rng.integers(1, n_classes))
        rows.append(sibling)
        classes.append(label)
        counts.append(1)
        if rng.random() < 0.4:
            heavy = sibling.copy()
            heavy[step + 1 :] = rng.random(length - step - 1) < 0.5
            rows.append(heavy)
            classes.append(label)
            counts.append(int(rng.integers(2, 5)))
    X, y, count = np.array(rows), np.array(classes), np.array(counts)
    while X.shape[1] < n_features:
        a, b = rng.integers(0, length, 2)
        X = np.column_stack([X, derive_column(X, str(rng.choice(COLUMN_KINDS)), int(a), int(b))])
    unit, weights, kind = 1.0, None, str(rng.choice(WEIGHT_KINDS))
    if kind == "none":
        X, y = np.repeat(X, count, axis=0), np.repeat(y, count)
    elif kind == "integer":
        weights = count.astype(float)
    else:
        unit = float(rng.choice(REAL_WEIGHTS))
        weights = unit * (count + (count > 1) * rng.random(len(count)))
    total = len(y) if weights is None else float(weights.sum())
    penalty = unit / total * float(rng.choice([0.5, 0.55, 0.7, 0.9, 1.0]))
    X = (X ^ (rng.random(n_features) < 0.5))[:, rng.permutation(n_features)]
    return Instance(X, (y + int(rng.integers(n_classes))) % n_classes, weights, penalty, depth)


def _random(rng: np.random.Generator, small: bool) -> Instance:
    """Noise."""
    depth, n_samples, n_features = _size(rng, small)
    X = rng.random((n_samples, n_features)) < rng.choice([0.3, 0.5])
    y, weights = rng.integers(0, int(rng.integers(2, 5)), n_samples), _weights(rng, n_samples)
    return Instance(X, y, weights, _penalty(rng, n_samples, weights), depth)
