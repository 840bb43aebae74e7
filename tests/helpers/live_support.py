"""Terminals: of a script that runs on one, and as a stream of this process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

import pyte

_LONGEST = 120.0


@dataclass
class Terminal:
    """A program that runs on a terminal of so many columns and lines.

    `until` reads what it writes; the emulator shows what a person would see then.
    """

    code: str
    columns: int = 90
    lines: int = 24
    environment: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        self.screen = pyte.Screen(self.columns, self.lines)
        self._stream = pyte.ByteStream(self.screen)
        self.written = b""
        environment = {**os.environ, "TERM": "xterm-256color", **(self.environment or {})}
        for name in ("COLUMNS", "LINES"):
            environment.pop(name, None)
        self._pid, self._master = pty.fork()
        if self._pid == 0:  # pragma: no cover: another process
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", self.lines, self.columns, 0, 0))
            os.execve(sys.executable, [sys.executable, "-c", self.code], environment)

    def until(self, seen: Callable[[str], bool]) -> None:
        """Read until the screen shows something, or fail."""
        deadline = time.monotonic() + _LONGEST
        while not seen(self.text):
            assert time.monotonic() < deadline, f"never seen; the screen was\n{self.text}"
            if not self._read():
                assert seen(self.text), f"the program ended with the screen\n{self.text}"
                return

    def end(self) -> int:
        """Read until the program ends; its exit code."""
        while self._read():
            pass
        os.close(self._master)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def type(self, keys: bytes) -> None:
        """Press keys; ``b"\\x03"`` is Ctrl-C."""
        os.write(self._master, keys)

    def resize(self, columns: int, lines: int) -> None:
        """Make the window larger or smaller."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    @property
    def text(self) -> str:
        """The screen without the blanks at its ends."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip("\n")

    def _read(self) -> bool:
        """Some more, if there is any within a moment; False at the end."""
        ready, _, _ = select.select([self._master], [], [], 0.1)
        if not ready:
            return True
        try:
            found = os.read(self._master, 1 << 16)
        except OSError:  # Linux: nobody has the other end any more
            return False
        self.written += found
        self._stream.feed(found)
        return bool(found)


@contextmanager
def terminal_stream(columns: int, lines: int) -> Iterator[tuple[TextIO, pyte.Screen, list[bytes]]]:
    """A stream of this process that is a terminal; when the block ends, the screen and all that was written."""
    screen = pyte.Screen(columns, lines)
    feed, written = pyte.ByteStream(screen), []
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read() -> None:
        with contextlib.suppress(OSError):  # the end, on Linux
            while found := os.read(master, 1 << 16):
                written.append(found)
                feed.feed(found)

    reader = threading.Thread(target=read)  # a terminal that nobody reads is full after some lines
    reader.start()
    try:
        with os.fdopen(slave, "w", encoding="utf-8") as stream:
            yield stream, screen, written
    finally:
        reader.join()
        os.close(master)
