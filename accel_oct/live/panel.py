"""The panel, as something that rich can draw in any width."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from accel_oct.live.view import Moment
from accel_oct.solving.activity import figure_in_words

_WIDEST, _NARROW = 78, 58
"""Columns of the panel at most, and below which values stand in lines of their own without a frame."""

_LOW = 7
"""Lines of a window below which there is one line only."""

_BAR = 24


class MomentPanel:
    """Draws itself in the width that there is when it is drawn."""

    def __init__(self, moment: Moment, verbose: int = 1, on_terminal: bool = False) -> None:
        self._moment, self._verbose, self._on_terminal = moment, verbose, on_terminal

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # One column stays free: where a terminal wraps early, lines would not be where they are taken to be.
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
            # The cursor waits here, so that the ^C which a terminal shows does not break a line of the panel.
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
        """What is being done: in one line, or a line for each figure."""
        moment = self._moment
        if self._verbose < 2:
            yield _text(moment.work)
            return
        yield _text(moment.doing)
        for name, figure in moment.figures.items():
            yield _text(f"{name} {figure_in_words(figure)}")


def _bar(share: float, ascii_only: bool) -> Text:
    """Two kinds of line, so that it can be read without colours too."""
    done, left = ("#", "-") if ascii_only else ("━", "─")
    full = round(share * _BAR)
    return Text(done * full, style="cyan").append(left * (_BAR - full), style="dim")


def _elapsed(moment: Moment) -> str:
    return f"{moment.seconds:.1f} s" if not moment.limit else f"{moment.seconds:.1f} s of {moment.limit:g} s"


def _text(words: str, style: str = "") -> Text:
    return Text(words, style=style, no_wrap=True, overflow="ellipsis")
