"""Models that change between solves, and what a warm solve takes over."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from accel_oct_backends.mock import MockBackend

from accel_oct.mip import (
    Event,
    MipModel,
    ModelArrays,
    ModelError,
    Rows,
    SolveOptions,
    Support,
    UnsupportedError,
)
from accel_oct.mip.conformance.suite import cardinality, knapsack, listening


def test_new_columns_scale_rows_anew() -> None:
    """A row that was small is multiplied by what suits it with its new coefficients; bounds and values stay its own."""
    model = MipModel(maximise=True)
    model.add_block("x", 2, objective=[1.0, 2.0], upper=[3.0, 4.0])
    model.add_rows(Rows.from_entries([0, 1], [0, 1], [2.0**-5, 2.0**-3], n_rows=2, lower=-1.0, upper=[1.0, 2.0]))
    block = MipModel()
    block.add_block("new", 2, lower=-1.0, objective=[5.0, 6.0], integer=[True, False])
    grown = ModelArrays.of(model).with_columns(block, Rows.from_entries([0, 1], [1, 0], [7.0, 2.0**-9], n_rows=2))
    assert grown.exponents.tolist() == [0, 3]
    assert grown.rows.columns.tolist() == [0, 3, 1, 2]
    assert grown.rows.values.tolist() == [2.0**-5, 7.0, 1.0, 2.0**-6]
    assert grown.rows.lower.tolist() == [-1.0, -8.0] and grown.rows.upper.tolist() == [1.0, 16.0]
    assert grown.objective.tolist() == [1.0, 2.0, 5.0, 6.0] and grown.lower.tolist() == [0.0, 0.0, -1.0, -1.0]
    assert grown.upper.tolist() == [3.0, 4.0, 1.0, 1.0] and grown.integer.tolist() == [False, False, True, False]
    assert grown.maximise


def test_added_rows_keep_their_scaling() -> None:
    """Exponents follow the rows in the order in which they were added."""
    arrays = (
        ModelArrays.of(cardinality(3)).with_rows(Rows.single([0], 2.0)).with_rows(Rows.single([1], 0.25, upper=1.0))
    )
    assert arrays.exponents.tolist() == [0, 2] and arrays.rows.upper.tolist() == [np.inf, 4.0]


def test_a_start_and_old_solutions_follow_new_columns() -> None:
    """They have the value nearest to zero there; with a new model they are forgotten."""
    mock = MockBackend(script=[(Event.CANDIDATE, np.ones(3))])
    mock.load(cardinality(3))
    mock.set_start(np.zeros(3))
    mock.solve()
    assert mock.add_columns(2, lower=[0.0, 1.0], upper=2.0, objective=1.0).tolist() == [3, 4]
    mock.script = []
    result = mock.solve(SolveOptions(warm=True, solutions=2))
    assert [each.x.tolist() for each in result.solutions] == [[1.0, 1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
    mock.load(cardinality(3))
    assert mock.solve(SolveOptions(warm=True)).x is None


def test_an_old_solution_that_is_infeasible_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Unlike a start: it is no mistake of the caller that a new row cuts it off."""
    mock = MockBackend()
    mock.load(knapsack())
    mock.solve()
    mock.add_rows(Rows.single([0, 1], 1.0, upper=1.0))
    reports: list[float | None] = []
    with caplog.at_level(logging.WARNING):
        mock.solve(SolveOptions(warm=True), listening(lambda report: reports.append(report.incumbent)))
    assert not caplog.records and reports[0] is None


def test_warm_solves_need_starts_and_models_that_fit() -> None:
    """A backend without starts raises an error, and so does the mock for columns that it cannot enumerate."""
    mock = MockBackend(start=Support.NO)
    mock.load(knapsack())
    with pytest.raises(UnsupportedError, match="hence no warm solves"):
        mock.solve(SolveOptions(warm=True))
    with pytest.raises(UnsupportedError, match="enumerates at most 20 columns"):
        mock.add_columns(17, integer=True)
    with pytest.raises(UnsupportedError, match="integer columns only"):
        mock.add_columns(1)
    with pytest.raises(ModelError, match="`objective` has shape"):
        mock.set_objective([1.0])
    assert mock.solve().objective == 23.0


def test_old_solutions_are_used_on_request_only() -> None:
    """Two solves without `warm` are the same, whatever the first one found."""
    for warm, expected in ((False, None), (True, 23.0)):
        mock, incumbents = MockBackend(), list[float | None]()
        mock.load(knapsack())
        mock.solve()
        mock.solve(SolveOptions(warm=warm), listening(lambda report, seen=incumbents: seen.append(report.incumbent)))  # type: ignore[misc]
        assert incumbents[0] == expected
