"""Branch and cut over an LP that is re-solved warm, for solvers whose own branch and bound takes no lazy rows.

Solving the relaxed master as a MIP again and again throws the search tree away each time; here the tree is ours, and a
cut that turns up at one node is there for all the others. The relaxation is all that the solver is asked for. What
makes up for the machinery of a full MIP solver is the handler: it separates, and its solutions are the heuristics.

Nodes are explored by plunging (the upper branch first) and, when a plunge ends, by best bound. The branching column is
the one with the best product of pseudo-costs among those of the highest branch priority.

A node is closed by a proof only (`accel_oct.mip.certificates`): that its LP has no point, or none that is better than
the incumbent or than its own accepted optimum. A node that is not closed and has no column left to branch on stays in
the bound, and the solve ends with SOLVER_FAILED where that is beyond the incumbent.
"""

from __future__ import annotations

import heapq
import logging
import math
from typing import NamedTuple

import numpy as np

from accel_oct.mip.engine import RunStatus
from accel_oct.mip.errors import SolverError
from accel_oct.mip.exchange import Event
from accel_oct.mip.model import FEASIBILITY_TOLERANCE
from accel_oct.mip.pool import CutPool
from accel_oct.mip.relaxation import CutRelaxation
from accel_oct.mip.result import Termination
from accel_oct.mip.rows import FloatArray, IntArray
from accel_oct.mip.session import CONVERGENCE_TOLERANCE, SolveSession

logger = logging.getLogger(__name__)

NO_PROGRESS = "the handler rejected a point without returning a cut that is new and violated by it"

#: Rows leave the LP only during the first rounds of a node, see `CutRelaxation.exchange`.
_ROUNDS_WITH_DROPS = 20

#: Stands for an infinite bound where a range is halved.
_FAR = 2.0**20

#: Products of pseudo-costs treat a smaller gain as this one.
_LEAST_GAIN = 1e-6


class _Fixing(NamedTuple):
    """Bounds of one integer column in a node and below it; `above` is the parent's."""

    place: int
    lower: float
    upper: float
    above: _Fixing | None


class _Node(NamedTuple):
    """An open node. Compared by what comes first: the worst possible loss, then the order of creation."""

    loss: float
    """Minus the bound that the parent gave, in the direction that is better when larger."""
    number: int
    fixing: _Fixing | None
    rise: bool
    """Whether it is its parent's upper branch."""
    distance: float
    """How far the branching column had to move."""


class BranchAndCut:
    """The integer phase of a solve, on an engine that can branch.

    Parameters
    ----------
    session : SolveSession
    pool : CutPool
    relaxation : CutRelaxation
        As the relaxation phase left it, on a `BranchingEngine`.
    node_limit : int, optional
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
        """What the LP has at the moment."""
        self._costs = PseudoCosts(self._columns.size)
        priorities = session.options.branch_priorities
        self._priorities = np.zeros(self._columns.size) if priorities is None else np.asarray(priorities)[self._columns]
        self._open: list[_Node] = []
        self._left = -math.inf
        """The best bound of the nodes that could neither be closed nor branched on."""
        self._created = 0

    def run(self) -> Termination:
        """Explore until nothing is left that could be better than the incumbent, or something stops it."""
        session = self.session
        node: _Node | None = _Node(-math.inf, 0, None, False, 1.0)
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
        """No node is open: what we hold is the best, or there is nothing, unless some node was left without a proof."""
        session = self.session
        if self._left > -math.inf and not self._is_hopeless(self._left):
            logger.warning("the solver's answer on a node could be neither proven nor refuted: nothing is claimed")
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

    def _report_bound(self, current: _Node) -> None:
        """No feasible point is better than the best of the open nodes and the incumbent."""
        session = self.session
        loss = min(current.loss, -self._left, self._open[0].loss if self._open else math.inf)
        if session.incumbent is not None:
            loss = min(loss, -session.model.sign * session.incumbent)
        session.report(-loss * session.model.sign, self.nodes)

    def _is_hopeless(self, gain: float) -> bool:
        """Whether nothing better than the incumbent can be in a node of that bound."""
        incumbent = self.session.incumbent
        if incumbent is None:
            return False
        return gain <= self.session.model.sign * incumbent + CONVERGENCE_TOLERANCE * max(1.0, abs(incumbent))

    # ---------------------------------------------------------------- one node

    def _process(self, node: _Node) -> _Node | Termination | None:
        """Solve a node with cuts; returns the child to go on with, why to stop, or None when it is closed."""
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
                self._pool.add(session.consult(Event.RELAXATION, run.x).cuts)
                shown = True
            if session.is_proven:
                return Termination.OPTIMAL
            if not self._relaxation.exchange(run.x, drop=drop, count=False) and not session.stop_requested:
                if rejected and not self._free.size and session.model.keeps_rows(session.model.rounded(run.x)):
                    raise SolverError(NO_PROGRESS)
                # Rows that were dropped may have left the LP weaker than the parent's.
                return self._branch(node, min(sign * run.bound, -node.loss), run.x)

    def _learn(self, node: _Node, gain: float) -> None:
        """What the branching that led to a node has cost."""
        if node.fixing is not None:
            self._costs.learn(node.fixing.place, node.rise, max(-node.loss - gain, 0.0) / node.distance)

    def _enter(self, node: _Node) -> None:
        """Give the LP the node's bounds."""
        bounds = self._bounds.copy()
        fixing = node.fixing
        while fixing is not None:
            bounds[0, fixing.place] = max(bounds[0, fixing.place], fixing.lower)
            bounds[1, fixing.place] = min(bounds[1, fixing.place], fixing.upper)
            fixing = fixing.above
        changed = np.flatnonzero((bounds != self._set_bounds).any(axis=0))
        if changed.size:
            self._relaxation.set_bounds(self._columns[changed], bounds[0, changed], bounds[1, changed])
            self._set_bounds = bounds

    def _ended(self, status: RunStatus) -> Termination:
        """An LP run that came to no optimum: one of the solver's own limits if neither time nor a stop explains it."""
        if status is RunStatus.UNBOUNDED:
            return Termination.UNBOUNDED
        return Termination.TIME_LIMIT if self.session.out_of_time else Termination.STOPPED

    def _is_rejected(self, x: FloatArray) -> bool:
        verdict = self.session.consult(Event.CANDIDATE, x, cut_off=self._pool.rules_out(self.session.model, x))
        self._pool.add(verdict.cuts)
        return verdict.rejected

    def _is_settled_by(self, x: FloatArray, gain: float) -> bool:
        """Whether an accepted optimum of the LP, whose bound is `gain`, is the best of its node.

        It was accepted rounded; where that cost value, a better point may be left, unless no column is free any more.
        """
        model = self.session.model
        value = model.value(x)
        if gain > model.sign * value + FEASIBILITY_TOLERANCE * max(1.0, abs(value)):
            return False  # not an optimum that was proven
        lost = model.sign * (value - model.value(model.rounded(x)))
        return lost <= CONVERGENCE_TOLERANCE * max(1.0, abs(value)) or not self._free.size

    @property
    def _free(self) -> IntArray:
        """Places of the integer columns that the node does not fix."""
        return np.flatnonzero(self._set_bounds[0] < self._set_bounds[1])

    # ---------------------------------------------------------------- branching

    def _branch(self, node: _Node, gain: float, x: FloatArray | None) -> _Node | None:
        """Open both sides of a column; returns the upper one, to go on with, or None if there is no column left."""
        free = self._free
        if not free.size:
            self._left = max(self._left, gain)
            return None
        if x is None:  # the LP came to nothing: halve a range
            place = int(free[np.argmax(self._priorities[free])])
            value = float(
                np.clip(0.5 * np.clip(self._set_bounds[:, place], -_FAR, _FAR).sum(), *self._set_bounds[:, place])
            )
        else:
            place = self._branching_place(x)
            value = x[self._columns[place]]
        # An integral value is branched on only where rounding decides: the lower side keeps it.
        below = math.floor(value + FEASIBILITY_TOLERANCE)
        # A value may miss the node's bounds by a tolerance; both sides must be smaller than the node.
        below = min(max(below, self._set_bounds[0, place]), self._set_bounds[1, place] - 1.0)
        down = _Fixing(place, -math.inf, below, node.fixing)
        up = _Fixing(place, below + 1.0, math.inf, node.fixing)
        lower = self._new(gain, down, rise=False, distance=value - below)
        heapq.heappush(self._open, lower)
        return self._new(gain, up, rise=True, distance=below + 1.0 - value)

    def _new(self, gain: float, fixing: _Fixing, *, rise: bool, distance: float) -> _Node:
        self._created += 1
        return _Node(-gain, self._created, fixing, rise, max(distance, FEASIBILITY_TOLERANCE))

    def _branching_place(self, x: FloatArray) -> int:
        values = x[self._columns]
        fraction = values - np.floor(values)
        distance = np.minimum(fraction, 1.0 - fraction)
        free = self._free
        places = free[distance[free] > FEASIBILITY_TOLERANCE]
        if not places.size:  # integral but for noise, and the noise decides
            return int(free[np.argmax(distance[free])])
        priorities = self._priorities[places]
        places = places[priorities == priorities.max()]
        return int(places[np.argmax(self._costs.scores(places, fraction[places]))])


class PseudoCosts:
    """What moving a column by one unit, down or up, has cost on average where it was tried."""

    def __init__(self, n_columns: int) -> None:
        self._total = np.zeros((2, n_columns))
        self._count = np.zeros((2, n_columns))

    def learn(self, place: int, rise: bool, cost: float) -> None:
        self._total[int(rise), place] += cost
        self._count[int(rise), place] += 1

    def scores(self, places: IntArray, fraction: FloatArray) -> FloatArray:
        """The product of the expected losses of both branches, per column; columns never tried count as the average."""
        score = np.ones(places.size)
        for direction, distance in ((0, fraction), (1, 1.0 - fraction)):
            total, count = self._total[direction], self._count[direction]
            average = (total.sum() / count.sum() if count.any() else 0.0) or 1.0
            cost = np.where(count[places] > 0, total[places] / np.maximum(count[places], 1), average)
            score *= np.maximum(cost * distance, _LEAST_GAIN)
        return score
