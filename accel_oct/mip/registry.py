"""Finding backends: by entry point, so that anyone can ship one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from accel_oct.mip.backend import Availability, Backend, Capabilities
from accel_oct.mip.errors import BackendUnavailableError, UnknownBackendError

logger = logging.getLogger(__name__)

ENTRY_POINT_GROUP = "accel_oct.backends"

#: The name that leaves the choice to the library.
AUTO = "auto"


@dataclass(frozen=True)
class BackendInfo:
    """What is known of a backend, in one of its variants if it has any: installed, licensed, able."""

    name: str
    installed: bool
    licensed: bool
    reason: str
    capabilities: Capabilities


def registered_names() -> list[str]:
    """Names of all registered backends, whether or not their solvers are installed."""
    return sorted(_registered())


def backend_names() -> list[str]:
    """As `registered_names`, with every variant written out: ``"pyomo:highs"``, ``"pyomo:cbc"`` for ``"pyomo"``."""
    return [full for name in registered_names() for full in _with_variants(name)]


def backend_class(name: str) -> type[Backend]:
    """The class registered under a name (without a variant)."""
    registered = _registered()
    if name not in registered:
        raise UnknownBackendError(
            f"unknown backend {name!r}; known are {', '.join(sorted(registered))}. {_how_to_install()}".strip()
        )
    try:
        return cast(type[Backend], registered[name].load())
    except Exception as error:  # whatever the author of another backend left in it
        raise BackendUnavailableError(f"backend {name!r} cannot be imported: {error}") from error


def create_backend(name: str, **settings: Any) -> Backend:
    """Make a backend from its name, such as ``"highs"``, ``"gurobi"`` or ``"pyomo:glpk"``."""
    if not isinstance(name, str):
        raise UnknownBackendError(f"`backend` must be a name, got {type(name).__name__}")
    base, _, variant = name.partition(":")
    return backend_class(base).create(variant or None, **settings)


def candidate_backends(name: str) -> list[Backend]:
    """The backends to try in turn: the named one, or for ``"auto"`` those installed, by their `auto_rank`.

    Whether a licence is large enough shows only when a model is solved, so the caller goes on to the next one then.
    """
    if name != AUTO:
        return [create_backend(name)]
    ranked = [(cls.auto_rank, cls.name, cls) for cls in _classes() if cls.auto_rank is not None and cls.is_available()]
    return [cls.create() for _, _, cls in sorted(ranked, key=lambda entry: entry[:2])]


def backend_availability(name: str) -> Availability:
    """Whether a solve with this backend can begin here, and if not, the reason.

    Parameters
    ----------
    name : str
        As for `create_backend`, with a variant or without.

    Returns
    -------
    Availability
        True in a condition if the package is installed, a variant's solver is found, and there is a licence. Solvers
        that have licences are asked for one, and given it back.

    Examples
    --------
    >>> backend_availability("highs")
    Availability(installed=True, licensed=True, reason='')
    """
    if not isinstance(name, str):
        raise UnknownBackendError(f"`backend` must be a name, got {type(name).__name__}")
    base, _, variant = name.partition(":")
    try:
        cls = backend_class(base)
    except BackendUnavailableError as error:
        return Availability(False, False, str(error))
    return cls.variant_availability(variant or None)


def list_backends() -> list[BackendInfo]:
    """Every registered backend in every variant; asks solvers that have licences for one, and gives it back."""
    infos = []
    for name in backend_names():
        found = backend_availability(name)
        infos.append(BackendInfo(name, found.installed, found.licensed, found.reason, _capabilities(name)))
    return infos


def _classes() -> Iterator[type[Backend]]:
    """The class of every registered backend that can be imported."""
    for name in registered_names():
        try:
            yield backend_class(name)
        except BackendUnavailableError as error:
            logger.info("%s", error)


def _how_to_install() -> str:
    """How to get the solvers that are not installed with the library."""
    extras = sorted({f"'accel-oct[{cls.extra}]'" for cls in _classes() if cls.extra is not None})
    if not extras:
        return ""
    return f"Some solvers come as extras: pip install {' or '.join(extras)}"


def _with_variants(name: str) -> list[str]:
    try:
        variants = backend_class(name).variants()
    except BackendUnavailableError:  # its module cannot be imported
        return [name]
    return [f"{name}:{variant}" for variant in variants] or [name]


def _capabilities(name: str) -> Capabilities:
    try:
        return backend_class(name.partition(":")[0]).capabilities
    except BackendUnavailableError:
        return Capabilities()


@lru_cache(maxsize=1)
def _registered() -> dict[str, EntryPoint]:
    # Kept: looking through every installed distribution took half of the time of a tiny solve.
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
