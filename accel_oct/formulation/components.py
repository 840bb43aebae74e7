"""The interface of cuts and heuristics, and the handler that passes the points of a solve to them.

A component may add columns and rows to the master in its constructor. During the solve it receives points, and returns
cuts and trees; the master lifts trees to vectors. A component never decides which trees are feasible: constraints do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Protocol

from accel_oct.errors import InvalidInputError
from accel_oct.exact import SubtreeCache
from accel_oct.formulation.agreement import Agreement
from accel_oct.formulation.incumbent import Incumbent
from accel_oct.formulation.master import Master
from accel_oct.mip import BoundReport, Cuts, Event, Needs, Point, Reply, Validity
from accel_oct.support.arrays import FloatArray
from accel_oct.tree import DecisionTree


class TreePoint:
    """A point of the solver as a (possibly fractional) tree; values that components share are computed once."""

    def __init__(self, master: Master, point: Point) -> None:
        self.master = master
        self.point = point
        self.b = master.b.view(point.x)
        self.p = master.p.view(point.x)
        self.w = master.w.view(point.x)
        self.theta = master.theta.view(point.x)

    @property
    def is_candidate(self) -> bool:
        """Whether the point is integral and would become the incumbent."""
        return self.point.event is Event.CANDIDATE

    @cached_property
    def as_predicted(self) -> DecisionTree:
        """The tree of a candidate, with the solver's labels."""
        return self.master.decode(self.point.x)

    @cached_property
    def tree(self) -> DecisionTree:
        """The tree of a candidate, with majority labels.

        It is at least as good as `as_predicted`, and defined for points in which a relaxed w is split between classes.
        """
        return self.as_predicted.relabelled(self.master.dataset)


@dataclass(frozen=True, slots=True)
class Response:
    """A component's response to a point."""

    cuts: tuple[Cuts, ...] = ()
    trees: tuple[DecisionTree, ...] = ()


class Component(Protocol):
    """A family of cuts, or a heuristic."""

    @property
    def name(self) -> str:
        """Name in the statistics."""
        ...

    @property
    def needs(self) -> Needs:
        """Events and kinds of cuts; `injects` if it proposes trees."""

    def respond(self, point: TreePoint) -> Response | None:
        """Return cuts that the point violates, and trees to propose; None for neither."""
        ...


#: A user's component in `accel_oct.solve`: usually its class.
ComponentFactory = Callable[[Master], Component]


@dataclass(frozen=True)
class Site:
    """What built-in components are built from, besides their configuration.

    Attributes
    ----------
    master : Master
    subtrees : SubtreeCache
        Optimal subtrees by path, shared by all components.
    shows_relaxations : bool
        Whether the backend shows relaxation points.
    threads : int
    deadline : float or None
        Value of `time.monotonic` at which long computations stop.
    """

    master: Master
    subtrees: SubtreeCache
    shows_relaxations: bool = True
    threads: int = 1
    deadline: float | None = None


@dataclass
class ComponentStatistics:
    """Statistics of one component in a solve."""

    calls: int = 0
    cuts: int = 0
    trees: int = 0
    seconds: float = 0.0


class TreeHandler:
    """Passes points to the components that want them, keeps the best tree, and injects it.

    The tree of each candidate is offered to the incumbent too, even if the Benders cuts reject its theta.

    Parameters
    ----------
    master : Master
    components : sequence of Component
    incumbent : Incumbent
    on_bound : callable (bound) -> bool
        Called with every bound of the solver; returns whether it proves the incumbent, which ends the solve.
    agreement : Agreement, optional
        Checks every tree that becomes the incumbent.
    """

    def __init__(
        self,
        master: Master,
        components: Sequence[Component],
        incumbent: Incumbent,
        on_bound: Callable[[float], bool],
        agreement: Agreement | None = None,
    ) -> None:
        self.master = master
        self.components = tuple(components)
        self.incumbent = incumbent
        self.statistics = {component.name: ComponentStatistics() for component in components}
        if len(self.statistics) < len(self.components):
            names = ", ".join(component.name for component in self.components)
            raise InvalidInputError(f"components must have distinct names, got {names}")
        self.lift_seconds = 0.0
        self._nodes = 0
        self._on_bound = on_bound
        self._agreement = agreement
        own = Needs([Event.CANDIDATE], injects=True, bounds=True)
        self._needs = reduce(lambda needs, component: needs | component.needs, components, own)
        self._injected_value = incumbent.value

    @property
    def needs(self) -> Needs:
        """Union of the needs of all components."""
        return self._needs

    def __call__(self, point: Point) -> Reply:
        seen = TreePoint(self.master, point)
        if seen.is_candidate and not self.incumbent.offer(seen.tree) and self.incumbent.depends_on_labels:
            self.incumbent.offer(seen.as_predicted)  # the solver's labels may be better, or satisfy a constraint
        cuts: list[Cuts] = []
        for component in self.components:
            if point.event in component.needs.events:
                cuts += self._respond(component, seen)
        if self._agreement is not None:
            self._agreement.check_all(self.incumbent.accepted)
        return Reply(tuple(cuts), self._solutions(), stop=self._on_bound(point.bound))

    def on_bound(self, report: BoundReport) -> Reply:
        """Pass on a bound; stop if it proves the incumbent."""
        self._nodes = report.nodes
        return Reply(stop=self._on_bound(report.bound))

    def describe(self) -> tuple[str, dict[str, int]]:
        """Return figures for progress displays: nodes, and the number of cuts by component."""
        cuts = {f"{name} cuts": counts.cuts for name, counts in self.statistics.items() if counts.cuts}
        return "", {"nodes": self._nodes, **cuts}

    def _respond(self, component: Component, seen: TreePoint) -> tuple[Cuts, ...]:
        statistics = self.statistics[component.name]
        began = time.perf_counter()
        response = component.respond(seen)
        statistics.calls += 1
        cuts: tuple[Cuts, ...] = ()
        if response is not None:
            cuts = response.cuts
            statistics.cuts += sum(batch.rows.n_rows for batch in cuts)
            for tree in response.trees:
                statistics.trees += self.incumbent.offer(tree)
        statistics.seconds += time.perf_counter() - began
        return cuts

    def _solutions(self) -> tuple[FloatArray, ...]:
        """Return the incumbent, once, if the solver does not have it."""
        if self.incumbent.tree is None or self.incumbent.value <= self._injected_value:
            return ()
        began = time.perf_counter()
        self._injected_value = self.incumbent.value
        solution = self.master.lift(self.incumbent.tree)
        self.lift_seconds += time.perf_counter() - began
        return (solution,)


class CheckedComponent:
    """A user's component whose REQUIRED and IMPLIED cuts are checked against known trees."""

    def __init__(self, component: Component, author: str, agreement: Agreement) -> None:
        self._component, self._author, self._agreement = component, author, agreement

    @property
    def name(self) -> str:
        return self._component.name

    @property
    def needs(self) -> Needs:
        return self._component.needs

    def respond(self, point: TreePoint) -> Response | None:
        response = self._component.respond(point)
        for cuts in () if response is None else response.cuts:
            if cuts.validity is not Validity.OPTIMALITY and not cuts.local and cuts.rows.n_rows:
                self._agreement.check_cuts(f"{self._author}: its {cuts.validity.name} cuts", cuts.rows)
        return response
