"""Standard output and standard error that outlive their readers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

__all__ = ["hardy_streams"]


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
    """Both standard streams for the length of a command; what is written is flushed at its end."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Hardy(before[0]), _Hardy(before[1])  # type: ignore[assignment]  # as far as it is used
    try:
        yield
        sys.stdout.flush()
    finally:
        sys.stdout, sys.stderr = before
