"""Ctrl-C while compiled code holds the thread."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger(__name__)

_PATIENCE = 10.0
"""Seconds that work which was told to stop may take to do so, from the second Ctrl-C on."""


def run_interruptibly(work: Callable[[], object], on_interrupt: Callable[[], None]) -> None:
    """Run `work` so that Ctrl-C reaches us while a solver holds the thread.

    Python runs signal handlers in the main thread only, and a solver that holds it would keep them waiting. So the work
    goes to another thread while this one waits. The first Ctrl-C asks the work to stop, and what it has found is used.
    A second one discards that: KeyboardInterrupt, but only once the work has stopped, so that nothing goes on computing
    behind the caller's back. Work that does not stop for seconds is left behind with a warning.
    """
    if threading.current_thread() is not threading.main_thread():
        work()
        return
    done = threading.Event()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # carried over to the calling thread
            errors.append(error)
        finally:
            done.set()

    try:
        threading.Thread(target=run, name="accel_oct-solve", daemon=True).start()
        pressed = _wait(done, on_interrupt)
    except KeyboardInterrupt:  # in the instant before the wait begins
        on_interrupt()
        raise
    if pressed > 1:
        raise KeyboardInterrupt from (errors[0] if errors else None)
    if errors:
        raise errors[0]


@contextmanager
def remembered_interrupts() -> Iterator[threading.Event]:
    """An event that every Ctrl-C sets, also one that a solve takes as a request to stop.

    For work of many solves: a solve that was about to end when Ctrl-C came tells nobody of it.
    """
    event = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield event  # signals are not ours to handle here
        return

    def remember(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            event.set()
            raise

    signal.signal(signal.SIGINT, remember)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)


class _Kept:
    """Ctrl-C that waits for the next work that can be stopped."""

    def __init__(self) -> None:
        self.pressed = 0
        self.waiting = False

    def take(self) -> int:
        """How often it was pressed without anybody hearing it."""
        pressed, self.pressed = self.pressed, 0
        return pressed


_kept = _Kept()


@contextmanager
def kept_interrupts() -> Iterator[threading.Event]:
    """Ctrl-C between pieces of work is kept: the next piece hears of it when it begins, and stops.

    So a solve that has a tree already returns it, whenever Ctrl-C comes. A second one between pieces of work is raised
    at once. The event tells whether one came.
    """
    event = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield event  # signals are not ours to handle here
        return

    def keep(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            if event.is_set() and not _kept.waiting:
                raise
            event.set()
            _kept.pressed += 1

    signal.signal(signal.SIGINT, keep)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)
        _kept.take()


def _wait(done: threading.Event, on_interrupt: Callable[[], None]) -> int:
    """Wait for the work, or until patience with it ends; returns how often Ctrl-C was pressed."""
    _kept.waiting = True
    try:
        return _waited(done, on_interrupt)
    finally:
        _kept.waiting = False


def _waited(done: threading.Event, on_interrupt: Callable[[], None]) -> int:
    pressed, told, until = 0, False, float("inf")
    while True:
        try:
            pressed += _kept.take()
            if pressed and not told:
                told = True
                on_interrupt()
            if pressed > 1:
                until = min(until, time.monotonic() + _PATIENCE)
            while not done.wait(0.1) and not _kept.pressed:
                if time.monotonic() > until:
                    logger.warning("the solver has not stopped %g s after it was told to; it is left behind", _PATIENCE)
                    return pressed
            if done.is_set():
                return pressed
        except KeyboardInterrupt:
            pressed += 1
