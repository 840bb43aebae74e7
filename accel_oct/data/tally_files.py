"""Files of tallies: a zip of arrays, as NumPy's ``npz``, with a JSON schema. The content is never executed.

Members: ``schema.json``, then ``counts_0.npy``, ``counts_1.npy``, ... in the narrowest type that holds them. The schema
determines the size of each member. It is compared with the size in the zip before memory is allocated, and no more than
that is unpacked.
"""

from __future__ import annotations

import json
import math
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import pairwise
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.column_sets import n_sets
from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.arrays import IntArray
from accel_oct.support.files import as_path, replacing

DEPTHS = 64
"""Exclusive limit on the depth of a tally."""

_FORMAT, _VERSION = "accel_oct tally", 1
_SCHEMA = "schema.json"
_MOST_SCHEMA_BYTES = 2**26
_MOST_HEADER_BYTES = 256
_MOST_UNIT = 600
_MADE = (1980, 1, 1, 0, 0, 0)
"""Fixed date of every member, so that equal tallies give equal files."""

#: Types by their name in the header of an array, the narrowest first.
_TYPES = {name: np.dtype(name.decode()) for name in (b"|u1", b"<u2", b"<u4", b"<i8")}
#: The header of an array of two dimensions, as `np.lib.format.write_array` writes it.
_HEADER = re.compile(
    rb"\{'descr': '(?P<type>[<|][a-z][0-9])', 'fortran_order': (?P<by_columns>True|False), "
    rb"'shape': \((?P<rows>[0-9]{1,18}), (?P<columns>[0-9]{1,18})\), \} *\n"
)
_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str"}
_READ = {"bool": (bool,), "int": (int,), "float": (float, int), "str": (str,)}


# ---------------------------------------------------------------- writing


def write_fields(path: Any, fields: Mapping[str, Any]) -> None:
    """Write the fields of a tally; an existing file is replaced atomically."""
    schema = {"format": _FORMAT, "version": _VERSION}
    schema |= {name: value for name, value in fields.items() if name != "counts"}
    for name in ("classes", "group_labels"):
        schema[name] = _labels_out(fields[name], name)
    text = json.dumps(schema, ensure_ascii=False, allow_nan=False).encode()
    with replacing(path, binary=True) as file, zipfile.ZipFile(file, "w") as packed:
        packed.writestr(_member(_SCHEMA), text, compresslevel=1)
        for size, counts in enumerate(fields["counts"]):
            largest = int(counts.max(initial=0))
            narrow = next(kind for kind in _TYPES.values() if largest <= np.iinfo(kind).max)
            array = BytesIO()
            np.lib.format.write_array(array, counts.astype(narrow), version=(1, 0), allow_pickle=False)
            packed.writestr(_member(f"counts_{size}.npy"), array.getbuffer(), compresslevel=1)


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _MADE)
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


def _labels_out(labels: NDArray[Any], name: str) -> dict[str, Any] | None:
    """Return labels for the schema; None if there are no groups."""
    if labels.tolist() == [None]:
        return None
    kind = _KINDS.get(labels.dtype.kind)
    if kind is None:
        raise InvalidInputError(
            f"a tally whose {name} are {labels.dtype} cannot be saved: only strings, numbers and bools can"
        )
    return {"type": kind, "values": labels.tolist()}


# ---------------------------------------------------------------- reading


def read_fields(path: Any, max_bytes: int) -> dict[str, Any]:
    """Read and check the fields of a tally.

    Raises
    ------
    InvalidInputError
        If the file is invalid; the message says why.
    """
    target = as_path(path)
    try:
        # Checked before it is opened: opening a pipe waits for a writer.
        if not stat.S_ISREG(target.stat().st_mode):
            raise _Broken("it is not a regular file")
        with target.open("rb") as file, zipfile.ZipFile(file) as packed:
            return _read(packed, max_bytes)
    except OSError as error:
        raise InvalidInputError(f"cannot read the tally {target}: {error.strerror or error}") from None
    except _Broken as error:
        raise InvalidInputError(f"cannot read the tally {target}: {error}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        # Errors of zipfile for damaged, encrypted and unsupported files.
        raise InvalidInputError(f"cannot read the tally {target}: it is damaged or not a tally ({error})") from None


class _Broken(Exception):
    """The file is not a valid tally."""


def _read(packed: zipfile.ZipFile, max_bytes: int) -> dict[str, Any]:
    members = packed.infolist()
    names = [member.filename for member in members]
    if _SCHEMA not in names:
        raise _Broken("it has no schema")
    if packed.getinfo(_SCHEMA).file_size > _MOST_SCHEMA_BYTES:
        raise _Broken("its schema is too large")
    fields = _fields(_unpacked(packed, _SCHEMA, packed.getinfo(_SCHEMA).file_size))
    depth, n_features = fields["depth"], len(fields["feature_names"])
    expected = [_SCHEMA, *(f"counts_{size}.npy" for size in range(min(depth, len(names)) + 1))]
    if sorted(names) != sorted(expected):
        raise _Broken(f"it should hold counts of sets of up to {depth} columns and nothing else")
    n_cells = len(fields["classes"]) * len(fields["group_labels"])
    needed = 8 * n_cells * n_sets(n_features, depth)
    if needed > max_bytes:
        raise _Broken(f"its counts would take {needed} bytes, more than the {max_bytes} that are allowed")
    fields["counts"] = tuple(
        _counts(packed, f"counts_{size}.npy", (n_cells, math.comb(n_features, size))) for size in range(depth + 1)
    )
    _check_counts(fields["counts"], n_features)
    return fields


def _unpacked(packed: zipfile.ZipFile, name: str, size: int) -> bytes:
    with packed.open(name) as member:
        content = member.read(size)
        if len(content) != size or member.read(1):
            raise _Broken(f"{name} is not as long as it claims")
    return content


def _counts(packed: zipfile.ZipFile, name: str, shape: tuple[int, int]) -> IntArray:
    claimed = packed.getinfo(name).file_size
    amount = math.prod(shape)
    if not any(0 < claimed - amount * kind.itemsize <= _MOST_HEADER_BYTES for kind in _TYPES.values()):
        raise _Broken(f"{name} has {claimed} bytes, which do not fit the {shape[0]} x {shape[1]} counts of the schema")
    with packed.open(name) as member:
        kind, header = _header(member, name, shape)
        if claimed != header + amount * kind.itemsize:
            raise _Broken(f"{name} is not as long as it claims")
        content = member.read(amount * kind.itemsize)
        if len(content) != amount * kind.itemsize or member.read(1):
            raise _Broken(f"{name} is not as long as it claims")
    return np.frombuffer(content, dtype=kind).reshape(shape).astype(np.int64)


def _header(member: IO[bytes], name: str, shape: tuple[int, int]) -> tuple[np.dtype[Any], int]:
    """Return the type and the header length of an array, which must have this shape."""
    start = member.read(10)
    if start[:8] != b"\x93NUMPY\x01\x00" or len(start) != 10:
        raise _Broken(f"{name} is not an array")
    size = int.from_bytes(start[8:], "little")
    if size > _MOST_HEADER_BYTES:
        raise _Broken(f"{name} is not an array of counts")
    # Matched by a pattern: the parser of NumPy raises SyntaxError, TokenError, TypeError and others.
    found = _HEADER.fullmatch(member.read(size))
    kind = _TYPES.get(found["type"]) if found else None
    if found is None or kind is None or (int(found["rows"]), int(found["columns"])) != shape:
        raise _Broken(f"{name} is not an array of {shape[0]} x {shape[1]} counts")
    if found["by_columns"] == b"True" and min(shape) > 1:
        raise _Broken(f"the counts of {name} are stored by columns")
    return kind, 10 + size


def _fields(content: bytes) -> dict[str, Any]:
    """Return all fields except the counts from the schema."""
    try:
        schema = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise _Broken("its schema is not JSON") from None
    if not isinstance(schema, dict) or schema.get("format") != _FORMAT:
        raise _Broken("it is not a tally")
    if schema.get("version") != _VERSION:
        raise _Broken(f"it has version {shown(schema.get('version'))}, but this release reads version {_VERSION}")
    fields = {name: schema.get(name) for name in ("depth", "unit", "n_rows", "encoding", "group_name")}
    for name, least, most in (("depth", 0, DEPTHS), ("unit", -_MOST_UNIT, _MOST_UNIT), ("n_rows", 0, 2**63)):
        value = fields[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < most:
            raise _Broken(f"its {name} is {shown(value)}")
    for name in ("encoding", "group_name"):
        if not (fields[name] is None or isinstance(fields[name], str)):
            raise _Broken(f"its {name} is {shown(fields[name])}")
    names: Any = schema.get("feature_names")
    if not _all_of(names, (str,)) or len(set(names)) != len(names):
        raise _Broken("its feature_names are not distinct strings")
    fields["feature_names"] = tuple(names)
    sources: Any = schema.get("sources")
    columns: Any = schema.get("columns", [])
    if not (sources is None or (_all_of(sources, (str,)) and len(sources) == len(names))) or not _all_of(
        columns, (str,)
    ):
        raise _Broken("its sources and columns are not strings, a source for every feature")
    fields["sources"], fields["columns"] = None if sources is None else tuple(sources), tuple(columns)
    fields["classes"] = _labels_in(schema.get("classes"), "classes")
    groups = schema.get("group_labels")
    fields["group_labels"] = np.array([None]) if groups is None else _labels_in(groups, "group_labels")
    return fields


def _all_of(values: Any, types: Sequence[type]) -> bool:
    return isinstance(values, list) and all(type(value) in types for value in values)


def _labels_in(stored: Any, name: str) -> NDArray[Any]:
    kind = stored.get("type") if isinstance(stored, dict) else None
    values = stored.get("values") if isinstance(stored, dict) else None
    if not isinstance(kind, str) or kind not in _READ or not _all_of(values, _READ[kind]) or not values:
        raise _Broken(f"its {name} are not labels of one type")
    try:
        labels = np.array(values, dtype=_label_type(kind, values))
    except OverflowError:
        raise _Broken(f"its {name} are too large") from None
    if labels.dtype.kind not in _KINDS or _KINDS[labels.dtype.kind] != kind or labels.tolist() != values:
        raise _Broken(f"its {name} are not labels of one type")
    if any(not first < second for first, second in pairwise(values)):
        raise _Broken(f"its {name} are not sorted and distinct")
    return labels


def _label_type(kind: str, values: list[Any]) -> Any:
    """Return the dtype of labels; NumPy would convert a list of small and large whole numbers to floats."""
    if kind == "int":
        return np.uint64 if max(values) >= 2**63 else np.int64
    return np.float64 if kind == "float" else None


def _check_counts(counts: tuple[IntArray, ...], n_features: int) -> None:
    """Raise if no samples can have these counts; checks only what one pass can find."""
    if any((part < 0).any() for part in counts) or sum(map(int, counts[0][:, 0])) >= 2**62:
        raise _Broken("its counts are negative or too large")
    for size in range(1, len(counts)):
        for largest in range(size - 1, n_features):
            # Sets with the same largest column are adjacent, ordered by their other columns.
            here = counts[size][:, math.comb(largest, size) : math.comb(largest + 1, size)]
            without = counts[size - 1][:, : math.comb(largest, size - 1)]
            if (here > without).any() or (size > 1 and (here > counts[1][:, largest, None]).any()):
                raise _Broken("its counts contradict each other: more samples have a set of columns than a part of it")
    if len(counts) > 2:
        first, second = np.tril_indices(n_features, -1)
        neither = counts[0] - counts[1][:, first] - counts[1][:, second] + counts[2]
        if (neither < 0).any():
            raise _Broken("its counts contradict each other: fewer samples have two columns than must have")
