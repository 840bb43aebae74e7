"""The command line."""

from accel_oct.cli.commands import main

__all__ = ["main"]
