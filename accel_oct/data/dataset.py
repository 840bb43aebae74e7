"""Binary training data with exactly summable weights, also with equal rows merged or with rewards as rows."""

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
from accel_oct.data.value_sets import ValueSet
from accel_oct.data.weights import ExactWeights, given_weights, in_usual_range, on_grid, round_to_grid
from accel_oct.errors import InvalidInputError
from accel_oct.support.arrays import FloatArray, IntArray

#: Largest error of a rate that rounded weights of data in pieces may cause.
MOST_ERROR = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class BinaryDataset:
    """Samples with binary features, a class and a weight each; created by `from_arrays`.

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
        Names for output.
    grid_bits : int
        Weights are multiples of ``2.0 ** -grid_bits``.
    sources : tuple of str or None
        Column of the user's table from which each feature was computed; None if features are columns.
    value_sets : tuple of ValueSet or None
        Values of its column that have each feature; None if unknown.
    row_values : mapping from names to arrays
        Further values of the rows that constraints may name, such as the columns of the user's table.
    numbers : mapping of str to float array (n_samples,)
        Values of the numeric columns of the user's table, NaN where missing, if they are known.
    intervals : tuple of (float, float) or None
        For each feature ``(low, high)`` if it is one where ``low <= number < high`` of its source, else None; empty if
        this is not known.
    columns : tuple of str
        Columns of the user's table that are not in `row_values`; features may have been computed from them.
    samples : int64 array (n_samples,) or None
        Number of the user's samples that each row stands for, if rows were merged; None means one each.
    given : float64 array (n_samples,) or None
        Weights before rounding, in the user's unit; None if they equal `weights`.
    rounded_to : float
        Largest change of a sample's weight by rounding before rows were merged; 0 if no weight changed.

    Notes
    -----
    *Why a grid.* Ties between sums of weights decide which tree is optimal and which cuts may be combined, so
    sums must be exact in any order of addition. Every weight, and every leaf
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

    *Extreme weights.* `in_usual_range` first multiplies weights beyond ``2**500`` or below ``2**-500`` by a power of
    two: near the limits of floats, a leaf price would lose digits. A weight below half a step of the grid counts as
    zero in scores, which is within the tolerance below.

    *Rates* of light groups cannot be computed from rounded weights. Constraints compute them from `exact`, the weights
    before rounding.

    *Tolerance.* Integer weights are unchanged if their total is below 2**51: the step is then
    at most 1. Real weights move by at most s/2 each, so the normalised score of any tree moves by at most
    ``n_samples * s / (2 W) <= n_samples * 2**-46`` (1.5e-10 for ten thousand samples), and the
    leaf penalty by at most ``s / (2 W) <= 2**-46`` per leaf. A leaf price that misses an integer only by
    floating-point noise (0.07 * 100) is rounded to it.
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
    numbers: Mapping[str, FloatArray] = field(default_factory=dict)
    intervals: tuple[tuple[float, float] | None, ...] = ()
    samples: IntArray | None = None
    columns: tuple[str, ...] = ()
    given: FloatArray | None = None
    rounded_to: float = 0.0
    value_sets: tuple[ValueSet, ...] | None = None

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
            Labels, if y already holds indices into them.
        name : str
            Name of X in errors.

        Raises
        ------
        InvalidInputError
            If an argument is invalid; the message names it.
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
        """Return the data set of X, y and weights; a data set as X is returned unchanged."""
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
        """Weights before rounding, for rates."""
        return ExactWeights(self.weights if self.given is None else self.given)

    def check_rates(self, rows: NDArray[np.bool_], name: str) -> None:
        """Raise if the rounding of weights makes rates among some rows too inaccurate.

        Raises
        ------
        InvalidInputError
            The message names the constraint and sample_weight.
        """
        if not self.rounded_to:
            return
        error = self.rounded_to * float(self.sample_counts[rows].sum())
        if error > MOST_ERROR * float(self.weights[rows].sum()):
            raise InvalidInputError(
                f"{name}: sample_weight of some class or group is too small for accurate rates on data in pieces, "
                "whose weights are rounded; pass the rows in memory, or weights of similar magnitude"
            )

    @cached_property
    def sample_counts(self) -> FloatArray:
        """Number of the user's samples with positive weight that each row stands for."""
        present = (self.exact.weights > 0).astype(np.float64)
        return present if self.samples is None else present * self.samples

    @cached_property
    def integral(self) -> bool:
        """Whether all weights are integers."""
        return bool(np.all(self.weights == np.floor(self.weights)))

    def leaf_price(self, leaf_penalty: float, norm: float | None = None) -> float:
        """Return the leaf penalty in units of weight, lambda_bar = lambda * W, rounded to the grid.

        Parameters
        ----------
        leaf_penalty : float
            lambda >= 0 of the normalised objective.
        norm : float, optional
            Divisor of scores; W by default.
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
        """Return the features of the column with this name; without such a column, the features with this name."""
        columns = () if self.sources is None else (*self.sources, *self.row_values, *self.columns)
        names = self.sources if self.sources is not None and name in columns else self.feature_names
        return [place for place, known in enumerate(names) if known == name]

    def values_named(self, name: str) -> Any:
        """Return the row values or the feature with this name; None if there is neither."""
        if name in self.row_values:
            return self.row_values[name]
        if name in self.feature_names:
            return self.X[:, self.feature_names.index(name)].astype(np.int64)
        return None

    def class_weights(self, indices: NDArray[Any] | None = None) -> FloatArray:
        """Return the total weight of each class among all samples, or among those that `indices` selects.

        Parameters
        ----------
        indices : int index array or bool mask, optional
        """
        if indices is None:
            return weighted_bincount(self.y, self.weights, self.n_classes)
        return weighted_bincount(self.y[indices], self.weights[indices], self.n_classes)

    def merged(self) -> MergedDataset:
        """Return the data with identical (x, y) rows merged into one row of their total weight.

        Every tree keeps its score. Rows are sorted lexicographically by features (feature 0 first), then by
        class, so the result does not depend on the order of the samples. Rows of weight zero are dropped.
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
    """A data set without two identical (x, y) rows; created by `BinaryDataset.merged`.

    Attributes
    ----------
    inverse : int64 array
        Merged row of each row of the original data set; -1 for rows of weight zero.
    """

    inverse: IntArray

    def __post_init__(self) -> None:
        super().__post_init__()
        self.inverse.flags.writeable = False


def weighted_bincount(cells: IntArray, weights: FloatArray, n_cells: int) -> FloatArray:
    """Return the total weight in each of `n_cells` cells."""
    totals: FloatArray = np.bincount(cells, weights, n_cells).astype(np.float64, copy=False)
    return totals


@dataclass(frozen=True, eq=False)
class EqualRows:
    """Groups of equal rows, in an order that does not depend on the order of the rows; created by `equal_rows`.

    Attributes
    ----------
    order : int64 array
        Rows sorted lexicographically by features (feature 0 first), then by class, then by position.
    starts : int64 array
        Positions in `order` where a group begins.
    new_point : bool array, one entry per group
        Whether the features of the group differ from those of the previous group.
    """

    order: IntArray
    starts: IntArray
    new_point: NDArray[np.bool_]

    @property
    def first(self) -> IntArray:
        """First row of each group."""
        return self.order[self.starts]

    @property
    def group_of(self) -> IntArray:
        """Group of each row."""
        found = np.empty(len(self.order), dtype=np.int64)
        sizes = np.diff(self.starts, append=len(self.order))
        found[self.order] = np.repeat(np.arange(len(self.starts)), sizes)
        return found

    def sums(self, amounts: FloatArray) -> FloatArray:
        """Return the total of each group for one amount per row."""
        return np.add.reduceat(amounts[self.order], self.starts) if amounts.size else amounts


def equal_rows(X: BoolMatrix, y: IntArray | None = None) -> EqualRows:
    """Group rows with equal features and, if given, equal classes; without classes, a group is a point.

    Sorted rows, as in a merged data set, are not sorted again.
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
    # If no word differs, the class decides.
    rises = (after > before) | ((after == before) & (y[1:] >= y[:-1]))
    return bool(rises.all())


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoredDataset(BinaryDataset):
    """One row per sample and class with a positive reward: predicting class ``y`` earns ``weights``.

    The score of a tree on these rows is the total reward of its predictions on the samples, so an algorithm for
    weighted accuracy maximises any sum of rewards.

    Attributes
    ----------
    source : int64 array
        Row of the original data set for each row; every original row occurs at least once.
    first : bool array
        Whether a row is the first of its source row, for values that count once per sample.
    """

    source: IntArray
    first: NDArray[np.bool_]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.source.flags.writeable = False
        self.first.flags.writeable = False


def scored_dataset(dataset: BinaryDataset, amounts: FloatArray) -> ScoredDataset:
    """Return the rows for given rewards.

    Parameters
    ----------
    dataset : BinaryDataset
    amounts : float array (n_samples, n_classes)
        Reward for predicting each class for each sample: not negative, and not all zero. Rounded to a grid of their
        own, see `BinaryDataset`.
    """
    earning = amounts > 0
    earning[~earning.any(axis=1), 0] = True  # every sample has a row, since samples are counted
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
