"""Path-bound cutting planes (section 5.4 and Algorithm 2 of the paper).

A path P fixes the features from the root down to a node with two levels of room below it; S is the set of samples that
follow it, and D2S knows the best subtree of depth at most two for them. While the tree takes P and has no leaf more
than two levels below its end,

    relax^P = sum of (p[n] + b[n, f]) over the path's nodes n and the features f not taken there
            + sum of p[n] over the nodes n more than two levels below its end

is zero, and the part of the tree below P may be required to be that subtree:

    bound             sum of w_i theta_i over S <= score + (W(S) - score) relax^P
    negative samples  sum of w_i theta_i over the samples that the subtree gets wrong <= (their weight) relax^P
    structure         every b, p and w that differs from the subtree <= (number of its nodes) relax^P, summed

All of them are OPTIMALITY cuts. Even the bound removes trees, for the subtree maximises score minus leaf price: one
with a higher score and more leaves may exist and be cut off. What they keep together is argued where the choice among
equally good subtrees is made, in `accel_oct.exact.d2s`. That argument replaces subtrees one at a time, so the cuts
are wrong once a further constraint couples subtrees: see `Master.couple_subtrees`.

Algorithm 2 begins below the root. The empty path is a path too (`empty_path`): its relax is the sum of p over
the nodes deeper than two, and its cuts say that a tree of depth at most two is the one of D2S. At depth two this is
the whole problem, which the paper's form says nothing about.

A path may repeat a literal or contradict itself: it then keeps all of its samples, or none. D2S puts a leaf of
the first class on no samples, which is a tree like any other to the argument.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from accel_oct.cuts.relaxed_rows import Part, relaxed_rows, without
from accel_oct.errors import InvalidInputError
from accel_oct.exact import PREORDER, Subtree, SubtreeCache
from accel_oct.formulation import Master, Path, Response, Site, TreePoint, integral_paths
from accel_oct.mip import Cuts, Event, Needs, Rows, Validity
from accel_oct.mip.rows import FloatArray, IntArray

logger = logging.getLogger(__name__)

#: Gains over D2S below this share of the total weight are noise of the solver.
_VIOLATION = 1e-6
#: Bytes for what is remembered of paths; beyond it everything is forgotten and worked out again when needed.
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
        Separate relaxations, where the backend shows them.
    candidates : bool
        Separate candidates; Algorithm 2 looks at relaxations alone.
    empty_path : bool
        Cut at the root too: a tree of depth at most two is the one of D2S. Algorithm 2 begins one level lower.
    """

    enabled: bool = False
    bound: bool = False
    negative_samples: bool = True
    structure: bool = True
    paths: Literal["all", "end_points"] = "all"
    fractional: bool = True
    candidates: bool = True
    empty_path: bool = True


class _Known(NamedTuple):
    """What line 16 of Algorithm 2 needs of a path."""

    weights: FloatArray
    """Of the samples that follow it, zero for the others."""
    value: float
    """Of the best subtree of depth two for them."""


class PathBoundCuts:
    """Separates Algorithm 2's cuts at candidates and, if wanted, at relaxations.

    Parameters
    ----------
    master : Master
        Its subtrees must be independent.
    cache : SubtreeCache
        Shared with the polishing heuristic.
    bound, negative_samples, structure : bool
        Which cuts a path gives; at least one.
    paths : {"all", "end_points"}
        Cut on every integral path, or only on those that no longer one extends.
    fractional, candidates : bool
        Which points are separated; at least one.
    empty_path : bool
        Cut at the root too, where Algorithm 2 does not.

    Notes
    -----
    A path is cut when the point earns more below it than D2S (line 16 of Algorithm 2). That can stay true once the cuts
    are in the model, through leaves deeper down that relax them; so they are returned a second time only for a
    candidate that violates them.
    """

    name = "path_bound"

    def __init__(
        self,
        master: Master,
        cache: SubtreeCache,
        *,
        bound: bool = False,
        negative_samples: bool = True,
        structure: bool = True,
        paths: Literal["all", "end_points"] = "all",
        fractional: bool = True,
        candidates: bool = True,
        empty_path: bool = True,
    ) -> None:
        if not (bound or negative_samples or structure):
            raise InvalidInputError(
                "path_bound needs at least one of path_bound.bound, .negative_samples and .structure"
            )
        if paths not in ("all", "end_points"):
            raise InvalidInputError(f"path_bound.paths must be all or end_points, got {paths!r}")
        self.master = master
        self.cache = cache
        self.bound = bound
        self.negative_samples = negative_samples
        self.structure = structure
        self.end_points_only = paths == "end_points"
        self.empty_path = empty_path
        events = [Event.CANDIDATE] * candidates + [Event.RELAXATION] * fractional
        if not events:
            raise InvalidInputError("path_bound needs at least one of path_bound.fractional and .candidates")
        self.needs = Needs(events, [Validity.OPTIMALITY], keeps=PREORDER)
        self._weights = master.dataset.weights * master.scale  # in the model's units, which a solver's tolerances suit
        self._known: dict[Path, _Known] = {}
        self._returned: set[Path] = set()
        self._check_independence()

    @classmethod
    def build(cls, site: Site, switches: PathBoundConfig) -> PathBoundCuts | None:
        """As the switches ask, if they do and subtrees are independent."""
        if not switches.enabled:
            return None
        if not site.master.subtrees_are_independent:
            logger.warning("path-bound cuts are switched off: %s", "; ".join(site.master.couplings))
            return None
        if not (switches.candidates or (switches.fractional and site.shows_relaxations)):
            logger.warning("path-bound cuts are switched off: the backend shows no relaxations")
            return None
        return cls(
            site.master,
            site.subtrees,
            bound=switches.bound,
            negative_samples=switches.negative_samples,
            structure=switches.structure,
            paths=switches.paths,
            fractional=switches.fractional and site.shows_relaxations,
            candidates=switches.candidates,
            empty_path=switches.empty_path,
        )

    def _check_independence(self) -> None:
        if not self.master.subtrees_are_independent:
            raise InvalidInputError(
                f"path_bound cuts are wrong together with {', '.join(self.master.couplings)}: "
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

    def integral_paths(self, b: FloatArray) -> list[Path]:
        """Paths that take one feature wholly at each node and end at height two or more (first loop of Algorithm 2)."""
        return [
            path
            for path, extends in integral_paths(b, 2)
            if (path.features or self.empty_path) and not (extends and self.end_points_only)
        ]

    def _lookup(self, path: Path) -> _Known:
        known = self._known.get(path)
        if known is None:
            subtree = self._subtree(path)
            weights = np.zeros(self.master.dataset.n_samples)
            weights[subtree.samples] = self.master.dataset.weights[subtree.samples]
            if (len(self._known) + 1) * weights.nbytes > _MEMORY_LIMIT:
                self._known.clear()
            known = self._known[path] = _Known(weights, subtree.value)
        return known

    def _subtree(self, path: Path) -> Subtree:
        room = min(2, self._height(path))  # less than two only at the root of a tree of depth one
        return self.cache.lookup(path.literals, self.master.leaf_price, max_depth=room)

    # ---------------------------------------------------------------- rows

    def rows(self, path: Path) -> Rows:
        """The cuts of a path, whether or not a point violates them."""
        subtree, relax = self._subtree(path), self._relax(path)
        weights, theta = self._weights, self.master.theta.index
        is_wrong = np.zeros(theta.size, dtype=bool)
        is_wrong[subtree.samples] = True
        is_wrong[subtree.correct] = False
        is_wrong &= weights > 0
        wrong = np.flatnonzero(is_wrong)
        lost = float(weights[wrong].sum())
        parts: list[Part] = []
        if self.bound and lost > 0:
            samples = subtree.samples[weights[subtree.samples] > 0]
            parts.append(Part(theta[samples], weights[samples], lost, subtree.score * self.master.scale))
        if self.negative_samples and lost > 0:
            parts.append(Part(theta[wrong], weights[wrong], lost, 0.0))
        if self.structure:
            columns, n_nodes = self._deviations(path, subtree)
            if columns.size:
                parts.append(Part(columns, np.ones(columns.size), float(n_nodes), 0.0))
        return relaxed_rows(parts, relax)

    def _relax(self, path: Path) -> IntArray:
        """The columns whose sum is relax^P, increasing."""
        p = self.master.p.index
        below = range(3, self._height(path) + 1)
        deeper = [p[(path.end << depth) - 1 : ((path.end + 1) << depth) - 1] for depth in below]
        return np.concatenate([*path.relax(self.master), *deeper])

    def _deviations(self, path: Path, subtree: Subtree) -> tuple[IntArray, int]:
        """Columns that are zero in a tree with the subtree at the path's end, and the subtree's number of nodes."""
        master, parts, n_nodes = self.master, [], 0
        b, p, w = master.b.index, master.p.index, master.w.index
        for place, (feature, label) in enumerate(zip(subtree.feature.tolist(), subtree.label.tolist(), strict=True)):
            depth = (place + 1).bit_length() - 1
            position = (path.end << depth) + (place + 1 - (1 << depth)) - 1
            if feature >= 0:
                parts += [*without(b[position], feature), p[position : position + 1]]
            elif label >= 0:
                parts += without(w[position], label)
                if position < master.topology.n_internal:
                    parts.append(b[position])
            else:
                continue
            n_nodes += 1
        return np.concatenate(parts), n_nodes

    def _height(self, path: Path) -> int:
        return self.master.topology.depth - len(path.features)


def _leaves_below(p: FloatArray) -> FloatArray:
    """Per node, the sum of p over it and its descendants."""
    total = p.copy()
    end = total.size
    while end > 1:
        begin = end // 2  # the last level is begin .. end - 1; its parents are the level before it
        total[begin // 2 : begin] += total[begin:end:2] + total[begin + 1 : end : 2]
        end = begin
    return total
