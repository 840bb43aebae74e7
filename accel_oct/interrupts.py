"""Ctrl-C while compiled code holds the thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def run_interruptibly(work: Callable[[], object], on_interrupt: Callable[[], None]) -> None:
    """Run `work` so that Ctrl-C reaches us while a solver holds the thread.

    Python runs signal handlers in the main thread only, and a solver that holds it would keep them waiting. So the work
    goes to another thread while this one waits; the first Ctrl-C asks the work to stop, a second one gives up on it.
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

    threading.Thread(target=run, name="accel_oct-solve", daemon=True).start()
    interrupted = finished = False
    while not finished:
        try:
            while not finished:
                finished = done.wait(0.1)
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
            on_interrupt()
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
