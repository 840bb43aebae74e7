"""Output of results to files, as text and as JSON; files are written first."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from accel_oct._version import __version__
from accel_oct.cli.codes import Code
from accel_oct.cli.options import DisplayOptions, OutputOptions
from accel_oct.cli.streams import results
from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct.io.tables import write_csv
from accel_oct.live import Watch, watching
from accel_oct.support.files import check_writable, replacing

_FINISHED = ("optimal", "finished")


def check_output(output: OutputOptions, display: DisplayOptions) -> None:
    """Raise if the output cannot be written, before the computation."""
    if output.output == "-" and display.json:
        raise InvalidInputError("--output - and --json both use standard output; leave one of them out")
    if output.output not in (None, "-"):
        check_writable(output.output)


@contextmanager
def writing(path: str | None, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a file that is replaced atomically, or standard output."""
    if path is None or path == "-":
        yield results().buffer if binary else results()
        return
    with write_errors_named(path), replacing(path, binary=binary) as file:
        yield file


@contextmanager
def write_errors_named(path: str) -> Iterator[None]:
    """Convert system errors while a file is written to InvalidInputError with its name."""
    try:
        yield
    except OSError as error:
        raise InvalidInputError(f"cannot write {path}: {error.strerror or error}") from error


def write_table(
    output: OutputOptions, display: DisplayOptions, names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Write CSV to the file, or to standard output unless that is used for JSON."""
    if output.output is not None or not display.json:
        with writing(output.output) as file:
            write_csv(file, names, rows)


def emit(display: DisplayOptions, command: str, code: int, **content: Any) -> int:
    """Print the JSON document with --json, and return the exit code."""
    if display.json:
        document = {"command": command, "version": __version__, "exit_code": int(code), **_plain(content)}
        print(json.dumps(document, allow_nan=False), file=results())
    return int(code)


def printed(display: DisplayOptions, output: OutputOptions | None, *lines: str) -> None:
    """Print text to standard output, or to standard error if standard output is in use."""
    if display.json:
        return
    taken = output is not None and output.output == "-"
    stream = sys.stderr if taken else results()
    encoding = getattr(stream, "encoding", None) or "utf-8"
    for line in lines:  # in an ASCII locale, other characters are escaped
        print(line.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def code_of(statuses: Iterable[str], interrupted: bool = False) -> Code:
    """Return the exit code of the worst status."""
    found = set(statuses)
    if interrupted or "interrupted" in found:
        return Code.INTERRUPTED
    if "infeasible" in found:
        return Code.NO_TREE
    return Code.DONE if found <= set(_FINISHED) else Code.NOT_PROVEN


def _plain(value: Any) -> Any:
    """Convert to JSON types; None for infinity and NaN."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)


@contextmanager
def watched(display: DisplayOptions, time_limit: float | None) -> Iterator[Watch]:
    """Show the progress of a search on standard error; yields its `progress` argument."""
    stream: Any = _DiscardingStream(sys.stderr)
    with watching(stream, time_limit=time_limit, quiet=display.quiet, verbose=1 + display.verbose) as watch:
        try:
            yield watch
        except AccelOctError:
            stream.failed = True
            raise


class _DiscardingStream:
    """A stream for a view that discards the last line if nothing was drawn before an error."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._drawn = self.failed = False

    def write(self, text: str) -> int:
        if self.failed and not self._drawn:
            return len(text)
        self._drawn = True
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
