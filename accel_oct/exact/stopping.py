"""When a long computation should stop early, and how much memory it may take."""

from __future__ import annotations

import time
from collections.abc import Callable

DEFAULT_MEMORY_LIMIT = 4 * 2**30
"""Bytes that tables may take together."""


class Stopper:
    """Callable that turns true, for good, once the deadline has passed or the caller wants to stop.

    Parameters
    ----------
    deadline : float, optional
        Reading of `time.monotonic` after which to stop.
    should_stop : callable, optional
        Asked between steps.
    """

    def __init__(self, deadline: float | None = None, should_stop: Callable[[], bool] | None = None) -> None:
        self._deadline = deadline
        self._should_stop = should_stop
        self._stopped = False

    def __call__(self) -> bool:
        if not self._stopped:
            late = self._deadline is not None and time.monotonic() >= self._deadline
            self._stopped = late or (self._should_stop is not None and bool(self._should_stop()))
        return self._stopped

    @property
    def remaining(self) -> float:
        """Seconds left, infinite without a deadline."""
        return float("inf") if self._deadline is None else self._deadline - time.monotonic()


class OutOfMemory(Exception):
    """What is kept would take more memory than allowed."""
