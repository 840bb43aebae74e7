"""The one place that knows numba: typed decorator, bit-count intrinsic, availability.

Modules of compiled kernels import `kernel` and `popcount16` from here; nothing else in the library imports them
at module level, so numba is only loaded when a compiled engine is really used.

The machine code on disk is renewed when the file of the *called* kernel changes, not when a helper in another file
does: after editing `counts`, `passes` or `lanes`, delete ``accel_oct/subtree/__pycache__``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic


def kernel(function: Callable[..., Any]) -> Any:
    """Compile at the first call, keep the machine code on disk, release the GIL while it runs."""
    return njit(cache=True, nogil=True, error_model="numpy")(function)


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
