"""A suite of checks for backends, shipped for authors of backends.

    >>> from accel_oct.mip.conformance import checks
    >>> for check in checks():
    ...     check.run(MyBackend)

Each check takes a factory of fresh backends. Requests for a capability that a backend lacks must raise
`UnsupportedError`; a check of a missing capability passes only then.
"""

from accel_oct.mip.conformance import brute_force, cuts, mixed_sizes, nodes, resolving, solving
from accel_oct.mip.conformance.suite import BackendCheck, BackendFactory, checks

__all__ = [
    "BackendCheck",
    "BackendFactory",
    "brute_force",
    "checks",
    "cuts",
    "mixed_sizes",
    "nodes",
    "resolving",
    "solving",
]
