"""Choice between the compiled kernels and the NumPy reference."""

from __future__ import annotations

import importlib.util
import logging
from functools import lru_cache
from types import ModuleType
from typing import Literal

Engine = Literal["auto", "numpy", "numba"]

logger = logging.getLogger(__name__)

_WORTH_COMPILING = 200_000
"""Multiply-adds of one depth-two solve below which loading compiled code does not pay."""


def kernels() -> ModuleType:
    """The compiled functions, see `accel_oct.subtree.kernels.entry_points`."""
    # Loads numba: optional, and half a second that only users of compiled code should wait.
    from accel_oct.subtree.kernels import entry_points

    return entry_points


@lru_cache(maxsize=1)
def numba_available() -> bool:
    """Whether the compiled kernels can be used: numba is installed, can be loaded and may compile.

    Loads numba, so this is asked where compiled code would be used next.
    """
    if importlib.util.find_spec("numba") is None:
        return False
    try:
        import numba  # optional, and half a second to load

        if numba.config.DISABLE_JIT:
            logger.warning("NUMBA_DISABLE_JIT is set: the NumPy reference is used, same results, slower")
            return False
        kernels()
    except Exception as error:  # an installation that does not fit together may raise anything
        logger.warning(
            "numba is installed but cannot be used, so the NumPy reference is, same results, slower: %s: %s",
            type(error).__name__,
            error,
        )
        return False
    return True


def resolve_engine(engine: Engine, n_samples: int, n_features: int) -> Literal["numpy", "numba"]:
    """Engine to use for data of this size.

    Raises
    ------
    ValueError
        If `engine` is not one of ``"auto"``, ``"numpy"``, ``"numba"``.
    ImportError
        If ``"numba"`` is asked for by name and cannot be used.
    """
    if engine == "numpy":
        return "numpy"
    if engine == "numba":
        if not numba_available():
            raise ImportError(
                "engine='numba' needs the package numba, allowed to compile; install it, or use engine='numpy'"
            )
        return "numba"
    if engine != "auto":
        raise ValueError(f"engine must be 'auto', 'numpy' or 'numba', got {engine!r}")
    small = n_samples * n_features * n_features < _WORTH_COMPILING
    return "numpy" if small or not numba_available() else "numba"
