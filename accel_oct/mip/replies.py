"""What a handler may reply: what it has declared, well formed, and not against a solution that is known."""

from __future__ import annotations

import numpy as np

from accel_oct.mip.errors import HandlerError, InvalidCutError
from accel_oct.mip.exchange import Cuts, Needs, Reply, Validity
from accel_oct.mip.model import REJECTION_TOLERANCE
from accel_oct.mip.rows import FloatArray

#: A cut that an accepted solution violates by more than this contradicts the acceptance: far beyond any rounding.
CONTRADICTION_TOLERANCE = 1e-3


def check_reply(reply: Reply | None, needs: Needs, n_columns: int) -> None:
    """Raise `HandlerError` or `ModelError` unless the reply is one that the needs allow."""
    if reply is None:
        return
    if not isinstance(reply, Reply):
        raise HandlerError(f"a handler must return a Reply or None, got {type(reply).__name__}")
    for batch in reply.cuts:
        if batch.validity not in needs.cuts:
            raise HandlerError(
                f"the handler returned {batch.validity.name} cuts ({batch.source!r}), which its needs do not declare"
            )
        if batch.keeps is not None and batch.keeps not in needs.keeps:
            raise HandlerError(
                f"the OPTIMALITY cuts {batch.source!r} keep an optimum by the rule {batch.keeps!r}, "
                f"which the handler's needs do not declare"
            )
        batch.rows.check(n_columns, f"cuts {batch.source!r}")
    if reply.solutions and not needs.injects:
        raise HandlerError("the handler returned solutions, but its needs do not declare `injects`")
    for solution in reply.solutions:
        if np.shape(solution) != (n_columns,):
            raise HandlerError(
                f"the handler returned a solution of shape {np.shape(solution)}; the model has {n_columns} columns"
            )


def check_reply_to_report(reply: Reply | None) -> None:
    """Raise `HandlerError` if a reply to a bound asks for more than a stop: there is no point to cut off or improve."""
    if reply is None:
        return
    if not isinstance(reply, Reply):
        raise HandlerError(f"a handler must return a Reply or None, got {type(reply).__name__}")
    if reply.cuts or reply.solutions:
        raise HandlerError("the handler replied to a bound with cuts or solutions; only a stop can be asked for there")


def check_against_solution(batch: Cuts, x: FloatArray, objective: float | None, *, strict: bool) -> None:
    """Raise `InvalidCutError` if the accepted solution x clearly violates a REQUIRED or IMPLIED row.

    With `strict`, already if it violates one by more than a candidate may.
    """
    if batch.validity is Validity.OPTIMALITY:
        return
    violation = batch.rows.violation(x)
    if violation.max(initial=0.0) > (REJECTION_TOLERANCE if strict else CONTRADICTION_TOLERANCE):
        row = int(np.argmax(violation))
        raise InvalidCutError(
            f"row {row} of the {batch.validity.name} cuts {batch.source!r} cuts off a solution that was accepted "
            f"as feasible (objective {objective})"
        )


def rejects(batch: Cuts, x: FloatArray) -> bool:
    """OPTIMALITY cuts do not make a point infeasible; the others do."""
    return batch.validity is not Validity.OPTIMALITY and bool(np.any(batch.rows.violation(x) > REJECTION_TOLERANCE))
