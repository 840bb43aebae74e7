"""The panel: drawn by rich in any width, and redrawn in place on a terminal."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.control import Control
from rich.live import Live
from rich.panel import Panel
from rich.segment import ControlType, Segment
from rich.table import Table
from rich.text import Text

from accel_oct.live.display import LinePolicy, Moment
from accel_oct.support.progress import figure_text

_WIDEST, _NARROW = 78, 58
"""Most columns of the panel, and the columns below which it has no frame and one value per line."""

_LOW = 7
"""Height of a window, in lines, below which one line is shown."""

_BAR = 24


class MomentPanel:
    """Draws itself in the width that is available when it is drawn."""

    def __init__(self, moment: Moment, verbose: int = 1, on_terminal: bool = False) -> None:
        self._moment, self._verbose, self._on_terminal = moment, verbose, on_terminal

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # One column is left empty: some terminals wrap a full line, which would shift the lines below.
        width = min(_WIDEST, options.max_width - 1)
        if console.height < _LOW:
            content: RenderableType = _text(self._moment.line)
        elif width < _NARROW:
            content = Group(*self._stacked())
        else:
            title = Text("accel_oct", style="bold")
            body = Group(*self._rows(options.ascii_only))
            content = Panel(body, title=title, title_align="left", box=box.ROUNDED, width=width, border_style="cyan")
        yield from console.render(content, options.update(width=max(1, width)))
        if self._on_terminal:
            # The cursor waits here, so that the ^C that a terminal shows does not break a line of the panel.
            yield Text("")

    def _rows(self, ascii_only: bool) -> Iterator[RenderableType]:
        moment = self._moment
        top = Table.grid(expand=True, padding=(0, 1))
        top.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        top.add_column(justify="right", no_wrap=True)
        cells: list[RenderableType] = [_text(moment.place, "bold"), _text(_elapsed(moment))]
        if moment.limit:
            top.add_column(width=_BAR)
            cells.append(_bar(min(moment.seconds / moment.limit, 1.0), ascii_only))
        top.add_row(*cells)
        yield top
        values = Text(no_wrap=True, overflow="ellipsis")
        for name, value in moment.values.items():
            values.append(f"{name:>{len(name) + 4 if values else len(name)}} ", style="dim").append(value)
        yield values
        yield from self._work()

    def _stacked(self) -> Iterator[RenderableType]:
        moment = self._moment
        yield _text(moment.place, "bold")
        yield _text(_elapsed(moment))
        for name, value in moment.values.items():
            yield _text(f"{name} {value}")
        yield from self._work()

    def _work(self) -> Iterator[RenderableType]:
        """Yield step and figures, in one line or one line per figure."""
        moment = self._moment
        if self._verbose < 2:
            yield _text(moment.work)
            return
        yield _text(moment.step)
        for name, figure in moment.figures.items():
            yield _text(f"{name} {figure_text(figure)}")


def _bar(share: float, ascii_only: bool) -> Text:
    """Return a bar of two kinds of line, readable without colours."""
    done, left = ("#", "-") if ascii_only else ("━", "─")
    full = round(share * _BAR)
    return Text(done * full, style="cyan").append(left * (_BAR - full), style="dim")


def _elapsed(moment: Moment) -> str:
    return f"{moment.seconds:.1f} s" if not moment.limit else f"{moment.seconds:.1f} s of {moment.limit:g} s"


def _text(words: str, style: str = "") -> Text:
    return Text(words, style=style, no_wrap=True, overflow="ellipsis")


# ---------------------------------------------------------------- on a terminal


class TerminalPanel:
    """Draws with `rich.live`, which shows other output above the panel.

    Parameters
    ----------
    stream : text stream
        A terminal.
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
        """Return columns and lines of this terminal; rich may use another one."""
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
            # Do not capture output that is redirected to a file.
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
        """Remove the drawing.

        Where the window has become narrower, the terminal has wrapped lines: rich removes as many lines as it has
        drawn, and the wrapped ones are removed here.
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
    """Yield the stream handlers of this library's log: they keep their stream and would write into the panel."""
    for logger in (logging.getLogger("accel_oct"), logging.getLogger()):
        for handler in logger.handlers:
            if isinstance(handler, logging.StreamHandler) and not isinstance(handler, logging.FileHandler):
                yield handler
