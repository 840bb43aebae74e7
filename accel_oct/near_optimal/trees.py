"""What `accel_oct.near_optimal` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

from accel_oct.constraints import BoundConstraint, Constraint, bind_all
from accel_oct.constraints.tallied import bind_to_tally
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact.near_optimal_search import ListedTree
from accel_oct.exact.tree_listing import as_decision_tree
from accel_oct.near_optimal.importance import ImportanceTable, importance_table
from accel_oct.near_optimal.setting import Setting
from accel_oct.tree import DecisionTree

NearOptimalStatus = Literal["finished", "time_limit", "memory_limit", "interrupted"]


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
class Counts:
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
        counts: Counts,
        complete: bool,
        status: NearOptimalStatus,
        seconds: float,
    ) -> None:
        self._setting, self._listed = setting, listed
        self.optimum, self.within = optimum, within
        self.at_least, self.counted, self.count_by_leaves = counts.at_least, counts.counted, counts.by_leaves
        self.complete = complete
        self.status: NearOptimalStatus = status
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
        if isinstance(rule, Constraint) and not isinstance(rule, type):
            tallied = self._setting.tallied
            bound: BoundConstraint
            (bound,) = bind_all([rule], self._setting.dataset) if tallied is None else bind_to_tally([rule], tallied)
            kept = [listed for listed in self._listed if bound.violation(self._tree(listed)) <= 0]
        elif callable(rule) and not isinstance(rule, type):
            kept = [listed for listed in self._listed if rule(self._tree(listed))]
        else:
            raise InvalidInputError(f"rule must be a function of a tree or a constraint, got {shown(rule)}")
        by_leaves: dict[int, int] = {}
        for listed in kept:
            by_leaves[listed.n_leaves] = by_leaves.get(listed.n_leaves, 0) + 1
        return NearOptimalTrees(
            self._setting,
            kept,
            optimum=self.optimum,
            within=self.within,
            counts=Counts(len(kept), self.complete, dict(sorted(by_leaves.items())) if self.complete else None),
            complete=self.complete,
            status=self.status,
            seconds=self.seconds,
        )

    def among_kept(
        self, optimum: float | None, within: float, limit: int | None, status: NearOptimalStatus
    ) -> NearOptimalTrees:
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
            counts=Counts(at_least, counted, self.count_by_leaves if counted else None),
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
