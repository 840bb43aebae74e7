"""Suites: files of TOML that say which methods run on which instances. docs/bench.md has the keys."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.mip import registered_names
from accel_oct.solving.config import PRESETS, Config
from accel_oct.solving.parsing import constraint
from accel_oct.support.files import read_text
from accel_oct_bench.instances import PAPER_PENALTIES
from accel_oct_bench.rows import Method
from accel_oct_bench.solving_one import FRONTIER

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["EVERY", "Grid", "Suite", "load_suite", "suite_names", "suite_of"]

_MOST_BYTES = 1 << 20
_LARGEST = sys.float_info.max
_SUFFIX = ".toml"
_SUITE_KEYS = (
    "description", "time_limit", "memory_limit_mb", "threads", "seed", "instances", "methods",
)  # fmt: skip
_GRID_KEYS = ("data", "max_depth", "leaf_penalty", "constraints", "methods", "missing")
_METHOD_KEYS = (
    "name", "package", "backend", "preset", "config", "threads", "seed", "time_limit", "memory_limit_mb",
)  # fmt: skip
#: Instead of a list of names: everything of a kind that the folder has.
EVERY = ("encoded", "fairness")


@dataclass(frozen=True)
class Grid:
    """Instances: every data set with every depth, penalty and set of constraints.

    Attributes
    ----------
    data : tuple of str
        Names, or one word of `EVERY`.
    constraints : tuple of tuples of str
        One tuple per instance; the empty one is an instance without constraints.
    methods : tuple of str
        Which of the suite's methods run on them.
    skip_missing : bool
        Leave out data that are not there; else they are an error.
    """

    data: tuple[str, ...]
    max_depth: tuple[int, ...]
    leaf_penalty: tuple[float, ...]
    constraints: tuple[tuple[str, ...], ...]
    methods: tuple[str, ...]
    skip_missing: bool


@dataclass(frozen=True)
class Suite:
    """Methods on instances.

    Attributes
    ----------
    methods : tuple of Method
        Several with one name where the file lists several backends, threads or seeds.
    """

    name: str
    description: str
    grids: tuple[Grid, ...]
    methods: tuple[Method, ...]


def suite_names() -> list[str]:
    """The suites that come with the library."""
    folder = resources.files("accel_oct_bench") / "suites"
    return sorted(file.name.removesuffix(_SUFFIX) for file in folder.iterdir() if file.name.endswith(_SUFFIX))


def load_suite(name: Any) -> Suite:
    """A suite that comes with the library by its name, or any other by the path of its file.

    Raises
    ------
    InvalidInputError
        When there is none, with close matches; or naming the key that cannot be used.
    """
    text = str(name)
    known = suite_names()
    if text in known:
        file = resources.files("accel_oct_bench") / "suites" / f"{text}{_SUFFIX}"
        return suite_of(file.read_text(encoding="utf-8"), text)
    path = Path(text)
    if path.suffix == _SUFFIX or path.exists():
        return suite_of(read_text(path, _MOST_BYTES, "suite file"), path.stem)
    raise InvalidInputError(f"there is no suite {shown(text)}{_near(text, known)}")


def suite_of(text: str, name: str) -> Suite:
    """A suite from the text of its file."""
    where = f"suite {name!r}"
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{where} is not valid TOML: {error}") from None
    _check_keys(values, _SUITE_KEYS, where)
    for key in ("instances", "methods"):
        found = values.get(key)
        if not isinstance(found, list) or not found or not all(isinstance(entry, Mapping) for entry in found):
            raise InvalidInputError(f"{where} must have tables [[{key}]]")
    methods = [method for entry in values["methods"] for method in _methods(entry, values, where)]
    names = list(dict.fromkeys(method.name for method in methods))
    grids = tuple(
        _grid(entry, names, f"{where}, instances {n}") for n, entry in enumerate(values["instances"], start=1)
    )
    return Suite(name, _text(values.get("description", ""), f"{where}: description"), grids, tuple(methods))


def _grid(values: Mapping[str, Any], names: Sequence[str], where: str) -> Grid:
    _check_keys(values, _GRID_KEYS, where)
    for key in ("data", "max_depth", "leaf_penalty"):
        if key not in values:
            raise InvalidInputError(f"{where} has no key {key!r}")
    data = tuple(_text(name, f"{where}: data") for name in _listed(values["data"]))
    penalties = PAPER_PENALTIES if values["leaf_penalty"] == "paper" else _listed(values["leaf_penalty"])
    sets = values.get("constraints", [[]])
    if not isinstance(sets, list) or not all(isinstance(entry, list) for entry in sets):
        raise InvalidInputError(f"{where}: constraints must be a list of lists, one per instance, got {shown(sets)}")
    for text in (text for entry in sets for text in entry):
        constraint(_text(text, f"{where}: constraints"))
    chosen = tuple(_text(name, f"{where}: methods") for name in _listed(values.get("methods", list(names))))
    for name in chosen:
        if name not in names:
            raise InvalidInputError(f"{where}: methods: there is no method {shown(name)}{_near(name, names)}")
    missing = values.get("missing", "error")
    if missing not in ("error", "skip"):
        raise InvalidInputError(f"{where}: missing must be 'error' or 'skip', got {shown(missing)}")
    return Grid(
        data=data,
        max_depth=tuple(whole(depth, f"{where}: max_depth") for depth in _listed(values["max_depth"])),
        leaf_penalty=tuple(number(penalty, f"{where}: leaf_penalty") for penalty in penalties),
        constraints=tuple(tuple(entry) for entry in sets),
        methods=chosen,
        skip_missing=missing == "skip",
    )


def _methods(values: Mapping[str, Any], suite: Mapping[str, Any], where: str) -> Iterable[Method]:
    """One method per backend, number of threads and seed that the table lists."""
    _check_keys(values, _METHOD_KEYS, f"{where}, methods")
    if "name" not in values:
        raise InvalidInputError(f"{where}, methods: a method has no key 'name'")
    name = _text(values["name"], f"{where}, methods: name")
    where = f"{where}, method {name!r}"
    merged = {key: suite[key] for key in ("threads", "seed", "time_limit", "memory_limit_mb") if key in suite}
    merged |= dict(values)
    package = _text(merged.get("package", "accel_oct"), f"{where}: package")
    ours = package == "accel_oct"
    config = merged.get("config", {})
    if not isinstance(config, Mapping):
        raise InvalidInputError(f"{where}: config must be a table, got {shown(config)}")
    preset = checked_preset(merged.get("preset", "default"), config, where) if ours else None
    for backend in _listed(merged.get("backend", "highs")):
        for threads in _listed(merged.get("threads", 1)):
            for seed in _listed(merged.get("seed", 0)):
                yield Method(
                    name=name,
                    package=package,
                    backend=checked_backend(backend, where) if ours and preset != FRONTIER else None,
                    preset=preset,
                    config=dict(config),
                    threads=whole(threads, f"{where}: threads", 1),
                    seed=whole(seed, f"{where}: seed"),
                    time_limit=limit(merged.get("time_limit"), f"{where}: time_limit"),
                    memory_limit_mb=limit(merged.get("memory_limit_mb"), f"{where}: memory_limit_mb"),
                )


# ---------------------------------------------------------------- values


def checked_preset(name: Any, config: Mapping[str, Any], where: str) -> str:
    """A preset whose switches can be changed so."""
    if not isinstance(name, str) or name not in (*PRESETS, FRONTIER):
        near = _near(str(name), [*PRESETS, FRONTIER])
        raise InvalidInputError(f"{where}: there is no preset {shown(name)}{near}")
    if name == FRONTIER and config:
        raise InvalidInputError(f"{where}: config must be empty, for the frontier has no switches")
    if name != FRONTIER:
        try:
            Config.from_mapping(config, Config.preset(name))
        except InvalidInputError as error:
            raise InvalidInputError(f"{where}: {error}") from None
    return name


def checked_backend(name: Any, where: str) -> str:
    """A backend that is registered here, installed or not."""
    known = ["auto", *registered_names()]
    if not isinstance(name, str) or name.split(":")[0] not in known:
        raise InvalidInputError(f"{where}: there is no backend {shown(name)}{_near(str(name), known)}")
    return name


def whole(value: Any, where: str, least: int = 0) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInputError(f"{where} must be a whole number >= {least}, got {shown(value)}")
    return value


def number(value: Any, where: str) -> float:
    """A finite number that is not negative; whole numbers of TOML may be too large for a float."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST:
        raise InvalidInputError(f"{where} must be a number >= 0, got {shown(value)}")
    return float(value)


def limit(value: Any, where: str) -> float | None:
    """A positive number, or none."""
    if value is not None and number(value, where) == 0:
        raise InvalidInputError(f"{where} must be positive, got {shown(value)}")
    return None if value is None else float(value)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(f"{where} must be a text, got {shown(value)}")
    return value


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _check_keys(values: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in values:
        if key not in known:
            raise InvalidInputError(f"{where} has the unknown key {shown(key)}{_near(key, known)}")


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    return did_you_mean(name, names) or f"; known are {', '.join(names)}"
