"""The last check of a proof that OPTIMALITY cuts took part in: do they leave anything as good as its optimum?

A solver that has searched everything below its cutoff says "optimal", and cannot say whether the bound or a
contradiction between cuts emptied the search. An incumbent that satisfies every OPTIMALITY row settles it. Where it
lies outside of some of them, the cuts are right only if they keep *another* point of its value, so the relaxation with
all of those rows must not be empty. That it is empty takes a proof (`accel_oct.mip.certificates`), whatever the
backend and its licence.
"""

from __future__ import annotations

import logging
import math

import numpy as np

from accel_oct.mip.certificates import LinearProgram
from accel_oct.mip.engine import Run, RunStatus
from accel_oct.mip.model import FEASIBILITY_TOLERANCE, REJECTION_TOLERANCE
from accel_oct.mip.rows import Rows
from accel_oct.mip.session import SolveSession

logger = logging.getLogger(__name__)

#: A solve that ended just in time gets a moment more: its proof hangs on this.
_LEAST_SECONDS = 1.0


def reconcile(session: SolveSession) -> None:
    """Raise `InvalidCutError` when the OPTIMALITY cuts of a proven solve leave nothing as good as its incumbent."""
    rows = rows_to_reconcile(session)
    if rows is None:
        return
    model = session.model
    program = LinearProgram(np.zeros(model.n_columns), 1.0, rows, model.lower, model.upper)
    # The claim to check: there is no point.
    run = program.checked(Run(RunStatus.INFEASIBLE, None, -math.inf), max(session.seconds_left, _LEAST_SECONDS))
    if run.status is RunStatus.INFEASIBLE:
        session.nothing_left()
    if run.status is RunStatus.UNDECIDED:
        logger.info("whether the OPTIMALITY cuts keep an optimum could not be checked")


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
