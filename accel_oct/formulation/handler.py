"""One handler out of many components: what the solver calls during a solve of the master."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from accel_oct.errors import InvalidInputError
from accel_oct.formulation.agreement import Agreement
from accel_oct.formulation.component import Component, TreePoint
from accel_oct.formulation.incumbent import Incumbent
from accel_oct.formulation.master import Master
from accel_oct.mip import BoundReport, Cuts, Event, Needs, Point, Reply
from accel_oct.mip.rows import FloatArray


@dataclass
class ComponentStatistics:
    """Work of one component over a solve."""

    calls: int = 0
    cuts: int = 0
    trees: int = 0
    seconds: float = 0.0


class TreeHandler:
    """Asks every component about every point it wants, keeps the best tree, and injects it.

    The tree of each candidate is worth something even when the Benders cuts reject the candidate's theta, so it is
    offered to the incumbent too.

    Parameters
    ----------
    master : Master
    components : sequence of Component
    incumbent : Incumbent
    on_bound : callable (bound) -> bool
        Told of every bound that the solver reports, with a point or between points; whether it proves the incumbent,
        so that the solve may end.
    agreement : Agreement, optional
        Checks every tree that the incumbent takes.
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
            raise InvalidInputError(f"components must have names of their own, got {names}")
        self.lift_seconds = 0.0
        self._nodes = 0
        self._on_bound = on_bound
        self._agreement = agreement
        own = Needs([Event.CANDIDATE], injects=True, bounds=True)
        self._needs = reduce(lambda needs, component: needs | component.needs, components, own)
        self._injected_value = incumbent.value

    @property
    def needs(self) -> Needs:
        """What all components need together."""
        return self._needs

    def __call__(self, point: Point) -> Reply:
        seen = TreePoint(self.master, point)
        if seen.is_candidate and not self.incumbent.offer(seen.tree) and self.incumbent.rules:
            self.incumbent.offer(seen.as_predicted)  # majority labels may break a rule that the solver's keep
        cuts: list[Cuts] = []
        for component in self.components:
            if point.event in component.needs.events:
                cuts += self._ask(component, seen)
        if self._agreement is not None:
            self._agreement.check_all(self.incumbent.accepted)
        return Reply(tuple(cuts), self._solutions(), stop=self._on_bound(point.bound))

    def on_bound(self, report: BoundReport) -> Reply:
        """Tell the solve of a bound; stop where it is enough."""
        self._nodes = report.nodes
        return Reply(stop=self._on_bound(report.bound))

    def describe(self) -> tuple[str, dict[str, int]]:
        """For whoever watches: nodes, and the cuts of every component that has made some."""
        cuts = {f"{name} cuts": counts.cuts for name, counts in self.statistics.items() if counts.cuts}
        return "", {"nodes": self._nodes, **cuts}

    def _ask(self, component: Component, seen: TreePoint) -> tuple[Cuts, ...]:
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
        """The incumbent, once, when the solver does not have it yet."""
        if self.incumbent.tree is None or self.incumbent.value <= self._injected_value:
            return ()
        began = time.perf_counter()
        self._injected_value = self.incumbent.value
        solution = self.master.lift(self.incumbent.tree)
        self.lift_seconds += time.perf_counter() - began
        return (solution,)
