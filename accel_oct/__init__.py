"""Provably optimal classification trees by integer programming, on the solver of your choice."""

from accel_oct._version import __version__
from accel_oct.config import Config
from accel_oct.result import Result
from accel_oct.solve import solve

__all__ = ["Config", "Result", "__version__", "solve"]
