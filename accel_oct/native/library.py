"""Selection and loading of the compiled kernels.

A wheel holds one library per CPU level: x86-64-v2, v3 (AVX2) and v4 (AVX-512), or aarch64. An editable install holds
the best one for the machine. A small library, ``cpu``, detects the level of the machine, and the best supported one is
loaded. ``ACCEL_OCT_CPU`` selects another level for tests.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import c_char_p, c_double, c_int32, c_int64, c_void_p
from functools import lru_cache
from pathlib import Path

from accel_oct.errors import MissingKernelsError
from accel_oct.native.digest import source_digest

_FOLDER = Path(__file__).parent / "lib"
#: Not in a wheel, whose library and Python code come from one build.
_SOURCES = Path(__file__).parent / "source"
_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")

_P, _I, _N, _R = c_void_p, c_int64, c_int32, c_double

MAY_GO_ON = ctypes.CFUNCTYPE(c_int32)
"""Callback that a kernel calls regularly; the kernel stops if the result is zero."""

_S = MAY_GO_ON

#: Arguments and result of every function of the sources. Functions that can be stopped return a status.
_SIGNATURES: dict[str, tuple[list[object], object]] = {
    "set_poll_interval": ([_I], None),
    "level_two": ([_N, _P, _P, _P, _P, _I, _S], _N),
    "level_two_sparse": ([_N, _P, _P, _I, _S], _N),
    "pass_block": ([_N, _P, _P, _I, _N, _P, _P], None),
    "level_three": ([_N, _I, _N, _P, _P, _P, _P, _P, _P, _P, _P, _S], _N),
    "level_four": ([_N, _I, _I, _N, _P, _P, _P, _P, _P, _P, _P, _P, _P, _S], _N),
    "first_tree": ([_N, _P, _P, _N, _R, _I, _P, _S], _N),
    "count_triples": ([_N, _P, _P, _P, _S], _N),
    "group_tables": ([_N, _I, _P, _P, _P, _P, _S], _N),
    "fill_reach": ([_N, _P, _P, _I, _I, _R, _S], _N),
    "best_set": ([_N, _P, _I, _I, _P, _I, _P, _I, _R, _P, _P, _P], _I),
    "arena_new": ([_I], _P),
    "arena_free": ([_P], None),
    "outcomes_two": ([_P, _P, _P, _P, _I, _R, _I, _P, _P, _P, _S], _N),
    "best_sides": ([_P, _P, _I, _P, _P, _P, _S], _N),
    "joined": ([_P, _P, _P, _P, _P, _R, _I, _P, _P, _P, _S], _N),
    "best_pair": ([_P, _P, _P, _P, _R, _P, _R, _I, _I, _P, _S], _N),
    "cell_values": ([_I, _P, _I, _I, _P, _P, _P, _S], _N),
    "count_store_new": ([_I], _P),
    "count_store_free": ([_P], None),
    "count_store_size": ([_P], _I),
    "count_store_sorted": ([_P, _P, _P, _S], _N),
    "count_two": ([_P, _P, _P, _P, _I, _I, _N, _S], _N),
    "count_joined": ([_P, _P, _P, _P, _P, _I, _I, _S], _N),
    "column_gains": ([_P, _P, _S], _N),
    "two_sides": ([_P, _I, _N, _I, _P, _S], _N),
    "add_sets": ([_P, _I, _P, _P, _I, _P, _P, _P, _S], _N),
    "ordered_new": ([_N, _P, _P, _P], _P),
    "ordered_free": ([_P], None),
    "ordered_begin": ([_P, _I, _I, _I], _N),
    "ordered_work": ([_P, _N], None),
    "ordered_state": ([_P, _P], None),
    "ordered_tree": ([_P, _P], _I),
}


@lru_cache(maxsize=1)
def kernels() -> ctypes.CDLL:
    """Return the library for this machine, loaded at the first call.

    Raises
    ------
    MissingKernelsError
        If this machine supports none, or it was compiled from other sources.
    """
    name = os.environ.get("ACCEL_OCT_CPU") or level_names()[0]
    if not _path(name).is_file():
        raise MissingKernelsError(f"ACCEL_OCT_CPU={name}: no such kernels; there are {_built()}")
    library = _loaded(name)
    for function, (arguments, result) in _SIGNATURES.items():
        entry = getattr(library, function)
        entry.argtypes, entry.restype = arguments, result
    return library


def level_names() -> tuple[str, ...]:
    """Return the names of the CPU levels that are installed and that this machine can run, best first."""
    level = _machine_level()
    runnable = ("aarch64",) if level == 1 else tuple(f"x86_64_v{number}" for number in range(level, 1, -1))
    if not runnable:
        raise MissingKernelsError("accel_oct needs an x86-64 processor of level v2 (2009 or newer), or an aarch64 one")
    names = tuple(name for name in runnable if _path(name).is_file())
    if not names:
        raise MissingKernelsError(
            f"no kernels for this processor ({runnable[0]}); there are {_built()}: run `pip install -e .` again"
        )
    return names


def _machine_level() -> int:
    path = _FOLDER / f"cpu{_SUFFIX}"
    if not path.is_file():
        raise MissingKernelsError(
            "the compiled kernels of accel_oct are missing: install a wheel for this platform, or build it with "
            "`pip install .` (the compiler comes from the package ziglang, or is named by CXX)"
        )
    library = _opened(path)
    library.machine_level.restype = c_int64
    return int(library.machine_level())


def _built() -> str:
    """Return the names of the installed CPU levels."""
    return (
        ", ".join(sorted(path.stem.removeprefix("kernels-") for path in _FOLDER.glob(f"kernels-*{_SUFFIX}"))) or "none"
    )


def _path(name: str) -> Path:
    return _FOLDER / f"kernels-{name}{_SUFFIX}"


def _opened(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise MissingKernelsError(f"the compiled kernels {path.name} cannot be loaded: {error}") from error


def _loaded(name: str) -> ctypes.CDLL:
    library = _opened(_path(name))
    library.built_from.restype = c_char_p
    if _SOURCES.is_dir() and library.built_from().decode() != source_digest(_SOURCES):
        raise MissingKernelsError(
            f"the compiled kernels {_path(name).name} are not those of the sources beside them: run `pip install -e .` "
            "again, or `python hatch_build.py`"
        )
    return library
