"""The panel in the output of a notebook cell.

The live display of rich needs ipywidgets in notebooks; an updated display works in every front end.
"""

from __future__ import annotations

import io
from typing import Any

from IPython.display import display
from rich.console import Console, RenderableType
from rich.text import Text

from accel_oct.live.display import Moment
from accel_oct.live.panel import MomentPanel

_WIDTH = 79
_FORMAT = '<pre style="white-space:pre;line-height:normal;font-family:monospace">{code}</pre>'


class NotebookPanel:
    """One output of the cell, updated in place."""

    def __init__(self, verbose: int = 1) -> None:
        self._verbose = verbose
        self._handle: Any = None

    def draw(self, moment: Moment) -> None:
        self._show(MomentPanel(moment, self._verbose))

    def end(self, moment: Moment) -> None:
        self._show(Text(moment.summary))

    def _show(self, content: RenderableType) -> None:
        shown = _in_html_and_text(content)
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def _in_html_and_text(content: RenderableType) -> dict[str, str]:
    """Render as HTML, and as text for front ends without HTML."""
    console = Console(record=True, file=io.StringIO(), width=_WIDTH, force_jupyter=False)
    console.print(content)
    text = console.export_text(clear=False)
    return {"text/html": console.export_html(inline_styles=True, code_format=_FORMAT), "text/plain": text}
