"""The phase that enumerates trees best first and evaluates the constraints that have no form.

The *relaxed problem* has the constraints with a form: limits by prices, rules about leaves and paths, a limit on
leaves, rules about the set of features. Its trees are listed in the order of their priced value, which bounds the value
of every tree that satisfies the limits. Every tree is evaluated by the other constraints. The priced value of the
current tree is a bound on all that follow, so the search ends when it reaches the value of the best feasible tree;
without limits that is the first feasible one. The list is made within a slack below the best
relaxed value, which grows until then. An objective that is a `StrictScore` has no values in the lists: its relaxed
score takes their place, and every tree is scored by the objective itself.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from accel_oct.constraints import BoundConstraint, FeatureRule, Traits, TreePart
from accel_oct.data.tally import Path
from accel_oct.errors import InvalidInputError
from accel_oct.exact import LocalRules
from accel_oct.exact.coded import CodedPoints, CodedProblem, CodedTally
from accel_oct.exact.limited_points import LimitedProblem
from accel_oct.exact.near_optimal import Nested, SideValues, Stopped, TreeLister
from accel_oct.formulation import broken_rules
from accel_oct.pricing import Dual
from accel_oct.solving.problem import TallyProblem
from accel_oct.solving.result import Status
from accel_oct.solving.search import Search
from accel_oct.support.arrays import FloatArray, IntArray
from accel_oct.support.stopping import OutOfMemory, Stopper
from accel_oct.tree import DecisionTree

#: The first slack, as a share of the total weight, and the factor by which it grows.
_FIRST_SLACK, _GROWTH = 0.01, 4

#: Bits of the sum of all priced weights: few enough for tables in floating point.
_WEIGHT_BITS = 42

#: Most trees that are scored by the objective itself; where these do not suffice, branch and cut has better bounds.
_MOST_SCORED = 10_000

#: Number of trees between two calls of `should_stop` and between two reports of the bound.
_LOOK_EVERY = 64


@dataclass(frozen=True)
class EnumerationStatistics:
    """Figures of the enumeration.

    Attributes
    ----------
    trees : int
        Number of trees that were evaluated.
    refused_parts : int
        Number of subtrees that were left out of the lists.
    slack : float
        Difference between the best relaxed value and the last evaluated tree, in units of the objective.
    """

    seconds: float
    trees: int
    refused_parts: int
    slack: float


class EnumerateAndEvaluate:
    """Applies where some constraint has no form that other phases use.

    Trees with superfluous splits are listed only if a constraint may require them: see `Traits.superfluous_splits`.
    """

    name = "enumeration"

    def applies(self, search: Search) -> bool:
        problem = search.problem
        return search.config.enumeration and (problem.is_strict or bool(without_form(problem.constraints)))

    def run(self, search: Search) -> Status | None:
        return search.perform(lambda stopper: _Enumeration(search, stopper).run())


def without_form(constraints: Sequence[BoundConstraint]) -> list[BoundConstraint]:
    """Return the constraints without a form that tables, prices or sets of features support."""
    return [each for each in constraints if _stated(each.traits) is None]


def _stated(traits: Traits) -> Traits | None:
    usable = traits.by_tables or traits.features is not None or traits.is_priced
    return traits if usable else None


@dataclass(frozen=True, eq=False)
class _Relaxation:
    """A problem with the values of all trees, or bounds on them.

    Attributes
    ----------
    coded : CodedProblem
        With an unlimited slack.
    constant : float
        The value of a tree that satisfies the limits is at most its value in `coded` plus this.
    is_exact : bool
        Whether it equals this.
    """

    coded: CodedProblem
    constant: float
    is_exact: bool

    def bound(self, code: int) -> float:
        """Return a bound on the value of trees with a code of at most this."""
        return self.coded.earned(self.coded.value(code)) + self.constant


class _Enumeration:
    def __init__(self, search: Search, stopper: Stopper) -> None:
        self.search, self.problem, self.stopper = search, search.problem, stopper
        constraints = self.problem.constraints
        self.asked = without_form(constraints)
        weaker = [each.traits.relaxed for each in self.asked]
        stated = [each.traits for each in constraints if _stated(each.traits) is not None]
        self.forms = [*stated, *(traits for traits in weaker if traits is not None)]
        self.superfluous = not all(each.traits.survives_pruning for each in constraints) and not any(
            each.traits.superfluous_splits == "forbidden" for each in constraints
        )
        # Of the constraints without a form, those on predictions take longer.
        self.by_tree = [each for each in self.asked if not each.traits.by_predictions]
        self.by_predictions = [each for each in self.asked if each.traits.by_predictions]
        self.most_trees: float = math.inf
        #: The rows that the values of trees come from, and those that forms are about.
        self.rows, self.own = self.problem.score.rows, self.problem.original
        if self.problem.is_strict:
            # The rows of the score need not be those that limits, masses and proper trees are about.
            self.own, self.superfluous, self.by_tree, self.by_predictions = self.rows, True, self.asked, []
            self.most_trees = _MOST_SCORED
            self.forms = [Traits(leaves=each.leaves, features=each.features) for each in self.forms]
        self.refused_predictions: set[bytes] = set()
        self.trees = self.refused_parts = 0
        self.began = time.perf_counter()
        self.best = self.last = math.nan

    # ---------------------------------------------------------------- the search

    def run(self) -> None:
        """List and evaluate trees until the bound is met, nothing is left, or time or memory are used up."""
        if self.search.no_leaf_is_allowed(self.rules):
            return
        self.search.reporter.describe(
            lambda: ("listing trees, best first", {"trees": self.trees, "refused subtrees": self.refused_parts})
        )
        try:
            relaxation = self._relaxation()
        except InvalidInputError:
            return  # the values are too far apart for exact lists
        if relaxation is None:
            return
        try:
            self._list(relaxation)
        except Stopped:
            pass
        except (OutOfMemory, MemoryError):
            self.search.notes["enumeration"] = "memory limit"
        if not math.isnan(self.best):
            if relaxation.is_exact:
                self.search.notes["relaxed_objective"] = self.problem.reported(self.best)
                self.search.notes["relaxed_constraints"] = tuple(each.name for each in self.asked)
            norm = self.problem.score.norm
            self.search.statistics["enumeration"] = EnumerationStatistics(
                time.perf_counter() - self.began, self.trees, self.refused_parts, (self.best - self.last) / norm
            )

    def _list(self, relaxation: _Relaxation) -> None:
        search, coded = self.search, relaxation.coded
        memory = search.config.subtree_bounds.memory_limit
        values = SideValues(coded, self.stopper, search.options.threads, memory)
        everyone = coded.everyone()
        kept = _Kept(self)
        most, slack = coded.slack, max(1, int(_FIRST_SLACK * search.problem.total_weight / coded.unit))
        best = values.best(everyone, coded.max_depth)
        self.best = self.last = relaxation.bound(best)
        if self._reached(relaxation, best):
            return
        done = 0
        while True:
            slack = min(slack, most)
            limited = replace(coded, slack=slack)
            lister = TreeLister(limited, values, memory, kept, self.superfluous)
            code = best
            for place, (code, nested) in enumerate(lister.trees()):
                if self.trees >= self.most_trees:
                    search.notes["enumeration_ended"] = f"after {self.trees} trees"
                    return
                if place % _LOOK_EVERY == 0 and (self.stopper() or self._reached(relaxation, code)):
                    return
                if place >= done:
                    self.trees += 1
                    self.last = relaxation.bound(code)
                    if self._evaluate(nested) and self._reached(relaxation, code):
                        return
                    done = place + 1
            if slack >= most:
                search.tighten(search.incumbent.value)  # every tree was evaluated, or contains a refused part
                return
            # All trees with at least this value were listed.
            if self._reached(relaxation, limited.least_code(coded.value(best) - slack)):
                return
            slack *= _GROWTH

    def _reached(self, relaxation: _Relaxation, code: int) -> bool:
        """Take the bound of a code, and return whether it proves the incumbent."""
        bound = relaxation.bound(code)
        return self.search.tighten(min(bound, self.problem.rounding().valid(bound)))

    def _evaluate(self, nested: Nested) -> bool:
        """Offer a tree if the constraints without a form allow it; return whether it became the incumbent."""
        tree = DecisionTree.from_nested(nested, self.problem.max_depth)
        if broken_rules(self.by_tree, tree):
            return False
        if self.by_predictions and self.points is not None:
            key = hashlib.blake2b(tree.predictions(self.points).tobytes(), digest_size=16).digest()
            if key in self.refused_predictions:
                return False
            if broken_rules(self.by_predictions, tree):
                self.refused_predictions.add(key)
                return False
        taken = self.search.incumbent.offer(tree)
        if taken:
            self.search.record()
        return taken

    # ---------------------------------------------------------------- the relaxed problem

    @cached_property
    def rules(self) -> LocalRules | None:
        """Rules about leaves and paths of all forms, in rows of the original data."""
        found = [traits.on_paths(self.own.n_samples) for traits in self.forms]
        return LocalRules.joined([rules for rules in found if rules is not None])

    @cached_property
    def limited(self) -> LimitedProblem:
        """The points of the data, with the limits that can be priced."""
        problem = self.problem
        priced = [traits for traits in self.forms if traits.local is None and traits.is_priced]
        limits = [limit for traits in priced for limit in traits.limits or () if not problem.is_strict]
        rules = self.rules
        return LimitedProblem.of(self.own, limits, problem.leaf_price, problem.max_depth, rules, scored=self.rows)

    @cached_property
    def points(self) -> Any:
        """Features of the points that trees are evaluated on; None for a tally."""
        return None if isinstance(self.problem, TallyProblem) else self.limited.X

    def _relaxation(self) -> _Relaxation | None:
        """Return the relaxed problem; None if no tree satisfies it, or if it was stopped."""
        problem = self.problem
        if isinstance(problem, TallyProblem):
            if problem.score.amounts is not None or self.superfluous:
                return None
            tally = CodedTally.of(problem.trees, problem.leaf_price, problem.max_depth, math.inf)
            return _Relaxation(tally, 0.0, not self.forms)
        limited = self.limited
        X = limited.X
        if limited.rules is not None and limited.rules.apart is not None:
            X = X & ~np.diag(limited.rules.apart)  # a forbidden feature separates nothing
        if not limited.n_limits:
            coded = CodedPoints.of(
                *(X, limited.gains, problem.leaf_price, problem.max_depth, math.inf), superfluous=self.superfluous
            )
            return _Relaxation(coded, 0.0, not self.forms and not problem.is_strict)
        priced = self._dual(limited)
        if priced is None:
            return None
        weights, leaf_price, constant = priced
        coded = CodedPoints.of(*(X, weights, leaf_price, problem.max_depth, math.inf), superfluous=self.superfluous)
        return _Relaxation(coded, constant, False)

    def _dual(self, limited: LimitedProblem) -> tuple[FloatArray, float, float] | None:
        """Return rewards and a leaf price at good multipliers, on a coarse grid, and what they may be too low by."""
        search, incumbent = self.search, self.search.incumbent
        if limited.rules is not None and len(limited.rules.least) > 1:
            limited = replace(limited, rules=None)  # prices support one mass

        def offer(tree: DecisionTree) -> None:
            if incumbent.offer(tree.with_max_depth(self.problem.max_depth)):
                search.record()

        goal = self.problem.rounding().next_above
        memory = search.config.subtree_bounds.memory_limit
        dual = Dual(limited, offer, self.stopper, search.options.threads, memory)
        dual.run(lambda: goal(incumbent.value))
        search.tighten(-math.inf if dual.is_infeasible else dual.bound)
        if dual.best is None or search.is_proven or search.is_infeasible or self.stopper():
            return None
        weights, price = dual.best.weights, dual.best.leaf_price
        leaves = 2**self.problem.max_depth
        bits = _WEIGHT_BITS - math.frexp(float(weights.sum()) + leaves * price)[1]
        rounded = np.ldexp(np.rint(np.ldexp(weights, bits)), -bits)
        cheaper = math.ldexp(math.floor(math.ldexp(price, bits)), -bits)
        error = float(np.abs(rounded - weights).max(axis=1).sum())
        return rounded, cheaper, dual.best.constant + dual.best.error + error


class _Kept:
    """Leaves out sets, subtrees and paths that no tree of the relaxed problem, or no feasible tree, contains."""

    def __init__(self, enumeration: _Enumeration) -> None:
        self._enumeration = enumeration
        constraints, forms = enumeration.problem.constraints, enumeration.forms
        self._on_subtrees = [each for each in constraints if "subtrees" in each.traits.refuses]
        self._on_paths = [each for each in constraints if "paths" in each.traits.refuses]
        self._on_nodes = [each for each in constraints if "nodes" in each.traits.refuses]
        self.by_path = bool(self._on_paths)
        self._max_leaves = min((traits.leaves for traits in forms if traits.leaves is not None), default=None)
        self._features: list[FeatureRule] = [traits.features for traits in forms if traits.features is not None]
        rules = enumeration.rules
        self._apart = None if rules is None else rules.apart
        self._rules: LocalRules | None = None
        if rules is not None and enumeration.points is not None:
            self._rules = enumeration.limited.rules

    def allows_set(self, samples: Any) -> bool:
        if self._rules is None:
            return True
        points: IntArray = samples
        return bool(self._rules.enough(self._rules.masses[:, points].sum(axis=1)))

    def context(self, path: Path) -> Hashable:
        if self._on_paths:
            return path
        return tuple(each.context(path) for each in self._on_nodes)

    def allows_subtree(self, tree: Nested, path: Path) -> bool:
        allowed = self._allows(tree, path)
        if not allowed:
            self._enumeration.refused_parts += 1
        return allowed

    def _allows(self, tree: Nested, path: Path) -> bool:
        if self._max_leaves is not None and _n_leaves(tree) > self._max_leaves:
            return False
        if self._apart is not None and self._apart[tree[0], [tree[0], *_features(tree[1]), *_features(tree[2])]].any():
            return False
        used = list(_features(tree)) if self._features else []
        if any(rule.excess(set(rule.group[used].tolist())) > 0 for rule in self._features):
            return False
        if self._on_subtrees:
            part = TreePart(nested=tree)
            if any(each.refuses(part) for each in self._on_subtrees):
                return False
        if self._on_nodes:
            part = TreePart(nested=tree, path=path)
            return not any(each.refuses(part) for each in self._on_nodes)
        return True

    def allows_split(self, path: Path, feature: int) -> bool:
        part = TreePart(path=(*((int(f), int(side)) for f, side in path), (feature, None)))
        return not any(each.refuses(part) for each in self._on_paths)


def _n_leaves(tree: Nested) -> int:
    return _n_leaves(tree[1]) + _n_leaves(tree[2]) if isinstance(tree, tuple) else 1


def _features(tree: Nested) -> set[int]:
    return {tree[0], *_features(tree[1]), *_features(tree[2])} if isinstance(tree, tuple) else set()
