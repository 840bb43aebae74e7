"""The panel on a terminal: redrawn in place, and gone at the end."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment
from rich.text import Text

from accel_oct.live.lines import LinePolicy
from accel_oct.live.panel import MomentPanel
from accel_oct.live.view import Moment


class TerminalPanel:
    """Draws with `rich.live`, which shows what others print meanwhile above the panel.

    Parameters
    ----------
    stream : text stream
        A terminal.
    verbose : int
    """

    def __init__(self, stream: TextIO, verbose: int = 1) -> None:
        self._stream, self._verbose = stream, verbose
        self._console = Console(file=stream, force_terminal=True, force_jupyter=False, force_interactive=True)
        self._policy = LinePolicy(verbose)
        self._drawn: list[int] = []
        self._width = 0
        self._live: Live | None = None
        self._moved: list[tuple[logging.StreamHandler[TextIO], TextIO]] = []

    def draw(self, moment: Moment) -> None:
        size = self._size()
        self._console.size = size
        if size[0] < self._width:
            self._clear()
        if self._verbose > 1 and self._policy.is_due(moment):
            self._print(moment.line)
        panel = MomentPanel(moment, self._verbose, on_terminal=True)
        if self._live is None:
            self._start(panel)
        else:
            self._live.update(panel, refresh=True)
        self._width = size[0]
        self._drawn = [Segment.get_line_length(line) for line in self._console.render_lines(panel, pad=False)]

    def end(self, moment: Moment) -> None:
        self._console.size = self._size()
        self._clear()
        self._stop()
        self._print(moment.summary)

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _size(self) -> tuple[int, int]:
        """Of this very terminal: what rich asks may be another one."""
        try:
            size = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return 80, 24
        return size.columns or 80, size.lines or 24

    def _start(self, panel: MomentPanel) -> None:
        self._live = Live(
            panel,
            console=self._console,
            auto_refresh=False,
            transient=True,
            # What goes to a file must go on going there.
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=sys.stderr.isatty(),
        )
        before = {stream: name for name in ("stdout", "stderr") if (stream := getattr(sys, name)) is not None}
        self._live.start(refresh=True)
        for handler in _stream_handlers():
            now = getattr(sys, before.get(handler.stream, ""), handler.stream)
            if now is not handler.stream:
                self._moved.append((handler, handler.stream))
                handler.setStream(now)

    def _clear(self) -> None:
        """Remove what was drawn.

        Where the window has become narrower meanwhile, the terminal has broken lines in two: rich removes as many lines
        as it has drawn, and here go the others.
        """
        if self._live is not None:
            self._live.update(Text(""), refresh=True)
            width = self._console.width
            for _ in range(sum(-(-length // width) - 1 for length in self._drawn if length > width)):
                self._console.control(Control((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2)))
        self._drawn = []

    def _stop(self) -> None:
        for handler, stream in self._moved:
            handler.setStream(stream)
        self._moved.clear()
        if self._live is not None:
            self._live.stop()
            self._live = None


def _stream_handlers() -> Iterator[logging.StreamHandler[TextIO]]:
    """That write what this library logs: they keep the stream they were made with, and would write into the panel."""
    for logger in (logging.getLogger("accel_oct"), logging.getLogger()):
        for handler in logger.handlers:
            if isinstance(handler, logging.StreamHandler) and not isinstance(handler, logging.FileHandler):
                yield handler
