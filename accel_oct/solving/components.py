"""Components of other people: handed to `solve` as they are, or by the name under which a package registered them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any

from accel_oct.errors import InvalidInputError, shown
from accel_oct.formulation import ComponentFactory

ENTRY_POINT_GROUP = "accel_oct.components"


def component_factories(components: Any) -> list[tuple[str, ComponentFactory]]:
    """What a user gave in `components`, each with the words that an error should use for it.

    Registered components are used when they are asked for by name and never by themselves: what a solve does must not
    depend on what else is installed.
    """
    if components is None:
        return []
    if isinstance(components, str) or not isinstance(components, Sequence):
        raise InvalidInputError(f"components must be a list of factories or names, got {shown(components)}")
    return [_factory(value, f"components[{place}]") for place, value in enumerate(components)]


def _factory(value: Any, where: str) -> tuple[str, ComponentFactory]:
    if isinstance(value, str):
        return f"{where} ({value!r})", _registered(value, where)
    if not callable(value):
        raise InvalidInputError(
            f"{where} must be a factory (master -> component), usually the component's class, got {shown(value)}"
        )
    return f"{where} ({getattr(value, '__name__', type(value).__name__)})", value


def _registered(name: str, where: str) -> ComponentFactory:
    known = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    if name not in known:
        names = ", ".join(sorted(known)) or "none"
        raise InvalidInputError(f"{where}: no installed package registers a component {name!r}; registered are {names}")
    try:
        factory: ComponentFactory = known[name].load()
    except ImportError as error:
        raise InvalidInputError(f"{where}: the component {name!r} cannot be imported: {error}") from error
    return factory
