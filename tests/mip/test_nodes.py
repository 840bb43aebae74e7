"""Duals, depth and bounds of nodes: what the shared branch and cut tells of them, and what handlers must declare."""

from __future__ import annotations

import math

import numpy as np
import pytest
from accel_oct_backends.mock import MockBackend, ScriptedPoint
from helpers.mip_support import HiddenRowsProblem, hidden_rows_problems
from hypothesis import given

from accel_oct.mip import (
    Cuts,
    Duals,
    Event,
    FunctionHandler,
    HandlerError,
    MipModel,
    ModelArrays,
    Needs,
    Point,
    Reply,
    Rows,
    SearchNode,
    SolveOptions,
    SolveSession,
    Termination,
    Validity,
    create_backend,
)
from accel_oct.mip.branching import BranchingSearch, _OpenNode
from accel_oct.mip.certificates import LinearProgram, ScipyEngine
from accel_oct.mip.conformance.suite import hard_knapsack
from accel_oct.mip.engine import EngineRun, RunStatus
from accel_oct.mip.relaxation import CutPool, CutRelaxation


def _keeping(points: list[Point], needs: Needs) -> FunctionHandler:
    def keep(point: Point) -> Reply | None:
        points.append(point)
        return None

    return FunctionHandler(keep, needs)


def _small_rows(*, maximise: bool = True) -> MipModel:
    """max 3x + 2y, or min -3x - 2y, with 2**-9 (x + y) <= 2**-9 * 4, x <= 1.5 as a row."""
    model, sign, small = MipModel(maximise=maximise), 1.0 if maximise else -1.0, 2.0**-9
    x = model.add_block("x", 2, upper=9.0, integer=True, objective=[3.0 * sign, 2.0 * sign])
    rows = Rows.from_entries([0, 0, 1], x.index[[0, 1, 0]], [small, small, 1.0], n_rows=2, upper=[4 * small, 1.5])
    model.add_rows(rows)
    return model


@pytest.mark.parametrize("maximise", [True, False])
def test_duals_are_in_the_units_of_the_model(maximise: bool) -> None:
    """A row that was scaled up has the dual of the row as given; the sign is that of the derivative."""
    arrays = ModelArrays.of(_small_rows(maximise=maximise))
    assert arrays.exponents.tolist() == [9, 0]
    session = SolveSession(arrays, SolveOptions(), None)
    relaxation = CutRelaxation(session, ScipyEngine(arrays), CutPool(2))
    duals = relaxation.duals(relaxation.solve())
    assert duals is not None
    sign = 1.0 if maximise else -1.0
    assert duals.rows == pytest.approx([sign * 2.0 * 2**9, sign * 1.0]) and duals.columns == pytest.approx([0.0, 0.0])
    assert duals.cuts.n_rows == 0 and duals.of_cuts.size == 0


def test_multipliers_that_prove_nothing_are_no_duals() -> None:
    """A multiplier of a side that is infinite counts as zero; a run without a proof has no duals."""
    rows = Rows.single([0, 1], 1.0, upper=1.0)
    program = LinearProgram(np.array([1.0, 1.0]), 1.0, rows, np.zeros(2), np.ones(2))
    unproven = EngineRun(RunStatus.OPTIMAL, np.array([1.0, 0.0]), 1.0)
    assert program.duals(unproven) is None
    assert program.duals(EngineRun(RunStatus.INFEASIBLE, None, -math.inf, multipliers=np.ones(1))) is None
    checked = program.checked(unproven, math.inf)
    assert program.duals(checked) == pytest.approx([1.0])
    # Of either sign, as solvers give them.
    flipped = EngineRun(RunStatus.OPTIMAL, np.array([1.0, 0.0]), 1.0, multipliers=np.array([-1.0]))
    assert program.duals(program.checked(flipped, math.inf)) == pytest.approx([1.0])
    assert program.reduced_costs(np.array([1.0])) == pytest.approx([0.0, 0.0])


def test_details_without_relaxations_are_an_error() -> None:
    """Duals and node bounds come with relaxation points only."""
    backend = MockBackend(script=[])
    backend.load(_small_rows())
    for needs in (Needs([Event.CANDIDATE], duals=True), Needs(node_bounds=True)):
        with pytest.raises(HandlerError, match="relaxation points, which the handler's needs lack"):
            backend.solve(handler=_keeping([], needs))


def test_needs_are_joined() -> None:
    """The union of two needs has the details of both."""
    joined = Needs([Event.RELAXATION], duals=True) | Needs(node_bounds=True)
    assert joined.duals and joined.node_bounds and not Needs().duals and not Needs().node_bounds


def test_scripted_details_come_where_declared() -> None:
    """The mock passes on node and duals of a scripted point, to handlers that declare them."""
    node = SearchNode(2, np.zeros(2), np.ones(2))
    duals = Duals(np.zeros(2), np.zeros(2), Rows.empty(), np.empty(0))
    mock = MockBackend(script=[ScriptedPoint(Event.RELAXATION, np.full(2, 0.5), node, duals)])
    mock.load(_small_rows())
    mock.solve(handler=_keeping([], Needs([Event.RELAXATION], duals=True, node_bounds=True)))
    assert mock.points[0].node is node and mock.points[0].duals is duals
    mock.solve(handler=_keeping([], Needs([Event.RELAXATION])))
    assert mock.points[0].node is None and mock.points[0].duals is None


@given(problem=hidden_rows_problems(6))
def test_duals_bound_every_point_of_the_node(problem: HiddenRowsProblem) -> None:
    """By weak duality, no 0/1 point within a node's bounds and rows is better than the duals say."""
    model, points = problem.model(complete=True), list[Point]()
    backend = create_backend("highs")
    backend.load(model)
    backend.solve(handler=_keeping(points, Needs([Event.RELAXATION], duals=True, node_bounds=True)))
    count, sign = model.n_columns, 1.0 if model.maximise else -1.0
    every = ((np.arange(2**count)[:, None] >> np.arange(count)) & 1).astype(float)
    feasible = [x for x in every if model.rows.violation(x).max(initial=0.0) <= 1e-9]
    for point in points:
        assert point.node is not None and point.duals is not None
        y, d = sign * point.duals.rows, sign * point.duals.columns
        sides = np.where(y > 0.0, model.rows.upper, model.rows.lower)
        reach = np.where(d > 0.0, point.node.upper, point.node.lower)
        limit = float(y[y != 0.0] @ sides[y != 0.0] + d @ reach)
        assert limit <= sign * point.objective + 1e-6
        inside = [x for x in feasible if np.all((x >= point.node.lower) & (x <= point.node.upper))]
        assert all(sign * float(model.objective @ x) <= limit + 1e-6 for x in inside)


def test_local_rows_hold_where_they_are_opened() -> None:
    """A local row of the pool is violated in open nodes only and rejects nothing, until the same row is global."""
    pool, row = CutPool(2), Rows.single([0, 1], 1.0, upper=1.0)
    local = Cuts(row, Validity.IMPLIED, local=True)
    ones, none = np.ones(2), np.empty(0, dtype=np.int64)
    assert pool.add_local((local,)).tolist() == [0] and pool.violated(ones).tolist() == [0]
    pool.open_local(none)
    assert not pool.violated(ones).size and not pool.rejects(ones)
    assert pool.add_local((local,)).tolist() == [0] and pool.violated(ones).tolist() == [0]  # known, and open again
    assert not pool.rejects(ones)
    assert not pool.add((Cuts(row, Validity.REQUIRED),)).size and pool.rejects(ones)
    pool.open_local(none)
    assert pool.violated(ones).tolist() == [0]
    assert pool.add_local((local,)).tolist() == [0]  # stays global
    pool.open_local(none)
    assert pool.violated(ones).tolist() == [0] and len(pool) == 1


@given(problem=hidden_rows_problems(7))
def test_local_cuts_at_every_node_leave_the_optimum(problem: HiddenRowsProblem) -> None:
    """Rows that bound the objective by the best point of a node, and lazy rows, against enumeration."""
    complete, count = problem.model(complete=True), len(problem.objective)
    every = ((np.arange(2**count)[:, None] >> np.arange(count)) & 1).astype(float)
    feasible = [x for x in every if complete.rows.violation(x).max(initial=0.0) <= 1e-9]
    sign = 1.0 if problem.maximise else -1.0
    side = "upper" if problem.maximise else "lower"
    hidden = problem.handler(*Event)

    def separate(point: Point) -> Reply | None:
        reply = hidden(point) or Reply()
        if point.node is None or not point.node.depth:
            return reply
        values = [sign * float(problem.objective @ x) for x in feasible if point.node.contains(x)]
        limit = {side: sign * max(values, default=-100.0)}
        row = Rows.single(np.arange(count), problem.objective, **limit)
        return Reply((*reply.cuts, Cuts(row, Validity.IMPLIED, "local", local=True)))

    backend = create_backend("highs")
    backend.load(problem.model(complete=False))
    needs = hidden.needs | Needs(Event, [Validity.IMPLIED], local_cuts=True)
    result = backend.solve(handler=FunctionHandler(separate, needs))
    if not feasible:
        assert result.termination is Termination.INFEASIBLE
    else:
        best = max(sign * float(problem.objective @ x) for x in feasible)
        assert result.termination is Termination.OPTIMAL and result.objective == pytest.approx(sign * best)


def test_local_cuts_are_used() -> None:
    """With the best value of every node as a local row, the tree has fewer nodes."""
    model = hard_knapsack(12, 3)
    every = ((np.arange(2**12)[:, None] >> np.arange(12)) & 1).astype(float)
    feasible = every[[model.rows.violation(x).max() == 0.0 for x in every]]
    values = feasible @ model.objective

    def separate(point: Point) -> Reply | None:
        assert point.node is not None
        inside = np.all((feasible >= point.node.lower) & (feasible <= point.node.upper), axis=1)
        row = Rows.single(np.arange(12), model.objective, upper=float(values[inside].max(initial=-1.0)))
        return Reply((Cuts(row, Validity.IMPLIED, local=True),)) if point.node.depth else None

    needs = Needs([Event.RELAXATION], [Validity.IMPLIED], local_cuts=True)
    nodes = []
    for function in (separate, lambda point: None):
        backend = create_backend("highs")
        backend.load(model)
        result = backend.solve(handler=FunctionHandler(function, needs))
        assert result.objective == values.max()
        nodes.append(result.nodes)
    assert nodes[0] < nodes[1]


def test_local_cuts_are_implied_and_have_no_key() -> None:
    """Other local cuts are errors; local cuts bring node bounds with them."""
    row = Rows.single([0], 1.0, upper=0.0)
    for arguments in ({"validity": Validity.REQUIRED}, {"validity": Validity.IMPLIED, "key": "same"}):
        with pytest.raises(HandlerError, match="local cuts must be IMPLIED, and have no key"):
            Cuts(row, local=True, **arguments)  # type: ignore[arg-type]
    assert Needs(local_cuts=True).node_bounds and (Needs() | Needs(local_cuts=True)).local_cuts


def test_local_cuts_at_a_candidate_are_an_error() -> None:
    """A candidate belongs to no node; at a relaxation they are in the verdict, apart from the others."""
    cuts = Cuts(Rows.single([0], 1.0, upper=0.0), Validity.IMPLIED, local=True)
    needs = Needs(Event, [Validity.IMPLIED], local_cuts=True)
    session = SolveSession(
        ModelArrays.of(_small_rows()), SolveOptions(), FunctionHandler(lambda point: Reply((cuts,)), needs)
    )
    verdict = session.consult(Event.RELAXATION, np.full(2, 0.5), node=SearchNode(0, np.zeros(2), np.ones(2)))
    assert not verdict.cuts and len(verdict.local) == 1 and not session.cuts
    assert verdict.violated_local(np.full(2, 0.5)).n_rows == 1 and not verdict.violated_local(np.zeros(2)).n_rows
    session.consult(Event.CANDIDATE, np.zeros(2))
    with pytest.raises(HandlerError, match="a candidate belongs to no node"):
        session.raise_stored()


def test_local_cuts_hold_in_all_nodes_below() -> None:
    """A row returned once, at depth one, is satisfied by every later relaxation within the bounds of that node."""
    model, given, seen = hard_knapsack(12, 3), list[tuple[SearchNode, Rows]](), list[int]()

    def separate(point: Point) -> Reply | None:
        assert point.node is not None
        for node, row in given:
            if np.all(point.node.lower >= node.lower) and np.all(point.node.upper <= node.upper):
                assert row.violation(point.x)[0] <= 1e-6
                seen.append(point.node.depth)
        if point.node.depth != 1 or given:
            return None
        # Whether it removes the optimum does not matter here.
        row = Rows.single([int(np.argmin(np.abs(point.x - 0.5)))], 1.0, upper=0.0)
        given.append((point.node, row))
        return Reply((Cuts(row, Validity.IMPLIED, local=True),))

    backend = create_backend("highs")
    backend.load(model)
    backend.solve(handler=FunctionHandler(separate, Needs([Event.RELAXATION], [Validity.IMPLIED], local_cuts=True)))
    assert given and max(seen) > 1


def test_local_cuts_of_one_node_are_not_those_of_the_next() -> None:
    """A node that shows no relaxation has no local cuts of its own to pass on."""
    arrays = ModelArrays.of(_small_rows())
    session, pool = SolveSession(arrays, SolveOptions(), None), CutPool(2)
    search = BranchingSearch(session, pool, CutRelaxation(session, ScipyEngine(arrays), pool))
    search._local = tuple(pool.add_local((Cuts(Rows.single([0], 1.0), Validity.IMPLIED, local=True),)).tolist())
    search._enter(_OpenNode(0.0, 1, None, False, 1.0))
    assert search._local == () and pool.closed.all()
