"""Choice between the compiled kernels and the NumPy reference."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from typing import Literal

Engine = Literal["auto", "numpy", "numba"]

_WORTH_COMPILING = 200_000
"""Multiply-adds of one depth-two solve below which loading compiled code does not pay."""


@lru_cache(maxsize=1)
def numba_available() -> bool:
    """Whether numba can be imported; the import itself is left to the first compiled call."""
    return importlib.util.find_spec("numba") is not None


def resolve_engine(engine: Engine, n_samples: int, n_features: int) -> Literal["numpy", "numba"]:
    """Engine to use for data of this size.

    Raises
    ------
    ValueError
        If `engine` is not one of ``"auto"``, ``"numpy"``, ``"numba"``.
    ImportError
        If ``"numba"`` is asked for by name and is not installed.
    """
    if engine == "numpy":
        return "numpy"
    if engine == "numba":
        if not numba_available():
            raise ImportError("engine='numba' needs the package numba; install it, or use engine='numpy'")
        return "numba"
    if engine != "auto":
        raise ValueError(f"engine must be 'auto', 'numpy' or 'numba', got {engine!r}")
    small = n_samples * n_features * n_features < _WORTH_COMPILING
    return "numpy" if small or not numba_available() else "numba"
