"""Displays of a solve: the state that is shown, and plain lines for pipes, files and terminals without a cursor."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol, TextIO

from accel_oct.mip import relative_gap
from accel_oct.support.progress import ProgressEvent

_ROUNDING = 1e-12
"""Largest relative gap that rounding alone can cause."""


@dataclass(frozen=True)
class Moment(ProgressEvent):
    """An event as it is shown, with the seconds since the view began.

    Attributes
    ----------
    limit : float or None
        Seconds that all may take.
    """

    limit: float | None = None

    @property
    def values(self) -> dict[str, str]:
        """Objective, bound and gap as text; a dash for unknown values."""
        objective, bound = (f"{value:.6f}" if math.isfinite(value) else "-" for value in (self.objective, self.bound))
        known = math.isfinite(self.objective) and math.isfinite(self.bound)
        return {"objective": objective, "bound": bound, "gap": _percent(self.objective, self.bound) if known else "-"}

    @property
    def line(self) -> str:
        """Everything in one line."""
        words = [f"{self.seconds:8.1f} s", self.place]
        if math.isfinite(self.objective) or math.isfinite(self.bound):
            words += [f"{name} {value}" for name, value in self.values.items()]
        return "  ".join([*words, self.work]).rstrip()

    @property
    def summary(self) -> str:
        """The last line, which remains."""
        if math.isfinite(self.objective) or math.isfinite(self.bound):
            return replace(self, phase="end", part="", step="", figures={}).line
        return replace(self, phase="end", part="", step="").line


def _percent(objective: float, bound: float) -> str:
    """Format a gap. An open gap is never shown as zero; a gap that rounding causes is."""
    gap = relative_gap(objective, bound)
    if not math.isfinite(gap):
        return "-"
    return f"{gap:.2%}" if gap <= _ROUNDING or gap >= 5e-5 else "below 0.01%"


class Display(Protocol):
    """Shows moments. All methods are called by one thread."""

    def draw(self, moment: Moment) -> None:
        """Show a moment if one is due; called several times per second."""

    def end(self, moment: Moment) -> None:
        """Remove the drawing and write the last line."""


# ---------------------------------------------------------------- lines


_FIRST, _PAUSE = 1.0, 1.0
"""Least seconds before the first line, so that a quick solve writes one line only, and between lines."""

_SILENCE = {1: 10.0, 2: 5.0}
"""Most seconds between lines when nothing changes, by `verbose`."""


class LinePolicy:
    """Decides when a line is due.

    The first is due after a second, with or without an event. Later ones are due when anything but figures has
    changed, at most once per second, and after a long pause.
    """

    def __init__(self, verbose: int = 1) -> None:
        self._silence = _SILENCE[min(verbose, 2)]
        self._shown: tuple[object, ...] | None = None
        self._at = 0.0

    def is_due(self, moment: Moment) -> bool:
        """Return whether to write a line now; if so, it counts as written."""
        content = (moment.objective, moment.bound, moment.phase, moment.part, moment.step)
        since = moment.seconds - self._at
        if self._shown is None:
            due = moment.seconds >= _FIRST
        else:
            due = since >= self._silence or (since >= _PAUSE and content != self._shown)
        if due:
            self._shown, self._at = content, moment.seconds
        return due


class LineDisplay:
    """Writes lines to a stream."""

    def __init__(self, stream: TextIO, verbose: int = 1) -> None:
        self._stream = stream
        self._policy = LinePolicy(verbose)

    def draw(self, moment: Moment) -> None:
        if self._policy.is_due(moment):
            self._write(moment.line)

    def end(self, moment: Moment) -> None:
        self._write(moment.summary)

    def _write(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()
