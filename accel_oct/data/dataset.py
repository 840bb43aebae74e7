"""Binary training data whose weights add up without rounding, with equal rows merged, or with rewards as rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.binary_matrix import BoolMatrix, as_binary_matrix, column_names, pack_rows
from accel_oct.data.labels import as_names, encode_labels
from accel_oct.data.weights import ExactWeights, given_weights, in_usual_range, on_grid, round_to_grid
from accel_oct.errors import InvalidInputError

__all__ = [
    "BinaryDataset",
    "EqualRows",
    "MergedDataset",
    "ScoredDataset",
    "equal_rows",
    "on_grid",
    "round_to_grid",
    "scored_dataset",
    "weighted_bincount",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


#: How far a rate of data in pieces may be off because their weights were rounded.
MOST_ERROR = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class BinaryDataset:
    """Samples with binary features, a class each, and a weight each; made by `from_arrays`.

    Attributes
    ----------
    X : bool array (n_samples, n_features)
        Feature values, C ordered.
    y : int64 array (n_samples,)
        Class indices 0 .. n_classes - 1.
    weights : float64 array (n_samples,)
        Weights on the dyadic grid described below.
    classes : array (n_classes,)
        Original labels, sorted; class index k stands for ``classes[k]``.
    feature_names, class_names : tuple of str
        For people to read.
    grid_bits : int
        Weights are multiples of ``2.0 ** -grid_bits``.
    sources : tuple of str or None
        For each feature the column of the user's table that it was made from; None where features are columns.
    row_values : mapping from names to arrays
        What else is known of the rows, by name, such as the columns of the user's table: constraints may name it.
    columns : tuple of str
        Columns of the user's table whose values are not among `row_values`: features may have been made from them.
    samples : int64 array (n_samples,) or None
        How many of the user's samples each row stands for, where rows were merged before; else every row is one.
    given : float64 array (n_samples,) or None
        The weights as they were given, in their own unit; None where `weights` are the same.
    rounded_to : float
        By how much the weight of a sample may have moved before rows were merged into these; 0 where none did.

    Notes
    -----
    *Why a grid.* Which tree is optimal, and which cuts may be combined, is decided by ties between sums
    of weights, so sums have to be exact in whatever order they are taken. Every weight, and every leaf
    price from `leaf_price`, is rounded to a multiple of the step ``s = 2**-grid_bits``, where
    `grid_bits` is the largest integer with ``W / s <= 2**46`` (W is the total weight; W < 2**46 + n/2
    steps still holds after rounding). A float64 holds every multiple of s up to ``2**53 s`` exactly.
    Hence all of these are exact, and may be compared with ``==``:

    - sums of weights of any subset: at most W;
    - the value ``score - leaf_price * n_leaves`` of any tree with up to 64 leaves when the leaf penalty
      is at most 1: its magnitude is at most about 64 W, which is 2**52 steps.

    Outside of that range (a leaf penalty above 1, or more than 64 leaves at a large penalty) a value may be
    rounded. Such a tree is worse than a single leaf by far more than the rounding, so no comparison that
    decides an optimum is affected.

    *Extreme weights.* `in_usual_range` multiplies weights beyond ``2**500`` or below ``2**-500`` by a power of two
    first: at the edge of what a float can hold, a leaf price would lose its digits. A weight below half a step of the
    grid counts as zero in scores, which is within the tolerance below.

    *Rates* of light groups cannot be told from rounded weights. Constraints take them from `exact`, the weights as they
    were given.

    *What it costs.* Integer weights stay as they are while their total is below 2**51: the step is then
    at most 1. Real weights move by at most s/2 each, so the normalised score of any tree moves by at most
    ``n_samples * s / (2 W) <= n_samples * 2**-46`` (1.5e-10 for ten thousand samples), and the
    leaf penalty by at most ``s / (2 W) <= 2**-46`` per leaf. A leaf price that misses an integer only by
    floating-point noise (0.07 * 100) is put back on it.
    """

    X: BoolMatrix
    y: IntArray
    weights: FloatArray
    classes: NDArray[Any]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    grid_bits: int
    sources: tuple[str, ...] | None = None
    row_values: Mapping[str, Any] = field(default_factory=dict)
    samples: IntArray | None = None
    columns: tuple[str, ...] = ()
    given: FloatArray | None = None
    rounded_to: float = 0.0

    def __post_init__(self) -> None:
        for array in (self.X, self.y, self.weights, self.classes):
            array.flags.writeable = False

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        classes: NDArray[Any] | None = None,
        name: str = "X",
    ) -> BinaryDataset:
        """Check raw arrays (or data frames) and build a data set that owns copies of them.

        Parameters
        ----------
        X : array-like or data frame (n_samples, n_features)
            Only 0 and 1 (or bool).
        y : array-like (n_samples,)
            Class labels of any sortable type.
        sample_weight : array-like (n_samples,), optional
            Finite, not negative, not all zero; ones by default.
        feature_names, class_names : sequence of str, optional
            By default the column names of a data frame (else ``x0, x1, ...``) and the labels themselves,
            in sorted order.
        classes : array, optional
            The labels where they are encoded already: then y holds their positions.
        name : str
            What errors call X.

        Raises
        ------
        InvalidInputError
            Naming the argument that cannot be used.
        """
        matrix = np.array(as_binary_matrix(X, name=name), order="C")
        n_samples, n_features = matrix.shape
        if n_samples == 0 or n_features == 0:
            raise InvalidInputError(
                f"{name} is empty: it has {n_samples} rows and {n_features} columns, and needs one of each"
            )
        classes, codes = encode_labels(y, n_samples) if classes is None else (classes.copy(), np.array(y))
        given = given_weights(sample_weight, n_samples)
        weights, grid_bits = on_grid(in_usual_range(given))
        if feature_names is None:
            feature_names = column_names(X)
        return BinaryDataset(
            X=matrix,
            y=codes,
            weights=weights,
            classes=classes,
            feature_names=as_names(feature_names, [f"x{j}" for j in range(n_features)], "feature_names"),
            class_names=as_names(class_names, [str(label) for label in classes], "class_names"),
            grid_bits=grid_bits,
            given=None if np.array_equal(given, weights) else given.copy(),
        )

    @classmethod
    def of(cls, X: Any, y: Any = None, sample_weight: Any = None) -> BinaryDataset:
        """What a user passed as X, y and weights; a data set in the place of X is taken as it is."""
        if not isinstance(X, BinaryDataset):
            return cls.from_arrays(X, y, sample_weight)
        for argument, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise InvalidInputError(f"{argument} must be None when X is a BinaryDataset, which holds it already")
        return X

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of distinct labels."""
        return len(self.classes)

    @cached_property
    def total_weight(self) -> float:
        """Sum of all weights, W in the objective."""
        return float(self.weights.sum())

    @cached_property
    def exact(self) -> ExactWeights:
        """The weights as they were given, for rates."""
        return ExactWeights(self.weights if self.given is None else self.given)

    def check_rates(self, rows: NDArray[np.bool_], name: str) -> None:
        """Refuse rates among rows that are too light for the rounding that their weights went through.

        Raises
        ------
        InvalidInputError
            Naming the constraint and sample_weight.
        """
        if not self.rounded_to:
            return
        error = self.rounded_to * float(self.sample_counts[rows].sum())
        if error > MOST_ERROR * float(self.weights[rows].sum()):
            raise InvalidInputError(
                f"{name}: sample_weight of some class or group is too small beside the others to take rates of data in "
                "pieces, whose weights are rounded: give the rows in memory, or weights of one magnitude"
            )

    @cached_property
    def sample_counts(self) -> FloatArray:
        """How many of the user's samples with a weight each row stands for."""
        present = (self.exact.weights > 0).astype(np.float64)
        return present if self.samples is None else present * self.samples

    @cached_property
    def integral(self) -> bool:
        """Whether all weights are integers."""
        return bool(np.all(self.weights == np.floor(self.weights)))

    def leaf_price(self, leaf_penalty: float, norm: float | None = None) -> float:
        """Leaf penalty in units of weight, lambda_bar = lambda * W, rounded onto the grid.

        Parameters
        ----------
        leaf_penalty : float
            lambda >= 0 of the normalised objective.
        norm : float, optional
            What scores are divided by; W where it is not given.
        """
        try:
            penalty = float(leaf_penalty)
        except (TypeError, ValueError):
            raise InvalidInputError(f"leaf_penalty must be a number, got {leaf_penalty!r}") from None
        price = penalty * (self.total_weight if norm is None else norm)
        if not (math.isfinite(price) and penalty >= 0):
            raise InvalidInputError(f"leaf_penalty must be finite and not negative, got {leaf_penalty!r}")
        return float(round_to_grid(np.array([price]), self.grid_bits)[0])

    def features_named(self, name: str) -> list[int]:
        """The features made from the column with this name; where there is no such column, those with this name."""
        columns = () if self.sources is None else (*self.sources, *self.row_values, *self.columns)
        names = self.sources if self.sources is not None and name in columns else self.feature_names
        return [place for place, known in enumerate(names) if known == name]

    def values_named(self, name: str) -> Any:
        """What is known of every row by this name, else the feature with this name; None where there is neither."""
        if name in self.row_values:
            return self.row_values[name]
        if name in self.feature_names:
            return self.X[:, self.feature_names.index(name)].astype(np.int64)
        return None

    def class_weights(self, indices: NDArray[Any] | None = None) -> FloatArray:
        """Total weight of each class among all samples, or among those that `indices` selects.

        Parameters
        ----------
        indices : int index array or bool mask, optional
        """
        if indices is None:
            return weighted_bincount(self.y, self.weights, self.n_classes)
        return weighted_bincount(self.y[indices], self.weights[indices], self.n_classes)

    def merged(self) -> MergedDataset:
        """The same data with identical (x, y) rows made into one row that carries their total weight.

        No tree changes its score. Rows are sorted lexicographically by features (feature 0 first), then by
        class, so the result does not depend on the order of the samples. Rows of weight zero disappear.
        """
        groups = equal_rows(self.X, self.y)
        weights = groups.sums(self.weights)
        kept = weights > 0
        inverse = np.where(kept, np.cumsum(kept) - 1, -1)[groups.group_of]
        first = groups.first[kept]
        return MergedDataset(
            X=self.X[first],
            y=self.y[first],
            weights=weights[kept],
            classes=self.classes,
            feature_names=self.feature_names,
            class_names=self.class_names,
            grid_bits=self.grid_bits,
            sources=self.sources,
            inverse=inverse,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class MergedDataset(BinaryDataset):
    """A data set without two identical (x, y) rows; made by `BinaryDataset.merged`.

    Attributes
    ----------
    inverse : int64 array
        For each row of the data set it was made from, the row it went into; -1 where the weight was zero.
    """

    inverse: IntArray

    def __post_init__(self) -> None:
        super().__post_init__()
        self.inverse.flags.writeable = False


def weighted_bincount(cells: IntArray, weights: FloatArray, n_cells: int) -> FloatArray:
    """Total weight in each of `n_cells` cells."""
    totals: FloatArray = np.bincount(cells, weights, n_cells).astype(np.float64, copy=False)
    return totals


@dataclass(frozen=True, eq=False)
class EqualRows:
    """Rows in groups of equal ones, in an order that does not depend on that of the rows; made by `equal_rows`.

    Attributes
    ----------
    order : int64 array
        Rows sorted lexicographically by features (feature 0 first), then by class, then by position.
    starts : int64 array
        Positions in `order` at which a group begins.
    new_point : bool array, one entry per group
        Whether the features of the group differ from those of the group before.
    """

    order: IntArray
    starts: IntArray
    new_point: NDArray[np.bool_]

    @property
    def first(self) -> IntArray:
        """The first row of each group."""
        return self.order[self.starts]

    @property
    def group_of(self) -> IntArray:
        """The group of each row."""
        found = np.empty(len(self.order), dtype=np.int64)
        sizes = np.diff(self.starts, append=len(self.order))
        found[self.order] = np.repeat(np.arange(len(self.starts)), sizes)
        return found

    def sums(self, amounts: FloatArray) -> FloatArray:
        """Total of each group, for one amount per row."""
        return np.add.reduceat(amounts[self.order], self.starts) if amounts.size else amounts


def equal_rows(X: BoolMatrix, y: IntArray | None = None) -> EqualRows:
    """Group rows with equal features, and equal classes where they are given: without them, a group is a point.

    Rows that are sorted already, as in a merged data set, are not sorted again.
    """
    words = pack_rows(X)
    y = np.zeros(len(words), dtype=np.int64) if y is None else y
    if _is_sorted(words, y):
        order = np.arange(len(y))
    else:
        order = np.lexsort((y, *words.T[::-1]))
        words, y = words[order], y[order]
    new_point = np.ones(len(y), dtype=bool)
    new_point[1:] = (words[1:] != words[:-1]).any(axis=1)
    new_row = new_point.copy()
    new_row[1:] |= y[1:] != y[:-1]
    starts = np.flatnonzero(new_row)
    return EqualRows(order, starts, new_point[starts])


def _is_sorted(words: NDArray[np.uint64], y: IntArray) -> bool:
    rows, first = np.arange(len(y) - 1), 0
    if words.shape[1] > 1:
        first = (words[1:] != words[:-1]).argmax(axis=1)
    after, before = words[rows + 1, first], words[rows, first]
    # Where no word differs these are equal too, and the class decides.
    rises = (after > before) | ((after == before) & (y[1:] >= y[:-1]))
    return bool(rises.all())


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoredDataset(BinaryDataset):
    """One row per sample and class that earns something there: predicting ``y`` for it earns ``weights``.

    The score of a tree on these rows is what its predictions earn on the samples, so whatever maximises weighted
    accuracy maximises any sum of rewards.

    Attributes
    ----------
    source : int64 array
        The row of the data set that each row was made from; every row of it is the source of one row at least.
    first : bool array
        Whether a row is the first of its source: to it belongs what is counted once per sample.
    """

    source: IntArray
    first: NDArray[np.bool_]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.source.flags.writeable = False
        self.first.flags.writeable = False


def scored_dataset(dataset: BinaryDataset, amounts: FloatArray) -> ScoredDataset:
    """The rows for some rewards.

    Parameters
    ----------
    dataset : BinaryDataset
    amounts : float array (n_samples, n_classes)
        What predicting each class for each sample earns: not negative, and positive somewhere. Rounded onto a grid of
        their own, see `BinaryDataset`.
    """
    earning = amounts > 0
    earning[~earning.any(axis=1), 0] = True  # who earns nothing may still be counted
    source, label = np.nonzero(earning)
    weights, grid_bits = on_grid(amounts[source, label])
    first = np.ones(len(source), dtype=bool)
    first[1:] = source[1:] != source[:-1]
    return ScoredDataset(
        X=dataset.X[source],
        y=label.astype(np.int64),
        weights=weights,
        classes=dataset.classes,
        feature_names=dataset.feature_names,
        class_names=dataset.class_names,
        grid_bits=grid_bits,
        sources=dataset.sources,
        source=source.astype(np.int64),
        first=first,
    )
