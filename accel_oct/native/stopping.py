"""A flag that stops running kernels."""

from __future__ import annotations

import ctypes
from ctypes import c_int32


class StopFlag:
    """A flag that a running kernel checks; any thread may raise it."""

    def __init__(self) -> None:
        self._flag = c_int32(0)
        self.address = ctypes.addressof(self._flag)

    def raise_(self) -> None:
        """Ask the kernel to return."""
        self._flag.value = 1
