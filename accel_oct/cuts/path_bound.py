"""Path-bound cutting planes (section 5.4 and Algorithm 2 of the paper).

A path P fixes the features from the root down to a node with two levels below it; S is the set of samples that follow
it, and D2S computes the best subtree of depth at most two for them. If the tree takes P and has no leaf more than two
levels below its end,

    relax^P = sum of (p[n] + b[n, f]) over the path's nodes n and the features f not taken there
            + sum of p[n] over the nodes n more than two levels below its end

is zero, and the part of the tree below P may be required to be that subtree:

    bound             sum of w_i theta_i over S <= score + (W(S) - score) relax^P
    negative samples  sum of w_i theta_i over the samples that the subtree gets wrong <= (their weight) relax^P
    structure         every b, p and w that differs from the subtree <= (number of its nodes) relax^P, summed

All of them are OPTIMALITY cuts. Even the bound removes trees, because the subtree maximises score minus leaf price: a
subtree with a higher score and more leaves may exist and be cut off. `accel_oct.exact.d2s` chooses among equally good
subtrees, and proves that the cuts together keep an optimum. The proof replaces subtrees one at a time, so the cuts are
invalid if a further constraint couples subtrees: see `Master.couple_subtrees`.

Algorithm 2 starts below the root. With `empty_path`, the empty path is cut too: its relax is the sum of p over the
nodes deeper than two, and its cuts require that a tree of depth at most two is the one of D2S. At depth two this is
the whole problem, which the paper's form does not cut.

A path may repeat a literal or contradict itself: it then keeps all of its samples, or none. For no samples, D2S returns
a leaf of the first class, to which the proof applies as to any tree.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from accel_oct.errors import InvalidInputError
from accel_oct.exact import PREORDER, Subtree, SubtreeCache
from accel_oct.formulation import Master, Response, Site, TreePath, TreePoint, integral_paths
from accel_oct.mip import Cuts, Event, Needs, Rows, Validity
from accel_oct.support.arrays import FloatArray, IntArray

logger = logging.getLogger(__name__)

#: Gains over D2S below this share of the total weight are numerical noise of the solver.
_VIOLATION = 1e-6
#: Limit on the bytes of cached path values; beyond it the cache is cleared.
_MEMORY_LIMIT = 128 << 20


@dataclass(frozen=True)
class PathBoundConfig:
    """Path-bound cutting planes (section 5.4, Algorithm 2).

    Parameters
    ----------
    enabled : bool
    bound : bool
        The basic cut on the score of all samples of the path.
    negative_samples : bool
        Bound the samples that the optimal subtree misclassifies.
    structure : bool
        Bound the structure of the subtree.
    paths : {"all", "end_points"}
        Cut on every integral path, or only on those that are not part of a longer one.
    fractional : bool
        Separate relaxations, if the backend shows them.
    candidates : bool
        Separate candidates; Algorithm 2 separates relaxations only.
    empty_path : bool
        Cut at the root too: a tree of depth at most two is the one of D2S. Algorithm 2 starts one level lower.
    """

    enabled: bool = False
    bound: bool = False
    negative_samples: bool = True
    structure: bool = True
    paths: Literal["all", "end_points"] = "all"
    fractional: bool = True
    candidates: bool = True
    empty_path: bool = True


class _RelaxedRow(NamedTuple):
    """A row ``values @ x[columns] <= upper + slack * relax``."""

    columns: IntArray
    values: FloatArray
    slack: float
    upper: float


class _PathValue(NamedTuple):
    """The values of a path in line 16 of Algorithm 2."""

    weights: FloatArray
    """Weights of the samples that follow the path, zero for the others."""
    value: float
    """Value of the best subtree of depth two for them."""


class PathBoundCuts:
    """Separates the cuts of Algorithm 2 at candidates and relaxations.

    Parameters
    ----------
    master : Master
        Its subtrees must be independent.
    cache : SubtreeCache
        Shared with the polishing heuristic.
    config : PathBoundConfig
        At least one of `bound`, `negative_samples` and `structure`, and of `fractional` and `candidates`, must be set.

    Notes
    -----
    A path is cut if the score of the point below it exceeds that of D2S (line 16 of Algorithm 2). This may remain true
    after the cuts are added, because leaves deeper down relax them; so they are returned a second time only for a
    candidate that violates them.
    """

    name = "path_bound"

    def __init__(
        self,
        master: Master,
        cache: SubtreeCache,
        config: PathBoundConfig | None = None,
    ) -> None:
        config = config or PathBoundConfig()
        if not (config.bound or config.negative_samples or config.structure):
            raise InvalidInputError(
                "path_bound needs at least one of path_bound.bound, .negative_samples and .structure"
            )
        if config.paths not in ("all", "end_points"):
            raise InvalidInputError(f"path_bound.paths must be all or end_points, got {config.paths!r}")
        self.master = master
        self.cache = cache
        self.config = config
        events = [Event.CANDIDATE] * config.candidates + [Event.RELAXATION] * config.fractional
        if not events:
            raise InvalidInputError("path_bound needs at least one of path_bound.fractional and .candidates")
        self.needs = Needs(events, [Validity.OPTIMALITY], keeps=PREORDER)
        self._weights = master.dataset.weights * master.scale  # in units of the model, for the solver's tolerances
        self._known: dict[TreePath, _PathValue] = {}
        self._returned: set[TreePath] = set()
        self._check_independence()

    @classmethod
    def build(cls, site: Site, switches: PathBoundConfig) -> PathBoundCuts | None:
        """Build the component if it is enabled and subtrees are independent."""
        if not switches.enabled:
            return None
        if not site.master.subtrees_are_independent:
            logger.warning("path-bound cuts are disabled: %s", "; ".join(site.master.couplings))
            return None
        if not (switches.candidates or (switches.fractional and site.shows_relaxations)):
            logger.warning("path-bound cuts are disabled: the backend shows no relaxations")
            return None
        fractional = switches.fractional and site.shows_relaxations
        return cls(site.master, site.subtrees, replace(switches, fractional=fractional))

    def _check_independence(self) -> None:
        if not self.master.subtrees_are_independent:
            raise InvalidInputError(
                f"path_bound cuts are invalid together with {', '.join(self.master.couplings)}: "
                "subtrees can no longer be chosen one by one. Set path_bound.enabled = false"
            )

    # ---------------------------------------------------------------- separation

    def respond(self, point: TreePoint) -> Response | None:
        self._check_independence()
        least = _VIOLATION * self.master.dataset.total_weight
        batches = []
        leaves: FloatArray | None = None
        for path in self.integral_paths(point.b):
            returned = path in self._returned
            if returned and not point.is_candidate:
                continue
            if leaves is None:
                leaves = _leaves_below(point.p)
            known = self._lookup(path)
            if (
                float(known.weights @ point.theta) - self.master.leaf_price * leaves[path.end - 1]
                <= known.value + least
            ):
                continue
            rows = self.rows(path)
            if not returned or rows.violation(point.point.x).max(initial=0.0) > least * self.master.scale:
                self._returned.add(path)
                batches.append(rows)
        if not batches:
            return None
        return Response((Cuts(Rows.concatenate(batches), Validity.OPTIMALITY, self.name, keeps=PREORDER),))

    def integral_paths(self, b: FloatArray) -> list[TreePath]:
        """Return the paths with an integral branch at each node that end at height two or more (Algorithm 2)."""
        return [
            path
            for path, extends in integral_paths(b, 2)
            if (path.features or self.config.empty_path) and not (extends and self.config.paths == "end_points")
        ]

    def _lookup(self, path: TreePath) -> _PathValue:
        known = self._known.get(path)
        if known is None:
            subtree = self._subtree(path)
            weights = np.zeros(self.master.dataset.n_samples)
            weights[subtree.samples] = self.master.dataset.weights[subtree.samples]
            if (len(self._known) + 1) * weights.nbytes > _MEMORY_LIMIT:
                self._known.clear()
            known = self._known[path] = _PathValue(weights, subtree.value)
        return known

    def _subtree(self, path: TreePath) -> Subtree:
        room = min(2, self._height(path))  # less than two only at the root of a tree of depth one
        return self.cache.lookup(path.literals, self.master.leaf_price, max_depth=room)

    # ---------------------------------------------------------------- rows

    def rows(self, path: TreePath) -> Rows:
        """Return the cuts of a path, violated or not."""
        subtree, relax = self._subtree(path), self._relax(path)
        weights, theta = self._weights, self.master.theta.index
        is_wrong = np.zeros(theta.size, dtype=bool)
        is_wrong[subtree.samples] = True
        is_wrong[subtree.correct] = False
        is_wrong &= weights > 0
        wrong = np.flatnonzero(is_wrong)
        lost = float(weights[wrong].sum())
        parts: list[_RelaxedRow] = []
        if self.config.bound and lost > 0:
            samples = subtree.samples[weights[subtree.samples] > 0]
            parts.append(_RelaxedRow(theta[samples], weights[samples], lost, subtree.score * self.master.scale))
        if self.config.negative_samples and lost > 0:
            parts.append(_RelaxedRow(theta[wrong], weights[wrong], lost, 0.0))
        if self.config.structure:
            columns, n_nodes = self._deviations(path, subtree)
            if columns.size:
                parts.append(_RelaxedRow(columns, np.ones(columns.size), float(n_nodes), 0.0))
        return _relaxed_rows(parts, relax)

    def _relax(self, path: TreePath) -> IntArray:
        """Return the columns whose sum is relax^P, increasing."""
        p = self.master.p.index
        below = range(3, self._height(path) + 1)
        deeper = [p[(path.end << depth) - 1 : ((path.end + 1) << depth) - 1] for depth in below]
        return np.concatenate([*path.relax(self.master), *deeper])

    def _deviations(self, path: TreePath, subtree: Subtree) -> tuple[IntArray, int]:
        """Return the columns that are zero in a tree with this subtree at the end of the path, and its node count."""
        master, parts, n_nodes = self.master, [], 0
        b, p, w = master.b.index, master.p.index, master.w.index
        for place, (feature, label) in enumerate(zip(subtree.feature.tolist(), subtree.label.tolist(), strict=True)):
            depth = (place + 1).bit_length() - 1
            position = (path.end << depth) + (place + 1 - (1 << depth)) - 1
            if feature >= 0:
                parts += [*_without(b[position], feature), p[position : position + 1]]
            elif label >= 0:
                parts += _without(w[position], label)
                if position < master.topology.n_internal:
                    parts.append(b[position])
            else:
                continue
            n_nodes += 1
        return np.concatenate(parts), n_nodes

    def _height(self, path: TreePath) -> int:
        return self.master.topology.depth - len(path.features)


def _leaves_below(p: FloatArray) -> FloatArray:
    """Return per node the sum of p over it and its descendants."""
    total = p.copy()
    end = total.size
    while end > 1:
        begin = end // 2  # the last level is begin .. end - 1; its parents are the level before it
        total[begin // 2 : begin] += total[begin:end:2] + total[begin + 1 : end : 2]
        end = begin
    return total


def _without(columns: IntArray, place: int) -> list[IntArray]:
    """Return the columns before and after one of them."""
    return [columns[:place], columns[place + 1 :]]


def _relaxed_rows(parts: list[_RelaxedRow], relax: IntArray) -> Rows:
    """Return the rows with columns in increasing order."""
    if not parts:
        return Rows.empty()
    columns, values = [], []
    for part in parts:
        joined = np.concatenate([relax, part.columns])
        coefficients = np.concatenate([np.full(relax.size, -part.slack), part.values])
        if (joined[1:] < joined[:-1]).any():  # theta comes after b and p; columns of a structure are mixed with them
            order = joined.argsort()
            joined, coefficients = joined[order], coefficients[order]
        columns.append(joined)
        values.append(coefficients)
    starts = np.cumsum([0, *(row.size for row in columns)])
    upper = np.array([part.upper for part in parts])
    return Rows(starts, np.concatenate(columns), np.concatenate(values), np.full(len(parts), -np.inf), upper)
