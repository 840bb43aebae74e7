"""Parts of the data that constraints and objectives declare to read."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from accel_oct.errors import InvalidInputError, shown

#: Valid names of parts; `accel_oct.constraints.Traits` defines them.
READS = frozenset({"class", "weight", "group", "rows", "features", "X"})


def checked_reads(reads: Any, where: str) -> frozenset[str]:
    """Return declared reads as a set, or raise InvalidInputError."""
    if isinstance(reads, str) or not isinstance(reads, Set | list | tuple) or not READS.issuperset(reads):
        raise InvalidInputError(f"{where}: reads must be a set of {', '.join(sorted(READS))}, got {shown(reads)}")
    return frozenset(reads)


def fits_tally(reads: Set[str]) -> bool:
    """Return whether a tally suffices: it has the features, and the weight of each class and group."""
    return reads <= {"class", "weight", "group", "features"}


def fits_every_encoding(reads: Set[str]) -> bool:
    """Return whether the reads do not depend on the encoding of the user's table."""
    return not reads & {"features", "X"}
