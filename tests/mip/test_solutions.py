"""The pool of solutions found: which are kept, in what order, and what a second search does to it."""

from __future__ import annotations

import numpy as np
import pytest
from accel_oct_backends.mock import MockBackend

from accel_oct.mip import Event, FoundSolution, ModelError, SolveOptions
from accel_oct.mip.conformance.suite import cardinality
from accel_oct.mip.exchange import SolutionPool


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_best_are_kept(sign: float) -> None:
    """The best distinct points by the direction, the earlier of equal ones, none better than the incumbent."""
    pool, units = SolutionPool(3, sign), np.eye(6)
    for value, place in ((1.0, 0), (3.0, 1), (3.0, 1), (2.0, 2), (2.0, 3), (5.0, 4), (1.0, 5)):
        pool.add(sign * value, units[place])
    pool.add(sign * 5.0, units[4] * -0.0 + units[4])
    found = pool.best(sign * 5.0)
    assert [(sign * each.objective, int(each.x.argmax())) for each in found] == [(5.0, 4), (3.0, 1), (2.0, 2)]
    assert [sign * each.objective for each in pool.best(sign * 4.0)] == [3.0, 2.0] and pool.best(None) == ()


def test_accepted_points_that_do_not_improve_are_found_too() -> None:
    """The mock's second candidate is worse than the first, and is returned as the second solution."""
    model = cardinality(4)
    mock = MockBackend(script=[(Event.CANDIDATE, np.ones(4)), (Event.CANDIDATE, np.eye(4)[1])])
    mock.load(model)
    result = mock.solve(SolveOptions(solutions=2))
    assert [each.objective for each in result.solutions] == [10.0, float(model.objective[1])]
    assert isinstance(result.solutions[0], FoundSolution) and len(mock.solve().solutions) == 1


@pytest.mark.parametrize("count", [0, -1, 1.5, "two", None])
def test_the_number_must_be_whole(count: object) -> None:
    """At least one, and named in the error."""
    with pytest.raises(ModelError, match="`solutions` must be a whole number >= 1"):
        SolveOptions(solutions=count)  # type: ignore[arg-type]
