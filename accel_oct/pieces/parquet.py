"""Parquet files, and datasets of pyarrow."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from accel_oct.errors import InvalidInputError, shown
from accel_oct.pieces.batches import Batch, arrow_batch, arrow_family, check_named
from accel_oct.pieces.columns import Coded
from accel_oct.pieces.recognising import PARQUET
from accel_oct.pieces.sources import Source

__all__ = ["dataset_source", "parquet_source"]

_BUFFER = 1 << 22
"""Bytes of a column that are read at a time, also where one row group is the whole file."""

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, eq=False)
class ParquetPiece:
    """A file, or some of its row groups.

    Attributes
    ----------
    fragment : ParquetFileFragment or None
        Says which row groups; None: all of them.
    keys : mapping from names to values
        What the folders of the file say of all of its rows: ``year=2024``.
    """

    name: str
    path: str
    files: Any
    fragment: Any = None
    keys: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        with self._opened() as file:
            return check_named([*_columns(file.schema_arrow), *self.keys], self.name)

    def families(self) -> dict[str, str | None] | None:
        with self._opened() as file:
            known = {name: arrow_family(file.schema_arrow.field(name).type) for name in _columns(file.schema_arrow)}
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
            # iter_batches decodes as it goes; a scanner of pyarrow.dataset would decode whole row groups.
            return pq.ParquetFile(self.files.open_input_file(self.path), buffer_size=_BUFFER, pre_buffer=False)

    def _reading(self) -> _Naming:
        return _Naming(self.name)


class _Naming:
    """Turns what Arrow says of a file that cannot be read into an error that names it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        import pyarrow as pa

        if isinstance(error, pa.ArrowException | OSError | EOFError):
            said = " ".join(str(error).split()).rstrip(".")
            raise InvalidInputError(f"{self.name} cannot be read as Parquet: {said:.200}") from error


def _columns(schema: Any) -> list[str]:
    """Without the index that pandas wrote beside the columns."""
    about = schema.pandas_metadata or {}
    index = {entry for entry in about.get("index_columns", ()) if isinstance(entry, str)}
    return [name for name in schema.names if name not in index or not name.startswith("__index_level_")]


def parquet_source(path: Any) -> Source:
    """A Parquet file, a folder of them (with those below it), a pattern as ``folder/*.parquet``, or a list of such.

    Files are local, or anything with a URI; patterns are for local ones.
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
        except (pa.ArrowException, OSError, RuntimeError) as error:  # the last: a home that is not known
            said = " ".join(str(error).split()).rstrip(".")
            raise InvalidInputError(f"source: {shown(text)} cannot be opened: {said:.200}") from error
    pieces = _with_typed_keys(pieces)
    listed = tuple(pieces)
    kind = "a Parquet file" if len(listed) == 1 else "Parquet files"
    return Source(kind, listed[0].columns, lambda: listed, len(listed), portable=True)


def _expanded(paths: Sequence[Any]) -> Iterator[str]:
    """The paths, patterns replaced by the files that they stand for, in order of their names."""
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
    # Files of other programs are left alone: what begins with a dot or an underline is not data.
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
    """Keys that are whole numbers in every folder are numbers."""
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
    """What pyarrow reads itself: other formats, and datasets with a filter."""

    name: str
    scanned: Any
    schema: Any
    physical: Any

    @property
    def columns(self) -> tuple[str, ...]:
        return check_named(_columns(self.physical), self.name)

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
    """A dataset of pyarrow: its fragments are the pieces."""
    schema = dataset.schema
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # filtered: only the dataset as a whole knows how to read itself
        whole = ScannedPiece("the dataset", dataset, None, schema)
        return Source("a dataset of pyarrow", whole.columns, lambda: (whole,), 1, portable=True)
    if not fragments:
        raise InvalidInputError("source: the dataset of pyarrow has no fragments")
    pieces = tuple(_fragment(fragment, schema, place) for place, fragment in enumerate(fragments))
    columns = check_named(_columns(schema), "the dataset")
    return Source("a dataset of pyarrow", columns, lambda: pieces, len(pieces), portable=True)


def _fragment(fragment: Any, schema: Any, place: int) -> Any:
    import pyarrow.dataset as ds

    path = getattr(fragment, "path", None)
    if path is not None and hasattr(type(fragment), "row_groups"):  # asking the fragment itself would open the file
        keys = ds.get_partition_keys(fragment.partition_expression)
        return ParquetPiece(path, path, fragment.filesystem, fragment, keys)
    return ScannedPiece(path or f"fragment {place}", fragment, schema, schema)
