"""Files: replaced as a whole or not at all, read up to a limit, and decompressed while they are read."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import os
import secrets
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from accel_oct.errors import AccelOctError, InvalidInputError, shown

_LONGEST_NAME = 300


def as_path(path: Any, argument: str = "path") -> Path:
    """Return `path` as a Path that can be handed to the operating system, or raise InvalidInputError."""
    if isinstance(path, bytes) or not isinstance(path, str | os.PathLike):
        raise InvalidInputError(f"{argument} must be a path, got {shown(path)}")
    try:
        result = Path(path)
        name = os.fsencode(result)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{argument} must be a path, got {shown(path)}") from None
    if b"\0" in name:
        raise InvalidInputError(f"{argument} must not hold a NUL character, got {shown(path)}")
    return result


@contextmanager
def replacing(path: Any, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a file that replaces `path` when the block ends without an error.

    Until then the old file is unchanged, and it stays unchanged when the block or the disk fails. Files that are not
    regular (``/dev/stdout``, a pipe) are written to directly; of a symbolic link, the file that it points to is
    replaced.

    Parameters
    ----------
    path : path
    binary : bool
        Bytes instead of UTF-8 text.
    """
    target = as_path(path)
    mode, encoding = ("b", None) if binary else ("", "utf-8")
    if target.exists() and not target.is_file():
        with target.open("w" + mode, encoding=encoding) as file:
            yield file
        return
    target = Path(os.path.realpath(target))
    beside = target.with_name(f".{target.name[:64]}.{secrets.token_hex(8)}.tmp")
    try:
        # "x": the name is new, and the permissions are those of any file that this process makes.
        with beside.open("x" + mode, encoding=encoding) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(beside, stat.S_IMODE(target.stat().st_mode))
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    _sync_folder(target.parent)


def check_writable(path: Any, argument: str = "output") -> None:
    """Raise InvalidInputError if `replacing` could not write to a path."""
    target = as_path(path, argument)
    name = f"cannot write {_short(target)}"
    try:
        if target.is_dir():
            raise InvalidInputError(f"{name}: it is a folder")
        if target.exists() and not target.is_file():
            if not os.access(target, os.W_OK):
                raise InvalidInputError(f"{name}: permission denied")
            return
        beside = Path(os.path.realpath(target))
        if not beside.parent.is_dir():
            raise InvalidInputError(f"{name}: there is no folder {_short(beside.parent)}")
        # Try to write: permissions alone are not sufficient.
        trial = beside.with_name(f".{beside.name[:64]}.{secrets.token_hex(8)}.tmp")
        trial.open("x").close()
        trial.unlink()
    except OSError as error:
        raise InvalidInputError(f"{name}: {error.strerror or error}") from None


def _sync_folder(folder: Path) -> None:
    """Sync the name of a new file to disk, where the system can open a folder."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_regular(path: Any, what: str = "file") -> Path:
    """Return a path that is a regular file, or raise InvalidInputError: opening a pipe waits for a writer."""
    target = as_path(path, what)
    name = f"{what} {_short(target)}"
    try:
        if not stat.S_ISREG(target.stat().st_mode):
            raise InvalidInputError(f"{name} is not a regular file")
    except OSError as error:
        raise InvalidInputError(f"cannot read {name}: {error.strerror or error}") from None
    return target


def read_text(path: Any, max_bytes: int, what: str) -> str:
    """Read the UTF-8 text of a regular file of at most `max_bytes`.

    Parameters
    ----------
    path : path
    max_bytes : int
        At most one byte more than this is read, independent of the declared size of the file.
    what : str
        The name of the file's purpose in errors.

    Raises
    ------
    InvalidInputError
        When the file cannot be read, is not regular, is too large or is not UTF-8 text.
    """
    target = check_regular(path, what)
    name = f"{what} {_short(target)}"
    try:
        with target.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            content = b"" if size > max_bytes else file.read(max_bytes + 1)
    except OSError as error:
        raise InvalidInputError(f"cannot read {name}: {error.strerror or error}") from None
    if max(size, len(content)) > max_bytes:
        found = size if size > max_bytes else f"at least {len(content)}"
        raise InvalidInputError(f"{name} has {found} bytes, more than the {max_bytes} that are allowed")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInputError(f"{name} is not a text file") from None


def _short(path: Path) -> str:
    """Shorten a path for an error message: JSON text may have been passed as a path."""
    text = str(path)
    return text if len(text) <= _LONGEST_NAME else f"{text[:60]!r}..."


# ---------------------------------------------------------------- compressed files, as streams


#: Limit on decompressed bytes: a small file can unpack to more than the memory holds.
MAX_BYTES = 4 << 30

_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"PK\x03\x04": "excel",
    b"\xd0\xcf\x11\xe0": "old excel",
}
_PACKED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_LONGEST_MAGIC = 10


class OpenedFile:
    """A file that is open for reading, decompressed.

    Attributes
    ----------
    name : str
        The name in errors.
    stem : str
        The name of the file in lower case, without the suffix of its compression.
    file : binary stream
        Raises InvalidInputError instead of giving more bytes than allowed.
    format : str or None
        "parquet", "feather", "excel" or "old excel", recognised by the first bytes; else None.
    """

    def __init__(self, name: str, stem: str, file: IO[bytes], max_bytes: int) -> None:
        self.name, self.stem = name, stem
        limited = io.BufferedReader(_Limited(file, name, max_bytes), 1 << 16)
        begin = limited.peek(_LONGEST_MAGIC)
        self.format = next((found for magic, found in _MAGIC.items() if begin.startswith(magic)), None)
        self.file: IO[bytes] = limited


@contextmanager
def opened_file(path: Any, max_bytes: int) -> Iterator[OpenedFile]:
    """Open a path, or standard input for ``-``; errors while reading become InvalidInputError with the file's name.

    gzip, bzip2, xz and zstd are recognised by their first bytes.
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
            yield OpenedFile(name, stem, buffered, max_bytes)
    except AccelOctError:
        raise
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise InvalidInputError(f"{name} is damaged or cut off: {error}") from None
    except OSError as error:
        raise InvalidInputError(f"cannot read {name}: {error.strerror or error}") from None


def wanted_package(package: str, name: str) -> Any:
    """Import a package that a file needs; the error names the extra to install."""
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
