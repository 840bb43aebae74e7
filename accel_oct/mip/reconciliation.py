"""The last check of a proof that OPTIMALITY cuts took part in: do they leave anything as good as its optimum?

A solver that has searched everything below its cutoff says "optimal", and cannot say whether the bound or a
contradiction between cuts emptied the search. An incumbent that satisfies every OPTIMALITY row settles it. Where it
lies outside of some of them, the cuts are right only if they keep *another* point of its value, so the relaxation with
all of those rows must not be empty. It is solved by scipy, with no cutoff: whatever the backend, whatever its licence.
"""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np

from accel_oct.mip.model import FEASIBILITY_TOLERANCE, REJECTION_TOLERANCE
from accel_oct.mip.rows import Rows
from accel_oct.mip.session import SolveSession

logger = logging.getLogger(__name__)

#: A solve that ended just in time gets a moment more: its proof hangs on this.
_LEAST_SECONDS = 1.0
_INFEASIBLE, _FEASIBLE = 2, 0


def reconcile(session: SolveSession) -> None:
    """Raise `InvalidCutError` when the OPTIMALITY cuts of a proven solve leave nothing as good as its incumbent."""
    rows = rows_to_reconcile(session)
    if rows is None:
        return
    # Loaded here, since hardly a solve needs it.
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    model = session.model
    matrix = csr_array((rows.values, rows.columns, rows.starts), shape=(rows.n_rows, model.n_columns))
    seconds = max(session.seconds_left, _LEAST_SECONDS)
    options: dict[str, Any] = {} if math.isinf(seconds) else {"time_limit": seconds}
    answer = milp(
        np.zeros(model.n_columns),
        bounds=Bounds(model.lower, model.upper),
        constraints=LinearConstraint(matrix, rows.lower, rows.upper),
        options=options,
    )
    if answer.status == _INFEASIBLE:
        session.nothing_left()
    if answer.status != _FEASIBLE:
        logger.info("whether the OPTIMALITY cuts keep an optimum could not be checked: %s", answer.message)


def rows_to_reconcile(session: SolveSession) -> Rows | None:
    """OPTIMALITY rows that the incumbent is outside of although it is called optimal; None: nothing to reconcile.

    They are right if they keep *another* optimum. Together with the rows of the model and a row that asks for the
    incumbent's value, they must leave something.
    """
    model, x, value = session.model, session.incumbent_x, session.incumbent
    if x is None or value is None or not session.optimality_rows or not session.is_proven or session.failed:
        return None
    rows = Rows.concatenate(session.optimality_rows)
    if not np.any(rows.violation(x) > FEASIBILITY_TOLERANCE):
        return None
    used = np.flatnonzero(model.objective)
    limit = value - model.sign * REJECTION_TOLERANCE * max(1.0, abs(value))
    side = {"lower": limit} if model.sign > 0 else {"upper": limit}
    as_good = Rows.single(used, model.objective[used], **side)
    return Rows.concatenate([model.rows, rows, as_good])
