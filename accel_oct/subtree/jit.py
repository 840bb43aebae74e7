"""The one place that knows numba: typed decorator, bit-count intrinsic, availability.

Modules of compiled kernels import `kernel` and `popcount16` from here; nothing else in the library imports them
at module level, so numba is only loaded when a compiled engine is really used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic


def kernel(function: Callable[..., Any]) -> Any:
    """Compile at the first call, keep the machine code on disk, release the GIL while it runs.

    numba renews what it keeps when the file of the kernel itself changes, but not when a helper in another file does:
    code from before the change would go on being used. So the stamp it compares covers every source of this folder.
    """
    compiled = njit(cache=True, nogil=True, error_model="numpy")(function)
    stored: Any = getattr(compiled._cache, "_cache_file", None)
    if hasattr(stored, "_source_stamp"):
        stored._source_stamp = source_stamp()
    else:  # a numba that keeps its cache in another way: better no cache than a stale one
        compiled = njit(nogil=True, error_model="numpy")(function)
    return compiled


@lru_cache(maxsize=1)
def source_stamp() -> str:
    """Changes whenever any source file of this folder does."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
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
