"""Stopping: time limits, Ctrl-C, requests of callbacks and memory limits, as one signal that all long work checks.

Long work gets a `Stopper` and calls it often. `Stopper.run` runs it so that Ctrl-C reaches it; `Stopper.reason` says
afterwards what stopped it.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Literal

from accel_oct.support.arguments import number_not_negative

logger = logging.getLogger(__name__)

DEFAULT_MEMORY_LIMIT = 4 * 2**30
"""Bytes that tables may take together."""

StopReason = Literal["time_limit", "interrupted", "stopped", "memory_limit"]

_PATIENCE = 10.0
"""Most seconds for work to stop after the second Ctrl-C."""


class OutOfMemory(Exception):
    """A computation would take more memory than allowed."""


@dataclass(frozen=True)
class Clock:
    """The time that a computation has taken, and the time that it may take.

    Parameters
    ----------
    began : float
        Reading of `time.perf_counter`.
    limit : float or None
        Seconds.
    """

    began: float
    limit: float | None

    def __post_init__(self) -> None:
        if self.limit is not None:
            number_not_negative(self.limit, "time_limit")

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.began

    @property
    def left(self) -> float | None:
        """Seconds that are left; None without a limit."""
        return None if self.limit is None else max(self.limit - self.seconds, 0.0)

    @property
    def deadline(self) -> float | None:
        """The end as a reading of `time.monotonic`."""
        left = self.left
        return None if left is None else time.monotonic() + left

    def limited_to(self, seconds: float) -> Clock:
        """Return a clock with the same beginning that ends after some seconds, or with this one."""
        return Clock(self.began, seconds if self.limit is None else min(seconds, self.limit))

    def share(self, parts: float) -> Clock:
        """Return a clock with the same beginning that ends after ``1 / parts`` of the seconds left."""
        left = self.left
        return self if left is None else self.limited_to(self.seconds + left / parts)


class Stopper:
    """Callable that is true from the deadline or the first request to stop on.

    Parameters
    ----------
    deadline : float, optional
        Reading of `time.monotonic` after which to stop.
    should_stop : callable, optional
        Called between steps; returns whether to stop.

    Attributes
    ----------
    reason : str or None
        What stopped the work: "time_limit", "interrupted" (Ctrl-C), "stopped" (`should_stop`) or "memory_limit".
    """

    def __init__(self, deadline: float | None = None, should_stop: Callable[[], bool] | None = None) -> None:
        self._deadline = deadline
        self._should_stop = should_stop
        self.reason: StopReason | None = None

    def __call__(self) -> bool:
        if self.reason is None:
            if self._deadline is not None and time.monotonic() >= self._deadline:
                self.request("time_limit")
            elif self._should_stop is not None and self._should_stop():
                self.request("stopped")
        return self.reason is not None

    def request(self, reason: StopReason) -> None:
        """Ask to stop; of several reasons the first one counts, unless Ctrl-C is among them."""
        if self.reason is None or reason == "interrupted":
            self.reason = reason

    @property
    def remaining(self) -> float:
        """Seconds left, infinite without a deadline."""
        return float("inf") if self._deadline is None else self._deadline - time.monotonic()

    def run(self, work: Callable[[Stopper], object]) -> StopReason | None:
        """Run work that asks this stopper, in a thread that Ctrl-C stops; returns the reason if it had to stop."""
        run_interruptibly(lambda: work(self), lambda: self.request("interrupted"))
        return self.reason if self() else None


def run_interruptibly(work: Callable[[], object], on_interrupt: Callable[[], None]) -> None:
    """Run `work` so that Ctrl-C is handled while compiled code holds the thread.

    Python runs signal handlers in the main thread only. So the work runs in another thread while this one waits. The
    first Ctrl-C calls `on_interrupt`, which asks the work to stop, and what it has found is used. A second one discards
    that: KeyboardInterrupt is raised once the work has stopped, so that nothing goes on computing in the background.
    Work that does not stop for seconds is left behind with a warning.
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
    """Yield an event that every Ctrl-C sets, also one that a solve takes as a request to stop.

    For work of many solves: a solve that was about to end when Ctrl-C came does not report it.
    """
    with _handled_interrupts(lambda event: True) as event:
        yield event


class _Kept:
    """Presses of Ctrl-C that wait for the next work that can be stopped."""

    def __init__(self) -> None:
        self.pressed = 0
        self.waiting = False

    def take(self) -> int:
        """Return the number of pending presses."""
        pressed, self.pressed = self.pressed, 0
        return pressed


_kept = _Kept()


@contextmanager
def kept_interrupts() -> Iterator[threading.Event]:
    """Keep Ctrl-C between pieces of work for the next piece, which stops when it begins.

    So a solve that has a tree returns it, whenever Ctrl-C comes. A second one between pieces of work is raised at once.
    The event says whether one came.
    """

    def keep(event: threading.Event) -> bool:
        if event.is_set() and not _kept.waiting:
            return True
        _kept.pressed += 1
        return False

    with _handled_interrupts(keep) as event:
        try:
            yield event
        finally:
            _kept.take()


@contextmanager
def _handled_interrupts(is_raised: Callable[[threading.Event], bool]) -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C sets; `is_raised` takes it before, and decides whether KeyboardInterrupt is raised."""
    event = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield event  # signals are not ours to handle here
        return

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            raised = is_raised(event)
            event.set()
            if raised:
                raise

    signal.signal(signal.SIGINT, handle)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)


def _wait(done: threading.Event, on_interrupt: Callable[[], None]) -> int:
    """Wait for the work to end, or to overrun `_PATIENCE`; returns the number of presses of Ctrl-C."""
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
