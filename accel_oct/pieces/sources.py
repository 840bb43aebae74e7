"""Where data in pieces come from: what columns there are, and piece by piece their rows.

A source is read twice, so it must give the same rows every time; their order, and how they are cut into pieces, change
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.tables import Table, as_frame
from accel_oct.errors import InvalidInputError, shown
from accel_oct.pieces.batches import Batch, arrow_batch, check_named, table_batch

__all__ = ["ARGUMENTS", "BESIDE", "TARGET", "WEIGHT", "FramePiece", "Piece", "Source", "described", "frames_source"]

#: Names of a target and of weights that came beside the table; no column has them.
TARGET, WEIGHT = "\0target", "\0weight"
BESIDE = (TARGET, WEIGHT)
#: The arguments that they came as, for errors.
ARGUMENTS = {TARGET: "y", WEIGHT: "sample_weight"}


def described(name: str) -> str:
    """A column in an error: by its name, or by the argument that it came as."""
    return ARGUMENTS[name] if name in BESIDE else f"column {shown(name)}"


class Piece(Protocol):
    """Some rows of the data: small enough to be read by one task, in batches."""

    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, whatever is read of them."""
        ...

    def families(self) -> dict[str, str | None] | None:
        """What the columns hold, by `arrow_family`, where that is known without reading them."""
        ...

    def batches(self, names: Sequence[str], most: int) -> Iterator[Batch]:
        """These columns, in batches of at most so many rows."""
        ...


@dataclass(frozen=True, eq=False)
class Source:
    """Data in pieces.

    Attributes
    ----------
    kind : str
        For messages: "a folder of Parquet files".
    columns : tuple of str
        All columns, as the first piece has them.
    pieces : callable
        Gives the pieces, each time anew.
    n_pieces : int or None
        None where that is known only after they have been read.
    portable : bool
        Whether another process can read the pieces.
    named : bool
        Whether names of columns are the user's; those of arrays are made up.
    target, weight : str or None
        The columns that came as target and weights, where they are no columns of the table: `TARGET` and `WEIGHT`.
    """

    kind: str
    columns: tuple[str, ...]
    pieces: Callable[[], Iterable[Any]]
    n_pieces: int | None
    portable: bool = False
    named: bool = True
    target: str | None = None
    weight: str | None = None


@dataclass(frozen=True, eq=False)
class FramePiece:
    """A data frame, a table or an array in memory, perhaps with columns beside it: those named in `BESIDE`."""

    name: str
    frame: Any
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*check_named(frame_names(self.frame), self.name), *self.beside)

    def families(self) -> dict[str, str | None] | None:
        return None

    def batches(self, names: Sequence[str], most: int) -> Iterator[Batch]:
        n_rows = len(self.frame) if not hasattr(self.frame, "num_rows") else self.frame.num_rows
        wanted = {name: values for name, values in self.beside.items() if name in names}
        more = {name: _flat(values, n_rows, self.name, ARGUMENTS[name]) for name, values in wanted.items()}
        inside = [name for name in names if name not in self.beside]
        for start in range(0, n_rows, most):
            stop = min(start + most, n_rows)
            batch = self._part(inside, start, stop)
            parts = {name: values[start:stop] for name, values in more.items()}
            yield replace(batch, columns={**batch.columns, **parts})

    def _part(self, names: Sequence[str], start: int, stop: int) -> Batch:
        if not names:
            return Batch({}, stop - start)
        if hasattr(self.frame, "num_rows"):
            return arrow_batch(self.frame.select(list(names)).slice(start, stop - start))
        if isinstance(self.frame, Table):
            return table_batch(self.frame.select(names).rows(np.arange(start, stop)))
        if isinstance(self.frame, np.ndarray):
            place = {name: j for j, name in enumerate(frame_names(self.frame))}
            return Batch({name: self.frame[start:stop, place[name]] for name in names}, stop - start)
        rows = self.frame.iloc[start:stop] if hasattr(self.frame, "iloc") else self.frame[start:stop]
        return table_batch(Table.read(rows[list(names)]))


def frame_names(frame: Any) -> list[Any]:
    """The names of the columns of a frame in memory; made up for arrays."""
    if isinstance(frame, np.ndarray):
        if frame.ndim != 2:
            raise InvalidInputError(f"a piece must be two-dimensional, got {frame.ndim} dimension(s)")
        return [f"x{j}" for j in range(frame.shape[1])]
    if isinstance(frame, Table):
        return [frame.name(place) for place in range(len(frame.columns))]
    if hasattr(frame, "column_names"):
        return list(frame.column_names)
    return list(frame.columns)


def _flat(values: Any, n_rows: int, where: str, argument: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n_rows,):
        raise InvalidInputError(f"{where} has {n_rows} rows, but {argument} has the shape {array.shape} there")
    return array


def frames_source(frames: Callable[[], Iterable[Any]] | Sequence[Any]) -> Source:
    """Data frames of any library: a list, or a function that gives them one after the other, each time from the first.

    A generator would be used up by the first pass.
    """
    given: Callable[[], Iterable[Any]] = frames if callable(frames) else lambda: frames

    def pieces() -> Iterator[FramePiece]:
        frames = given()
        if not isinstance(frames, Iterable):
            raise InvalidInputError(f"source must give data frames, but it gives {shown(frames)}")
        for place, frame in enumerate(frames):
            yield FramePiece(f"piece {place}", _in_memory(frame, place))

    first = next(iter(pieces()), None)
    if first is None:
        raise InvalidInputError("source has no pieces")
    return Source("data frames", first.columns, pieces, None if callable(frames) else len(frames))


def _in_memory(frame: Any, place: int) -> Any:
    found = None if isinstance(frame, np.ndarray | str) else as_frame(frame)
    if found is None:
        raise InvalidInputError(f"source must give data frames, but piece {place} is {' '.join(shown(frame).split())}")
    return found
