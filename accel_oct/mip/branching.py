"""Branch and cut over an LP that is re-solved warm, for solvers whose own branch and bound takes no lazy rows.

Solving the relaxed master as a MIP repeatedly discards the search tree each time. Here the search tree is kept, and a
cut found at one node is used at all others. The solver only solves LPs; the handler separates cuts, and its solutions
replace the heuristics of a MIP solver.

Nodes are explored by plunging (the upper branch first) and, when a plunge ends, by best bound. The branching column is
the one with the best product of pseudo-costs among those of the highest branch priority.

A node is closed only by a proof (`accel_oct.mip.certificates`) that its LP has no point, or none better than the
incumbent or than its own accepted optimum. A node that is not closed and has no column left to branch on stays in the
bound; the solve ends with SOLVER_FAILED if that bound is beyond the incumbent.
"""

from __future__ import annotations

import heapq
import logging
import math
from typing import NamedTuple

import numpy as np

from accel_oct.mip.engine import RunStatus
from accel_oct.mip.errors import SolverError
from accel_oct.mip.exchange import Event, Termination
from accel_oct.mip.model import FEASIBILITY_TOLERANCE
from accel_oct.mip.relaxation import CutPool, CutRelaxation
from accel_oct.mip.session import CONVERGENCE_TOLERANCE, SolveSession
from accel_oct.support.arrays import FloatArray, IntArray

logger = logging.getLogger(__name__)

NO_PROGRESS = "the handler rejected a point without returning a cut that is new and violated by it"

#: Rows are dropped from the LP only during the first rounds of a node, see `CutRelaxation.exchange`.
_ROUNDS_WITH_DROPS = 20

#: Replaces an infinite bound when a range is halved.
_FAR = 2.0**20

_NONE: IntArray = np.empty(0, dtype=np.int64)

#: Least gain in products of pseudo-costs.
_LEAST_GAIN = 1e-6


class _Fixing(NamedTuple):
    """Bounds of one integer column in a node and its descendants; `above` is the fixing of the parent.

    `local` are the numbers in the pool of the local cuts of the parent.
    """

    place: int
    lower: float
    upper: float
    above: _Fixing | None
    local: tuple[int, ...]


class _OpenNode(NamedTuple):
    """An open node, ordered by loss, then by creation."""

    loss: float
    """Negative bound of the parent, for maximisation."""
    number: int
    fixing: _Fixing | None
    rise: bool
    """Whether this is the upper branch of the parent."""
    distance: float
    """Distance by which branching moved the column."""


def _depth(fixing: _Fixing | None) -> int:
    depth = 0
    while fixing is not None:
        depth, fixing = depth + 1, fixing.above
    return depth


class BranchingSearch:
    """The integer phase of a solve, on an engine that can branch.

    Parameters
    ----------
    relaxation : CutRelaxation
        As the relaxation phase left it, on a `BranchingEngine`.
    """

    def __init__(
        self, session: SolveSession, pool: CutPool, relaxation: CutRelaxation, node_limit: int | None = None
    ) -> None:
        self.session = session
        self.node_limit = node_limit
        self.nodes = 0
        self._pool = pool
        self._relaxation = relaxation
        model = session.model
        self._columns: IntArray = np.flatnonzero(model.integer)
        self._bounds = np.stack([model.lower[self._columns], model.upper[self._columns]])
        self._set_bounds = self._bounds.copy()
        """Current bounds of the LP."""
        self._costs = PseudoCosts(self._columns.size)
        priorities = session.options.branch_priorities
        self._priorities = np.zeros(self._columns.size) if priorities is None else np.asarray(priorities)[self._columns]
        self._open: list[_OpenNode] = []
        self._left = -math.inf
        """Best bound of the nodes that could be neither closed nor branched on."""
        self._created = 0
        self._local: tuple[int, ...] = ()
        """Local cuts that were found in the current node."""

    def run(self) -> Termination:
        """Explore until no node can be better than the incumbent, or a limit is reached."""
        try:
            return self._explore()
        finally:
            self._pool.open_local(_NONE)

    def _explore(self) -> Termination:
        session = self.session
        node: _OpenNode | None = _OpenNode(-math.inf, 0, None, False, 1.0)
        while True:
            if node is None:
                if not self._open:
                    return self._exhausted()
                node = heapq.heappop(self._open)
            self._report_bound(node)
            if session.is_proven:
                return Termination.OPTIMAL
            limit = self._limit()
            if limit is not None:
                return limit
            if self._is_hopeless(-node.loss):
                node = None
                continue
            outcome = self._process(node)
            if isinstance(outcome, Termination):
                return outcome
            node = outcome

    def _exhausted(self) -> Termination:
        """Return the result when no node is open: proven, unless a node was left without a proof."""
        session = self.session
        if self._left > -math.inf and not self._is_hopeless(self._left):
            logger.warning("the solver's result at a node could be neither proven nor refuted; no optimum is claimed")
            session.tighten(session.model.sign * self._left)
            return Termination.SOLVER_FAILED
        if session.incumbent is None:
            return Termination.INFEASIBLE
        session.tighten(session.incumbent)
        return Termination.OPTIMAL

    def _limit(self) -> Termination | None:
        session = self.session
        if session.stop_requested:
            return Termination.STOPPED  # the session knows the true reason
        if session.out_of_time:
            return Termination.TIME_LIMIT
        return Termination.NODE_LIMIT if self.node_limit is not None and self.nodes >= self.node_limit else None

    def _report_bound(self, current: _OpenNode) -> None:
        """Report the best bound of the open nodes and the incumbent."""
        session = self.session
        loss = min(current.loss, -self._left, self._open[0].loss if self._open else math.inf)
        if session.incumbent is not None:
            loss = min(loss, -session.model.sign * session.incumbent)
        session.report(-loss * session.model.sign, self.nodes)

    def _is_hopeless(self, gain: float) -> bool:
        """Return whether a node of this bound has no point better than the incumbent."""
        incumbent = self.session.incumbent
        if incumbent is None:
            return False
        return gain <= self.session.model.sign * incumbent + CONVERGENCE_TOLERANCE * max(1.0, abs(incumbent))

    # ---------------------------------------------------------------- one node

    def _process(self, node: _OpenNode) -> _OpenNode | Termination | None:
        """Solve a node with cuts; returns the child to continue with, the reason to stop, or None if it is closed."""
        session, sign = self.session, self.session.model.sign
        self._enter(node)
        self.nodes += 1
        rounds, shown, rejected = 0, False, False
        while True:
            if session.stop_requested or session.out_of_time:
                return Termination.STOPPED if session.stop_requested else Termination.TIME_LIMIT
            run = self._relaxation.solve()
            if run.status is RunStatus.INFEASIBLE:
                return session.nothing_left() if node.fixing is None else None
            if run.status is RunStatus.UNDECIDED:
                return self._branch(node, min(sign * run.bound, -node.loss), None)
            if run.status is not RunStatus.OPTIMAL or run.x is None:
                return self._ended(run.status)
            if rounds == 0:
                self._learn(node, sign * run.bound)
            if node.fixing is None:
                session.report(run.bound, self.nodes)
                if session.stop_requested:
                    return Termination.STOPPED
            if self._is_hopeless(sign * run.bound):
                return None
            drop, rounds = rounds < _ROUNDS_WITH_DROPS, rounds + 1
            if self._relaxation.exchange(run.x, drop=drop):
                continue
            if session.model.is_integral(run.x):
                rejected = self._is_rejected(run.x)
                if not rejected and self._is_settled_by(run.x, sign * run.bound):
                    return None
            elif session.wants(Event.RELAXATION) and not shown:
                verdict = self._relaxation.consult(run, run.x, _depth(node.fixing))
                self._pool.add(verdict.cuts)
                self._local = tuple(self._pool.add_local(verdict.local).tolist())
                shown = True
            if session.is_proven:
                return Termination.OPTIMAL
            if not self._relaxation.exchange(run.x, drop=drop, count=False) and not session.stop_requested:
                if rejected and not self._free.size and session.model.keeps_rows(session.model.rounded(run.x)):
                    raise SolverError(NO_PROGRESS)
                # Dropped rows may have made the LP weaker than that of the parent.
                return self._branch(node, min(sign * run.bound, -node.loss), run.x)

    def _learn(self, node: _OpenNode, gain: float) -> None:
        """Record the cost of the branching that led to a node."""
        if node.fixing is not None:
            self._costs.learn(node.fixing.place, node.rise, max(-node.loss - gain, 0.0) / node.distance)

    def _enter(self, node: _OpenNode) -> None:
        """Set the bounds and the local cuts of the node in the LP."""
        bounds, local = self._bounds.copy(), list[int]()
        fixing = node.fixing
        while fixing is not None:
            local += fixing.local
            bounds[0, fixing.place] = max(bounds[0, fixing.place], fixing.lower)
            bounds[1, fixing.place] = min(bounds[1, fixing.place], fixing.upper)
            fixing = fixing.above
        changed = np.flatnonzero((bounds != self._set_bounds).any(axis=0))
        if changed.size:
            self._relaxation.set_bounds(self._columns[changed], bounds[0, changed], bounds[1, changed])
            self._set_bounds = bounds
        self._local = ()
        self._relaxation.enter(np.array(local, dtype=np.int64))

    def _ended(self, status: RunStatus) -> Termination:
        """Return the reason of an LP run without an optimum; STOPPED includes limits of the solver itself."""
        if status is RunStatus.UNBOUNDED:
            return Termination.UNBOUNDED
        return Termination.TIME_LIMIT if self.session.out_of_time else Termination.STOPPED

    def _is_rejected(self, x: FloatArray) -> bool:
        verdict = self.session.consult(Event.CANDIDATE, x, cut_off=self._pool.rules_out(self.session.model, x))
        self._pool.add(verdict.cuts)
        return verdict.rejected

    def _is_settled_by(self, x: FloatArray, gain: float) -> bool:
        """Return whether an accepted optimum of the LP, whose bound is `gain`, is the best point of its node.

        It was accepted after rounding. If rounding lost value, the node may have a better point, unless no column is
        free.
        """
        model = self.session.model
        value = model.value(x)
        if gain > model.sign * value + FEASIBILITY_TOLERANCE * max(1.0, abs(value)):
            return False  # not a proven optimum
        lost = model.sign * (value - model.value(model.rounded(x)))
        return lost <= CONVERGENCE_TOLERANCE * max(1.0, abs(value)) or not self._free.size

    @property
    def _free(self) -> IntArray:
        """Positions of the integer columns that the node does not fix."""
        return np.flatnonzero(self._set_bounds[0] < self._set_bounds[1])

    # ---------------------------------------------------------------- branching

    def _branch(self, node: _OpenNode, gain: float, x: FloatArray | None) -> _OpenNode | None:
        """Branch on a column; returns the upper child, to continue with, or None if no column is left."""
        free = self._free
        if not free.size:
            self._left = max(self._left, gain)
            return None
        if x is None:  # the LP has no point: halve a range
            place = int(free[np.argmax(self._priorities[free])])
            value = float(
                np.clip(0.5 * np.clip(self._set_bounds[:, place], -_FAR, _FAR).sum(), *self._set_bounds[:, place])
            )
        else:
            place = self._branching_place(x)
            value = x[self._columns[place]]
        # An integral value is branched on only if rounding decides: the lower side keeps it.
        below = math.floor(value + FEASIBILITY_TOLERANCE)
        # A value may miss the node's bounds by a tolerance; both sides must be smaller than the node.
        below = min(max(below, self._set_bounds[0, place]), self._set_bounds[1, place] - 1.0)
        down = _Fixing(place, -math.inf, below, node.fixing, self._local)
        up = _Fixing(place, below + 1.0, math.inf, node.fixing, self._local)
        lower = self._new(gain, down, rise=False, distance=value - below)
        heapq.heappush(self._open, lower)
        return self._new(gain, up, rise=True, distance=below + 1.0 - value)

    def _new(self, gain: float, fixing: _Fixing, *, rise: bool, distance: float) -> _OpenNode:
        self._created += 1
        return _OpenNode(-gain, self._created, fixing, rise, max(distance, FEASIBILITY_TOLERANCE))

    def _branching_place(self, x: FloatArray) -> int:
        values = x[self._columns]
        fraction = values - np.floor(values)
        distance = np.minimum(fraction, 1.0 - fraction)
        free = self._free
        places = free[distance[free] > FEASIBILITY_TOLERANCE]
        if not places.size:  # integral up to noise, and the noise decides
            return int(free[np.argmax(distance[free])])
        priorities = self._priorities[places]
        places = places[priorities == priorities.max()]
        return int(places[np.argmax(self._costs.scores(places, fraction[places]))])


class PseudoCosts:
    """Average cost of moving each column down or up by one unit."""

    def __init__(self, n_columns: int) -> None:
        self._total = np.zeros((2, n_columns))
        self._count = np.zeros((2, n_columns))

    def learn(self, place: int, rise: bool, cost: float) -> None:
        self._total[int(rise), place] += cost
        self._count[int(rise), place] += 1

    def scores(self, places: IntArray, fraction: FloatArray) -> FloatArray:
        """Return the product of the expected losses of both branches per column; untried columns use the average."""
        score = np.ones(places.size)
        for direction, distance in ((0, fraction), (1, 1.0 - fraction)):
            total, count = self._total[direction], self._count[direction]
            average = (total.sum() / count.sum() if count.any() else 0.0) or 1.0
            cost = np.where(count[places] > 0, total[places] / np.maximum(count[places], 1), average)
            score *= np.maximum(cost * distance, _LEAST_GAIN)
        return score
