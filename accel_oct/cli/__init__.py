"""The command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code, see `accel_oct.cli.codes`."""
    try:
        # Imported here, so that Ctrl-C during the import has its default effect.
        from accel_oct.cli.app import run

        return run(arguments)
    except KeyboardInterrupt:
        print("accel-oct: interrupted: stopped before there was a result", file=sys.stderr)
        return 130
