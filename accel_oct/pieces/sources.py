"""Sources of data in pieces: their columns, and their rows piece by piece.

A source is read twice and must return the same rows each time. The result does not depend on their order or on the
division into pieces.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from accel_oct.encoding.tables import Table, as_frame
from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.io.tables import read_table
from accel_oct.pieces.batches import Batch, Coded, arrow_batch, arrow_family, check_named, table_batch
from accel_oct.pieces.detection import PARQUET, is_dask, is_dataset, is_frame, is_relation, is_table_file

#: Names of a target and of weights that are passed beside the table; no column has these names.
TARGET, WEIGHT = "\0target", "\0weight"
BESIDE = (TARGET, WEIGHT)
#: Their arguments, for errors.
ARGUMENTS = {TARGET: "y", WEIGHT: "sample_weight"}


def described(name: str) -> str:
    """Describe a column in an error, by its name or by its argument."""
    return ARGUMENTS[name] if name in BESIDE else f"column {shown(name)}"


class Piece(Protocol):
    """Some rows of the data, which one task reads in batches."""

    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns."""
        ...

    def families(self) -> dict[str, str | None] | None:
        """Return the families of the columns as in `arrow_family`; None if that requires reading them."""
        ...

    def batches(self, names: Sequence[str], most: int) -> Iterator[Batch]:
        """Yield some columns in batches of at most `most` rows."""
        ...


@dataclass(frozen=True, eq=False)
class Source:
    """Data in pieces.

    Attributes
    ----------
    kind : str
        Description in messages, such as "a folder of Parquet files".
    columns : tuple of str
        All columns of the first piece.
    pieces : callable
        Returns a new iterator over the pieces.
    n_pieces : int or None
        None if unknown before they are read.
    portable : bool
        Whether another process can read the pieces.
    named : bool
        Whether the column names are the user's; those of arrays are generated.
    target, weight : str or None
        `TARGET` and `WEIGHT` if target and weights are not columns of the table.
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
    """A data frame, table or array in memory, optionally with the columns of `BESIDE`."""

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
    """Return the column names of a frame in memory; generated for arrays."""
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
    """Return the source of a list of data frames, or of a function that returns an iterable of them.

    A generator is not accepted: the first pass would exhaust it.
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


# ---------------------------------------------------------------- Parquet files


_BUFFER = 1 << 22
"""Bytes of a column that are read at a time, even if one row group is the whole file."""

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, eq=False)
class ParquetPiece:
    """A file, or some of its row groups.

    Attributes
    ----------
    fragment : ParquetFileFragment or None
        Selects row groups; None means all of them.
    keys : mapping from names to values
        Values for all rows from the names of folders, such as ``year=2024``.
    """

    name: str
    path: str
    files: Any
    fragment: Any = None
    keys: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        with self._opened() as file:
            return check_named([*_schema_names(file.schema_arrow), *self.keys], self.name)

    def families(self) -> dict[str, str | None] | None:
        with self._opened() as file:
            known = {
                name: arrow_family(file.schema_arrow.field(name).type) for name in _schema_names(file.schema_arrow)
            }
        return {**known, **{name: None for name in self.keys}}

    def batches(self, names: Sequence[str], most: int) -> Iterator[Batch]:
        inside = [name for name in names if name not in self.keys]
        with self._opened() as file, self._reading():
            groups = None if self.fragment is None else [group.id for group in self.fragment.row_groups]
            if not inside:
                total = file.metadata.num_rows
                if groups is not None:
                    total = sum(file.metadata.row_group(group).num_rows for group in groups)
                for start in range(0, total, most):
                    yield self._with_keys(Batch({}, min(most, total - start)), names)
                return
            for part in file.iter_batches(batch_size=most, row_groups=groups, columns=inside, use_threads=False):
                yield self._with_keys(arrow_batch(part), names)

    def _with_keys(self, batch: Batch, names: Sequence[str]) -> Batch:
        wanted = {name: value for name, value in self.keys.items() if name in names}
        if not wanted:
            return batch
        codes = np.zeros(batch.n_rows, dtype=np.int64)
        constant = {name: Coded(np.array([value], dtype=object), codes) for name, value in wanted.items()}
        return replace(batch, columns={**batch.columns, **constant})

    def _opened(self) -> Any:
        import pyarrow.parquet as pq

        with self._reading():
            # iter_batches decodes incrementally; a scanner of pyarrow.dataset would decode whole row groups.
            return pq.ParquetFile(self.files.open_input_file(self.path), buffer_size=_BUFFER, pre_buffer=False)

    def _reading(self) -> _Naming:
        return _Naming(self.name)


class _Naming:
    """Context manager that converts Arrow errors to an InvalidInputError with the name of the file."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        import pyarrow as pa

        if isinstance(error, pa.ArrowException | OSError | EOFError):
            said = " ".join(str(error).split()).rstrip(".")
            raise InvalidInputError(f"{self.name} cannot be read as Parquet: {said:.200}") from error


def _schema_names(schema: Any) -> list[str]:
    """Return the names of a schema without the index of pandas."""
    about = schema.pandas_metadata or {}
    index = {entry for entry in about.get("index_columns", ()) if isinstance(entry, str)}
    return [name for name in schema.names if name not in index or not name.startswith("__index_level_")]


def parquet_source(path: Any) -> Source:
    """Return the source of a Parquet file, a folder with its subfolders, a pattern ``folder/*.parquet``, or a list.

    Files are local or given by a URI; patterns match local files.
    """
    try:
        import pyarrow as pa
        from pyarrow import fs
    except ImportError:
        raise InvalidInputError(
            "source: Parquet needs pyarrow, which is not installed: pip install 'accel-oct[files]'"
        ) from None
    pieces: list[ParquetPiece] = []
    for text in _expanded(path if isinstance(path, list | tuple) else [path]):
        try:
            if "://" in text:
                files, place = fs.FileSystem.from_uri(text)
            else:
                files, place = fs.LocalFileSystem(), str(Path(text).expanduser())
            pieces += _found(files, place, text)
        except (pa.ArrowException, OSError, RuntimeError) as error:  # RuntimeError: an unknown home folder
            said = " ".join(str(error).split()).rstrip(".")
            raise InvalidInputError(f"source: {shown(text)} cannot be opened: {said:.200}") from error
    pieces = _with_typed_keys(pieces)
    listed = tuple(pieces)
    kind = "a Parquet file" if len(listed) == 1 else "Parquet files"
    return Source(kind, listed[0].columns, lambda: listed, len(listed), portable=True)


def _expanded(paths: Sequence[Any]) -> Iterator[str]:
    """Yield the paths; patterns are replaced by the matching files in order of their names."""
    for each in paths:
        text = os.fspath(each)
        if "://" in text or not glob.has_magic(text) or Path(text).expanduser().exists():
            yield text
            continue
        found = sorted(glob.glob(str(Path(text).expanduser()), recursive=True))
        if not found:
            raise InvalidInputError(f"source: there is no file that matches {shown(text)}")
        yield from found


def _found(files: Any, place: str, text: str) -> list[ParquetPiece]:
    from pyarrow import fs

    info = files.get_file_info(place)
    if info.type == fs.FileType.File:
        return [ParquetPiece(text, place, files)]
    if info.type == fs.FileType.NotFound:
        raise InvalidInputError(f"source: there is no file or folder {shown(text)}")
    inside = [each for each in files.get_file_info(fs.FileSelector(place, recursive=True)) if each.is_file]
    named = sorted(each.path for each in inside if each.path.endswith(PARQUET))
    # Names that begin with a dot or an underscore are not data.
    named = [path for path in named if not Path(path).name.startswith((".", "_"))]
    if not named:
        raise InvalidInputError(f"source: there is no Parquet file ({', '.join(PARQUET)}) in the folder {shown(text)}")
    base = files.normalize_path(place).rstrip("/")
    return [ParquetPiece(path, path, files, None, _folder_keys(path.removeprefix(base))) for path in named]


def _folder_keys(relative: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for part in relative.split("/")[:-1]:
        name, equals, value = part.partition("=")
        if equals and name:
            found[unquote(name)] = None if value == _NO_VALUE else unquote(value)
    return found


def _with_typed_keys(pieces: list[ParquetPiece]) -> list[ParquetPiece]:
    """Convert keys that are whole numbers in every folder to numbers."""
    whole: dict[str, bool] = {}
    for piece in pieces:
        for name, value in piece.keys.items():
            is_whole = value is None or (value.removeprefix("-").isdecimal() and str(int(value)) == value)
            whole[name] = whole.get(name, True) and is_whole
    return [
        replace(
            piece,
            keys={
                name: int(value) if value is not None and whole[name] else value for name, value in piece.keys.items()
            },
        )
        for piece in pieces
    ]


# ---------------------------------------------------------------- datasets of pyarrow


@dataclass(frozen=True, eq=False)
class ScannedPiece:
    """A piece that pyarrow scans: other formats, and datasets with a filter."""

    name: str
    scanned: Any
    schema: Any
    physical: Any

    @property
    def columns(self) -> tuple[str, ...]:
        return check_named(_schema_names(self.physical), self.name)

    def families(self) -> dict[str, str | None] | None:
        return {name: arrow_family(self.physical.field(name).type) for name in self.columns}

    def batches(self, names: Sequence[str], most: int) -> Iterator[Batch]:
        options: dict[str, Any] = {"columns": list(names), "batch_size": most, "use_threads": False}
        if self.schema is not None:
            options["schema"] = self.schema
        with _Naming(self.name):
            for part in self.scanned.to_batches(batch_readahead=1, fragment_readahead=1, **options):
                for start in range(0, part.num_rows, most):
                    yield arrow_batch(part.slice(start, most))


def dataset_source(dataset: Any) -> Source:
    """Return the source of a pyarrow dataset, whose fragments are the pieces."""
    schema = dataset.schema
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # filtered: read by the dataset as a whole
        whole = ScannedPiece("the dataset", dataset, None, schema)
        return Source("a dataset of pyarrow", whole.columns, lambda: (whole,), 1, portable=True)
    if not fragments:
        raise InvalidInputError("source: the dataset of pyarrow has no fragments")
    pieces = tuple(_fragment(fragment, schema, place) for place, fragment in enumerate(fragments))
    columns = check_named(_schema_names(schema), "the dataset")
    return Source("a dataset of pyarrow", columns, lambda: pieces, len(pieces), portable=True)


def _fragment(fragment: Any, schema: Any, place: int) -> Any:
    import pyarrow.dataset as ds

    path = getattr(fragment, "path", None)
    if path is not None and hasattr(type(fragment), "row_groups"):  # the fragment itself would open the file
        keys = ds.get_partition_keys(fragment.partition_expression)
        return ParquetPiece(path, path, fragment.filesystem, fragment, keys)
    return ScannedPiece(path or f"fragment {place}", fragment, schema, schema)


# ---------------------------------------------------------------- collections of dask, relations of DuckDB


@dataclass(frozen=True, eq=False)
class DelayedPiece:
    """A partition that its reader computes: ``with_parts(*values of parts)`` is the piece.

    Attributes
    ----------
    parts : tuple of Delayed
        One per collection, the table first; or a single one whose value is a tuple of all.
    beside : tuple of str
        Names in `BESIDE` of the other collections.
    """

    name: str
    parts: tuple[Any, ...]
    beside: tuple[str, ...] = ()

    def with_parts(self, *values: Any) -> FramePiece:
        """Return the piece from the values of its parts."""
        frame, *more = values[0] if isinstance(values[0], tuple) else values
        return FramePiece(self.name, frame, dict(zip(self.beside, more, strict=True)))


def dask_source(X: Any, y: Any = None, sample_weight: Any = None) -> Source:
    """Return the source of a dask DataFrame or array, optionally with target and weights as dask collections.

    Partitions are computed one by one, in both passes: call ``persist()`` first if that is expensive.
    """
    is_array = _is_array(X)
    if is_array:
        if X.ndim != 2:
            raise InvalidInputError(f"X must be two-dimensional, got a dask array of {X.ndim} dimension(s)")
        names = tuple(f"x{j}" for j in range(X.shape[1]))
    elif hasattr(X, "columns"):
        names = check_named(list(X.columns), "X")
    else:
        raise InvalidInputError(f"X must be a dask DataFrame or array, got {shown(X)}")
    given = {TARGET: _one_column(y, "y"), WEIGHT: _one_column(sample_weight, "sample_weight")}
    more = {name: collection for name, collection in given.items() if collection is not None}
    pieces = tuple(
        DelayedPiece(f"partition {place}", parts, tuple(more)) for place, parts in enumerate(_partitions(X, more))
    )
    return Source(
        "a dask array" if is_array else "a dask DataFrame",
        (*names, *more),
        lambda: pieces,
        len(pieces),
        portable=True,
        named=not is_array,
        target=TARGET if TARGET in more else None,
        weight=WEIGHT if WEIGHT in more else None,
    )


def _is_array(collection: Any) -> bool:
    return hasattr(collection, "chunks") and hasattr(collection, "rechunk")


def _one_column(values: Any, argument: str) -> Any:
    if values is None:
        return None
    flat = is_dask(values) and (getattr(values, "ndim", 0) == 1 or getattr(values, "shape", ())[1:] == (1,))
    if not flat or not (_is_array(values) or hasattr(values, "map_partitions")):
        raise InvalidInputError(
            f"{argument} must be the name of a column, or a dask Series or array as X is of dask, got {shown(values)}"
        )
    return values


def _partitions(X: Any, more: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return the parts of X and of the other collections, with the same rows in each.

    Frames are joined before the graph is optimised: dask fuses small reads depending on the columns, so two collections
    of one frame would get different partitions if each were optimised alone. Fusing is disabled here, because dask
    would fuse the reads of two `read_parquet` differently even within one expression.
    """
    collections, names = [X, *more.values()], [ARGUMENTS[name] for name in more]
    if not any(map(_is_array, collections)) and len({each.npartitions for each in collections}) == 1:
        return [(part,) for part in _joined(X, *more.values()).to_delayed(optimize_graph=False)]
    parts = [_parts(each) for each in collections]
    sizes = [_sizes(each) for each in collections]
    known = {size for size in sizes if size is not None}
    if len({len(each) for each in parts}) > 1 or len(known) > 1:
        parts = _cut_alike(parts, sizes, ["X", *names])
    return list(zip(*parts, strict=True))


def _joined(X: Any, *more: Any) -> Any:
    """Return a collection whose partitions are tuples of partitions of the frames; reads only columns in use."""
    options = {"meta": X._meta, "enforce_metadata": False, "align_dataframes": False}
    return X.map_partitions(_tuple, *more, **options).simplify()


def _tuple(*parts: Any) -> tuple[Any, ...]:
    return parts


def _parts(collection: Any) -> list[Any]:
    if not _is_array(collection):
        return list(collection.simplify().to_delayed(optimize_graph=False))  # no fusing of reads, see `_partitions`
    whole = collection.rechunk({1: -1}) if collection.ndim > 1 and collection.numblocks[1] > 1 else collection
    return list(whole.to_delayed().ravel())


def _sizes(collection: Any) -> tuple[int, ...] | None:
    """Return the number of rows of each part; None if unknown to dask."""
    sizes: tuple[float, ...] = collection.chunks[0] if _is_array(collection) else (np.nan,)
    return None if np.isnan(sizes).any() else tuple(map(int, sizes))


def _cut_alike(
    parts: Sequence[list[Any]], sizes: Sequence[tuple[int, ...] | None], names: Sequence[str]
) -> list[list[Any]]:
    """Return the parts of collections, divided as those of the first; rows are counted if unknown to dask.

    Parameters
    ----------
    parts : sequence of lists of Delayed
        By collection.
    sizes : sequence
        See `_sizes`.
    names : sequence of str
        Names of the collections in errors.
    """
    import dask

    counted = [
        dask.delayed([dask.delayed(len)(part) for part in some]) if known is None else known
        for some, known in zip(parts, sizes, strict=True)
    ]
    first, *others = (np.cumsum([0, *lengths]) for lengths in dask.compute(*counted))
    found = [parts[0]]
    for name, some, ends in zip(names[1:], parts[1:], others, strict=True):
        if ends[-1] != first[-1]:
            raise InvalidInputError(f"{name} has {ends[-1]} rows, but {names[0]} has {first[-1]}")
        cut = []
        for start, stop in pairwise(first.tolist()):
            inside = range(np.searchsorted(ends, start, "right") - 1, np.searchsorted(ends, stop, "left"))
            within = [(max(start, ends[k]) - ends[k], min(stop, ends[k + 1]) - ends[k]) for k in inside]
            cut.append(dask.delayed(_slices)([some[k] for k in inside], within))
        found.append(cut)
    return found


def _slices(parts: Sequence[Any], within: Sequence[tuple[int, int]]) -> Any:
    """Concatenate some rows of each part."""
    cut = [np.asarray(part)[start:stop] for part, (start, stop) in zip(parts, within, strict=True)]
    return np.concatenate(cut) if cut else np.empty(0)


def duckdb_source(relation: Any, batch_rows: int) -> Source:
    """Return the source of a DuckDB relation, which is executed once per pass and read in batches."""
    try:
        import pyarrow as pa
    except ImportError:
        raise InvalidInputError(
            "source: DuckDB hands over its rows through pyarrow, which is not installed: pip install pyarrow"
        ) from None

    def pieces() -> Iterator[FramePiece]:
        with _computing():
            reader = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_record_batch
            for place, batch in enumerate(reader(batch_rows)):
                yield FramePiece(f"batch {place}", pa.Table.from_batches([batch]))

    with _computing():
        columns = check_named(list(relation.columns), "source")
    return Source("a relation of DuckDB", columns, pieces, None)


@contextmanager
def _computing() -> Iterator[None]:
    """Convert errors of DuckDB to InvalidInputError."""
    # Installed, since there is a relation.
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        said = " ".join(str(error).split())
        raise InvalidInputError(f"source: DuckDB cannot compute the relation: {said:.200}") from error


# ---------------------------------------------------------------- what each column is for


@dataclass(frozen=True)
class Roles:
    """Names of columns by role: target, features, groups and weights."""

    target: str
    features: tuple[str, ...]
    groups: tuple[str, ...]
    weight: str | None

    @classmethod
    def of(cls, source: Source, target: Any, features: Any, sensitive: Any, sample_weight: Any) -> Roles:
        """Check the arguments of `gather`."""
        if target is None and source.target is None:
            raise InvalidInputError(f"target must be the name of a column of {source.kind}, got None")
        goal = source.target or _column(source, target, "target")
        weight = source.weight
        if weight is None and sample_weight is not None:
            weight = _column(source, sample_weight, "sample_weight")
        if weight == goal:
            raise InvalidInputError(f"sample_weight and target are the same column, {shown(weight)}")
        chosen = (
            tuple(name for name in source.columns if name not in (goal, weight))
            if features is None
            else _named_columns(source, features, "features")
        )
        for name, called in ((goal, "target"), (weight, "sample_weight")):
            if name in chosen:
                raise InvalidInputError(f"features must not hold the column of {called}, {shown(name)}")
        if not chosen:
            raise InvalidInputError(f"features: {source.kind} has no column to split on")
        named = [sensitive] if isinstance(sensitive, str) else sensitive
        listed = () if named is None else _named_columns(source, named, "sensitive_features")
        if goal in listed:
            raise InvalidInputError(f"sensitive_features must not hold the target, {shown(goal)}")
        return cls(goal, chosen, listed, weight)


def _named_columns(source: Source, names: Any, argument: str) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidInputError(f"{argument} must be a list of names of columns, got {shown(names)}")
    found = tuple(_column(source, name, argument) for name in names)
    twice = next((name for place, name in enumerate(found) if name in found[:place]), None)
    if twice is not None:
        raise InvalidInputError(f"{argument} names the column {shown(twice)} twice")
    return found


def _column(source: Source, name: Any, argument: str) -> str:
    if not isinstance(name, str):
        raise InvalidInputError(f"{argument} must be the name of a column, got {shown(name)}")
    if name not in source.columns or name in BESIDE:
        known = [column for column in source.columns if column not in BESIDE]
        near = did_you_mean(name, known) or f"; it has {shown(known)}"
        raise InvalidInputError(f"{argument}: {source.kind} has no column {shown(name)}{near}")
    return name


# ---------------------------------------------------------------- what a user passed


def source_of(source: Any, y: Any = None, sample_weight: Any = None, *, batch_rows: int) -> Source:
    """Return the source of the input; `y` and `sample_weight` are names of columns or dask collections."""
    if isinstance(source, Source):
        return source
    given = {"target": y, "sample_weight": sample_weight}
    beside = {name: None if isinstance(values, str) else values for name, values in given.items()}
    if is_dask(source):
        return dask_source(source, *beside.values())
    for name, values in beside.items():
        if values is not None:
            raise InvalidInputError(f"{name} must be the name of a column, unless source is a collection of dask")
    if is_dataset(source):
        return dataset_source(source)
    if is_relation(source):
        return duckdb_source(source, batch_rows)
    if isinstance(source, list | tuple) and source:
        paths = [isinstance(each, str | os.PathLike) for each in source]
        if any(paths) and not all(paths):
            raise InvalidInputError("source must be a list of paths or a list of data frames, not of both")
        return parquet_source(source) if paths[0] else frames_source(source)
    if is_table_file(source):
        table = FramePiece(str(source), read_table(source))
        return Source(f"the file {source}", table.columns, lambda: (table,), 1)
    if isinstance(source, str | os.PathLike):
        return parquet_source(source)
    if is_frame(source):
        return frames_source([source])
    if callable(source):
        return frames_source(source)
    raise InvalidInputError(
        "source must be a dask DataFrame or array, a path, a dataset of pyarrow, a relation of DuckDB, a data frame, a "
        f"list of data frames or a function that gives them, got {shown(source)}"
    )
