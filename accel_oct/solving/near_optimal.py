"""Near-optimal trees: all trees with an objective close to the optimum (also called a Rashomon set).

`near_optimal` counts and lists them, and returns `NearOptimalTrees`.
"""

from __future__ import annotations

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
from accel_oct.exact.near_optimal import ListedTree, NearOptimalSearch
from accel_oct.mip import Solver, as_solver
from accel_oct.mip.options import usable_threads
from accel_oct.objectives import Accuracy, LinearScore, Objective, as_objective
from accel_oct.pieces.entry import read_pieces
from accel_oct.solving.driver import SearchRun, SinglePhase, drive
from accel_oct.solving.problem import PROOF_TOLERANCE, check_not_with_tally, checked_tally
from accel_oct.solving.result import Status
from accel_oct.support.arguments import checked_depth, number_not_negative, whole_number
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
    """Count all trees with an objective close to the optimum, and list the best of them.

    The objective is that of `accel_oct.solve`: ``(weight classified correctly) / (total weight) - leaf_penalty *
    (number of leaves)``. Counted are the trees of depth at most `max_depth` with an objective of at least the optimum
    minus `within`.

    *Definition of a tree.* A tree has a feature at each branch node and a class at each leaf, any class and not only
    the heaviest. Every split separates the samples that reach it: both sides have samples of positive weight. Sibling
    leaves have different classes. Two trees are the same if they have the same features and classes in the same places:
    different trees may have the same predictions (see `NearOptimalTrees.by_predictions`), and equal or complementary
    columns are different features.

    *Tolerance.* Objectives are compared exactly, on the grid of weights of `BinaryDataset`; `within` is enlarged by
    1e-9, the tolerance of all proofs of this library, so that ``within=0.01`` of 100 samples includes the loss of one.

    *Order.* Best objective first, then fewer leaves; then by the feature of the root, then by the place of the zero
    side in the same order on its own samples, then by that of the one side. Leaves of equal weight are ordered by class
    index.

    Parameters
    ----------
    X, y, sample_weight
        As for `accel_oct.solve`; a `Tally` for accuracy alone.
    max_depth : int
        Fast up to 4 on data of usual size.
    leaf_penalty : float
    within : float
        Largest difference to the optimum, in units of the objective; infinity for all trees.
    limit : int or None
        Largest number of listed trees, best first; counting does not depend on it. None lists all, as far as the memory
        limit allows; `complete` tells whether all are listed.
    labels : {"any", "best"}
        "best" restricts trees to the heaviest class in each leaf, the smallest class index of equal ones.
    sources : sequence of str, optional
        One name per feature: the column of the raw table that it was made from; by default those of the data. Used by
        `NearOptimalTree.columns` and `NearOptimalTrees.importance`.
    objective : Objective or str, optional
        As for `accel_oct.solve`; a sum over the samples, not a ratio. `within` and `leaf_penalty` are in its units.
    solver : Solver or str
        As for `accel_oct.solve`. Its threads are used; no backend runs.
    time_limit : float, optional
        Seconds; the results so far are returned with status "time_limit".
    memory_limit : int
        Bytes for each of: tables of best values, counts, lists. Status "memory_limit": it was not enough to count all
        trees, or to list the requested ones.
    progress : callable (ProgressEvent), optional
        As for `accel_oct.solve`; the figures "listed" and "counted" of the events are lower bounds.
    as_model : callable (tree, objective, optimum), optional
        Function behind `NearOptimalTrees.model`, set by `OptimalTreeClassifier.near_optimal`.
    splits : str
        Description of the columns of X for the summary, if they are a choice of all splits of a table.

    Raises
    ------
    InvalidInputError
        Naming the argument that cannot be used.
    """
    began = time.perf_counter()
    X, y, sample_weight = read_pieces(X, y, sample_weight, max_depth=max_depth)
    if isinstance(X, Tally):
        check_not_with_tally(y=y, sample_weight=sample_weight, objective=objective)
        setting = _of_tally(X, leaf_penalty, max_depth, sources)
    else:
        score = as_objective(objective).bind(BinaryDataset.of(X, y, sample_weight))
        if not isinstance(score, LinearScore):
            raise InvalidInputError(f"objective: near_optimal does not support {score.name}, {score.kind}")
        setting = Setting.of(score, leaf_penalty, checked_depth(max_depth), sources)
    setting = replace(setting, as_model=as_model, splits=splits)
    slack = number_not_negative(within, "within")
    if labels not in ("any", "best"):
        raise InvalidInputError(f"labels must be 'any' or 'best', got {shown(labels)}")
    most = None if limit is None else whole_number(limit, "limit", 1)
    memory = whole_number(memory_limit, "memory_limit", 1)
    seconds = None if time_limit is None else number_not_negative(time_limit, "time_limit")
    usable = usable_threads(as_solver(solver).n_threads)
    run = NearOptimalRun(Clock(began, seconds), progress)
    search = near_search(setting, slack, labels, run.stopper, usable, memory, run.report)
    outcome = drive(run, [SinglePhase("near-optimal trees", lambda run: run.search(search, most))])
    found = search.found
    trees = NearOptimalTrees(
        setting,
        found.trees,
        optimum=None,
        within=slack,
        at_least=found.count,
        counted=found.counted,
        count_by_leaves=found.by_leaves if found.counted else None,
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
        """List and count; return the status of a search that ended early."""
        self.reporter.describe(lambda: ("", dict(self._figures)))
        stopped = self.perform(lambda stopper: search.run(limit))
        ended = search.found.ended
        self._is_finished = ended == "finished"
        return stopped or "time_limit" if ended == "stopped" else ended

    def report(self, listed: int, at_least: int) -> None:
        """Report the number of listed trees, and the lower bound on all trees."""
        self._figures.update({"listed": listed, "counted": at_least})
        self.reporter.report()

    @property
    def is_proven(self) -> bool:
        return self._is_finished


def _of_tally(tally: Tally, leaf_penalty: Any, max_depth: int, sources: Any) -> Setting:
    depth = checked_tally(tally, max_depth)
    return Setting.of_tally(tallied_trees(tally), leaf_penalty, depth, sources)


def near_search(
    setting: Setting,
    within: float,
    labels: str,
    stopper: Stopper,
    threads: int,
    memory_limit: int,
    report: Callable[[int, int], None] = lambda listed, counted: None,
) -> NearOptimalSearch:
    """Return the search for all trees of a setting within a distance of the optimum."""
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


# ---------------------------------------------------------------- the data


@dataclass(frozen=True, eq=False)
class Setting:
    """Points with their gains and masses, and the columns that features were made from.

    Attributes
    ----------
    dataset : BinaryDataset
        The user's data.
    score : LinearScore
        The objective.
    X : bool array (n_points, n_features)
        Distinct rows of positive weight.
    gains : float array (n_points, n_classes)
        Reward of predicting a class at a point.
    masses : float array (n_points,)
        Weight of the samples at each point.
    leaf_penalty, leaf_price : float
        Per leaf: in units of the objective, and in units of gains.
    column_names : tuple of str
        Names of the columns that binary features were made from.
    column_of : int array (n_features,)
        Place of the column of each feature.
    as_model : callable (tree, objective, optimum) or None
        Returns a fitted classifier for a tree.
    splits : str
        Description of the splits that trees may use, if these are a choice.
    tallied : TalliedTrees or None
        The tally, if there is one: then `dataset` has its cells, and there are no points.
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
        """Return the setting of a tally; the gain is the weight classified correctly."""
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
        """Return the setting of a score; gains are the rewards of predictions."""
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
    """Return the names of columns, and the column of every feature; without sources every feature is a column."""
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


# ---------------------------------------------------------------- reliance of trees on columns


Conditions = frozenset[tuple[int, int]]


class ImportanceRow(NamedTuple):
    """Smallest and largest reliance of all trees on a column, and the share of trees that use it."""

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
        Number of trees in the ranges.
    complete : bool
        Whether these are all near-optimal trees; else some tree may lie outside of the ranges.
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
        """Return a row by place, or by name."""
        if not isinstance(which, str):
            return self.rows[which]
        for row in self.rows:
            if row.name == which:
                return row
        raise InvalidInputError(f"there is no column {shown(which)}")

    @property
    def title(self) -> str:
        """Title with the number of trees."""
        over = "all" if self.complete else "the listed"
        return f"{self.score_name} lost when a column is shuffled, over {over} {self.n_trees} trees"

    def __str__(self) -> str:
        width = max([len("column"), *(len(row.name) for row in self.rows)])
        lines = [self.title, f"{'column':<{width}}   lowest  highest  used by"]
        for row in self.rows:
            lines.append(f"{row.name:<{width}}  {row.lowest:7.4f}  {row.highest:7.4f}  {row.share_used:7.1%}")
        return "\n".join(lines)


class Reliance:
    """Compute the reliance of many trees on columns; sums over shared conditions are cached.

    The *reliance* of a tree on a column is the training accuracy that it loses when the column's values are shuffled
    among the samples: the expectation over all pairs (i, j) of samples, drawn by weight, of sample i with the column's
    values of sample j. (Model reliance of Fisher, Rudin, Dominici 2019, here as a difference.) Sample i then reaches a
    leaf if it meets the conditions of the path on other columns and j meets those on this column, so the expectation is

        sum over leaves of  gain of the leaf's class over the samples that meet the former
                            * share of the samples that meet the latter.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._sums: dict[Conditions, FloatArray] = {}
        self._all = self._sum(frozenset())

    def of(self, tree: DecisionTree) -> dict[int, float]:
        """Return by column that the tree uses the accuracy that it loses when the column is shuffled."""
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
        """Return the gains of every class, and the mass, of the points that meet all conditions."""
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
    """Return the ranges of reliance of some trees."""
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
    """A near-optimal tree.

    Attributes
    ----------
    tree : DecisionTree
    objective : float
        Score minus the leaf penalty per leaf.
    score : float
        Score of the objective; accuracy by default.
    accuracy : float
        Share of the weight that is classified correctly.
    n_leaves : int
    features : tuple of int
        Binary features of its branches, increasing.
    columns : tuple of str
        The columns that these were made from, by their names in `sources`; without sources the names of the features.
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
    """Trees with the same predictions on all training samples of positive weight.

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


@dataclass(eq=False, repr=False)
class NearOptimalTrees:
    """Trees with an objective close to the optimum; made by `accel_oct.near_optimal`.

    A sequence of the listed trees, best first. There may be more trees: `count` is their number, and `complete` tells
    whether all are listed.

    Attributes
    ----------
    optimum : float or None
        The largest objective of all trees; None if the search ended before it was known.
    within : float
        Largest difference to the optimum.
    at_least : int
        Number of near-optimal trees; a lower bound unless `counted`.
    counted : bool
        Whether all trees were counted.
    count_by_leaves : mapping of int to int, or None
        Number of trees by number of leaves; None if not counted.
    complete : bool
        Whether all near-optimal trees are listed.
    status : {"finished", "time_limit", "memory_limit", "interrupted"}
        How the search ended.
    seconds : float
    """

    _setting: Setting
    _listed: Sequence[ListedTree]
    optimum: float | None
    within: float
    at_least: int
    counted: bool
    count_by_leaves: Mapping[int, int] | None
    complete: bool
    status: Status
    seconds: float

    @property
    def count(self) -> int | None:
        """The number of near-optimal trees; None if not all were counted, see `at_least`."""
        return self.at_least if self.counted else None

    @property
    def threshold(self) -> float | None:
        """The least objective of a near-optimal tree, up to the tolerance."""
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
        """The number of trees, or the reason why it is unknown, in one sentence."""
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
        return DecisionTree.from_nested(listed.tree, self._setting.max_depth)

    # ---------------------------------------------------------------- choosing

    def model(self, place: int = 0) -> Any:
        """Return the tree at a place as a fitted classifier; only after `OptimalTreeClassifier.near_optimal`."""
        if self._setting.as_model is None or self.optimum is None:
            raise InvalidInputError("model needs trees that were listed by OptimalTreeClassifier.near_optimal")
        entry = self[place]
        return self._setting.as_model(entry.tree, entry.objective, self.optimum)

    def filter(self, rule: Callable[[DecisionTree], bool] | Constraint) -> NearOptimalTrees:
        """Return the listed trees that satisfy a rule.

        Parameters
        ----------
        rule : callable (DecisionTree) -> bool, or Constraint
            A constraint is bound to the training data; trees without violation are kept.

        Returns
        -------
        NearOptimalTrees
            In the same order. `optimum` is that of all trees. If all trees were listed, these are all trees that
            satisfy the rule, and are counted; else there may be more.
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
        return replace(self, _listed=kept, at_least=len(kept), counted=self.complete, count_by_leaves=by_leaves)

    def among_feasible(
        self, optimum: float | None, within: float, limit: int | None, status: Status
    ) -> NearOptimalTrees:
        """Return these trees, all of which satisfy some constraints, relative to the optimum under the constraints.

        Parameters
        ----------
        optimum : float or None
            The largest objective under the constraints; None if unknown: then no tree is listed or counted.
        within : float
            Largest difference of these trees to the optimum.
        limit : int or None
            Largest number of trees that stay listed.
        status : str
            How the search ended.
        """
        listed = [] if optimum is None else self._listed[:limit]
        counted = self.counted and optimum is not None
        return replace(
            self,
            _listed=listed,
            optimum=optimum,
            within=within,
            at_least=0 if optimum is None else self.at_least,
            counted=counted,
            count_by_leaves=self.count_by_leaves if counted else None,
            complete=self.complete and len(listed) == len(self._listed) and optimum is not None,
            status=status,
        )

    def by_predictions(self) -> list[PredictionGroup]:
        """Return the listed trees in groups with equal predictions on all training samples of positive weight."""
        self._need_rows("by_predictions")
        groups: dict[bytes, list[NearOptimalTree]] = {}
        for entry in self:
            groups.setdefault(entry.tree.predictions(self._setting.X).tobytes(), []).append(entry)
        return [PredictionGroup(members[0], tuple(members)) for members in groups.values()]

    def importance(self) -> ImportanceTable:
        """Return the range of the reliance of the listed trees on each column, and the share of trees that use it.

        The reliance of a tree on a column is the training accuracy that it loses when the column's values are shuffled
        among the samples, in expectation over all pairs of samples. All features of a column, see `sources` of
        `accel_oct.near_optimal`, are shuffled together.
        """
        self._need_rows("importance")
        trees: Any = (self._tree(listed) for listed in self._listed)
        return importance_table(self._setting, trees, self.complete)

    def _need_rows(self, method: str) -> None:
        if self._setting.tallied is not None:
            raise InvalidInputError(f"{method} needs rows, which a tally does not have")
