"""Words from deep inside about what takes time now, for whoever shows them to people.

Compiling happens far below a solve, once per process and type of data, and no argument leads there from a solve. So it
is announced to the whole process: what is compiled for one solve is what another one, on another thread, waits for too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_listeners: list[Callable[[str], None]] = []


def announce(text: str) -> None:
    """Say what is about to be done, to all who listen; an error of theirs is the caller's."""
    for listener in tuple(_listeners):
        listener(text)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Have `listener` called with every announcement, from the thread that makes it."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
