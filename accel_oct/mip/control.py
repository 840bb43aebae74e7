"""The clock of one solve, and the ways in which it is asked to end."""

from __future__ import annotations

import math
import threading
import time

from accel_oct.mip.result import Termination


class SolveControl:
    """Time, requests to stop, and an exception that waits until the solver has returned."""

    def __init__(self, time_limit: float | None) -> None:
        self._time_limit = time_limit
        self._stop = threading.Event()
        self._stop_reason: Termination | None = None
        self._error: BaseException | None = None
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    @property
    def seconds_left(self) -> float:
        limit = self._time_limit
        return math.inf if limit is None else max(limit - self.seconds, 0.0)

    @property
    def out_of_time(self) -> bool:
        return self.seconds_left <= 0.0

    @property
    def stop_requested(self) -> bool:
        return self._stop.is_set()

    @property
    def stop_reason(self) -> Termination | None:
        return self._stop_reason

    def request_stop(self, reason: Termination) -> None:
        """Ask the solver to stop at its next opportunity; the first reason given counts."""
        if self._stop_reason is None:
            self._stop_reason = reason
        self._stop.set()

    def fail(self, error: BaseException) -> None:
        """Keep an exception for after the solve, and stop."""
        self._error = self._error or error
        self.request_stop(Termination.STOPPED)

    @property
    def failed(self) -> bool:
        """Whether an exception is being kept."""
        return self._error is not None

    def raise_kept(self) -> None:
        """Raise the exception that is being kept, if there is one."""
        if self._error is not None:
            raise self._error
