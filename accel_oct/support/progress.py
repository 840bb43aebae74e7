"""Progress of computations, reported as one type of event.

A *sink* is a callable that takes a `ProgressEvent`: the history of a result, the log, the live view and a user's own
`progress=` callable are sinks. A `Reporter` makes the events of one computation and hands them to its sinks.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

logger = logging.getLogger("accel_oct")

#: A number, or a pair: how many of how many.
Figure = int | float | tuple[int, int]
Figures = Mapping[str, Figure]

_PAUSE = 0.2
"""Least seconds between events that only show that work goes on."""


@dataclass(frozen=True)
class ProgressEvent:
    """The state of a computation at one moment.

    There is one event for every change of objective or bound (`changed`), one at the beginning of every phase, and
    several per second while a phase runs.

    Attributes
    ----------
    seconds : float
        Since the computation began.
    phase : str
        Such as "encoding", "warm start", "subtree bounds", "prices", "branch and cut".
    step : str
        A step of the phase, such as "building the model"; often empty.
    figures : mapping from str to int, float or (int, int)
        Counters of the phase: ``{"roots open": (12, 60)}``.
    objective, bound : float
        Of the best tree so far, and what no tree exceeds; minus infinity and infinity before they are known.
    part : str
        The part of a larger computation that this is: "fold 3 of 10".
    changed : bool
        Whether the objective or the bound is new: then the event is a row of the history.
    """

    seconds: float = 0.0
    phase: str = "starting"
    step: str = ""
    figures: Figures = field(default_factory=dict)
    objective: float = -math.inf
    bound: float = math.inf
    part: str = ""
    changed: bool = False

    @property
    def place(self) -> str:
        """Part and phase."""
        return f"{self.part}, {self.phase}" if self.part else self.phase

    @property
    def work(self) -> str:
        """Step and figures: ``root features, roots open 12 of 60, sets 1,234``."""
        figures = (f"{name} {figure_text(figure)}" for name, figure in self.figures.items())
        return ", ".join(text for text in (self.step, *figures) if text)


#: Takes an event. A sink stops the computation by returning True; other results are ignored.
Sink = Callable[[ProgressEvent], object]


def figure_text(figure: Figure) -> str:
    """Format a figure: ``12 of 60``, ``1,234`` or ``0.00251``."""
    if isinstance(figure, tuple):
        return f"{figure[0]:,} of {figure[1]:,}"
    return f"{figure:,}" if isinstance(figure, int) else f"{figure:.3g}"


def joined_sinks(*sinks: Sink | None) -> Sink | None:
    """Join sinks, of which some may be None, into one; None if all are."""
    own = [sink for sink in sinks if sink is not None]
    if len(own) < 2:
        return own[0] if own else None

    def send(event: ProgressEvent) -> bool:
        return any([sink(event) is True for sink in own])

    return send


def announce(sink: Sink | None, phase: str, step: str = "") -> None:
    """Report work around a solve to a sink and the log."""
    event = ProgressEvent(phase=phase, step=step)
    _log(event)
    if sink is not None:
        sink(event)


def _log(event: ProgressEvent) -> None:
    if event.changed:
        text = "%.1f s: %s, objective %.6g, bound %.6g"
        logger.info(text, event.seconds, event.phase, event.objective, event.bound)
    elif logger.isEnabledFor(logging.DEBUG):
        logger.debug("%.1f s: %s", event.seconds, ", ".join(filter(None, (event.place, event.work))))


class Reporter:
    """Makes the events of one computation, and hands them to the log and to a sink.

    Long computations call `beat` often. Without a listener (`is_heard` is false), figures are not computed.

    Parameters
    ----------
    seconds : callable
        Seconds since the computation began.
    history : callable, optional
        A sink for the events with a new objective or bound alone.

    Attributes
    ----------
    stop_requested : bool
        Whether the sink has asked to stop.
    """

    def __init__(self, sink: Sink | None, seconds: Callable[[], float], history: Sink | None = None) -> None:
        self._sink = sink
        self._history = history
        self._seconds = seconds
        # A computation inside another one is logged by the outer one.
        self._logs = not isinstance(sink, _PartSink)
        heard = sink.is_heard if isinstance(sink, _PartSink) else sink is not None
        self.is_heard = heard or (self._logs and logger.isEnabledFor(logging.DEBUG))
        self.stop_requested = False
        self._last = ProgressEvent()
        self._describe: Callable[[], tuple[str, Figures]] = _nothing
        self._due = 0.0
        self._sending = threading.RLock()  # several threads of one phase may send events

    def change(self, objective: float, bound: float) -> None:
        """Report a new objective or bound."""
        with self._sending:
            self._last = replace(self._last, objective=objective, bound=bound)
            self._send(replace(self._event(), changed=True))

    def resume(self, objective: float, bound: float) -> None:
        """Take objective and bound over from an earlier computation, without an event."""
        self._last = replace(self._last, objective=objective, bound=bound)

    def begin(self, phase: str, describe: Callable[[], tuple[str, Figures]] | None = None) -> None:
        """Begin a phase, reported at once; for `describe` see the method of that name."""
        self._describe = describe or _nothing
        self._last = replace(self._last, phase=phase)
        self.report()

    def describe(self, describe: Callable[[], tuple[str, Figures]]) -> None:
        """Set the function that returns the step of the phase, or "", and its figures."""
        self._describe = describe

    def report(self) -> None:
        """Report the current state at once."""
        self._try_to_send()

    def step(self, step: str) -> None:
        """Report a step that may take long, at once."""
        if self.is_heard:
            self._try_to_send(replace(self._event(), step=step))

    def beat(self) -> bool:
        """Report the state if a heartbeat is due; return whether the sink has asked to stop."""
        if self.is_heard and time.monotonic() >= self._due:
            self.report()
        return self.stop_requested

    def part(self, name: str = "") -> Sink:
        """Return the sink for a computation that is a part of this one.

        Its events are passed on with the objective and the bound of this computation; changes of its own objective and
        bound, which are those of another problem, are not.
        """
        return _PartSink(self, name)

    def pass_on(self, event: ProgressEvent, part: str) -> bool:
        """Report the event of a part; return whether the sink has asked to stop."""
        last = self._last
        self._try_to_send(replace(event, objective=last.objective, bound=last.bound, part=part or event.part))
        return self.stop_requested

    def _event(self) -> ProgressEvent:
        """Return an event with the current state."""
        step, figures = self._describe() if self.is_heard else ("", {})
        return replace(self._last, step=step, figures=figures)

    def _try_to_send(self, event: ProgressEvent | None = None) -> None:
        """Send an event or the state, unless there is no listener or another thread is sending an event."""
        if self.is_heard and self._sending.acquire(blocking=False):
            try:
                self._send(event or self._event())
            finally:
                self._sending.release()

    def _send(self, event: ProgressEvent) -> None:
        event = replace(event, seconds=self._seconds())
        if event.changed and self._history is not None:
            self._history(event)
        self._due = time.monotonic() + _PAUSE
        if self._logs:
            _log(event)
        if self._sink is not None and self._sink(event) is True:
            self.stop_requested = True


class _PartSink:
    """The sink of a computation inside another one; see `Reporter.part`."""

    def __init__(self, outer: Reporter, name: str) -> None:
        self._outer, self._name = outer, name
        self.is_heard: bool = outer.is_heard

    def __call__(self, event: ProgressEvent) -> bool:
        return self._outer.stop_requested if event.changed else self._outer.pass_on(event, self._name)


def _nothing() -> tuple[str, Figures]:
    return "", {}
