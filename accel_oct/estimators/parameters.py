"""scikit-learn's parameters in the terms of a solver."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from accel_oct.errors import InvalidInputError, as_invalid_input, shown

__all__ = ["checked_penalties", "n_threads", "solver_seed"]


def n_threads(n_jobs: int | None) -> int:
    """scikit-learn's n_jobs as a number of threads."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise InvalidInputError(f"n_jobs must be None or a whole number other than 0, got {n_jobs!r}")
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def solver_seed(random_state: Any) -> int:
    """A seed for the solver from what scikit-learn takes as random_state."""
    if random_state is None:
        return 0
    with as_invalid_input("random_state"):
        generator = check_random_state(random_state)
    return int(generator.randint(2**31 - 1))


def checked_penalties(leaf_penalties: Any) -> list[float]:
    """Leaf penalties as numbers, in the order given, or an error that says what is wrong with them."""
    try:
        penalties = [float(penalty) for penalty in leaf_penalties]
    except (TypeError, ValueError):
        raise InvalidInputError(f"leaf_penalties must be numbers, got {shown(leaf_penalties)}") from None
    if not penalties or not all(np.isfinite(p) and p >= 0 for p in penalties):
        raise InvalidInputError(f"leaf_penalties must be finite and not negative, got {leaf_penalties!r}")
    return penalties
