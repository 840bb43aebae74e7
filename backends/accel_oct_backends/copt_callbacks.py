"""The classes that COPT calls. Importing this module imports coptpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coptpy import CallbackBase, LogCallback

from accel_oct.mip import LogLines


class Callback(CallbackBase):  # type: ignore[misc]
    """Passes every call on to a function."""

    def __init__(self, function: Callable[[Any], None]) -> None:
        super().__init__()
        self._function = function

    def callback(self) -> None:
        self._function(self)


class Log(LogCallback):  # type: ignore[misc]
    """Passes the log on to a stream."""

    def __init__(self, stream: LogLines) -> None:
        super().__init__()
        self._stream = stream

    def Display(self, msg: str) -> None:
        self._stream.write(msg + "\n")
