"""Exit codes; docs/cli.md explains them."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """How a command ended."""

    #: Success; optimality is proven, or the gap is at most --gap.
    DONE = 0
    #: Internal error.
    BUG = 1
    #: The command line, a file or the data are invalid, or a file cannot be written.
    BAD_INPUT = 2
    #: Stopped before the proof was complete.
    NOT_PROVEN = 3
    #: `check`: something does not hold.
    DOES_NOT_HOLD = 4
    #: Proven: no tree over the searched splits satisfies the constraints.
    NO_TREE = 5
    #: Ctrl-C.
    INTERRUPTED = 130
