"""What is shown at a moment, and what may show it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Protocol

from accel_oct.mip import relative_gap
from accel_oct.solving.activity import Figures, figures_in_words


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
    """A gap that is not closed never reads as zero."""
    gap = relative_gap(objective, bound)
    if not math.isfinite(gap):
        return "-"
    return f"{gap:.2%}" if gap == 0.0 or gap >= 5e-5 else "below 0.01%"


class View(Protocol):
    """Shows moments; all its methods are called by one thread."""

    def draw(self, moment: Moment) -> None:
        """Show a moment, if it is time to; called several times in a second."""

    def end(self, moment: Moment) -> None:
        """Remove what was drawn and leave a line."""
