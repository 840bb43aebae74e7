"""Exit codes; docs/cli.md explains them."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Code"]


class Code(IntEnum):
    """How a command ended."""

    #: Done; where something was to be proven, it is proven (or to the gap that --gap asked for).
    DONE = 0
    #: A bug of ours.
    BUG = 1
    #: The command line, a file or the data cannot be used, or a file cannot be written.
    BAD_INPUT = 2
    #: Stopped before the proof was complete.
    NOT_PROVEN = 3
    #: `check`: something does not hold.
    DOES_NOT_HOLD = 4
    #: It is proven that no tree over the splits that were searched keeps the constraints.
    NO_TREE = 5
    #: Ctrl-C.
    INTERRUPTED = 130
