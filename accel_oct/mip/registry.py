"""Finding backends: by entry point, so that anyone can ship one."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from accel_oct.mip.backend import Backend, Capabilities
from accel_oct.mip.errors import BackendUnavailableError, UnknownBackendError

ENTRY_POINT_GROUP = "accel_oct.backends"

#: The name that leaves the choice to the library.
AUTO = "auto"
_STRONGEST_FIRST = ("gurobi", "scip", "highs")


@dataclass(frozen=True)
class BackendInfo:
    """What is known of a registered backend: installed, licensed, able."""

    name: str
    installed: bool
    licensed: bool
    reason: str
    capabilities: Capabilities


def registered_names() -> list[str]:
    """Names of all registered backends, whether or not their solvers are installed."""
    return sorted(_registered())


def backend_class(name: str) -> type[Backend]:
    """The class registered under a name (without a variant)."""
    registered = _registered()
    if name not in registered:
        raise UnknownBackendError(
            f"unknown backend {name!r}; known are {', '.join(sorted(registered))}. "
            "Solvers other than HiGHS come as extras: pip install "
            "'accel-oct[gurobi]', 'accel-oct[scip]' or 'accel-oct[pyomo]'"
        )
    try:
        return cast(type[Backend], registered[name].load())
    except ImportError as error:
        raise BackendUnavailableError(f"backend {name!r} cannot be imported: {error}") from error


def create_backend(name: str, **settings: Any) -> Backend:
    """Make a backend from its name, such as ``"highs"``, ``"gurobi"`` or ``"pyomo:glpk"``."""
    if not isinstance(name, str):
        raise UnknownBackendError(f"`backend` must be a name, got {type(name).__name__}")
    base, _, variant = name.partition(":")
    return backend_class(base).create(variant or None, **settings)


def candidate_backends(name: str) -> list[Backend]:
    """The backends to try in turn: the named one, or for ``"auto"`` those installed, strongest first.

    Whether a licence is large enough shows only when a model is solved, so the caller goes on to the next one then.
    """
    if name != AUTO:
        return [create_backend(name)]
    known = _registered()
    return [
        backend_class(each).create()
        for each in _STRONGEST_FIRST
        if each in known and backend_class(each).is_available()
    ]


def list_backends() -> list[BackendInfo]:
    """Every registered backend; asks solvers that have licences for one, and gives it back."""
    infos = []
    for name in registered_names():
        try:
            cls = backend_class(name)
        except BackendUnavailableError as error:
            infos.append(BackendInfo(name, False, False, str(error), Capabilities()))
            continue
        found = cls.availability()
        infos.append(BackendInfo(name, found.installed, found.licensed, found.reason, cls.capabilities))
    return infos


def _registered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
