"""Choice between the compiled kernels and the NumPy reference."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from accel_oct.compiled.availability import can_be_used
from accel_oct.subtree.layout import counter_type

Engine = Literal["auto", "numpy", "numba"]

_WORTH_COMPILING = 200_000
"""Multiply-adds of one depth-two solve below which loading compiled code does not pay."""

_WORTH_WAITING = 1.0
"""Seconds of NumPy below which nothing is compiled."""

_SHORT_LIMIT = 8.0
"""Seconds left below which nothing is compiled."""

_used: set[str] = set()


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
    return can_be_used(kernels)


def at_hand(code: str) -> bool:
    """Whether some compiled code was used before, in this process or by one that kept it on disk."""
    if code in _used:
        return True
    if not numba_available():
        return False
    folder = _code_folder()
    return folder is not None and (folder / f"{code}.made").exists()


def was_used(code: str) -> None:
    """Remember, for this and for other processes, that some code is there."""
    if code in _used:
        return
    _used.add(code)
    folder = _code_folder()
    if folder is not None:
        with contextlib.suppress(OSError):
            (folder / f"{code}.made").touch()


def worth_compiling(seconds_without: float, seconds_left: float) -> bool:
    """Whether to wait for the compiler, given what NumPy takes and the time that is left.

    Compiling takes some seconds, once per machine and type of data. What NumPy does in a second is not worth that, and
    a short limit would be gone before anything is found. Code that is there already is always used.
    """
    return seconds_without > _WORTH_WAITING and seconds_left >= _SHORT_LIMIT


def subtree_engine(weights: NDArray[np.float64], seconds_left: float) -> Engine:
    """For D2S on data with these weights: by itself, or NumPy where compiling would take all of a short limit."""
    if seconds_left >= _SHORT_LIMIT or at_hand(f"d2s-{np.dtype(counter_type(weights)).name}"):
        return "auto"
    return "numpy"


def _code_folder() -> Path | None:
    # Loads numba, see `kernels`.
    from accel_oct.compiled import jit

    return jit.code_folder()


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
