"""The log of a solver, line by line: to a function, a logger or a file."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from typing import Any, Protocol


class TextSink(Protocol):
    """What takes text, such as an open file."""

    def write(self, text: str, /) -> Any: ...


#: Where a log goes: a function of one line, a logger (at the level INFO), or an open file.
Log = Callable[[str], None] | logging.Logger | TextSink


def line_writer(log: Log) -> Callable[[str], None]:
    """Return a function that writes one line, without its end, to a log."""
    if isinstance(log, logging.Logger):
        return lambda line: log.info("%s", line)
    if callable(log):
        return log
    return lambda line: log.write(f"{line}\n") and None


def is_log(value: Any) -> bool:
    """Return whether a value can take a log."""
    return isinstance(value, logging.Logger) or callable(value) or callable(getattr(value, "write", None))


class LogLines:
    """A stream that splits text into lines for a function."""

    def __init__(self, write_line: Callable[[str], None]) -> None:
        self._write_line = write_line
        self._rest = ""

    def write(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._write_line(line)

    def flush(self) -> None:
        pass


class LogFile:
    """A temporary file for a solver that writes its log to files only; `pass_on` forwards what is new in it."""

    def __init__(self, stream: LogLines) -> None:
        self._stream = stream
        number, self.path = tempfile.mkstemp(suffix=".log")
        os.close(number)
        self._seen = 0

    def pass_on(self) -> None:
        with open(self.path, encoding="utf-8", errors="replace") as file:
            file.seek(self._seen)
            self._stream.write(file.read())
            self._seen = file.tell()

    def close(self) -> None:
        """Forward the rest and delete the file."""
        self.pass_on()
        os.unlink(self.path)
