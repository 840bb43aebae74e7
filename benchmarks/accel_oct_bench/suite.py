"""Suites: TOML files that list instances and methods (docs/bench.md has the keys), and the runs that they ask for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.mip import registered_names
from accel_oct.solving.config import PRESETS, Config
from accel_oct.solving.parsing import constraint
from accel_oct.support.files import read_text
from accel_oct_bench.data import DATA_VARIABLE, Registry, instance_of
from accel_oct_bench.rows import Instance, Method, Task
from accel_oct_bench.solving import FRONTIER, constraints_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Choice", "Grid", "Plan", "Suite", "load_suite", "planned", "suite_names", "suite_of", "whole"]

#: The 15 leaf penalties of the paper's experiments.
PAPER_PENALTIES = (
    0.08, 0.06, 0.04, 0.02, 0.01, 0.008, 0.006, 0.004, 0.002, 0.001, 0.0008, 0.0006, 0.0004, 0.0002, 0.0001,
)  # fmt: skip
#: Instead of a list of names: all data sets of a kind in the folder.
EVERY = ("encoded", "fairness")

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


@dataclass(frozen=True)
class Grid:
    """Instances: all combinations of data sets, depths, penalties and sets of constraints.

    Attributes
    ----------
    data : tuple of str
        Names, or one of `EVERY`.
    constraints : tuple of tuples of str
        One tuple per instance; the empty one is an instance without constraints.
    methods : tuple of str
        The methods of the suite that run on them.
    skip_missing : bool
        Whether missing data are left out; otherwise they are an error.
    """

    data: tuple[str, ...]
    max_depth: tuple[int, ...]
    leaf_penalty: tuple[float, ...]
    constraints: tuple[tuple[str, ...], ...]
    methods: tuple[str, ...]
    skip_missing: bool


@dataclass(frozen=True)
class Suite:
    """Instances, and methods to run on them.

    Attributes
    ----------
    methods : tuple of Method
        Several have the same name if the file lists several backends, threads or seeds.
    """

    name: str
    description: str
    grids: tuple[Grid, ...]
    methods: tuple[Method, ...]


def suite_names() -> list[str]:
    """Return the names of the suites that come with the package."""
    folder = resources.files("accel_oct_bench") / "suites"
    return sorted(file.name.removesuffix(_SUFFIX) for file in folder.iterdir() if file.name.endswith(_SUFFIX))


def load_suite(name: Any) -> Suite:
    """Load a suite by its name, or by the path of a file.

    Raises
    ------
    InvalidInputError
        If there is none, with close matches; or naming the key that is wrong.
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
    """Read a suite from the text of its file."""
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
    """Yield one method per backend, number of threads and seed that the table lists."""
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


# ---------------------------------------------------------------- runs


@dataclass(frozen=True)
class Choice:
    """Which runs of a suite to make, and what to change; None leaves a setting as in the suite.

    Attributes
    ----------
    data, methods : sequence of str
        Run only these.
    depths : sequence of int
    penalties : sequence of float
        Instead of those of the suite.
    presets : sequence of str
        Instead of the methods of the suite: one method per preset and backend, on all instances.
    backends : sequence of str
        Instead of the backends of accel_oct's methods.
    threads, seed, time_limit, memory_limit_mb
        For every method.
    """

    data: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    depths: Sequence[int] | None = None
    penalties: Sequence[float] | None = None
    presets: Sequence[str] | None = None
    backends: Sequence[str] | None = None
    threads: int | None = None
    seed: int | None = None
    time_limit: float | None = None
    memory_limit_mb: float | None = None

    def __post_init__(self) -> None:
        for depth in self.depths or ():
            whole(depth, "depths")
        for penalty in self.penalties or ():
            number(penalty, "penalties")
        for preset in self.presets or ():
            checked_preset(preset, {}, "presets")
        for backend in self.backends or ():
            checked_backend(backend, "backends")
        if self.threads is not None:
            whole(self.threads, "threads", 1)
        if self.seed is not None:
            whole(self.seed, "seed")
        limit(self.time_limit, "time_limit")
        limit(self.memory_limit_mb, "memory_limit_mb")


@dataclass(frozen=True)
class Plan:
    """The runs that a suite asks for.

    Attributes
    ----------
    tasks : tuple of Task
        In the order of the suite; all methods on an instance are neighbours.
    missing : tuple of str
        Data sets of the suite that are missing.
    """

    tasks: tuple[Task, ...]
    missing: tuple[str, ...]


def planned(suite: Suite, registry: Registry, choice: Choice | None = None) -> Plan:
    """Return all runs of a suite.

    Raises
    ------
    InvalidInputError
        If data are missing, a constraint does not fit them, or nothing is left to run.
    """
    chosen = choice or Choice()
    methods = _chosen_methods(suite, chosen)
    folder = None if registry.folder is None else str(registry.folder.resolve())
    tasks: dict[str, Task] = {}
    missing: list[str] = []
    seen: set[str] = set()
    for grid in suite.grids:
        ours = [method for method in methods if chosen.presets or method.name in grid.methods]
        for name in _data(grid, registry, missing):
            seen.add(name)
            if not ours or (chosen.data is not None and name not in chosen.data):
                continue
            for instance in _instances(grid, name, registry, chosen):
                for method in ours:
                    task = Task(suite.name, instance, method, folder)
                    tasks.setdefault(task.key, task)
    for name in chosen.data or ():
        if name not in seen:
            raise InvalidInputError(f"data: the suite {suite.name!r} has no data set {shown(name)} that is there")
    if not tasks:
        where = "no data folder was given" if folder is None else f"the data folder is {folder}"
        raise InvalidInputError(
            f"the suite {suite.name!r} has nothing to run: {len(set(missing))} data sets are missing, and {where} "
            f"(--data-dir, or the variable {DATA_VARIABLE})"
        )
    # If data sets were chosen by name, missing ones are errors above.
    return Plan(tuple(tasks.values()), tuple(dict.fromkeys(missing if chosen.data is None else ())))


def _chosen_methods(suite: Suite, chosen: Choice) -> list[Method]:
    methods = list(suite.methods)
    for name in chosen.methods or ():
        if name not in {method.name for method in methods}:
            known = ", ".join(dict.fromkeys(method.name for method in methods))
            raise InvalidInputError(f"methods: the suite {suite.name!r} has no method {shown(name)}; it has {known}")
    methods = [method for method in methods if chosen.methods is None or method.name in chosen.methods]
    if chosen.presets:
        base = replace(methods[0], package="accel_oct", backend=methods[0].backend or "highs", config={})
        methods = [replace(base, name=preset, preset=preset) for preset in chosen.presets]
    if chosen.backends:
        kept = [method for method in methods if method.backend is None]
        methods = kept + [
            replace(method, backend=backend)
            for method in methods
            if method.backend is not None
            for backend in chosen.backends
        ]
    changes = {
        name: getattr(chosen, name)
        for name in ("threads", "seed", "time_limit", "memory_limit_mb")
        if getattr(chosen, name) is not None
    }
    changed = [replace(method, **changes) for method in methods]
    return [replace(method, backend=None) if method.preset == FRONTIER else method for method in changed]


def _data(grid: Grid, registry: Registry, missing: list[str]) -> Iterator[str]:
    """Yield the data sets of a grid that are there; note the missing ones."""
    if len(grid.data) == 1 and grid.data[0] in EVERY:
        kind = grid.data[0]
        names = list(registry.grouped) if kind == "fairness" else [*registry.encoded, *registry.made_from_raw]
        if not names:
            if not grid.skip_missing:
                raise InvalidInputError(
                    f"data {kind!r}: there are none; give a data folder with --data-dir or the variable {DATA_VARIABLE}"
                )
            missing.append(kind)
        yield from names
        return
    for name in grid.data:
        if registry.has(name):
            yield name
        elif grid.skip_missing:
            missing.append(name)
        else:
            registry.load(name)  # raises the error that says what is wrong


def _instances(grid: Grid, name: str, registry: Registry, chosen: Choice) -> Iterator[Instance]:
    data = registry.load(name)
    for texts in grid.constraints:
        constraints_of(texts, data)
    first = instance_of(data, 0, 0.0)
    for depth in chosen.depths or grid.max_depth:
        for penalty in chosen.penalties or grid.leaf_penalty:
            for texts in grid.constraints:
                yield replace(first, max_depth=depth, leaf_penalty=penalty, constraints=texts)


# ---------------------------------------------------------------- values


def checked_preset(name: Any, config: Mapping[str, Any], where: str) -> str:
    """Check that there is the preset, and that `config` can change it."""
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
    """Check that a backend is registered, installed or not."""
    known = ["auto", *registered_names()]
    if not isinstance(name, str) or name.split(":")[0] not in known:
        raise InvalidInputError(f"{where}: there is no backend {shown(name)}{_near(str(name), known)}")
    return name


def whole(value: Any, where: str, least: int = 0) -> int:
    """Check a whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInputError(f"{where} must be a whole number >= {least}, got {shown(value)}")
    return value


def number(value: Any, where: str) -> float:
    """Check a finite number that is not negative; whole numbers of TOML may be too large for a float."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST:
        raise InvalidInputError(f"{where} must be a number >= 0, got {shown(value)}")
    return float(value)


def limit(value: Any, where: str) -> float | None:
    """Check a positive number, or None."""
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
