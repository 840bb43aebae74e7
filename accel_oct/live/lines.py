"""Plain lines, for pipes, files and terminals that cannot move their cursor."""

from __future__ import annotations

from typing import TextIO

from accel_oct.live.view import Moment

_FIRST, _PAUSE = 1.0, 1.0
"""Seconds before the first line, so that a quick solve leaves one line only, and between lines."""

_SILENCE = {1: 10.0, 2: 5.0}
"""Seconds after which a line comes although nothing has changed, by `verbose`."""


class LinePolicy:
    """When a line is due.

    The first one after a second, whether anybody has told anything or not. Later ones when anything but figures has
    changed, one in a second at most; and when there was none for long.
    """

    def __init__(self, verbose: int = 1) -> None:
        self._silence = _SILENCE[min(verbose, 2)]
        self._shown: tuple[object, ...] | None = None
        self._at = 0.0

    def is_due(self, moment: Moment) -> bool:
        """Whether to write a line now; it is taken for written then."""
        content = (moment.objective, moment.bound, moment.phase, moment.part, moment.doing)
        since = moment.seconds - self._at
        if self._shown is None:
            due = moment.seconds >= _FIRST
        else:
            due = since >= self._silence or (since >= _PAUSE and content != self._shown)
        if due:
            self._shown, self._at = content, moment.seconds
        return due


class Lines:
    """Writes lines to a stream."""

    def __init__(self, stream: TextIO, verbose: int = 1) -> None:
        self._stream = stream
        self._policy = LinePolicy(verbose)

    def draw(self, moment: Moment) -> None:
        if self._policy.is_due(moment):
            self._write(moment.line)

    def end(self, moment: Moment) -> None:
        self._write(moment.summary)

    def _write(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()
