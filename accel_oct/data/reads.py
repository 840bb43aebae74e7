"""What constraints and objectives read of the data, in words, and who can answer that."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from accel_oct.errors import InvalidInputError, shown

__all__ = ["READS", "checked_reads", "fits_every_encoding", "fits_tally"]

#: The words; `accel_oct.constraints.Traits` says what each of them means.
READS = frozenset({"class", "weight", "group", "rows", "features", "X"})


def checked_reads(reads: Any, where: str) -> frozenset[str]:
    """What an author declared, or an error that says what is wrong with it."""
    if isinstance(reads, str) or not isinstance(reads, Set | list | tuple) or not READS.issuperset(reads):
        raise InvalidInputError(f"{where}: reads must be a set of {', '.join(sorted(READS))}, got {shown(reads)}")
    return frozenset(reads)


def fits_tally(reads: Set[str]) -> bool:
    """Whether a tally answers: it has the features, and the weight of each class and group."""
    return reads <= {"class", "weight", "group", "features"}


def fits_every_encoding(reads: Set[str]) -> bool:
    """Whether the answer is the same however the user's table is encoded."""
    return not reads & {"features", "X"}
