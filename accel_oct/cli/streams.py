"""Standard output and standard error that tolerate a closed pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO


class _TolerantStream:
    """A stream that discards output after its pipe was closed, which must not end a solve.

    Ctrl-C in ``accel-oct fit ... | tee log`` ends tee as well, before the tree is saved.
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
        """Flush; write errors are ignored."""
        try:
            self._stream.flush()
        except OSError:
            self._silence()

    def _silence(self) -> None:
        """Discard buffered output, also at the exit of Python."""
        with suppress(OSError, ValueError):  # a stream without a file, as in tests
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def tolerant_streams() -> Iterator[None]:
    """Wrap both standard streams during a command."""
    _open_closed()
    before = sys.stdout, sys.stderr
    tolerant: Any = _TolerantStream(before[0]), _TolerantStream(before[1])
    sys.stdout, sys.stderr = tolerant
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in tolerant:
            stream.end()


def _open_closed() -> None:
    """Redirect standard streams that are closed at the start (``>&-``) to the null device.

    Their descriptors are occupied too: otherwise the next file that is opened would get one of them, and the output of
    solvers.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor, which is this one
        setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115 - to the end


_result_streams: list[TextIO] = []


@contextmanager
def separate_results() -> Iterator[None]:
    """Reserve standard output for results: output of solvers and other packages goes to standard error."""
    _result_streams.append(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _result_streams.pop()


def results() -> TextIO:
    """Return the stream for results."""
    return _result_streams[-1] if _result_streams else sys.stdout
