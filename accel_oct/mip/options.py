"""What a caller asks of a solve."""

from __future__ import annotations

import logging
import math
import operator
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from accel_oct.mip.errors import ModelError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SolveOptions:
    """Limits and hints of one solve, the same for every backend.

    Parameters
    ----------
    time_limit : float, optional
        Seconds. The incumbent and a valid bound are returned when it is reached.
    gap : float
        Stop when ``|bound - objective| <= gap * |objective|``; 0 asks for a proof.
    threads : int
        At most as many as there are cores: more are cut down to that, with a line in the log.
    seed : int
    node_limit : int, optional
    branch_priorities : int array, one per column, optional
        Larger is branched on earlier. Refused by backends that cannot use them.
    check_cuts : bool
        Every REQUIRED and IMPLIED cut is compared with the best solution known to be feasible, and one that clearly
        cuts it off raises `InvalidCutError`; with this option, one that does so by more than 1e-5. For people who
        write cuts.
    native : mapping
        Passed through to the solver under the solver's own names.
    """

    time_limit: float | None = None
    gap: float = 0.0
    threads: int = 1
    seed: int = 0
    node_limit: int | None = None
    branch_priorities: npt.NDArray[Any] | None = None
    check_cuts: bool = False
    native: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.time_limit is not None and not self.time_limit >= 0:
            raise ModelError(f"`time_limit` must be a number of seconds >= 0 or None, got {self.time_limit!r}")
        if not (self.gap >= 0 and math.isfinite(self.gap)):
            raise ModelError(f"`gap` must be finite and >= 0, got {self.gap!r}")
        object.__setattr__(self, "threads", usable_threads(self.threads))
        if self.seed < 0:
            raise ModelError(f"`seed` must be >= 0, got {self.seed!r}")
        if self.node_limit is not None and self.node_limit < 0:
            raise ModelError(f"`node_limit` must be >= 0 or None, got {self.node_limit!r}")


def usable_threads(threads: Any) -> int:
    """As many threads as were asked for and this process has cores for.

    More would share the cores, and every thread takes memory for its tables or its copy of the model.

    Raises
    ------
    ModelError
        If `threads` is not a whole number of at least one.
    """
    try:
        wanted = 0 if isinstance(threads, bool) else operator.index(threads)
    except TypeError:
        wanted = 0
    if wanted < 1:
        raise ModelError(f"`threads` must be a whole number and at least 1, got {threads!r}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if wanted > cores:
        logger.warning("%d threads were asked for, and %d are used: there are no more cores", wanted, cores)
    return min(wanted, cores)
