"""Every registered backend passes the conformance suite that ships in the package."""

from __future__ import annotations

import pytest

from accel_oct.mip import backend_class, create_backend, registered_names
from accel_oct.mip.conformance import Check, checks


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.name)
@pytest.mark.parametrize("name", registered_names())
def test_conformance(name: str, check: Check) -> None:
    """The registry is what is parametrised over: a new backend cannot be left out of the suite."""
    found = backend_class(name).availability()
    if not found:
        pytest.skip(found.reason)
    check.run(lambda: create_backend(name))
