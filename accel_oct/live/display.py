"""What is shown of a solve at a moment, and plain lines of it: for pipes, files and terminals without a cursor."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Protocol, TextIO

from accel_oct.mip import relative_gap
from accel_oct.solving.activity import Figures, figures_in_words

_ROUNDING = 1e-12
"""A gap that comes from dividing by the total weight alone: samples weigh more than that."""


@dataclass(frozen=True)
class Moment:
    """What is known at a moment.

    Attributes
    ----------
    seconds : float
        Since the view began.
    limit : float or None
        Seconds that all may take.
    phase, part, doing, figures, objective, bound
        As in `accel_oct.solving.activity.Activity`.
    """

    seconds: float = 0.0
    limit: float | None = None
    phase: str = "starting"
    part: str = ""
    doing: str = ""
    figures: Figures = field(default_factory=dict)
    objective: float = -math.inf
    bound: float = math.inf

    @property
    def values(self) -> dict[str, str]:
        """Objective, bound and gap in words; a dash for what is not known yet."""
        objective, bound = (f"{value:.6f}" if math.isfinite(value) else "-" for value in (self.objective, self.bound))
        known = math.isfinite(self.objective) and math.isfinite(self.bound)
        return {"objective": objective, "bound": bound, "gap": _percent(self.objective, self.bound) if known else "-"}

    @property
    def place(self) -> str:
        """Phase and part."""
        return f"{self.part}, {self.phase}" if self.part else self.phase

    @property
    def work(self) -> str:
        """Step and figures."""
        return ", ".join(words for words in (self.doing, figures_in_words(self.figures)) if words)

    @property
    def line(self) -> str:
        """All in one line."""
        words = [f"{self.seconds:8.1f} s", self.place]
        if math.isfinite(self.objective) or math.isfinite(self.bound):
            words += [f"{name} {value}" for name, value in self.values.items()]
        return "  ".join([*words, self.work]).rstrip()

    @property
    def summary(self) -> str:
        """The line that is left behind."""
        if math.isfinite(self.objective) or math.isfinite(self.bound):
            return replace(self, phase="end", part="", doing="", figures={}).line
        return replace(self, phase="end", part="", doing="").line


def _percent(objective: float, bound: float) -> str:
    """A gap that is not closed never reads as zero; what is left of one by rounding does."""
    gap = relative_gap(objective, bound)
    if not math.isfinite(gap):
        return "-"
    return f"{gap:.2%}" if gap <= _ROUNDING or gap >= 5e-5 else "below 0.01%"


class Display(Protocol):
    """Shows moments; all its methods are called by one thread."""

    def draw(self, moment: Moment) -> None:
        """Show a moment, if it is time to; called several times in a second."""

    def end(self, moment: Moment) -> None:
        """Remove what was drawn and leave a line."""


# ---------------------------------------------------------------- lines


_FIRST, _PAUSE = 1.0, 1.0
"""Seconds before the first line, so that a quick solve leaves one line only, and between lines."""

_SILENCE = {1: 10.0, 2: 5.0}
"""Seconds after which a line comes although nothing has changed, by `verbose`."""


class LinePolicy:
    """When a line is due.

    The first one after a second, whether anybody has told anything or not. Later ones when anything but figures has
    changed, one in a second at most; and when there was none for long.
    """

    def __init__(self, verbose: int = 1) -> None:
        self._silence = _SILENCE[min(verbose, 2)]
        self._shown: tuple[object, ...] | None = None
        self._at = 0.0

    def is_due(self, moment: Moment) -> bool:
        """Whether to write a line now; it is taken for written then."""
        content = (moment.objective, moment.bound, moment.phase, moment.part, moment.doing)
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
