"""What a solve tells while it runs: rows of its history, and between them what is being done.

A `progress` callable gets rows only. If it has a method ``on_activity`` it is a `Watcher`, and that method gets an
`Activity` at the beginning of every phase and a few times in a second. All rows, and all activities, also go to the
logger "accel_oct".
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from accel_oct.solving.result import HistoryRow, Progress

logger = logging.getLogger("accel_oct")

#: A number, or how many of how many.
Figure = int | float | tuple[int, int]
Figures = Mapping[str, Figure]

_PAUSE = 0.2
"""Seconds between activities that are told only to show that work goes on."""


@dataclass(frozen=True)
class Activity:
    """What is being done at a moment of a solve, and what is known by then.

    Attributes
    ----------
    seconds : float
        Since the solve began.
    phase : str
        Such as "encoding", "warm start", "subtree bounds", "prices", "branch and cut".
    doing : str
        A step of the phase, such as "building the model"; often empty.
    figures : mapping from str to int, float or (int, int)
        How far it is: ``{"roots open": (12, 60)}``. Which ones there are depends on the phase.
    objective, bound : float
        As in the last row of the history; minus infinity and infinity before there is one.
    part : str
        Of what the solve is a part: "fold 3 of 10".
    """

    seconds: float
    phase: str
    doing: str = ""
    figures: Figures = field(default_factory=dict)
    objective: float = -math.inf
    bound: float = math.inf
    part: str = ""


class Watcher(Protocol):
    """A `progress` callable that also wants to know what is being done."""

    def __call__(self, row: HistoryRow, /) -> None: ...

    def on_activity(self, activity: Activity, /) -> None: ...


def activity_listener(progress: Any) -> Callable[[Activity], None] | None:
    """The method of a `Watcher`; None of other callables."""
    listener = getattr(progress, "on_activity", None)
    return listener if callable(listener) else None


def say(progress: Any, phase: str, doing: str = "") -> None:
    """Tell a `Watcher`, and the log, of work around a solve."""
    activity = Activity(0.0, phase, doing)
    logger.debug("%s", in_words(activity))
    listener = activity_listener(progress)
    if listener is not None:
        listener(activity)


class Teller:
    """Tells a `progress` callable, and the log, how a solve goes.

    Without a listener a heartbeat costs nothing: nobody is asked for figures, and `beating` adds nothing to what it is
    given. With one it costs a look at the clock.

    Parameters
    ----------
    progress : callable or None
    seconds : callable
        Since the solve began.
    """

    def __init__(self, progress: Progress | None, seconds: Callable[[], float]) -> None:
        self._progress = progress
        self._seconds = seconds
        self._listener = activity_listener(progress)
        self._logs = not isinstance(progress, Relay)  # of a solve inside another one only the outer has rows
        self.hears = self._listener is not None or (self._logs and logger.isEnabledFor(logging.DEBUG))
        self._known: tuple[float, float] = (-math.inf, math.inf)
        self._phase = ""
        self._describe: Callable[[], tuple[str, Figures]] = _nothing
        self._due = 0.0
        self._telling = threading.RLock()  # several threads of one phase may ask whether to stop

    def row(self, row: HistoryRow) -> None:
        """Tell a row of the history."""
        with self._telling:
            known = (row.objective, row.bound)
            if self._logs and known != self._known:
                logger.info("%.1f s: %s, objective %.6g, bound %.6g", row.seconds, self._phase or "start", *known)
            self._known = known
            if self._progress is not None:
                self._progress(row)

    def begin(self, phase: str, describe: Callable[[], tuple[str, Figures]] | None = None) -> None:
        """A phase begins; told at once. For `describe` see there."""
        self._phase, self._describe = phase, describe or _nothing
        if self.hears:
            self._tell()

    def describe(self, describe: Callable[[], tuple[str, Figures]]) -> None:
        """How to find out what the phase is doing: a step in words or "", and figures."""
        self._describe = describe

    def doing(self, step: str) -> None:
        """A step begins that may take long; told at once."""
        if self.hears:
            self._tell(step)

    def beat(self) -> None:
        """To be called often by whatever may take long: tells a few times in a second what is being done."""
        if self.hears and time.monotonic() >= self._due:
            self._tell()

    def beating(self, should_stop: Callable[[], bool]) -> Callable[[], bool]:
        """What to ask in the place of `should_stop`, so that asking is a heartbeat."""
        if not self.hears:
            return should_stop

        def asked() -> bool:
            self.beat()
            return should_stop()

        return asked

    def pass_on(self, activity: Activity, part: str = "") -> None:
        """Tell the activity of a solve that is a part of this one, with what is known of this one."""
        objective, bound = self._known
        self._deliver(
            replace(activity, seconds=self._seconds(), objective=objective, bound=bound, part=part or activity.part)
        )

    def _tell(self, step: str | None = None) -> None:
        doing, figures = self._describe()
        objective, bound = self._known
        doing = doing if step is None else step
        self._deliver(Activity(self._seconds(), self._phase, doing, figures, objective, bound))

    def _deliver(self, activity: Activity) -> None:
        if not self._telling.acquire(blocking=False):
            return  # another thread is telling something just now
        try:
            self._due = time.monotonic() + _PAUSE
            if self._logs and logger.isEnabledFor(logging.DEBUG):
                logger.debug("%.1f s: %s", activity.seconds, in_words(activity))
            if self._listener is not None:
                self._listener(activity)
        finally:
            self._telling.release()


class Relay:
    """The `progress` of a solve inside another one: rows are about another problem, activities are passed on."""

    def __init__(self, outer: Teller, part: str = "") -> None:
        self.on_activity = (lambda activity: outer.pass_on(activity, part)) if outer.hears else None

    def __call__(self, row: HistoryRow) -> None:
        """Nothing: who asked for the outer solve would take it for theirs."""


def in_words(activity: Activity) -> str:
    """Phase, part, step and figures as a line."""
    words = [activity.part, activity.phase, activity.doing, figures_in_words(activity.figures)]
    return ", ".join(word for word in words if word)


def figures_in_words(figures: Figures) -> str:
    """``roots open 12 of 60, sets 1,234``."""
    return ", ".join(f"{name} {figure_in_words(figure)}" for name, figure in figures.items())


def figure_in_words(figure: Figure) -> str:
    """``12 of 60``, ``1,234`` or ``0.00251``."""
    if isinstance(figure, tuple):
        return f"{figure[0]:,} of {figure[1]:,}"
    return f"{figure:,}" if isinstance(figure, int) else f"{figure:.3g}"


def _nothing() -> tuple[str, Figures]:
    return "", {}
