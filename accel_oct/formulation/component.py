"""What a cut or a heuristic is written against.

A component may add columns and rows to the master when it is made, looks at points during the solve, and answers with
cuts and with trees. Trees, not vectors: lifting them is the master's work. It never decides which trees are allowed:
that is what constraints are for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from accel_oct.formulation.master import Master
from accel_oct.mip import Cuts, Event, Needs, Point
from accel_oct.tree import DecisionTree


class TreePoint:
    """A point of the solver seen as a (possibly fractional) tree; what several components need is computed once."""

    def __init__(self, master: Master, point: Point) -> None:
        self.master = master
        self.point = point
        self.b = master.b.view(point.x)
        self.p = master.p.view(point.x)
        self.w = master.w.view(point.x)
        self.theta = master.theta.view(point.x)

    @property
    def is_candidate(self) -> bool:
        """Whether the point is integral, and would become the incumbent."""
        return self.point.event is Event.CANDIDATE

    @cached_property
    def as_predicted(self) -> DecisionTree:
        """The tree of a candidate, leaves labelled as the solver did."""
        return self.master.decode(self.point.x)

    @cached_property
    def tree(self) -> DecisionTree:
        """The tree of a candidate, leaves labelled by majority.

        Never worse than as predicted, and settles points in which a relaxed w is split between classes.
        """
        return self.as_predicted.relabelled(self.master.dataset)


@dataclass(frozen=True, slots=True)
class Response:
    """What a component has to say about a point."""

    cuts: tuple[Cuts, ...] = ()
    trees: tuple[DecisionTree, ...] = ()


class Component(Protocol):
    """A family of cuts, or a heuristic."""

    @property
    def name(self) -> str:
        """Under which its statistics are reported."""
        ...

    @property
    def needs(self) -> Needs:
        """Events it wants, kinds of cuts it emits; `injects` when it proposes trees."""

    def respond(self, point: TreePoint) -> Response | None:
        """Cuts that the point violates, and trees to propose; None where there is nothing to say."""
        ...


#: How a component of one's own is handed to `accel_oct.solve`: usually its class.
ComponentFactory = Callable[[Master], Component]
