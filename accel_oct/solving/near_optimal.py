"""Near-optimal trees: all trees that are almost as good as the best one (also called a Rashomon set).

`near_optimal` counts them and lists the first; `NearOptimalTrees` is what it returns.
"""

from __future__ import annotations

import math
import operator
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, overload

import numpy as np

from accel_oct.constraints import BoundConstraint, Constraint, bind_all
from accel_oct.constraints.tallied import bind_to_tally, tallied_trees
from accel_oct.data import BinaryDataset, ScoredDataset, Tally
from accel_oct.data.binary_matrix import BoolMatrix
from accel_oct.data.dataset import equal_rows
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact.coded import CodedPoints, CodedProblem, CodedTally
from accel_oct.exact.near_optimal import ListedTree, NearOptimalSearch, as_decision_tree
from accel_oct.mip import Solver, as_solver
from accel_oct.mip.options import usable_threads
from accel_oct.objectives import Accuracy, LinearScore, Objective, RatioScore, as_objective
from accel_oct.pieces.entry import read_pieces
from accel_oct.solving.driver import SearchRun, SinglePhase, drive
from accel_oct.solving.problem import PROOF_TOLERANCE, checked_tally, refuse_beside_tally
from accel_oct.solving.result import Status
from accel_oct.support.arguments import checked_depth
from accel_oct.support.arrays import FloatArray, IntArray
from accel_oct.support.progress import Figure, Sink
from accel_oct.support.stopping import DEFAULT_MEMORY_LIMIT, Clock, Stopper
from accel_oct.tree import DecisionTree
from accel_oct.tree.tallied import TalliedTrees

__all__ = [
    "ImportanceRow",
    "ImportanceTable",
    "NearOptimalTree",
    "NearOptimalTrees",
    "PredictionGroup",
    "near_optimal",
]


def near_optimal(
    X: Any,
    y: Any = None,
    *,
    max_depth: int,
    leaf_penalty: float,
    within: float,
    limit: int | None = 1000,
    labels: str = "any",
    sources: Sequence[str] | None = None,
    sample_weight: Any = None,
    objective: Objective | str | None = None,
    solver: Solver | str = "highs",
    time_limit: float | None = None,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    progress: Sink | None = None,
    as_model: Callable[[DecisionTree, float, float], Any] | None = None,
    splits: str = "",
) -> NearOptimalTrees:
    """All trees that are almost as good as the best one: how many there are, and the first of them.

    The objective is that of `accel_oct.solve`: ``(weight classified correctly) / (total weight) - leaf_penalty *
    (number of leaves)``. Counted are the trees of depth at most `max_depth` with an objective of at least the optimum
    minus `within`.

    *What a tree is here.* A feature at each branch node and a class at each leaf, any class and not only the heaviest.
    Every split separates the samples that reach it: neither side is empty, and samples of weight zero do not count. No
    two sibling leaves have the same class, for their split would be superfluous. Two trees are the same if they have
    the same features and classes in the same places: trees that predict alike may differ (see
    `NearOptimalTrees.by_predictions`), and equal or complementary columns are different features, each with trees of
    its own.

    *Tolerance.* Objectives are compared exactly, on the grid of weights of `BinaryDataset`; `within` is enlarged by
    1e-9, the tolerance of every proof of this library, so that ``within=0.01`` of 100 samples includes the loss of one.

    *Order.* Best objective first, then fewer leaves; then by the feature of the root, then by the zero side's place in
    the same order on its own samples, then the one side's. Of two leaves of equal weight the smaller class index comes
    first.

    Parameters
    ----------
    X, y, sample_weight
        As for `accel_oct.solve`; a `Tally` for accuracy alone.
    max_depth : int
        Up to 4 fast on data of any usual size; deeper as time allows.
    leaf_penalty : float
    within : float
        In units of the objective: 0.01 is one point of accuracy, infinity is all trees.
    limit : int or None
        How many trees are listed, best first; counting does not depend on it. None lists all, as far as the memory
        limit allows: `complete` says whether they are all there.
    labels : {"any", "best"}
        "best" has only trees with the heaviest class in each leaf, the smallest class index of equal ones.
    sources : sequence of str, optional
        One name per feature: the column of the raw table that it was made from; by default what the data know. For
        `NearOptimalTree.columns` and `NearOptimalTrees.importance`.
    objective : Objective or str, optional
        As for `accel_oct.solve`; a sum over the samples, not a ratio. `within` and `leaf_penalty` are in its units.
    solver : Solver or str
        As for `accel_oct.solve`. Its threads are used; no backend runs.
    time_limit : float, optional
        Seconds; what is there by then is returned, with status "time_limit".
    memory_limit : int
        Bytes for each of: tables of best values, what is counted, what is listed. Status "memory_limit" says that it
        was not enough to count all trees, or to list those that were asked for.
    progress : callable (ProgressEvent), optional
        As for `accel_oct.solve`; the figures "listed" and "counted" of the events say how many trees there are at
        least.
    as_model : callable (tree, objective, optimum), optional
        What `NearOptimalTrees.model` makes of a tree; `OptimalTreeClassifier.near_optimal` gives one.
    splits : str
        For the summary: what the columns of X are, where they are a choice of all splits of a table.

    Returns
    -------
    NearOptimalTrees

    Raises
    ------
    InvalidInputError
        Naming the argument that cannot be used.
    """
    began = time.perf_counter()
    X, y, sample_weight = read_pieces(X, y, sample_weight, max_depth=max_depth)
    if isinstance(X, Tally):
        refuse_beside_tally(y=y, sample_weight=sample_weight, objective=objective)
        setting = _of_tally(X, leaf_penalty, max_depth, sources)
    else:
        score = as_objective(objective).bind(BinaryDataset.of(X, y, sample_weight))
        if isinstance(score, RatioScore):
            raise InvalidInputError(f"objective: near-optimal trees of {score.name}, a ratio, cannot be found")
        setting = Setting.of(score, leaf_penalty, checked_depth(max_depth), sources)
    setting = replace(setting, as_model=as_model, splits=splits)
    slack = _number(within, "within")
    if labels not in ("any", "best"):
        raise InvalidInputError(f"labels must be 'any' or 'best', got {shown(labels)}")
    most, memory = _limit(limit, "limit"), _limit(memory_limit, "memory_limit")
    if memory is None:
        raise InvalidInputError("memory_limit must be a whole number of bytes, got None")
    seconds = None if time_limit is None else _number(time_limit, "time_limit")
    usable = usable_threads(as_solver(solver).n_threads)
    run = NearOptimalRun(Clock(began, seconds), progress)
    search = _search(setting, slack, labels, run.stopper, usable, memory, run.report)
    outcome = drive(run, [SinglePhase("near-optimal trees", lambda run: run.search(search, most))])
    found = search.found
    trees = NearOptimalTrees(
        setting,
        found.trees,
        optimum=None,
        within=slack,
        counts=NearOptimalCounts(found.count, found.counted, found.by_leaves if found.counted else None),
        complete=found.complete,
        status=outcome.status,
        seconds=outcome.seconds,
    )
    if len(trees):
        trees.optimum = trees[0].objective
    run.report(len(trees), trees.at_least)
    return trees


class NearOptimalRun(SearchRun):
    """The listing and counting of near-optimal trees."""

    proven_status: ClassVar[Status] = "finished"

    def __init__(self, clock: Clock, progress: Sink | None) -> None:
        super().__init__(clock, progress)
        self._figures: dict[str, Figure] = {}
        self._is_finished = False

    def search(self, search: NearOptimalSearch, limit: int | None) -> Status | None:
        """List and count; returns what ended that early."""
        self.reporter.describe(lambda: ("", dict(self._figures)))
        stopped = self.perform(lambda stopper: search.run(limit))
        ended = search.found.ended
        self._is_finished = ended == "finished"
        return stopped or "time_limit" if ended == "stopped" else ended

    def report(self, listed: int, at_least: int) -> None:
        """Report how many trees were listed, and how many there are at least."""
        self._figures.update({"listed": listed, "counted": at_least})
        self.reporter.report()

    @property
    def is_proven(self) -> bool:
        return self._is_finished


def _of_tally(tally: Tally, leaf_penalty: Any, max_depth: int, sources: Any) -> Setting:
    depth = checked_tally(tally, max_depth)
    return Setting.of_tally(tallied_trees(tally), leaf_penalty, depth, sources)


def _search(
    setting: Setting,
    within: float,
    labels: str,
    stopper: Stopper,
    threads: int,
    memory_limit: int,
    report: Callable[[int, int], None],
) -> NearOptimalSearch:
    slack = within * setting.score.norm + PROOF_TOLERANCE * setting.score.rows.total_weight
    numbers = setting.leaf_price, setting.max_depth, slack, labels == "any"
    problem: CodedProblem
    if setting.tallied is not None:
        problem = CodedTally.of(setting.tallied, *numbers)
    else:
        problem = CodedPoints.of(setting.X, setting.gains, *numbers)
    return NearOptimalSearch(
        problem, should_stop=stopper, threads=threads, memory_limit=memory_limit, on_progress=report
    )


def _number(value: Any, argument: str) -> float:
    """Not negative, maybe infinite."""
    try:
        number = math.nan if isinstance(value, bool | str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not number >= 0:
        raise InvalidInputError(f"{argument} must be a number that is not negative, got {shown(value)}")
    return number


def _limit(value: Any, argument: str) -> int | None:
    """A whole number of at least one, or None."""
    if value is None:
        return None
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise InvalidInputError(f"{argument} must be a whole number of at least 1, got {shown(value)}")
    return number


# ---------------------------------------------------------------- the data


@dataclass(frozen=True, eq=False)
class Setting:
    """Points with their gains and masses, and what columns are called.

    Attributes
    ----------
    dataset : BinaryDataset
        As the user gave it.
    score : LinearScore
        The objective.
    X : bool array (n_points, n_features)
        Distinct rows of positive weight.
    gains : float array (n_points, n_classes)
        What predicting a class at a point earns.
    masses : float array (n_points,)
        Weight of the samples at each point.
    leaf_penalty, leaf_price : float
        Per leaf: in units of the objective, and in units of gains.
    max_depth : int
    column_names : tuple of str
        Of the columns that binary features were made from.
    column_of : int array (n_features,)
        Which of them each feature belongs to.
    as_model : callable (tree, objective, optimum) or None
        Makes a fitted classifier of a tree, where one asked.
    splits : str
        What trees may split on, in words, where that is not everything.
    tallied : TalliedTrees or None
        In the place of points, where there is a tally: `dataset` has its cells then, and there are no points.
    """

    dataset: BinaryDataset
    score: LinearScore
    X: BoolMatrix
    gains: FloatArray
    masses: FloatArray
    leaf_penalty: float
    leaf_price: float
    max_depth: int
    column_names: tuple[str, ...]
    column_of: IntArray
    as_model: Callable[[DecisionTree, float, float], Any] | None = None
    tallied: TalliedTrees | None = None
    splits: str = ""

    @classmethod
    def of_tally(cls, trees: TalliedTrees, leaf_penalty: Any, max_depth: int, sources: Any = None) -> Setting:
        """What is earned is the weight classified correctly."""
        cells = trees.cells()
        names, column_of = _columns(cells, sources)
        return cls(
            dataset=cells,
            score=Accuracy().bind(cells),
            X=cells.X[:0],
            gains=np.empty((0, cells.n_classes)),
            masses=np.empty(0),
            leaf_penalty=float(leaf_penalty),
            leaf_price=cells.leaf_price(leaf_penalty),
            max_depth=max_depth,
            column_names=names,
            column_of=column_of,
            tallied=trees,
        )

    @classmethod
    def of(cls, score: LinearScore, leaf_penalty: Any, max_depth: int, sources: Any = None) -> Setting:
        """Gains are what predictions earn; for accuracy, weights classified correctly."""
        dataset, rows = score.dataset, score.rows
        leaf_price = rows.leaf_price(leaf_penalty, score.norm)
        present = dataset.weights > 0
        points = equal_rows(dataset.X[present])
        first, point = points.first, points.group_of
        point_of = np.full(dataset.n_samples, -1)
        point_of[present] = point
        source = rows.source if isinstance(rows, ScoredDataset) else np.arange(dataset.n_samples)
        kept = present[source]
        gains = np.zeros((first.size, dataset.n_classes))
        np.add.at(gains, (point_of[source[kept]], rows.y[kept]), rows.weights[kept])
        names, column_of = _columns(dataset, sources)
        return cls(
            dataset=dataset,
            score=score,
            X=dataset.X[present][first],
            gains=gains,
            masses=np.bincount(point, dataset.weights[present]).astype(np.float64),
            leaf_penalty=float(leaf_penalty),
            leaf_price=leaf_price,
            max_depth=max_depth,
            column_names=names,
            column_of=column_of,
        )


def _columns(dataset: BinaryDataset, sources: Any) -> tuple[tuple[str, ...], IntArray]:
    """Names of columns, and the column of every feature; every feature by itself without sources."""
    sources = dataset.sources if sources is None else sources
    if sources is None:
        return dataset.feature_names, np.arange(dataset.n_features)
    if isinstance(sources, str) or not isinstance(sources, Sequence | np.ndarray):
        raise InvalidInputError(f"sources must have one name per feature, got {shown(sources)}")
    names = [str(name) for name in sources]
    if len(names) != dataset.n_features:
        raise InvalidInputError(
            f"sources must have one name per feature: {dataset.n_features} features, {len(names)} names"
        )
    place: dict[str, int] = {}
    column_of = np.array([place.setdefault(name, len(place)) for name in names], dtype=np.int64)
    return tuple(place), column_of


# ---------------------------------------------------------------- how much trees rely on columns


Conditions = frozenset[tuple[int, int]]


class ImportanceRow(NamedTuple):
    """Of one column: the smallest and the largest reliance of all trees, and the share of trees that use it."""

    name: str
    lowest: float
    highest: float
    share_used: float


@dataclass(frozen=True)
class ImportanceTable:
    """Ranges of reliance, one row per column, in the order of the data.

    Attributes
    ----------
    rows : tuple of ImportanceRow
    n_trees : int
        How many trees the ranges are over.
    complete : bool
        Whether these were all trees that are good enough: else some tree may lie outside of the ranges.
    """

    rows: tuple[ImportanceRow, ...]
    n_trees: int
    complete: bool
    score_name: str = "accuracy"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ImportanceRow]:
        return iter(self.rows)

    def __getitem__(self, which: int | str) -> ImportanceRow:
        """By place, or by name."""
        if not isinstance(which, str):
            return self.rows[which]
        for row in self.rows:
            if row.name == which:
                return row
        raise InvalidInputError(f"there is no column {shown(which)}")

    @property
    def title(self) -> str:
        """Which trees the ranges are over."""
        over = "all" if self.complete else "the listed"
        return f"{self.score_name} lost when a column is shuffled, over {over} {self.n_trees} trees"

    def __str__(self) -> str:
        width = max([len("column"), *(len(row.name) for row in self.rows)])
        lines = [self.title, f"{'column':<{width}}   lowest  highest  used by"]
        for row in self.rows:
            lines.append(f"{row.name:<{width}}  {row.lowest:7.4f}  {row.highest:7.4f}  {row.share_used:7.1%}")
        return "\n".join(lines)


class Reliance:
    """Compute the reliance of many trees on columns; what their paths have in common is added up once.

    The *reliance* of a tree on a column is the training accuracy that it loses when the column's values are shuffled
    among the samples: the expectation over all pairs (i, j) of samples, drawn by weight, of sample i with the column's
    values of sample j. (Fisher, Rudin, Dominici 2019 call it model reliance, here as a difference.) Sample i then
    reaches a leaf if it meets the conditions of the path that are not on the column and j meets those that are, so the
    expectation is

        sum over leaves of  gain of the leaf's class over the samples that meet the former
                            * share of the samples that meet the latter.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._sums: dict[Conditions, FloatArray] = {}
        self._all = self._sum(frozenset())

    def of(self, tree: DecisionTree) -> dict[int, float]:
        """By column that the tree uses, the accuracy that it loses when the column is shuffled."""
        column_of = self._setting.column_of
        leaves = [(tree.path(int(leaf)), int(tree.label[leaf - 1])) for leaf in tree.leaves]
        earned = sum(float(self._sum(frozenset(path))[label]) for path, label in leaves)
        columns = {int(column_of[feature]) for feature in tree.features_used}
        result = {}
        for column in sorted(columns):
            expected = 0.0
            for path, label in leaves:
                own = frozenset(step for step in path if column_of[step[0]] == column)
                gain = float(self._sum(frozenset(path) - own)[label])
                expected += gain * float(self._sum(own)[-1] / self._all[-1])
            result[column] = (earned - expected) / self._setting.score.norm
        return result

    def _sum(self, conditions: Conditions) -> FloatArray:
        """Gains of every class, and the mass, of the points that meet all conditions."""
        found = self._sums.get(conditions)
        if found is None:
            setting = self._setting
            here = np.ones(len(setting.X), dtype=bool)
            for feature, side in conditions:
                here &= setting.X[:, feature] == bool(side)
            found = np.append(setting.gains[here].sum(axis=0), setting.masses[here].sum())
            self._sums[conditions] = found
        return found


def importance_table(setting: Setting, trees: Iterable[DecisionTree], complete: bool) -> ImportanceTable:
    """Ranges over some trees."""
    n_columns = len(setting.column_names)
    lowest, highest, used = np.full(n_columns, np.inf), np.full(n_columns, -np.inf), np.zeros(n_columns)
    reliance, n_trees = Reliance(setting), 0
    for tree in trees:
        n_trees += 1
        own = np.zeros(n_columns)
        for column, lost in reliance.of(tree).items():
            own[column] = lost
            used[column] += 1
        np.minimum(lowest, own, out=lowest)
        np.maximum(highest, own, out=highest)
    if not n_trees:
        lowest[:] = highest[:] = np.nan
    rows = zip(setting.column_names, lowest.tolist(), highest.tolist(), (used / max(n_trees, 1)).tolist(), strict=True)
    return ImportanceTable(tuple(ImportanceRow(*row) for row in rows), n_trees, complete, setting.score.name)


# ---------------------------------------------------------------- the result


@dataclass(frozen=True)
class NearOptimalTree:
    """One of the trees that are good enough.

    Attributes
    ----------
    tree : DecisionTree
    objective : float
        Score minus the leaf penalty per leaf.
    score : float
        What the objective makes of its predictions: accuracy, unless another one was asked for.
    accuracy : float
        Share of the weight that it classifies correctly.
    n_leaves : int
    features : tuple of int
        Binary features that it branches on, increasing.
    columns : tuple of str
        The columns that these were made from, as `sources` calls them; else their own names.
    """

    tree: DecisionTree
    objective: float
    score: float
    accuracy: float
    n_leaves: int
    features: tuple[int, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class PredictionGroup:
    """Trees that predict alike on all training samples of positive weight.

    Attributes
    ----------
    representative : NearOptimalTree
        The best of them, with the fewest leaves among equals.
    members : tuple of NearOptimalTree
        All of them, best first.
    """

    representative: NearOptimalTree
    members: tuple[NearOptimalTree, ...]

    def __len__(self) -> int:
        return len(self.members)


@dataclass(frozen=True)
class NearOptimalCounts:
    """How many trees there are.

    Attributes
    ----------
    at_least : int
        As many for certain.
    counted : bool
        Whether there are no more.
    by_leaves : mapping of int to int, or None
        By number of leaves; None if they were not counted.
    """

    at_least: int
    counted: bool
    by_leaves: Mapping[int, int] | None


class NearOptimalTrees:
    """Trees whose objective is almost that of the best one; made by `accel_oct.near_optimal`.

    Has length, indices and iteration like a sequence: of the trees that were listed, best first. There may be more of
    them: `count` says how many there are, `complete` whether all were listed.

    Attributes
    ----------
    optimum : float or None
        The largest objective of all trees; None if the search ended before it was known.
    within : float
        How much less the objective of a tree may be.
    at_least : int
        So many trees are good enough for certain: all of them if `counted`.
    counted : bool
    count_by_leaves : mapping of int to int, or None
        How many trees have how many leaves; None if not counted.
    complete : bool
        Whether every tree that is good enough was listed.
    status : {"finished", "time_limit", "memory_limit", "interrupted"}
        What ended the search.
    seconds : float
    """

    def __init__(
        self,
        setting: Setting,
        listed: Sequence[ListedTree],
        *,
        optimum: float | None,
        within: float,
        counts: NearOptimalCounts,
        complete: bool,
        status: Status,
        seconds: float,
    ) -> None:
        self._setting, self._listed = setting, listed
        self.optimum, self.within = optimum, within
        self.at_least, self.counted, self.count_by_leaves = counts.at_least, counts.counted, counts.by_leaves
        self.complete = complete
        self.status: Status = status
        self.seconds = seconds

    @property
    def count(self) -> int | None:
        """How many trees are good enough; None if they were not all counted, see `at_least`."""
        return self.at_least if self.counted else None

    @property
    def threshold(self) -> float | None:
        """The least objective that is good enough, up to the tolerance."""
        return None if self.optimum is None else self.optimum - self.within

    # ---------------------------------------------------------------- as a sequence

    def __len__(self) -> int:
        return len(self._listed)

    @overload
    def __getitem__(self, place: int) -> NearOptimalTree: ...

    @overload
    def __getitem__(self, place: slice) -> list[NearOptimalTree]: ...

    def __getitem__(self, place: int | slice) -> NearOptimalTree | list[NearOptimalTree]:
        if isinstance(place, slice):
            return [self._entry(listed) for listed in self._listed[place]]
        return self._entry(self._listed[place])

    def __iter__(self) -> Iterator[NearOptimalTree]:
        return map(self._entry, self._listed)

    @property
    def summary(self) -> str:
        """How many trees there are, or what ended the search before that was known."""
        ended = "" if self.status == "finished" else f"; the search ended early ({self.status.replace('_', ' ')})"
        if self.optimum is None:
            return f"unknown: the search ended ({self.status.replace('_', ' ')}) before the best objective was known"
        where = f"within {self.within:g} of {self.optimum:.6g}"
        where += f" over {self._setting.splits}" if self._setting.splits else ""
        if not self.counted and not self.at_least:
            return f"not counted: no tree {where} is among those that were listed{ended}"
        number = f"{self.count}" if self.counted else f"at least {self.at_least}"
        return f"{number} tree{'' if number == '1' else 's'} {where}, {len(self)} listed{ended}"

    def __repr__(self) -> str:
        return f"NearOptimalTrees({self.summary})"

    def _entry(self, listed: ListedTree) -> NearOptimalTree:
        setting, tree = self._setting, self._tree(listed)
        score = setting.score.reported(listed.value + setting.leaf_price * listed.n_leaves)
        plain = setting.score.amounts is None
        accuracy = score if plain else tree.score(setting.dataset) / setting.dataset.total_weight
        features = tree.features_used
        columns = sorted({int(setting.column_of[feature]) for feature in features})
        return NearOptimalTree(
            tree=tree,
            objective=score - setting.leaf_penalty * listed.n_leaves,
            score=score,
            accuracy=accuracy,
            n_leaves=listed.n_leaves,
            features=features,
            columns=tuple(setting.column_names[column] for column in columns),
        )

    def _tree(self, listed: ListedTree) -> DecisionTree:
        return as_decision_tree(listed.tree, self._setting.max_depth)

    # ---------------------------------------------------------------- choosing

    def model(self, place: int = 0) -> Any:
        """The tree at a place as a fitted classifier, where `OptimalTreeClassifier.near_optimal` listed it."""
        if self._setting.as_model is None or self.optimum is None:
            raise InvalidInputError("model needs trees that OptimalTreeClassifier.near_optimal has listed")
        entry = self[place]
        return self._setting.as_model(entry.tree, entry.objective, self.optimum)

    def filter(self, rule: Callable[[DecisionTree], bool] | Constraint) -> NearOptimalTrees:
        """Those of the listed trees that keep a rule.

        Parameters
        ----------
        rule : callable (DecisionTree) -> bool, or Constraint
            A constraint from `accel_oct.constraints`, or of your own, is bound to the training data; trees without
            violation are kept.

        Returns
        -------
        NearOptimalTrees
            In the same order. `optimum` is still that of all trees. If all trees were listed then these are all that
            keep the rule, and are counted; else there may be more of them.
        """
        if isinstance(rule, Constraint):
            tallied = self._setting.tallied
            bound: BoundConstraint
            (bound,) = bind_all([rule], self._setting.dataset) if tallied is None else bind_to_tally([rule], tallied)
            kept = [listed for listed in self._listed if bound.violation(self._tree(listed)) <= 0]
        elif callable(rule) and not isinstance(rule, type):
            kept = [listed for listed in self._listed if rule(self._tree(listed))]
        else:
            raise InvalidInputError(f"rule must be a function of a tree or a constraint, got {shown(rule)}")
        by_leaves = dict(sorted(Counter(listed.n_leaves for listed in kept).items())) if self.complete else None
        return NearOptimalTrees(
            self._setting,
            kept,
            optimum=self.optimum,
            within=self.within,
            counts=NearOptimalCounts(len(kept), self.complete, by_leaves),
            complete=self.complete,
            status=self.status,
            seconds=self.seconds,
        )

    def among_kept(self, optimum: float | None, within: float, limit: int | None, status: Status) -> NearOptimalTrees:
        """The same trees, all of which keep some constraints, measured from the optimum under these constraints.

        Parameters
        ----------
        optimum : float or None
            Of the trees that keep the constraints; None where it is not known, and then no tree is good enough for
            certain.
        within : float
            These trees are all listed trees that keep the constraints and are worse by at most this.
        limit : int or None
            Most trees that stay listed.
        status : str
            What ended the search.
        """
        listed = [] if optimum is None else self._listed[:limit]
        at_least = 0 if optimum is None else self.at_least
        counted = self.counted and optimum is not None
        return NearOptimalTrees(
            self._setting,
            listed,
            optimum=optimum,
            within=within,
            counts=NearOptimalCounts(at_least, counted, self.count_by_leaves if counted else None),
            complete=self.complete and len(listed) == len(self._listed) and optimum is not None,
            status=status,
            seconds=self.seconds,
        )

    def by_predictions(self) -> list[PredictionGroup]:
        """The listed trees in groups that predict alike on all training samples of positive weight, best first."""
        self._need_rows("by_predictions")
        groups: dict[bytes, list[NearOptimalTree]] = {}
        for entry in self:
            groups.setdefault(entry.tree.predictions(self._setting.X).tobytes(), []).append(entry)
        return [PredictionGroup(members[0], tuple(members)) for members in groups.values()]

    def importance(self) -> ImportanceTable:
        """How much the listed trees rely on each column: a range, and the share of trees that use it.

        The reliance of a tree on a column is the training accuracy that it loses when the column's values are shuffled
        among the samples, in expectation over all pairs of samples. All features of a column, see `sources` of
        `accel_oct.near_optimal`, are shuffled together.
        """
        self._need_rows("importance")
        trees: Any = (self._tree(listed) for listed in self._listed)
        return importance_table(self._setting, trees, self.complete)

    def _need_rows(self, method: str) -> None:
        if self._setting.tallied is not None:
            raise InvalidInputError(f"{method} needs the samples one by one, which a tally does not have")
