"""Values in, values out: what a backend tells a handler, and what the handler replies.

A handler never sees a solver. It receives a `Point`, or between points a `BoundReport`, and returns a `Reply`; what it
may ask for is declared beforehand in its `Needs`, so that the backend can set the solver up for it, or refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from accel_oct.mip.errors import HandlerError
from accel_oct.mip.rows import FloatArray, Rows


class Event(Enum):
    """Why a handler is shown a point."""

    CANDIDATE = "candidate"
    """An integral point that will become the incumbent unless a cut rejects it."""
    RELAXATION = "relaxation"
    """A point of a relaxation, usually fractional."""


class Validity(Enum):
    """What makes a cut safe."""

    REQUIRED = "required"
    """Defines feasibility: a candidate that violates it must be rejected."""
    IMPLIED = "implied"
    """Holds for every feasible point, and goes on holding under any further constraint."""
    OPTIMALITY = "optimality"
    """May cut off feasible points, but all such cuts together keep one optimum."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """A batch of rows with the validity that its author vouches for, and a name for statistics.

    A batch with a `key` makes an earlier one of the same key superfluous: the author vouches that it is at least as
    tight. The cut loop drops the earlier rows; solvers that cannot take rows back keep them, which is harmless.

    OPTIMALITY cuts name the rule by which they choose the optimum that they keep (`keeps`): cuts that follow the same
    rule keep the same one, while two families that are each right may together remove every optimum.
    """

    rows: Rows
    validity: Validity
    source: str = "cuts"
    key: str | None = None
    keeps: str | None = None

    def __post_init__(self) -> None:
        if (self.validity is Validity.OPTIMALITY) != bool(self.keeps):
            raise HandlerError(
                f"the cuts {self.source!r}: OPTIMALITY cuts, and only those, name the rule by which they choose "
                f'the optimum that they keep (keeps="..."), got validity {self.validity.name} and keeps={self.keeps!r}'
            )


@dataclass(frozen=True, slots=True)
class Point:
    """What the solver knows at the moment it calls.

    Attributes
    ----------
    event : Event
    x : float array, read-only
        In the columns of the model as it was loaded; integer columns are rounded at a candidate.
    objective : float
        Objective of x.
    incumbent : float or None
        Objective of the best accepted point so far.
    bound : float
        A valid bound on the optimum (``inf`` or ``-inf`` before there is one).
    seconds : float
        Since the solve began.
    """

    event: Event
    x: FloatArray
    objective: float
    incumbent: float | None
    bound: float
    seconds: float


@dataclass(frozen=True, slots=True)
class BoundReport:
    """How far the solve has come, told when bound or incumbent has changed, or for long nothing was.

    Attributes
    ----------
    bound : float
        A valid bound on the optimum, in the model's own direction (``inf`` or ``-inf`` before there is one). Bounds of
        one solve only tighten, but for rounding.
    incumbent : float or None
        Objective of the best accepted point so far.
    nodes : int
        Explored so far, as far as the solver tells.
    seconds : float
        Since the solve began.
    """

    bound: float
    incumbent: float | None
    nodes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """What the handler wants done: cut batches to add, full solutions to try, or a stop.

    The reply to a `BoundReport` can ask for a stop only.
    """

    cuts: tuple[Cuts, ...] = ()
    solutions: tuple[FloatArray, ...] = ()
    stop: bool = False


@dataclass(frozen=True)
class Needs:
    """What a handler will use, declared before the solve.

    Parameters
    ----------
    events : iterable of Event
        The events it wants to be called for.
    cuts : iterable of Validity
        The kinds of cuts it may return.
    injects : bool
        Whether it may return solutions.
    keeps : str or iterable of str
        The rules by which its OPTIMALITY cuts choose the optimum that they keep. More than one is refused: nothing
        says that they choose the same.
    bounds : bool
        Whether it wants `BoundReport`s; it is a `BoundListener` then.
    """

    events: frozenset[Event] = field(default_factory=frozenset)
    cuts: frozenset[Validity] = field(default_factory=frozenset)
    injects: bool = False
    keeps: frozenset[str] = field(default_factory=frozenset)
    bounds: bool = False

    def __init__(
        self,
        events: Iterable[Event] = (),
        cuts: Iterable[Validity] = (),
        injects: bool = False,
        keeps: str | Iterable[str] = (),
        bounds: bool = False,
    ) -> None:
        object.__setattr__(self, "events", frozenset(events))
        object.__setattr__(self, "cuts", frozenset(cuts))
        object.__setattr__(self, "injects", injects)
        object.__setattr__(self, "keeps", frozenset([keeps] if isinstance(keeps, str) else keeps))
        object.__setattr__(self, "bounds", bounds)

    def __or__(self, other: Needs) -> Needs:
        return Needs(
            self.events | other.events,
            self.cuts | other.cuts,
            self.injects or other.injects,
            self.keeps | other.keeps,
            self.bounds or other.bounds,
        )


class Handler(Protocol):
    """Separates cuts and proposes solutions; called by a backend during a solve."""

    @property
    def needs(self) -> Needs: ...

    def __call__(self, point: Point) -> Reply | None: ...


class BoundListener(Handler, Protocol):
    """A handler that declares ``Needs(bounds=True)``.

    `on_bound` hears the first bound or incumbent, every later change of either (a slow listener hears fewer, see
    `ReportGate`), and always the last; and now and then, with nothing new, that the solve goes on.
    """

    def on_bound(self, report: BoundReport) -> Reply | None: ...


@dataclass(frozen=True)
class FunctionHandler:
    """Plain functions as a handler: one for points, and one for bounds if the needs declare them."""

    function: Callable[[Point], Reply | None]
    needs: Needs
    on_bound: Callable[[BoundReport], Reply | None] | None = None

    def __call__(self, point: Point) -> Reply | None:
        return self.function(point)
