"""The interface of cuts and heuristics.

A component may add columns and rows to the master in its constructor. During the solve it receives points, and returns
cuts and trees; the master lifts trees to vectors. A component never decides which trees are feasible: constraints do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from accel_oct.exact import SubtreeCache
from accel_oct.formulation.master import Master
from accel_oct.mip import Cuts, Event, Needs, Point
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
