"""The one place that knows numba: decorators for compiled code, the folder that keeps it, bit-count intrinsic.

Modules of compiled kernels import `kernel`, `entry_point` and the bit counts from here; nothing else in the library
imports them at module level, so numba is only loaded when a compiled engine is really used.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, update_wrapper
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from accel_oct.support.announcements import announce

logger = logging.getLogger(__name__)

_OPTIONS = {"nogil": True, "error_model": "numpy"}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile at the first call and release the GIL while it runs; for functions that other kernels call.

    What is compiled becomes part of the entry point that uses it, and is kept on disk with that.
    """
    return njit(**_OPTIONS)(function)


def entry_point(function: Callable[..., Any]) -> EntryPoint:
    """A kernel that Python calls: its machine code is kept on disk wherever that is possible."""
    return EntryPoint(function)


class EntryPoint:
    """Compiled code that is read from disk, or else made and written there; without a usable disk only made.

    Code is made, or read, in a step of its own before the first call with new types. So whatever goes wrong with the
    files is known before anything has run, and what was read can be compared with what was asked for: processes that
    write an index at the same moment may leave a name in it that leads to the code of other types.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._compiled: Any = None
        self._ready: set[tuple[Any, ...]] = set()
        self._by_key: dict[object, Callable[..., Any]] = {}
        self._making = threading.Lock()
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return self.ready(*arguments)(*arguments)

    def ready(self, *arguments: Any) -> Callable[..., Any]:
        """The code for arguments of these types, for callers that always pass the same types and cannot wait.

        Looking at the types of a few named tuples takes ten microseconds.
        """
        given = tuple([_type_key(argument) for argument in arguments])
        if given not in self._ready:
            with self._making:
                self._make(arguments)
            self._ready.add(given)
        code: Callable[..., Any] = self._compiled
        return code

    def by(self, key: object, *arguments: Any) -> Any:
        """Call with arguments whose types all follow from `key`, so that they are looked at once per key."""
        code = self._by_key.get(key)
        if code is None:
            code = self._by_key[key] = self.ready(*arguments)
        return code(*arguments)

    def _make(self, arguments: tuple[Any, ...]) -> None:
        signature = tuple(numba.typeof(argument) for argument in arguments)
        if self._compiled is None:
            self._compiled = _stored.dispatcher(self._function)
        announce(f"compiling {self._function.__name__}")
        logger.info("compiling %s, or reading it from disk", self._function.__name__)
        began, stored = time.perf_counter(), _loads(self._compiled)
        try:
            self._compiled.compile(signature)
            if signature not in self._compiled.signatures:
                raise RuntimeError("what is stored for these types was made for others")
        except Exception as error:  # a broken file may raise anything; a fault of the kernel itself comes again below
            _stored.give_up(error)
            self._compiled = njit(**_OPTIONS)(self._function)
            self._compiled.compile(signature)
        if _loads(self._compiled) == stored:
            seconds = time.perf_counter() - began
            logger.info("compiled %s in %.1f s, once for this type of data", self._function.__name__, seconds)


def _loads(compiled: Any) -> int:
    """How often machine code came from disk."""
    return sum(compiled.stats.cache_hits.values())


def _type_key(argument: Any) -> Any:
    """What tells the types of arguments apart here, many times faster than numba's own description."""
    if isinstance(argument, np.ndarray):
        return argument.dtype.num, argument.flags.carray
    if isinstance(argument, tuple):
        return type(argument), *[_type_key(part) for part in argument]
    return type(argument)


class _StoredCode:
    """The folder on disk that this process keeps its machine code in, until something goes wrong with it.

    numba renews what it keeps when the file of a function changes, but not when a helper in another file does: code
    from before the change would go on being used. So the name of the folder holds a digest of the sources of all
    kernels, and no two states of the sources ever share a file.
    """

    def __init__(self) -> None:
        self._given_up = False

    @property
    def folder(self) -> Path | None:
        """None when code is not kept."""
        return None if self._given_up else _writable_folder()

    def dispatcher(self, function: Callable[..., Any]) -> Any:
        """The function for numba to compile, kept in the folder if there is one."""
        folder = self.folder
        if folder is None:
            self.give_up("no folder for it can be written to")
            return njit(**_OPTIONS)(function)
        configured = numba.config.CACHE_DIR
        try:
            # numba takes note of the folder when it wraps the function: other packages' code stays where it was.
            numba.config.CACHE_DIR = str(folder)
            compiled = njit(cache=True, **_OPTIONS)(function)
        except (OSError, RuntimeError) as error:
            self.give_up(error)
            return njit(**_OPTIONS)(function)
        finally:
            numba.config.CACHE_DIR = configured
        if folder not in Path(compiled.stats.cache_path or "").parents:
            # Someone has told numba to keep code in other ways, which know nothing of our digest.
            self.give_up(f"numba is configured to keep it in {compiled.stats.cache_path}")
            return njit(**_OPTIONS)(function)
        return compiled

    def give_up(self, reason: object) -> None:
        """Keep no more code, and say so once; what cannot be read is removed, for the next process to make anew."""
        if self._given_up:
            return
        folder = _writable_folder()
        self._given_up = True
        logger.warning(
            "compiled code is not kept on disk%s, so it is compiled again in every process: %s",
            "" if folder is None else f" in {folder}",
            reason if not isinstance(reason, Exception) else f"{type(reason).__name__}: {reason}",
        )
        if folder is not None and isinstance(reason, Exception) and not isinstance(reason, OSError):
            shutil.rmtree(folder, ignore_errors=True)


_stored = _StoredCode()


def code_folder() -> Path | None:
    """Where compiled code is kept; None when it is not."""
    return _stored.folder


@lru_cache(maxsize=1)
def _writable_folder() -> Path | None:
    """The first place that can be written to: the one numba is told to use, beside the sources, the user's caches."""
    name = f"accel_oct-{source_digest()[:16]}"
    beside = Path(__file__).parent / "__pycache__"
    for place in _places(beside):
        folder = place / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        if place == beside:
            # What older sources left here can be of no use to anyone.
            for other in place.glob("accel_oct-*"):
                if other != folder:
                    shutil.rmtree(other, ignore_errors=True)
        return folder
    return None


def _places(beside: Path) -> Iterator[Path]:
    if numba.config.CACHE_DIR:
        yield Path(numba.config.CACHE_DIR)
    yield beside
    yield Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))


@lru_cache(maxsize=1)
def source_digest() -> str:
    """Changes whenever any source file of this folder, or of a folder of kernels, does."""
    digest, here = hashlib.sha256(), Path(__file__).parent
    for path in sorted([*here.glob("*.py"), *here.parent.glob("*/kernels/*.py")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@intrinsic  # type: ignore[untyped-decorator]
def popcount16(typingctx: Any, word: Any) -> Any:
    """Bit count of a 16-bit word.

    Sixteen bits, because the counters are sixteen bits wide too: the loop over features then has one lane
    width throughout and vectorises without any widening.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = arguments[0]
        if value.type.width > 16:
            value = builder.trunc(value, ir.IntType(16))
        return builder.ctpop(value)

    return types.uint16(word), generate


@intrinsic  # type: ignore[untyped-decorator]
def popcount64(typingctx: Any, word: Any) -> Any:
    """Bit count of a 64-bit word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate
