"""Values of a run: the instance, the method, the task that combines them, and the row of results that it becomes.

docs/bench.md describes schema 1 of rows field by field. Rows of other schemas are errors.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError, shown

__all__ = [
    "FAILED",
    "SCHEMA",
    "STATUSES",
    "Instance",
    "Method",
    "Row",
    "Task",
    "finite",
    "packed_labels",
    "run_key",
    "run_label",
    "unpacked_labels",
]

SCHEMA = 1
#: "finished": ended by itself without a claim of proof, as CART does, or a peer with another objective.
STATUSES = ("optimal", "finished", "time_limit", "memory_limit", "interrupted", "infeasible", "error", "crashed")
#: Statuses that `--redo failed` runs again: they say little about the instance.
FAILED = ("memory_limit", "interrupted", "error", "crashed")

_KEY_DIGITS = 32


@dataclass(frozen=True)
class Instance:
    """A problem to solve.

    Attributes
    ----------
    data : str
        A name that `accel_oct_bench.data.Registry` knows.
    fingerprint : str
        See `accel_oct_bench.data.fingerprint`: the same name may denote other data on another machine.
    constraints : tuple of str
        Such as ``recall(1, at_least=0.9)``.
    """

    data: str
    fingerprint: str
    n_samples: int
    n_features: int
    n_classes: int
    max_depth: int
    leaf_penalty: float
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _as_floats(self, "leaf_penalty")


@dataclass(frozen=True)
class Method:
    """A solver with its settings.

    Attributes
    ----------
    name : str
        The name in reports.
    package : str
        "accel_oct", or the name of a peer.
    backend, preset : str or None
        None for peers.
    config : mapping
        Switches that differ from the preset, as `Config.from_mapping` takes them; parameters of a peer.
    time_limit : float or None
        Seconds.
    memory_limit_mb : float or None
        Of the whole process, in 2**20 bytes.
    """

    name: str
    package: str = "accel_oct"
    backend: str | None = "highs"
    preset: str | None = "default"
    config: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 1
    seed: int = 0
    time_limit: float | None = None
    memory_limit_mb: float | None = None

    def __post_init__(self) -> None:
        _as_floats(self, "time_limit", "memory_limit_mb")


@dataclass(frozen=True)
class Row:
    """One finished run.

    Attributes
    ----------
    key : str
        See `run_key`. Resuming a suite and finding duplicates compare keys.
    started : str
        UTC, as in ``2026-01-31T12:00:00Z``.
    status : str
        One of `STATUSES`; "optimal" and "infeasible" are claims of proof.
    objective, bound, gap, n_leaves, cpu_seconds, peak_mb, nodes
        None if there is no value: nothing was found, or the process ended early.
    wall_seconds : float
        Time of the solve, without start-up and warm-up.
    stats : mapping
        Per phase and component: seconds, cuts.
    tree : mapping or None
        `DecisionTree.to_dict`; labels are class indices in the sorted order of the labels.
    predictions : str or None
        Instead of a tree, see `packed_labels`.
    error : str or None
        One sentence.
    """

    key: str
    suite: str
    instance: Instance
    method: Method
    versions: Mapping[str, str]
    machine: Mapping[str, Any]
    started: str
    status: str
    wall_seconds: float
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None
    n_leaves: int | None = None
    cpu_seconds: float | None = None
    peak_mb: float | None = None
    nodes: int | None = None
    stats: Mapping[str, Any] = field(default_factory=dict)
    tree: Mapping[str, list[int]] | None = None
    predictions: str | None = None
    error: str | None = None
    schema: int = SCHEMA

    def to_json(self) -> str:
        """Return the row as one line of JSON, without the line break."""
        return json.dumps(finite({"schema": self.schema, **asdict(self)}), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes, where: str) -> Row:
        """Read and check one line; `where` is its place, for errors.

        Raises
        ------
        InvalidInputError
            For rows of another schema, and for the first field that is missing, unknown or of a wrong type.
        """
        try:
            values = json.loads(text if isinstance(text, str) else text.decode("utf-8"))
        except UnicodeDecodeError:
            raise InvalidInputError(f"{where} is not a row of results: it is not text") from None
        except (ValueError, RecursionError):
            raise InvalidInputError(f"{where} is not a row of results: it is not JSON") from None
        _check_schema(values, where)
        try:
            row = _made(cls, values, where)
            key = run_key(row.instance, row.method)
        except RecursionError:
            raise InvalidInputError(f"{where} is not a row of results: it is nested too deeply") from None
        if row.status not in STATUSES:
            raise InvalidInputError(f"{where}: status must be one of {', '.join(STATUSES)}, got {shown(row.status)}")
        if row.key != key:
            raise InvalidInputError(f"{where}: key is not that of the instance and the method in the row")
        return row


@dataclass(frozen=True)
class Task:
    """A method to run on an instance; can be sent to another process.

    Attributes
    ----------
    data_dir : str or None
        The data folder.
    """

    suite: str
    instance: Instance
    method: Method
    data_dir: str | None = None

    @cached_property
    def key(self) -> str:
        """See `run_key`."""
        return run_key(self.instance, self.method)

    def to_json(self) -> str:
        """Return the task as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        """Read a line that `to_json` wrote."""
        values: dict[str, Any] = json.loads(text)
        instance = Instance(**{**values["instance"], "constraints": tuple(values["instance"]["constraints"])})
        return cls(values["suite"], instance, Method(**values["method"]), values["data_dir"])

    def row(self, **outcome: Any) -> Row:
        """Return the row of this task with the fields that its run decides."""
        return Row(key=self.key, suite=self.suite, instance=self.instance, method=self.method, **outcome)


def run_key(instance: Instance, method: Method) -> str:
    """Return the identity of a run: a hash of its data, depth, penalty, constraints and all settings of the method."""
    said = {"instance": asdict(instance), "method": asdict(method)}
    text = json.dumps(finite(said), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_DIGITS]


def run_label(instance: Instance, method: Method) -> str:
    """Return a description of a run for people."""
    limits = "".join(f", {text}" for text in instance.constraints)
    backend = f" on {method.backend}" if method.backend else ""
    where = f"{instance.data}, depth {instance.max_depth}, penalty {instance.leaf_penalty:g}{limits}"
    return f"{where}: {method.name}{backend}"


def packed_labels(labels: Any) -> str:
    """Return class indices as text: base64 of zlib of one byte per row."""
    array = np.asarray(labels)
    if array.ndim != 1 or (len(array) and not 0 <= array.min() <= array.max() < 256):
        raise InvalidInputError("labels must be class indices below 256, one per row")
    return base64.b64encode(zlib.compress(array.astype(np.uint8).tobytes())).decode("ascii")


def unpacked_labels(text: str, n_samples: int) -> NDArray[np.uint8]:
    """Return the labels that `packed_labels` packed; no more than one per sample is unpacked."""
    unpacker = zlib.decompressobj()
    try:
        labels = unpacker.decompress(base64.b64decode(text, validate=True), n_samples + 1)
    except (ValueError, zlib.error):
        raise InvalidInputError("predictions must be base64 of zlib of one byte per row") from None
    if len(labels) != n_samples or not unpacker.eof or unpacker.unused_data:
        raise InvalidInputError(f"predictions must be base64 of zlib of one byte for each of the {n_samples} samples")
    return np.frombuffer(labels, dtype=np.uint8)


def _as_floats(record: Any, *names: str) -> None:
    """Convert fields to floats: 60 and 60.0 are the same limit, and must have the same key."""
    for name in names:
        if getattr(record, name) is not None:
            object.__setattr__(record, name, float(getattr(record, name)))


def _check_schema(values: Any, where: str) -> None:
    if not isinstance(values, Mapping):
        raise InvalidInputError(f"{where} is not a row of results, but {shown(values)}")
    schema = values.get("schema")
    if schema is None and "method" in values:
        raise InvalidInputError(
            f"{where} was written by the benchmarks before schema {SCHEMA}, without trees and without what "
            "identifies the data; it cannot be converted: run the suite again"
        )
    if isinstance(schema, bool) or not isinstance(schema, int):
        raise InvalidInputError(f"{where} is not a row of results: it has no number of a schema")
    if schema != SCHEMA:
        whose = "a newer version of accel_oct" if schema > SCHEMA else "an older version of accel_oct"
        raise InvalidInputError(f"{where} has schema {shown(schema)}, of {whose}; this version reads schema {SCHEMA}")


def finite(value: Any) -> Any:
    """Return a value for JSON: infinity and NaN become None, values of NumPy those of Python."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return finite(value.tolist())
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return value if value is None or isinstance(value, str | int) else str(value)


Made = TypeVar("Made", Instance, Method, Row)


def _made(kind: type[Made], values: Any, where: str) -> Made:
    """Return a dataclass made from a mapping that has all of its fields and no others."""
    if not isinstance(values, Mapping):
        raise InvalidInputError(f"{where} must be a table, got {shown(values)}")
    hints = get_type_hints(kind)
    names = [entry.name for entry in fields(kind)]
    for name in values:
        if name not in names:
            raise InvalidInputError(f"{where} has the unknown field {shown(name)}")
    missing = [name for name in names if name not in values]
    if missing:
        raise InvalidInputError(f"{where} has no field {missing[0]!r}")
    return kind(**{name: _taken(hints[name], values[name], f"{where}: {name}") for name in names})


def _taken(declared: Any, value: Any, where: str) -> Any:
    """Check a value against the declared type of its field."""
    if isinstance(declared, UnionType):
        choices = get_args(declared)
        if value is None and type(None) in choices:
            return None
        (declared,) = (choice for choice in choices if choice is not type(None))
    if declared in (Instance, Method):
        return _made(declared, value, where)
    kind = get_origin(declared) or declared
    if kind is tuple:
        if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
            return tuple(value)
        raise InvalidInputError(f"{where} must be a list of texts, got {shown(value)}")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 2**1000 else math.inf
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InvalidInputError(f"{where} must be {_WORDS.get(kind, 'a table')}, got {shown(value)}")
    if kind is float and not math.isfinite(value):  # NaN would pass every comparison of `verify`
        raise InvalidInputError(f"{where} must be a finite number, got {shown(value)}")
    return value


_WORDS = {str: "a text", int: "a whole number", float: "a number"}
