"""From a suite to the runs that it asks for, as far as the data are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from accel_oct.errors import InvalidInputError, shown
from accel_oct_bench.instances import DATA_VARIABLE
from accel_oct_bench.registry import Registry
from accel_oct_bench.rows import Instance, Method
from accel_oct_bench.rules import constraints_of
from accel_oct_bench.solving_one import FRONTIER
from accel_oct_bench.suite_files import EVERY, Grid, Suite, checked_backend, checked_preset, limit, number, whole
from accel_oct_bench.tasks import Task, instance_of

__all__ = ["Choice", "Plan", "planned"]


@dataclass(frozen=True)
class Choice:
    """What of a suite to run, and what to change; None is as the suite says.

    Attributes
    ----------
    data, methods : sequence of str
        Only these.
    depths : sequence of int
    penalties : sequence of float
        Instead of those of the suite.
    presets : sequence of str
        Instead of the methods of the suite: one per preset and backend, on all of its instances.
    backends : sequence of str
        Instead of those of our own methods.
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
    """Runs to be made.

    Attributes
    ----------
    tasks : tuple of Task
        In the order of the suite; all methods on one instance, then the next.
    missing : tuple of str
        Data sets that the suite names and that are not there.
    """

    tasks: tuple[Task, ...]
    missing: tuple[str, ...]


def planned(suite: Suite, registry: Registry, choice: Choice | None = None) -> Plan:
    """All runs of a suite.

    Raises
    ------
    InvalidInputError
        When data are not there, a constraint does not go with them, or nothing is left to run.
    """
    chosen = choice or Choice()
    methods = _methods(suite, chosen)
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
    # Who asks for some data sets by name has been told of those that are not there.
    return Plan(tuple(tasks.values()), tuple(dict.fromkeys(missing if chosen.data is None else ())))


def _methods(suite: Suite, chosen: Choice) -> list[Method]:
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
    """The names of a grid that are there."""
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
            registry.load(name)  # says what is wrong


def _instances(grid: Grid, name: str, registry: Registry, chosen: Choice) -> Iterator[Instance]:
    data = registry.load(name)
    for texts in grid.constraints:
        constraints_of(texts, data)
    first = instance_of(data, 0, 0.0)
    for depth in chosen.depths or grid.max_depth:
        for penalty in chosen.penalties or grid.leaf_penalty:
            for texts in grid.constraints:
                yield replace(first, max_depth=depth, leaf_penalty=penalty, constraints=texts)
