"""Training data of an estimator: checked, encoded, with the row values that constraints and objectives may name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel_oct.constraints.fairness import SENSITIVE
from accel_oct.data.binary_matrix import usable_features
from accel_oct.data.dataset import BinaryDataset
from accel_oct.data.labels import combined_groups
from accel_oct.data.tally import Tally
from accel_oct.data.value_sets import ValueSet
from accel_oct.encoding.tables import Table
from accel_oct.errors import InvalidInputError
from accel_oct.objectives import Fixed, LinearScore, Objective, Score
from accel_oct.objectives.built_in import COSTS
from accel_oct.solving.result import Result
from accel_oct.tree import DecisionTree
from accel_oct.tree.tallied import TalliedTrees


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Encoded training data with the bound objective, and the names for the result.

    Attributes
    ----------
    dataset : BinaryDataset
        Samples with their own weights; constraints refer to these.
    score : LinearScore or RatioScore
        Objective bound to these data.
    names : tuple of str
        Names of the binary features of the encoder. If there are none, the data set has one constant feature.
    class_factors : float array (n_classes,)
        Factor on the weights of each class in the values that scikit-learn would report.
    starts : tuple of DecisionTree
        Trees that are known before the search begins.
    n_rows : int or None
        Number of rows of the user's table, if the rows of the data set were merged.
    tally : Tally or None
        Replaces the rows: the data set then has one row per cell, which serves for totals but not for trees.
    objective : Objective or None
        Objective before binding; only with a tally.
    """

    dataset: BinaryDataset
    score: Score
    names: tuple[str, ...]
    class_factors: NDArray[np.float64]
    starts: tuple[DecisionTree, ...] = ()
    n_rows: int | None = None
    tally: Tally | None = None
    objective: Objective | None = None

    @property
    def solved(self) -> BinaryDataset | Tally:
        """The argument X of a solve."""
        return self.dataset if self.tally is None else self.tally

    @property
    def stated(self) -> Objective:
        """The objective of a solve."""
        return Fixed(self.score) if self.objective is None else self.objective

    def for_tree(self, tree: DecisionTree) -> TrainingData:
        """Return data on which a tree has the same value: of a tally, one row per leaf and cell."""
        if self.tally is None or self.objective is None:
            return self
        rows = TalliedTrees(self.tally).rows(tree)
        # A tally does not count weighted samples: estimate their number from their share of the weight.
        each = 1.0 if self.dataset.samples is not None else self.n_samples / rows.total_weight
        rows = replace(rows, samples=np.rint(rows.weights * each).astype(np.int64))
        return replace(self, dataset=rows, score=self.objective.bind(rows))

    @property
    def n_samples(self) -> int:
        """Number of the user's samples."""
        return self.dataset.n_samples if self.n_rows is None else self.n_rows

    @property
    def rows(self) -> BinaryDataset | None:
        """Rows that decide the best label of a leaf; None if labels depend on each other."""
        return self.score.rows if isinstance(self.score, LinearScore) else None


class Solved(NamedTuple):
    """A fitted encoder, the data over its features, and the result of the solve."""

    encoder: Any
    data: TrainingData
    result: Result


@dataclass(frozen=True, eq=False)
class Attached:
    """Row values besides X, y and weights.

    Attributes
    ----------
    group : array or None
        Group of every row: the single sensitive feature, or the combination of all of them.
    costs : array (n_samples, n_classes) or None
    """

    sensitive: Mapping[str, NDArray[Any]]
    group: NDArray[Any] | None
    costs: Any

    def of_rows(self, rows: NDArray[Any]) -> Attached:
        """Return the values of some of the rows."""
        return Attached(
            {name: values[rows] for name, values in self.sensitive.items()},
            None if self.group is None else self.group[rows],
            None if self.costs is None else self.costs[rows],
        )


class RowValues(Mapping[str, Any]):
    """Mapping from names to sensitive features and columns of the user's table; sensitive features come first.

    `asked` holds the names that have been read.
    """

    def __init__(self, table: Table, given: Attached) -> None:
        self._table, self._given = table, given
        self.asked: set[str] = set()
        self._places = {table.name(place): place for place in range(len(table.columns))}

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        if name == SENSITIVE and self._given.group is not None:
            return self._given.group
        if name == COSTS and self._given.costs is not None:
            return self._given.costs
        if name in self._given.sensitive:
            return self._given.sensitive[name]
        return self._table.columns[self._places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._given.sensitive, *self._places]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        if name in (SENSITIVE, COSTS):
            return (self._given.group if name == SENSITIVE else self._given.costs) is not None
        return name in self._given.sensitive or name in self._places


def attached(sensitive_features: Any, costs: Any, n_rows: int) -> Attached:
    """Check the arguments `sensitive_features` and `costs` of `fit`.

    Parameters
    ----------
    sensitive_features : array-like (n_samples,) or (n_samples, k), data frame, mapping from names to arrays, or None
    costs : array-like (n_samples, n_classes) or None
    """
    if isinstance(sensitive_features, Attached):
        return sensitive_features
    costs = None if costs is None else np.asarray(costs)
    if costs is not None and (costs.ndim != 2 or len(costs) != n_rows):
        raise InvalidInputError(
            f"costs must have one row per sample, {n_rows} in all, and a column per class, got the shape {costs.shape}"
        )
    if sensitive_features is None:
        return Attached({}, None, costs)
    named = _columns(sensitive_features)
    for name, values in named.items():
        if values.shape != (n_rows,):
            where = "sensitive_features" + (f"[{name!r}]" if name else "")
            shape = f"{len(values)} rows" if values.ndim == 1 else f"the shape {values.shape}"
            raise InvalidInputError(f"{where} must have one value per row of X, {n_rows} in all, got {shape}")
    group = combined_groups(list(named.values()))
    return Attached({name: values for name, values in named.items() if name}, group, costs)


def _columns(values: Any) -> dict[str, NDArray[Any]]:
    """Return columns by name; a single column without a name has the name ""."""
    if isinstance(values, Mapping):
        named = {str(name): np.asarray(column) for name, column in values.items()}
    elif hasattr(values, "columns") and hasattr(values, "to_numpy"):
        named = {str(name): np.asarray(values[name]) for name in values.columns}
    else:
        name = getattr(values, "name", None)
        array = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
        if array.ndim == 2 and array.shape[1] > 1:
            named = {f"sensitive feature {j}": array[:, j] for j in range(array.shape[1])}
        else:
            named = {name if isinstance(name, str) else "": array[:, 0] if array.ndim == 2 else array}
    if not named:
        raise InvalidInputError("sensitive_features has no column")
    return named


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Rows in memory: checked, not yet encoded.

    Attributes
    ----------
    X, y : data frame or array
        Arguments of `fit`, for encoders of other libraries; everything else uses the other attributes.
    codes : int array
        Index of each label in `classes`.
    weighted : bool
        Whether weights were given.
    ignored : set of int
        Columns that no split may use.
    """

    X: Any
    y: Any
    table: Table
    classes: NDArray[Any]
    codes: NDArray[np.int64]
    weights: NDArray[np.float64]
    weighted: bool
    attached: Attached
    rows: RowValues
    ignored: frozenset[int]

    def copied(self) -> CheckedRows:
        """Return the same rows with copies of the row values, which do not change with the user's arrays."""
        every = np.arange(len(self.table))
        table, given = self.table.rows(every), self.attached.of_rows(every)
        return replace(self, table=table, attached=given, rows=RowValues(table, given))

    def sampled(self, n_rows: int) -> CheckedRows:
        """Return some rows of positive weight, for encoders of this library."""
        present = np.flatnonzero(self.weights > 0)
        chosen = np.random.default_rng(0).choice(present, min(n_rows, len(present)), replace=False)
        table, given = self.table.rows(chosen), self.attached.of_rows(chosen)
        return replace(
            self,
            table=table,
            codes=self.codes[chosen],
            weights=self.weights[chosen],
            attached=given,
            rows=RowValues(table, given),
        )

    def dataset(
        self,
        binary: Any,
        names: tuple[str, ...],
        sources: tuple[str, ...] | None,
        sets: tuple[ValueSet, ...] | None = None,
    ) -> BinaryDataset:
        """Return a data set of the rows with binary features.

        Parameters
        ----------
        binary : array (n_samples, n_features) of 0 and 1
        names : tuple of str
            Names of the binary features.
        sources : tuple of str or None
            Source column of each binary feature, if known.
        sets : tuple of ValueSet or None
            Values of its column that have each feature, if known.
        """
        X, names, sources = usable_features(binary, names, sources)
        dataset = BinaryDataset.from_arrays(
            X,
            self.codes,
            self.weights,
            feature_names=names,
            class_names=tuple(map(str, self.classes)),
            classes=self.classes,  # constraints name the user's classes
            name="encoder output",
        )
        return replace(dataset, sources=sources, row_values=self.rows, value_sets=sets or None)


def as_tree(nested: Any) -> DecisionTree:
    """Return a tree from the nested tuples of `AutoEncoder.greedy_`."""
    if not isinstance(nested, tuple):
        return DecisionTree.leaf(nested)
    feature, no, yes = nested
    return DecisionTree.branch(feature, as_tree(no), as_tree(yes))
