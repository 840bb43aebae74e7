"""What a phase is, and the driver that runs one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from accel_oct.exact.stopping import Stopper
from accel_oct.solving.result import Result, Status
from accel_oct.solving.search import Search
from accel_oct.support.interrupts import run_interruptibly


class Phase(Protocol):
    """A step of a solve that may improve the incumbent or tighten the bound."""

    @property
    def name(self) -> str:
        """What `stats["decided_by"]` says when this phase finds the proof."""

    def applies(self, search: Search) -> bool:
        """Whether it can do anything for this problem, by its switches and by what it needs."""

    def run(self, search: Search) -> Status | None:
        """Work on the shared state. Returns what ends the solve without a proof, or None to go on."""


def run_stoppable(search: Search, work: Callable[[Stopper], None]) -> Status | None:
    """Run in a thread that Ctrl-C and the time limit stop, if the work asks; returns what stopped it, if anything."""
    interrupted = threading.Event()
    stopper = Stopper(search.clock.deadline, search.teller.beating(interrupted.is_set))
    run_interruptibly(lambda: work(stopper), interrupted.set)
    if interrupted.is_set():
        return "interrupted"
    return "time_limit" if stopper() else None


def run_phases(search: Search, phases: Iterable[Phase]) -> Result:
    """Run the phases that apply until one proves something, the time is up or the user stops."""
    for phase in phases:
        if not phase.applies(search):
            continue
        search.teller.begin(phase.name)
        ended = phase.run(search)
        search.confirm()
        if search.is_proven:
            return search.result("optimal", phase.name)
        if search.is_infeasible:
            return search.result("infeasible", phase.name)
        if ended is not None:
            return search.result(ended, "nothing: not proven")
    return search.result("gap_limit", "nothing: not proven")
