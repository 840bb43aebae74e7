"""How far a run is: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Any, TextIO

from accel_oct_bench.runner import Step

__all__ = ["Bar", "Lines", "shown_progress", "time_text"]


def shown_progress(stream: TextIO | None = None) -> Bar | Lines:
    """What fits the stream, standard error by default."""
    target = sys.stderr if stream is None else stream
    return Bar(target) if target.isatty() else Lines(target)


def time_text(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _what(step: Step) -> str:
    """The row that has just been written, in words."""
    row = step.row
    if row is None:
        return "starting: loading compiled code"
    on = f" on {row.method.backend}" if row.method.backend else ""
    instance = f"{row.instance.data} depth {row.instance.max_depth} penalty {row.instance.leaf_penalty:g}"
    error = f" ({row.error})" if row.error else ""
    return f"{instance}, {row.method.name}{on}: {row.status} {row.wall_seconds:.2f} s{error}"


def _left(step: Step) -> str:
    left = step.seconds_left
    return "" if left is None or step.done == step.total else f"about {time_text(left)} left"


class Lines(AbstractContextManager["Lines"]):
    """One line per row."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, step: Step) -> None:
        if step.row is not None:
            parts = [f"{step.done}/{step.total}", _what(step), _left(step)]
            print("  ".join(part for part in parts if part), file=self._stream, flush=True)

    def __exit__(self, *_: object) -> None:
        return None


class Bar(AbstractContextManager["Bar"]):
    """A bar that is redrawn in place, with the last row and an estimate."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        self._progress: Any = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
            console=Console(file=stream, force_terminal=True),
            expand=True,
            transient=True,
        )
        self._task: Any = None

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __call__(self, step: Step) -> None:
        if self._task is None:
            self._task = self._progress.add_task(_what(step), total=step.total, left="")
        self._progress.update(self._task, completed=step.done, description=_what(step), left=_left(step))

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
