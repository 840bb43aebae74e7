"""When a handler hears of bounds: whenever there is news, but not so often that hearing it costs much."""

from __future__ import annotations

from accel_oct.mip.exchange import BoundReport

#: Hearing reports may take this share of the time since the solve began, and this many seconds on top ...
_SHARE = 0.05
_GRACE = 0.25
#: ... but news older than this is told at once: a proof that waits for the next report must not wait for long.
_LONGEST_PAUSE = 1.0
#: Seconds after which a handler hears that the solve goes on, with nothing else to tell.
_PULSE = 0.5


class ReportGate:
    """Decides whether a report is due.

    A quick handler hears every change, also thousands in a second; a slow one hears as many as fit into its share of
    the time. What is held back is not lost: the gate opens for it later.
    """

    def __init__(self, bound: float) -> None:
        self._heard: tuple[float, float | None] = (bound, None)
        self._spent = 0.0
        self._last = 0.0

    def has_news(self, bound: float, incumbent: float | None, seconds: float | None = None) -> bool:
        """Whether this differs from what was reported last, or (at a moment of the solve) that was long ago."""
        if (bound, incumbent) != self._heard:
            return True
        return seconds is not None and self._last > 0.0 and seconds - self._last >= _PULSE

    def is_open(self, seconds: float) -> bool:
        """Whether the handler has time to hear a report at this moment of the solve."""
        return self._spent <= _GRACE + _SHARE * seconds or seconds - self._last >= _LONGEST_PAUSE

    def passed(self, report: BoundReport, seconds: float) -> None:
        """Remember a report, and when its handler was done with it."""
        self._heard = (report.bound, report.incumbent)
        self._spent += seconds - report.seconds
        self._last = seconds
