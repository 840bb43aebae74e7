"""Files that are replaced as a whole or not at all, and files that are read up to a limit."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from accel_oct.errors import InvalidInputError, shown

__all__ = ["as_path", "check_writable", "read_text", "replacing"]

_LONGEST_NAME = 300


def as_path(path: Any, argument: str = "path") -> Path:
    """`path` as a Path that the operating system can be asked for."""
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
    """A file to write to that takes the place of `path` when the block ends well.

    Until then the old file is as it was, and it stays so when the block or the disk fails. What is no regular file
    (``/dev/stdout``, a pipe) is written to as it is; of a symbolic link, the file that it points to is replaced.

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
    """Raise InvalidInputError if `replacing` could not write there, before there is anything to write."""
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
        # Tried out: who may write where is more than permissions say.
        trial = beside.with_name(f".{beside.name[:64]}.{secrets.token_hex(8)}.tmp")
        trial.open("x").close()
        trial.unlink()
    except OSError as error:
        raise InvalidInputError(f"{name}: {error.strerror or error}") from None


def _sync_folder(folder: Path) -> None:
    """Make the new name last; not every system can open a folder, and the content is safe without."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_text(path: Any, max_bytes: int, what: str) -> str:
    """The UTF-8 text of a regular file of at most `max_bytes`.

    Parameters
    ----------
    path : path
    max_bytes : int
        No more than this, and one byte, is read, whatever size the file claims to have.
    what : str
        What to call it in errors.

    Raises
    ------
    InvalidInputError
        When it cannot be read, is no regular file, is too large or is no text.
    """
    target = as_path(path, what)
    name = f"{what} {_short(target)}"
    try:
        # Looked at before it is opened: opening a pipe waits for a writer.
        if not stat.S_ISREG(target.stat().st_mode):
            raise InvalidInputError(f"{name} is not a regular file")
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
    """A path for an error message; what was meant to be JSON text may have been taken for one."""
    text = str(path)
    return text if len(text) <= _LONGEST_NAME else f"{text[:60]!r}..."
