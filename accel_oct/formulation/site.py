"""Where the components of a solve are built, and what they may use there."""

from __future__ import annotations

from dataclasses import dataclass

from accel_oct.exact import SubtreeCache
from accel_oct.formulation.master import Master


@dataclass(frozen=True)
class Site:
    """What the built-in families of cuts are made from, besides their own switches.

    Attributes
    ----------
    master : Master
    subtrees : SubtreeCache
        Optimal subtrees by path, shared by all.
    shows_relaxations : bool
        Whether the backend shows relaxation points; what asks for them does without where it does not.
    threads : int
    deadline : float or None
        Reading of `time.monotonic` at which long computations stop.
    """

    master: Master
    subtrees: SubtreeCache
    shows_relaxations: bool = True
    threads: int = 1
    deadline: float | None = None
