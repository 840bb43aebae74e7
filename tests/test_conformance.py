"""Every registered backend, in every variant, passes the conformance suite that ships in the package."""

from __future__ import annotations

import pytest

from accel_oct.mip import BackendUnavailableError, backend_class, create_backend, registered_names
from accel_oct.mip.conformance import Check, checks


def _names() -> list[str]:
    """The registry is what is parametrised over: a new backend cannot be left out of the suite."""
    return [
        f"{name}:{variant}" if variant else name
        for name in registered_names()
        for variant in backend_class(name).variants() or ("",)
    ]


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.name)
@pytest.mark.parametrize("name", _names())
def test_conformance(name: str, check: Check) -> None:
    """The backend has the property, or its solver is not installed here."""
    found = backend_class(name.partition(":")[0]).availability()
    if not found:
        pytest.skip(found.reason)
    try:
        create_backend(name)
    except BackendUnavailableError as error:
        pytest.skip(str(error))
    check.run(lambda: create_backend(name))
