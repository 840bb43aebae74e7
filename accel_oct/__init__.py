"""Provably optimal classification trees by integer programming, on the solver of your choice."""

from accel_oct._version import __version__

__all__ = ["__version__"]
