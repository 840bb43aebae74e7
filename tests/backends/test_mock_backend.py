"""The mock: scripts, recordings, switches, enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from accel_oct_backends.mock import MAX_COLUMNS, MockBackend
from helpers.mip_support import HiddenRowsProblem, hidden_rows_problems
from hypothesis import given

from accel_oct.mip import (
    Cuts,
    Event,
    FunctionHandler,
    InvalidCutError,
    MipModel,
    Needs,
    Point,
    Reply,
    Rows,
    SolveOptions,
    Support,
    Termination,
    UnsupportedError,
    Validity,
)

BOTH = Needs([Event.CANDIDATE, Event.RELAXATION], [Validity.REQUIRED, Validity.IMPLIED], injects=True)


def binary_model(n_columns: int = 3) -> MipModel:
    model = MipModel(maximise=True)
    model.add_block("x", n_columns, integer=True, objective=np.arange(1.0, n_columns + 1))
    return model


@given(hidden_rows_problems(max_columns=6))
def test_enumeration_is_exact(problem: HiddenRowsProblem) -> None:
    """The optimum is that of a plain loop over all points."""
    backend = MockBackend()
    backend.load(problem.model(complete=True))
    result = backend.solve()
    values = [
        float(problem.objective @ x)
        for x in map(np.array, itertools.product([0.0, 1.0], repeat=len(problem.objective)))
        if not problem.shown.violation(x).any() and not problem.hidden.violation(x).any()
    ]
    if not values:
        assert result.termination is Termination.INFEASIBLE and result.objective is None
    else:
        assert result.objective == result.bound == (max(values) if problem.maximise else min(values))


def test_a_script_is_played_in_order_and_replies_are_recorded() -> None:
    """The handler sees exactly the scripted points; its replies and the incumbent can be looked at afterwards."""

    def separate(point: Point) -> Reply | None:
        if point.x.sum() <= 1:
            return None
        return Reply(cuts=(Cuts(Rows.single([0, 1, 2], 1.0, upper=1.0), Validity.REQUIRED, "one"),))

    script = [(Event.RELAXATION, np.full(3, 0.5)), (Event.CANDIDATE, np.ones(3)), (Event.CANDIDATE, np.eye(3)[2])]
    backend = MockBackend(script=script)
    backend.load(binary_model())
    result = backend.solve(handler=FunctionHandler(separate, BOTH))
    assert [point.event for point in backend.points] == [event for event, _ in script]
    assert [reply is None for reply in backend.replies] == [False, False, True]
    assert result.objective == 3.0 and result.termination is Termination.NODE_LIMIT
    assert result.statistics.cuts == {"one": 2} and result.statistics.rejected_candidates == 1


def test_a_script_can_show_any_model() -> None:
    """Continuous columns and many of them are no obstacle when nothing is enumerated."""
    model = MipModel()
    model.add_block("y", 5000, upper=np.inf)
    backend = MockBackend(script=[(Event.RELAXATION, np.zeros(5000))])
    backend.load(model)
    backend.solve(handler=FunctionHandler(lambda point: None, Needs([Event.RELAXATION])))
    assert len(backend.points) == 1


def test_a_script_stops_when_the_handler_says_so() -> None:
    """The rest of the script is not played."""
    backend = MockBackend(script=[(Event.CANDIDATE, np.zeros(3))] * 5)
    backend.load(binary_model())
    result = backend.solve(handler=FunctionHandler(lambda point: Reply(stop=True), BOTH))
    assert len(backend.points) == 1 and result.termination is Termination.STOPPED


def test_a_script_can_hold_bounds() -> None:
    """The handler hears each that is tighter than the last, and every new incumbent; a stop ends the script."""
    script = [7.0, 8.0, (Event.CANDIDATE, np.eye(3)[2]), 5.0, 4.0]
    backend = MockBackend(script=script)
    backend.load(binary_model())
    needs = Needs([Event.CANDIDATE], bounds=True)
    handler = FunctionHandler(lambda point: None, needs, lambda report: Reply(stop=report.bound < 6.0))
    result = backend.solve(handler=handler)
    assert [(report.bound, report.incumbent) for report in backend.reports] == [(7.0, None), (7.0, 3.0), (5.0, 3.0)]
    assert result.termination is Termination.STOPPED and result.bound == 5.0 and len(backend.points) == 1
    assert backend.points[0].bound == 7.0


@pytest.mark.parametrize(
    ("switch", "needs", "message"),
    [
        ("lazy_rows", Needs([Event.CANDIDATE]), "lazy rows"),
        ("relaxation_points", Needs([Event.RELAXATION]), "relaxation points"),
        ("user_cuts", Needs([Event.RELAXATION], [Validity.IMPLIED]), "user cuts"),
        ("injection", Needs([Event.CANDIDATE], injects=True), "injection of solutions"),
    ],
)
def test_a_capability_switched_off_is_refused(switch: str, needs: Needs, message: str) -> None:
    """Before anything runs, the error names backend and capability; with the switch on, the handler is taken."""
    handler = FunctionHandler(lambda point: None, needs)
    able, unable = MockBackend(script=[]), MockBackend(script=[], **{switch: Support.NO})
    for backend in (able, unable):
        backend.load(binary_model())
    able.solve(handler=handler)
    with pytest.raises(UnsupportedError, match=f"'mock' does not support what the handler needs: {message}"):
        unable.solve(handler=handler)


def test_starts_and_priorities_can_be_switched_off() -> None:
    """A start or a branch priority is never dropped silently."""
    backend = MockBackend(start=Support.NO, branch_priorities=Support.NO)
    backend.load(binary_model())
    with pytest.raises(UnsupportedError, match="start"):
        backend.set_start(np.zeros(3))
    with pytest.raises(UnsupportedError, match="branch priorities"):
        backend.solve(SolveOptions(branch_priorities=np.zeros(3, dtype=int)))


def test_models_that_cannot_be_enumerated_are_refused() -> None:
    """Too many columns, other bounds than 0 and 1, continuous columns: each says so at loading."""
    wide = MipModel()
    wide.add_block("x", 3, integer=True, upper=2.0)
    continuous = MipModel()
    continuous.add_block("y", 3)
    for model, message in (
        (binary_model(MAX_COLUMNS + 1), "at most 20 columns, the model has 21"),
        (wide, "bounds must lie within 0 and 1"),
        (continuous, "integer columns only"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            MockBackend().load(model)


@pytest.mark.parametrize("lazy_rows", [Support.NATIVE, Support.EMULATED])
def test_an_invalid_cut_is_found(lazy_rows: Support) -> None:
    """A cut that removes the accepted start is named, whether or not every small violation is looked for."""
    cut = Cuts(Rows.single([0, 1, 2], 1.0, upper=0.0), Validity.REQUIRED, "wrong")

    def separate(point: Point) -> Reply | None:
        # Wrong on purpose: forgets that a single column at one is allowed, but only after the start was taken.
        return Reply(cuts=(cut,)) if point.x.sum() > 1 else None

    handler = FunctionHandler(separate, Needs([Event.CANDIDATE], [Validity.REQUIRED]))
    for options in (SolveOptions(), SolveOptions(check_cuts=True)):
        backend = MockBackend(lazy_rows=lazy_rows)
        backend.load(binary_model())
        backend.set_start([0.0, 0.0, 1.0])
        with pytest.raises(InvalidCutError, match="row 0 of the REQUIRED cuts 'wrong' cuts off a solution"):
            backend.solve(options, handler)
