"""A file as a stream of bytes: opened, decompressed, and never longer than allowed."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct.support.files import as_path

__all__ = ["MAX_BYTES", "Source", "opened_source", "wanted_package"]

#: Of what is read, after decompression: a small file can unpack to more than any memory.
MAX_BYTES = 4 << 30

_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"PK\x03\x04": "excel",
    b"\xd0\xcf\x11\xe0": "old excel",
}
_PACKED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_LONGEST_MAGIC = 10


class Source:
    """What is behind a path, decompressed.

    Attributes
    ----------
    name : str
        What to call it in errors.
    stem : str
        The name of the file without the ending of its compression, in small letters.
    file : binary stream
        Raises InvalidInputError instead of giving more bytes than allowed.
    format : str or None
        "parquet", "feather", "excel" or "old excel" where the first bytes say so.
    """

    def __init__(self, name: str, stem: str, file: IO[bytes], max_bytes: int) -> None:
        self.name, self.stem = name, stem
        limited = io.BufferedReader(_Limited(file, name, max_bytes), 1 << 16)
        begin = limited.peek(_LONGEST_MAGIC)
        self.format = next((found for magic, found in _MAGIC.items() if begin.startswith(magic)), None)
        self.file: IO[bytes] = limited


@contextmanager
def opened_source(path: Any, max_bytes: int) -> Iterator[Source]:
    """Open a path, ``-`` being standard input; whatever fails while reading becomes an error that names the file.

    gzip, bzip2, xz and zstd are known by their first bytes.
    """
    name = "standard input" if path == "-" else str(path)
    try:
        with ExitStack() as stack:
            buffered: Any = sys.stdin.buffer if path == "-" else stack.enter_context(_regular(as_path(path)))
            stem = name.lower() if path != "-" else ""
            packed = _compression(buffered.peek(_LONGEST_MAGIC)[:_LONGEST_MAGIC])
            if packed:
                stem = str(Path(stem).with_suffix("")) if stem.endswith((".gz", ".bz2", ".xz", ".zst")) else stem
                buffered = stack.enter_context(_unpacked(buffered, packed, name))
            yield Source(name, stem, buffered, max_bytes)
    except AccelOctError:
        raise
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise InvalidInputError(f"{name} is damaged or cut off: {error}") from None
    except OSError as error:
        raise InvalidInputError(f"cannot read {name}: {error.strerror or error}") from None


def wanted_package(package: str, name: str) -> Any:
    """Import a package that a file needs, or say how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        needed = package.split(".")[0]
        raise InvalidInputError(
            f"{name} needs the package {needed}, which is not installed: pip install 'accel-oct[files]'"
        ) from None


def _regular(path: Path) -> IO[bytes]:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise InvalidInputError(f"{path} is not a regular file: it is a folder")
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        # A pipe is fine: shells make them for `<(command)`. /dev/stdin is a device on a terminal only.
        raise InvalidInputError(f"{path} is not a regular file")
    return path.open("rb")


def _compression(begin: bytes) -> str | None:
    if begin[:3] == b"BZh" and begin[4:10] == b"1AY&SY":  # three letters alone could be the name of a column
        return "bzip2"
    return next((found for magic, found in _PACKED.items() if begin.startswith(magic)), None)


def _unpacked(file: IO[bytes], packed: str, name: str) -> Any:
    if packed == "gzip":
        return gzip.GzipFile(fileobj=file)
    if packed == "bzip2":
        return bz2.BZ2File(file)
    if packed == "xz":
        return lzma.LZMAFile(file)
    if sys.version_info >= (3, 14):
        return wanted_package("compression.zstd", name).ZstdFile(file)
    arrow = wanted_package("pyarrow", name)
    return arrow.CompressedInputStream(arrow.PythonFile(file, mode="r"), "zstd")


class _Limited(io.RawIOBase):
    def __init__(self, file: IO[bytes], name: str, max_bytes: int) -> None:
        self._file, self._name, self._left, self._most = file, name, max_bytes, max_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise InvalidInputError(f"{self._name} holds more than the {self._most} bytes that are allowed")
        buffer[: len(data)] = data
        return len(data)
