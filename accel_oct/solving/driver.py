"""The driver: runs the phases of a computation under one clock, one stopper and one reporter.

`accel_oct.solve`, `frontier`, `near_optimal`, ratios, tallies and the search over every split are `SearchRun` objects
with phases. `drive` runs the phases until one finds a proof, the run is stopped or none is left, and returns a
`RunOutcome`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from accel_oct.solving.result import HistoryRow, RunOutcome, Status
from accel_oct.support.progress import ProgressEvent, Reporter, Sink
from accel_oct.support.stopping import Clock, Stopper

__all__ = ["Phase", "SearchRun", "SinglePhase", "drive"]

NOT_PROVEN = "nothing: not proven"


class SearchRun:
    """The state of a computation that phases work on.

    Parameters
    ----------
    progress : callable (ProgressEvent) or None
        Called with every event; returns True to stop the run.

    Attributes
    ----------
    reporter : Reporter
        Makes the events.
    stopper : Stopper
        Called by all long computations; the calls also serve as heartbeats of the reporter.
    history : list of HistoryRow
        One for every change of objective or bound.
    """

    #: How a run with a proof ends.
    proven_status: ClassVar[Status] = "optimal"

    def __init__(self, clock: Clock, progress: Sink | None = None) -> None:
        self.clock = clock
        self.history: list[HistoryRow] = []
        self.reporter = Reporter(progress, lambda: clock.seconds, self._remember)
        self.stopper = Stopper(clock.deadline, self.reporter.beat if self.reporter.is_heard else None)
        self.recording = threading.RLock()  # several threads of one phase may find something

    def resume(self, history: Sequence[HistoryRow]) -> None:
        """Go on from the history of an earlier run of the same problem."""
        self.history = list(history)
        self.reporter.resume(*self.history[-1][1:])

    @property
    def is_proven(self) -> bool:
        """Whether the result is proven."""
        raise NotImplementedError

    @property
    def is_infeasible(self) -> bool:
        """Whether it is proven that no tree satisfies every constraint."""
        return False

    def check(self) -> None:
        """Check the state after a phase."""

    def finish(self, status: Status) -> None:
        """Finish the state; called once, before the outcome is made."""

    def note(self, objective: float, bound: float) -> bool:
        """Report objective and bound, and add them to the history, if one of them is new; returns whether it is."""
        with self.recording:
            is_new = not self.history or self.history[-1][1:] != (objective, bound)
            if is_new:
                self.reporter.change(objective, bound)
            return is_new

    def perform(self, work: Callable[[Stopper], object]) -> Status | None:
        """Run work that Ctrl-C, the time limit and `progress` can stop; returns what stopped it, if anything."""
        return self.stopper.run(work)

    def outcome(self, status: Status, decided_by: str) -> RunOutcome:
        """Finish the run and return its outcome."""
        self.finish(status)
        return RunOutcome(status, decided_by, self.clock.seconds, tuple(self.history))

    def _remember(self, event: ProgressEvent) -> None:
        self.history.append(HistoryRow(event.seconds, event.objective, event.bound))


RunType = TypeVar("RunType", bound=SearchRun, contravariant=True)


class Phase(Protocol[RunType]):
    """A step of a run that may improve its result or its bound."""

    @property
    def name(self) -> str:
        """Name in `stats["decided_by"]` if this phase finds the proof."""

    def applies(self, run: RunType, /) -> bool:
        """Return whether the phase is enabled and can help with this problem."""

    def run(self, run: RunType, /) -> Status | None:
        """Work on the state; return the status of a run that ends without a proof, or None to continue."""


OneRun = TypeVar("OneRun", bound=SearchRun)


class SinglePhase(Generic[OneRun]):
    """A phase that is one function of the run."""

    def __init__(self, name: str, function: Callable[[OneRun], Status | None]) -> None:
        self.name, self._function = name, function

    def applies(self, run: OneRun) -> bool:
        return True

    def run(self, run: OneRun) -> Status | None:
        return self._function(run)


def drive(run: OneRun, phases: Iterable[Phase[OneRun]]) -> RunOutcome:
    """Run the phases that apply until one finds a proof, the run is stopped or none is left."""
    for phase in phases:
        if not phase.applies(run):
            continue
        run.reporter.begin(phase.name)
        ended = phase.run(run)
        run.check()
        if run.is_proven:
            return run.outcome(run.proven_status, phase.name)
        if run.is_infeasible:
            return run.outcome("infeasible", phase.name)
        if ended is not None:
            return run.outcome(ended, NOT_PROVEN)
    return run.outcome("gap_limit", NOT_PROVEN)
