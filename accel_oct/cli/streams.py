"""Standard output and standard error that outlive their readers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO

__all__ = ["hardy_streams", "results", "results_apart"]


class _Hardy:
    """A stream that falls silent when whoever read it is gone: that is no error, and must not end a solve.

    Ctrl-C in ``accel-oct fit ... | tee log`` ends tee as well, while we still have a tree to save.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return int(self._stream.write(text))
        except BrokenPipeError:
            self._silence()
            return len(text)

    def writelines(self, lines: Any) -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._silence()

    def end(self) -> None:
        """Flush; what cannot be written was told already, or cannot be told."""
        try:
            self._stream.flush()
        except OSError:
            self._silence()

    def _silence(self) -> None:
        """What is still in the buffer goes nowhere, when Python ends too."""
        with suppress(OSError, ValueError):  # a stream without a file, as in tests
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def hardy_streams() -> Iterator[None]:
    """Both standard streams for the length of a command."""
    _open_closed()
    before = sys.stdout, sys.stderr
    hardy: Any = _Hardy(before[0]), _Hardy(before[1])
    sys.stdout, sys.stderr = hardy
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in hardy:
            stream.end()


def _open_closed() -> None:
    """Standard streams that were closed before we began (``>&-``) lead nowhere.

    Their numbers are taken too: the next file that is opened would get one of them, and with it all that a solver
    prints.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free, which is this one
        setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115 - to the end


_apart: list[TextIO] = []


@contextmanager
def results_apart() -> Iterator[None]:
    """Standard output for results alone: what solvers and other packages print goes to standard error."""
    _apart.append(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _apart.pop()


def results() -> TextIO:
    """Where results go."""
    return _apart[-1] if _apart else sys.stdout
