"""Progress on a stream, for people."""

from __future__ import annotations

from typing import TextIO

import numpy as np

from accel_oct.solving.result import HistoryRow


class ProgressLine:
    """Draws each change of objective and bound: over the same line on a terminal, else line by line."""

    def __init__(self, stream: TextIO, quiet: bool) -> None:
        self._stream = stream
        self._quiet = quiet
        self._on_terminal = stream.isatty()
        self._drawn = False

    def __call__(self, row: HistoryRow) -> None:
        if self._quiet:
            return
        gap = np.divide(row.bound - row.objective, abs(row.objective)) if row.objective else np.inf
        text = f"{row.seconds:8.1f} s  objective {row.objective:.6f}  bound {row.bound:.6f}  gap {gap:.2%}"
        self._stream.write(f"\r{text}" if self._on_terminal else f"{text}\n")
        self._stream.flush()
        self._drawn = True

    def end(self) -> None:
        """Leave the line."""
        if self._drawn and self._on_terminal:
            self._stream.write("\n")
