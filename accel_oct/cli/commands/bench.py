"""``accel-oct bench``: its own command line, as it is."""

from __future__ import annotations

from collections.abc import Sequence

from accel_oct.bench.command import main

__all__ = ["run"]


def run(arguments: Sequence[str]) -> int:
    """Hand everything on."""
    return main(arguments)
