"""The cut loop: the same optimum as the complete model, whichever way the rows come in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.mip_support import HiddenRowsProblem, hidden_rows_problems, requires
from hypothesis import given
from hypothesis import strategies as st

from accel_oct.mip import (
    Backend,
    CutLoop,
    Cuts,
    EngineRun,
    Event,
    FunctionHandler,
    IntegerRequest,
    InvalidCutError,
    MipModel,
    ModelArrays,
    Needs,
    Point,
    Reply,
    Rows,
    RunStatus,
    SolveOptions,
    SolverError,
    SolveSession,
    Support,
    Termination,
    Validity,
    create_backend,
)

WAYS = [
    ("mock", {}, (Event.CANDIDATE,)),
    ("mock", {"lazy_rows": Support.EMULATED}, (Event.CANDIDATE,)),
    ("highs", {}, (Event.CANDIDATE,)),
    ("highs", {}, (Event.CANDIDATE, Event.RELAXATION)),
    pytest.param("gurobi", {}, (Event.CANDIDATE,), marks=requires("gurobi")),
    pytest.param("gurobi", {}, (Event.CANDIDATE, Event.RELAXATION), marks=requires("gurobi")),
]


def solved(
    backend: Backend, problem: HiddenRowsProblem, handler: FunctionHandler | None
) -> tuple[Termination, float | None]:
    backend.load(problem.model(complete=handler is None))
    result = backend.solve(handler=handler)
    if result.x is not None:
        assert np.all(problem.shown.violation(result.x) <= 1e-6)
        assert np.all(problem.hidden.violation(result.x) <= 1e-6)
        assert result.bound == pytest.approx(result.objective, abs=1e-6)
    return result.termination, None if result.objective is None else round(result.objective, 6)


@pytest.mark.daily(2)
@pytest.mark.parametrize(("name", "switches", "events"), WAYS)
@given(problem=hidden_rows_problems())
def test_hidden_rows_give_the_optimum_of_the_complete_model(
    name: str, switches: dict[str, Support], events: tuple[Event, ...], problem: HiddenRowsProblem
) -> None:
    """Rows that only the handler knows count as much as rows of the model, infeasibility included."""
    expected = solved(create_backend("mock"), problem, None)
    assert solved(create_backend(name, **switches), problem, problem.handler(*events)) == expected


@pytest.mark.parametrize("events", [(Event.CANDIDATE,), (Event.CANDIDATE, Event.RELAXATION)])
@given(problem=hidden_rows_problems())
def test_the_loop_remembers_what_the_handler_said(events: tuple[Event, ...], problem: HiddenRowsProblem) -> None:
    """A handler that returns each row only once gets the same optimum: a dropped row still rejects candidates."""
    expected = solved(create_backend("mock"), problem, None)
    assert solved(create_backend("highs"), problem, problem.handler(*events, once=True)) == expected


@given(problem=hidden_rows_problems(), seed=st.integers(0, 2**32 - 1))
def test_a_start_does_not_change_the_optimum(problem: HiddenRowsProblem, seed: int) -> None:
    """Any binary start, feasible or not, leads to the same optimum."""
    expected = solved(create_backend("mock"), problem, None)
    backend = create_backend("highs")
    backend.load(problem.model(complete=False))
    backend.set_start(np.random.default_rng(seed).integers(0, 2, len(problem.objective)))
    result = backend.solve(handler=problem.handler(Event.CANDIDATE))
    assert (result.termination, None if result.objective is None else round(result.objective, 6)) == expected


class ScriptedEngine:
    """An engine that returns given relaxations, and records which cut rows its LP holds."""

    def __init__(self, points: list[list[float]], model: ModelArrays) -> None:
        self.points = [np.array(point) for point in points]
        self.model = model
        self.lp: list[float] = []  # upper bounds of the cut rows present: they tell the rows apart
        self.held: list[list[float]] = []
        self.mip: list[float] = []

    def solve_relaxation(self, seconds: float) -> EngineRun:
        self.held.append(list(self.lp))
        x = self.points[len(self.held) - 1]
        return EngineRun(RunStatus.OPTIMAL, x, self.model.value(x))

    def add_relaxation_rows(self, rows: Rows) -> None:
        self.lp.extend(rows.upper.tolist())

    def drop_relaxation_rows(self, positions: np.ndarray) -> None:
        self.lp = [row for position, row in enumerate(self.lp) if position not in set(positions.tolist())]

    def solve_integer(self, request: IntegerRequest) -> EngineRun:
        return EngineRun(RunStatus.INFEASIBLE, None, -math.inf)

    def add_integer_rows(self, rows: Rows) -> None:
        self.mip.extend(rows.upper.tolist())


def test_slack_rows_leave_the_relaxation_and_come_back_when_violated() -> None:
    """A row that stays slack is dropped; a later point that violates it brings it back, unasked for."""
    model = MipModel(maximise=True)
    model.add_block("x", 2, integer=True, upper=20.0)
    arrays = ModelArrays.of(model)
    first = Cuts(Rows.single([0], 1.0, upper=5.5), Validity.REQUIRED)
    replies = {0: first}

    def separate(point: Point) -> Reply:  # afterwards one new violated row on the other column per round
        calls.append(point)
        if len(calls) - 1 in replies:
            return Reply(cuts=(replies[len(calls) - 1],))
        if len(calls) > 9:
            return Reply()
        return Reply(cuts=(Cuts(Rows.single([1], 1.0, upper=point.x[1] - 1.0), Validity.REQUIRED),))

    calls: list[Point] = []
    points = [[9.5, 19.5]] + [[4.5, 19.5 - k] for k in range(1, 8)] + [[8.5, 0.5], [4.5, 0.5]]
    engine = ScriptedEngine(points, arrays)
    needs = Needs([Event.CANDIDATE, Event.RELAXATION], [Validity.REQUIRED])
    session = SolveSession(arrays, SolveOptions(), FunctionHandler(separate, needs))
    CutLoop(session, engine).run()
    present = [5.5 in rows for rows in engine.held]
    assert present[1] and not present[8], "the slack row was never dropped"
    assert present[9], "the violated row did not come back"


def test_rejecting_without_a_new_cut_is_an_error() -> None:
    """A cut that the solver cannot satisfy any better than it did stops the loop instead of spinning."""
    model = MipModel(maximise=True)
    model.add_block("x", 1, integer=True, objective=1.0)
    arrays = ModelArrays.of(model)

    class Stubborn(ScriptedEngine):
        def solve_integer(self, request: IntegerRequest) -> EngineRun:
            request.on_solution(np.ones(1), None)
            return EngineRun(RunStatus.OPTIMAL, np.ones(1), 1.0)

    cut = Cuts(Rows.single([0], 1.0, upper=0.0), Validity.REQUIRED)
    handler = FunctionHandler(lambda point: Reply(cuts=(cut,)), Needs([Event.CANDIDATE], [Validity.REQUIRED]))
    with pytest.raises(SolverError, match="without returning a cut that is new"):
        CutLoop(SolveSession(arrays, SolveOptions(), handler), Stubborn([], arrays)).run()


def test_a_solution_that_came_after_the_interrupt_is_not_lost() -> None:
    """Without a handler, what the solver holds when it stops is the incumbent, reported or not."""
    model = MipModel(maximise=True)
    model.add_block("x", 1, integer=True, objective=1.0)
    arrays = ModelArrays.of(model)
    session = SolveSession(arrays, SolveOptions(), None)

    class Late(ScriptedEngine):
        def solve_integer(self, request: IntegerRequest) -> EngineRun:
            session.request_stop(Termination.INTERRUPTED)
            return EngineRun(RunStatus.LIMIT, np.ones(1), 1.5)

    result = session.result(*CutLoop(session, Late([], arrays)).run())
    assert result.termination is Termination.INTERRUPTED and result.objective == 1.0 and result.bound == 1.5


def test_every_reported_solution_is_separated() -> None:
    """The handler sees each solution of a run, not only the last, and the master gets the rows of all of them."""
    model = MipModel(maximise=True)
    model.add_block("x", 3, integer=True, objective=[1.0, 2.0, 4.0])
    arrays = ModelArrays.of(model)
    found = [np.array([1.0, 0, 0]), np.array([0.0, 1, 0]), np.array([0.0, 0, 1])]

    class Chatty(ScriptedEngine):
        runs = 0

        def solve_integer(self, request: IntegerRequest) -> EngineRun:
            self.runs += 1
            if self.runs > 1:
                return EngineRun(RunStatus.INFEASIBLE, None, -math.inf)
            for x in found:
                request.on_solution(x, 7.0)
            return EngineRun(RunStatus.OPTIMAL, found[-1], 7.0)

    def forbid(point: Point) -> Reply | None:
        column = np.flatnonzero(point.x)
        seen.append(column.tolist())
        if not column.size:
            return None
        return Reply(cuts=(Cuts(Rows.single(column, 1.0, upper=float(column[0]) / 8), Validity.REQUIRED),))

    seen: list[list[int]] = []
    engine = Chatty([], arrays)
    handler = FunctionHandler(forbid, Needs([Event.CANDIDATE], [Validity.REQUIRED]))
    session = SolveSession(arrays, SolveOptions(), handler)
    # What the engine says in its second run is not true, and not believed: zero is left.
    assert CutLoop(session, engine).run()[0] is Termination.OPTIMAL and session.incumbent == 0.0
    assert sorted(engine.mip) == [0.0, 0.125, 0.25] and seen[:3] == [[0], [1], [2]] and seen[-1] == []


def test_a_rejected_optimum_does_not_end_the_loop() -> None:
    """The optimum of the relaxed master is no answer when the handler refuses it, however close the incumbent is."""
    model = MipModel(maximise=True)
    model.add_block("x", 2, integer=True, objective=[1.0, 1.5])
    arrays = ModelArrays.of(model)
    good, refused = np.array([1.0, 0.0]), np.array([0.0, 1.0])

    class Close(ScriptedEngine):
        def solve_integer(self, request: IntegerRequest) -> EngineRun:
            if self.mip:
                return EngineRun(RunStatus.OPTIMAL, good, 1.0)
            request.on_solution(good, 1.5)
            request.on_solution(refused, 1.5)
            return EngineRun(RunStatus.OPTIMAL, refused, 1.5)

    def separate(point: Point) -> Reply | None:
        return Reply(cuts=(Cuts(Rows.single([1], 1.0, upper=0.0), Validity.REQUIRED),)) if point.x[1] > 0 else None

    handler = FunctionHandler(separate, Needs([Event.CANDIDATE], [Validity.REQUIRED]))
    session = SolveSession(arrays, SolveOptions(), handler)
    result = session.result(*CutLoop(session, Close([], arrays)).run())
    assert result.termination is Termination.OPTIMAL and result.objective == result.bound == 1.0


def test_a_known_row_rejects_what_the_handler_does_not_mention_again() -> None:
    """The handler says each thing once; a second solution against the same row, in the same run, is refused too."""
    model = MipModel(maximise=True)
    model.add_block("x", 2, integer=True, objective=[1.0, 1.5])
    arrays = ModelArrays.of(model)
    first, second = np.array([1.0, 0.0]), np.array([0.0, 1.0])

    class Twice(ScriptedEngine):
        def solve_integer(self, request: IntegerRequest) -> EngineRun:
            if self.mip:
                return EngineRun(RunStatus.OPTIMAL, np.zeros(2), 0.0)
            request.on_solution(first, 1.5)
            request.on_solution(second, 1.5)
            return EngineRun(RunStatus.OPTIMAL, second, 1.5)

    answers = iter([Reply(cuts=(Cuts(Rows.single([0, 1], 1.0, upper=0.0), Validity.REQUIRED),))])
    handler = FunctionHandler(lambda point: next(answers, None), Needs([Event.CANDIDATE], [Validity.REQUIRED]))
    session = SolveSession(arrays, SolveOptions(), handler)
    result = session.result(*CutLoop(session, Twice([], arrays)).run())
    assert result.termination is Termination.OPTIMAL and result.objective == result.bound == 0.0


def test_an_emptied_linear_model_is_an_invalid_cut() -> None:
    """With no integer column, too: OPTIMALITY cuts that leave nothing once a start was accepted prove nothing."""
    model = MipModel(maximise=True)
    model.add_block("x", 1, objective=1.0)
    rows = Rows.from_entries([0, 1], [0, 0], 1.0, n_rows=2, lower=[0.9, -np.inf], upper=[np.inf, 0.1])
    cut = Cuts(rows, Validity.OPTIMALITY, keeps="nothing")
    backend = create_backend("highs")
    backend.load(model)
    backend.set_start([0.5])
    handler = FunctionHandler(
        lambda point: Reply(cuts=(cut, Cuts(Rows.single([0], 1.0, upper=0.7), Validity.REQUIRED))),
        Needs([Event.CANDIDATE], [Validity.OPTIMALITY, Validity.REQUIRED], keeps="nothing"),
    )
    with pytest.raises(InvalidCutError, match="no point satisfies all cuts"):
        backend.solve(handler=handler)
