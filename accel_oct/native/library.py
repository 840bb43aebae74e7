"""Finds, chooses and loads the compiled kernels.

A wheel holds one library per CPU level: x86-64-v2, v3 (AVX2) and v4 (AVX-512), or aarch64. The lowest one finds out
which level the machine has; the best that it can run is loaded. ``ACCEL_OCT_CPU`` names another level, for tests.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import c_double, c_int32, c_int64, c_void_p
from functools import lru_cache
from pathlib import Path

from accel_oct.errors import MissingKernelsError

#: Raised together with that of ``kernels.cpp`` when a record or a function changes.
INTERFACE = 1

_FOLDER = Path(__file__).parent / "lib"
_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")

#: Level numbers of the machine and the libraries that it can run, best first.
_RUNNABLE = {
    4: ("x86_64_v4", "x86_64_v3", "x86_64_v2"),
    3: ("x86_64_v3", "x86_64_v2"),
    2: ("x86_64_v2",),
    1: ("aarch64",),
}

_P, _I, _N, _R = c_void_p, c_int64, c_int32, c_double

#: Arguments and result of every function of ``kernels.cpp``.
_SIGNATURES: dict[str, tuple[list[object], object]] = {
    "level_two": ([_N, _P, _P, _P, _P, _I], None),
    "level_two_sparse": ([_N, _P, _P, _I], None),
    "pass_block": ([_N, _P, _P, _I, _N, _P, _P], None),
    "level_three": ([_N, _I, _N, _P, _P, _P, _P, _P, _P, _P, _P, _P], None),
    "level_four": ([_N, _I, _I, _N, _N, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P], _N),
    "first_tree": ([_N, _P, _P, _N, _R, _I, _P], _N),
    "count_triples": ([_N, _P, _P, _P], None),
    "group_tables": ([_N, _I, _P, _P, _P, _P], None),
    "fill_reach": ([_N, _P, _P, _I, _I, _R], None),
    "best_set": ([_N, _P, _I, _I, _P, _I, _P, _I, _R, _P, _P, _P], _I),
    "arena_new": ([_I], _P),
    "arena_clear": ([_P], None),
    "arena_free": ([_P], None),
    "outcomes_two": ([_P, _P, _P, _P, _I, _R, _I, _P, _P, _P], _N),
    "best_sides": ([_P, _P, _I, _P, _P, _P], _N),
    "joined": ([_P, _P, _P, _P, _P, _R, _I, _P, _P, _P], _N),
    "best_pair": ([_P, _P, _P, _P, _R, _P, _R, _I, _I, _I, _P], None),
    "cell_values": ([_I, _P, _I, _I, _P, _P, _P], _N),
    "count_store_new": ([_I], _P),
    "count_store_free": ([_P], None),
    "count_store_size": ([_P], _I),
    "count_store_sorted": ([_P, _P, _P], None),
    "count_two": ([_P, _P, _P, _P, _I, _I, _N, _I, _I, _P], _I),
    "count_joined": ([_P, _P, _P, _P, _P, _I, _I, _I, _I], _I),
    "pair_gains": ([_P, _P, _P, _P, _P, _P], None),
    "two_sides": ([_P, _P, _I, _N, _I, _P, _P], None),
    "add_sets": ([_P, _I, _P, _P, _I, _P, _P, _P], None),
}


@lru_cache(maxsize=1)
def kernels() -> ctypes.CDLL:
    """The library for this machine, loaded at the first call.

    Raises
    ------
    MissingKernelsError
        If there is none that this machine can run, or it was built from other sources.
    """
    name = os.environ.get("ACCEL_OCT_CPU") or level_names()[0]
    if not _path(name).is_file():
        built = ", ".join(sorted(path.stem.removeprefix("kernels-") for path in _FOLDER.glob(f"kernels-*{_SUFFIX}")))
        raise MissingKernelsError(f"ACCEL_OCT_CPU={name}: no such kernels; there are {built or 'none'}")
    library = _loaded(name)
    for function, (arguments, result) in _SIGNATURES.items():
        entry = getattr(library, function)
        entry.argtypes, entry.restype = arguments, result
    return library


def level_names() -> tuple[str, ...]:
    """Names of the CPU levels that this machine can run, best first."""
    lowest = next((name for name in ("x86_64_v2", "aarch64") if _path(name).is_file()), None)
    if lowest is None:
        raise MissingKernelsError(
            "the compiled kernels of accel_oct are missing: install a wheel for this platform, or build it with "
            "`pip install .` (the compiler comes from the package ziglang, or is named by CXX)"
        )
    library = _loaded(lowest)
    library.machine_level.restype = c_int64
    runnable = _RUNNABLE.get(library.machine_level(), ())
    names = tuple(name for name in runnable if _path(name).is_file())
    if not names:
        raise MissingKernelsError("accel_oct needs an x86-64 processor of level v2 (2009 or newer), or an aarch64 one")
    return names


def _path(name: str) -> Path:
    return _FOLDER / f"kernels-{name}{_SUFFIX}"


def _loaded(name: str) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(_path(name)))
        library.interface_version.restype = c_int64
        version = library.interface_version()
    except (OSError, AttributeError) as error:
        raise MissingKernelsError(f"the compiled kernels {_path(name).name} cannot be loaded: {error}") from error
    if version != INTERFACE:
        raise MissingKernelsError(
            f"the compiled kernels {_path(name).name} belong to another version of accel_oct: run `pip install .` again"
        )
    return library
