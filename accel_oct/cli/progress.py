"""Progress on a stream, for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

__all__ = ["watching"]


@contextmanager
def watching(
    *, stream: TextIO, time_limit: float | None, quiet: bool, verbose: bool
) -> Iterator[Callable[[Any], None] | None]:
    """A callable for `progress=` that draws objective and bound: over one line on a terminal, else line by line."""
    on_terminal, drawn = stream.isatty(), False

    def draw(row: Any) -> None:
        nonlocal drawn
        gap = (row.bound - row.objective) / abs(row.objective) if row.objective else math.inf
        text = f"{row.seconds:8.1f} s  objective {row.objective:.6f}  bound {row.bound:.6f}  gap {gap:.2%}"
        stream.write(f"\r{text}" if on_terminal else f"{text}\n")
        stream.flush()
        drawn = True

    try:
        yield None if quiet else draw
    finally:
        if drawn and on_terminal:
            stream.write("\n")
