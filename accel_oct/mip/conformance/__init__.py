"""A suite that every backend has to pass, shipped so that anyone who writes one can run it.

    >>> from accel_oct.mip.conformance import checks
    >>> for check in checks():
    ...     check.run(MyBackend)

Each check takes a factory of fresh backends. What a backend cannot do must raise `UnsupportedError`; a check of a
missing capability passes only when it does.
"""

from accel_oct.mip.conformance import behaviour, bounds, brute_force, cuts, injection, mixed_sizes, solving
from accel_oct.mip.conformance.suite import BackendFactory, Check, checks

__all__ = [
    "BackendFactory",
    "Check",
    "behaviour",
    "bounds",
    "brute_force",
    "checks",
    "cuts",
    "injection",
    "mixed_sizes",
    "solving",
]
