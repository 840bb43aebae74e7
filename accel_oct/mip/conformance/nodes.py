"""What handlers learn about the nodes of a search: duals, reduced costs, depth and column bounds."""

from __future__ import annotations

import numpy as np

from accel_oct.mip.backend import Support
from accel_oct.mip.conformance.suite import (
    TOLERANCE,
    BackendFactory,
    check,
    check_with,
    close,
    expect_unsupported,
    hard_knapsack,
    knapsack,
    loaded,
)
from accel_oct.mip.errors import HandlerError, InvalidCutError
from accel_oct.mip.exchange import (
    Cuts,
    Duals,
    Event,
    FunctionHandler,
    Needs,
    Point,
    Reply,
    SearchNode,
    Termination,
    Validity,
)
from accel_oct.mip.model import MipModel
from accel_oct.mip.options import SolveOptions
from accel_oct.mip.rows import Rows
from accel_oct.support.arrays import FloatArray

#: Duals below this, relative to the coefficients of the objective, count as zero.
_ZERO = 1e-6


@check
def duals_prove_the_value_of_a_relaxation(factory: BackendFactory) -> None:
    """Duals and reduced costs add up to the objective, have the stated signs, and are zero at what is slack."""
    backend = factory()
    if not backend.capabilities.duals:
        _expect_missing(factory, Needs([Event.RELAXATION], duals=True))
        return
    proven = 0
    for seed in range(4):
        model = _every_kind_of_row(seed, maximise=bool(seed % 2))
        for maker in (_no_cuts, _rounded_cuts):
            points: list[Point] = []
            handler = maker(model, points, Needs([Event.RELAXATION], duals=True, node_bounds=True))
            backend = loaded(factory, model)
            result = backend.solve(SolveOptions(native=backend.plain_options), handler)
            assert result.termination is Termination.OPTIMAL
            for point in points:
                assert point.node is not None
                if point.duals is not None:
                    proven += 1
                    _check_duals(model, point, point.duals, point.node)
    assert proven >= 4, "the handler saw next to no duals"


@check
def nodes_have_depth_and_bounds(factory: BackendFactory) -> None:
    """A relaxation lies within the bounds of its node, which are those of the model at the root and tighter below."""
    backend = factory()
    if not backend.capabilities.node_bounds:
        _expect_missing(factory, Needs([Event.RELAXATION], node_bounds=True))
        return
    model = hard_knapsack(12, 3)
    backend.load(model)
    optimum, depths = backend.solve().objective or 0.0, set[int]()
    for native in (backend.plain_options, {}):
        points: list[Point] = []
        handler = _rounded_cuts(model, points, Needs([Event.RELAXATION], node_bounds=True))
        result = backend.solve(SolveOptions(native=native), handler)
        assert result.termination is Termination.OPTIMAL and close(result.objective, optimum)
        nodes = [point.node for point in points if point.node is not None]
        assert len(nodes) == len(points) and (not nodes or nodes[0].depth == 0)
        depths |= {node.depth for node in nodes}
        for point, node in zip(points, nodes, strict=True):
            assert node.lower.shape == node.upper.shape == (model.n_columns,)
            assert not (node.lower.flags.writeable or node.upper.flags.writeable)
            assert np.all(node.lower >= model.lower) and np.all(node.upper <= model.upper)
            assert np.all(point.x >= node.lower - TOLERANCE) and np.all(point.x <= node.upper + TOLERANCE)
            assert np.count_nonzero((node.lower > model.lower) | (node.upper < model.upper)) >= node.depth
    assert 0 in depths, "the handler never saw the root"


@check_with("relaxation_points")
def details_come_on_request_only(factory: BackendFactory) -> None:
    """A handler that does not declare duals or node bounds receives none."""
    points: list[Point] = []
    model = hard_knapsack(10, 3)
    backend = loaded(factory, model)
    handler = _no_cuts(model, points, Needs([Event.CANDIDATE, Event.RELAXATION]))
    backend.solve(SolveOptions(native=backend.plain_options), handler)
    assert all(point.duals is None and point.node is None for point in points)


def _expect_missing(factory: BackendFactory, needs: Needs) -> None:
    backend = loaded(factory, knapsack())
    expect_unsupported(lambda: backend.solve(handler=FunctionHandler(lambda point: None, needs)))


def _check_duals(model: MipModel, point: Point, duals: Duals, node: SearchNode) -> None:
    rows, x, sign = model.rows, point.x, 1.0 if model.maximise else -1.0
    assert duals.rows.shape == (rows.n_rows,) and duals.columns.shape == (model.n_columns,)
    assert duals.of_cuts.shape == (duals.cuts.n_rows,)
    combined = duals.columns.copy()
    value = 0.0
    tolerance = _ZERO * max(1.0, float(np.abs(model.objective).max()))
    for batch, y in ((rows, duals.rows), (duals.cuts, duals.of_cuts)):
        np.add.at(combined, batch.columns, y[batch.row_of_entry] * batch.values)
        value += _tight_value(y * sign, batch.lower, batch.upper, batch.activity(x), tolerance) * sign
    value += _tight_value(duals.columns * sign, node.lower, node.upper, x, tolerance) * sign
    assert np.allclose(combined, model.objective, rtol=0.0, atol=tolerance)
    assert abs(value - point.objective) <= 1e-5 * max(1.0, abs(value)), f"duals give {value}, not {point.objective}"


def _tight_value(y: FloatArray, lower: FloatArray, upper: FloatArray, activity: FloatArray, tolerance: float) -> float:
    """Return the sum of duals times their sides, for maximisation; each must be tight at the side of its sign."""
    used = np.abs(y) > tolerance
    sides = np.where(y > 0.0, upper, lower)
    assert np.all(np.abs(activity - sides)[used] <= 1e-5 * np.maximum(1.0, np.abs(sides[used]))), (
        "a slack row is priced"
    )
    return float(y[used] @ sides[used])


def _every_kind_of_row(seed: int, *, maximise: bool) -> MipModel:
    """A model with inequalities of both directions, ranges, an equation, and a row of small coefficients."""
    generator = np.random.default_rng([seed, 11])
    model = MipModel(maximise=maximise)
    n_columns, n_rows = 9, 7
    model.add_block(
        "n", 7, lower=-2.0, upper=3.0, integer=True, objective=generator.integers(-9, 10, size=7).astype(float)
    )
    model.add_block("y", 2, lower=-1.0, upper=2.5, objective=generator.integers(-9, 10, size=2).astype(float))
    matrix = generator.integers(-6, 7, size=(n_rows, n_columns)).astype(float)
    matrix[:4, 7:] = 0.0
    matrix[-1] /= 2.0**10
    inside = np.concatenate([generator.integers(-1, 3, size=7), generator.integers(0, 2, size=2)])
    lower, upper = (
        matrix @ inside - generator.integers(1, 6, n_rows),
        matrix @ inside + generator.integers(1, 6, n_rows),
    )
    lower[:2], upper[2:4] = -np.inf, np.inf
    lower[4] = upper[4] = matrix[4] @ inside
    lower[-1], upper[-1] = matrix[-1] @ inside - 2.0**-8, matrix[-1] @ inside + 2.0**-8
    row, column = np.nonzero(matrix)
    model.add_rows(Rows.from_entries(row, column, matrix[row, column], n_rows=n_rows, lower=lower, upper=upper))
    return model


def _no_cuts(model: MipModel, points: list[Point], needs: Needs) -> FunctionHandler:
    def keep(point: Point) -> Reply | None:
        points.append(point)
        return None

    return FunctionHandler(keep, needs)


def _rounded_cuts(model: MipModel, points: list[Point], needs: Needs) -> FunctionHandler:
    """Return a handler with Chvatal-Gomory cuts of single rows of integer columns, which hold for every point."""
    rows = model.rows
    dense = np.zeros((rows.n_rows, model.n_columns))
    dense[rows.row_of_entry, rows.columns] = rows.values
    cuts = []
    for row in range(rows.n_rows):
        for divisor in (2.0, 3.0, 5.0, 7.0, 20.0, 27.0):
            for side in (rows.upper[row], -rows.lower[row]):
                a = dense[row] if side == rows.upper[row] else -dense[row]
                if not np.isfinite(side) or np.any(a[~model.integer]) or not np.array_equal(a, np.round(a)):
                    continue
                # In z = x - lower >= 0: floor(a / d) z <= floor((side - a lower) / d).
                slopes = np.floor(a / divisor)
                limit = np.floor((side - a @ model.lower) / divisor + 1e-9) + slopes @ model.lower
                used = np.flatnonzero(slopes)
                cuts.append(Rows.single(used, slopes[used], upper=float(limit)))
    every = Rows.concatenate(cuts)

    def separate(point: Point) -> Reply | None:
        points.append(point)
        violated = np.flatnonzero(every.violation(point.x) > TOLERANCE)
        return Reply(cuts=(Cuts(every.take(violated), Validity.IMPLIED, "rounded"),)) if violated.size else None

    return FunctionHandler(separate, needs | Needs(cuts=[Validity.IMPLIED]))


@check
def local_cuts_hold_below_their_node_only(factory: BackendFactory) -> None:
    """Cuts that are valid in one node and wrong in others leave the optimum, and are used where they hold."""
    model = hard_knapsack(10, 3)
    backend = loaded(factory, model)
    needs = Needs([Event.RELAXATION], [Validity.IMPLIED], local_cuts=True)
    if not backend.capabilities.local_cuts:
        _expect_missing(factory, needs)
        return
    every = ((np.arange(2**10)[:, None] >> np.arange(10)) & 1).astype(float)
    feasible = np.array([x for x in every if model.rows.violation(x).max() == 0.0])
    values = feasible @ model.objective
    optimum = float(values.max())
    best = feasible[int(values.argmax())]
    wrong_elsewhere: list[bool] = []

    def separate(point: Point) -> Reply | None:
        node = point.node
        assert node is not None
        if node.depth == 0:
            return None
        inside = [value for x, value in zip(feasible, values, strict=True) if node.contains(x)]
        # No point of this node is better than the best one of them; with none, no point is left.
        row = Rows.single(np.arange(10), model.objective, upper=max(inside, default=-1.0))
        wrong_elsewhere.append(bool(row.violation(best)[0] > 0.0))
        return Reply(cuts=(Cuts(row, Validity.IMPLIED, "local", local=True),))

    options = SolveOptions(time_limit=60.0, native=backend.plain_options)
    result = backend.solve(options, FunctionHandler(separate, needs))
    assert result.termination is Termination.OPTIMAL
    assert close(result.objective, optimum) and close(result.bound, optimum)
    if backend.capabilities.lazy_rows is Support.NATIVE or wrong_elsewhere:
        assert any(wrong_elsewhere), "no cut was returned that is wrong elsewhere"


@check_with("local_cuts")
def wrong_local_cuts_raise(factory: BackendFactory) -> None:
    """Local cuts at a candidate, undeclared ones, and those that cut off the incumbent in their node are errors."""
    model = hard_knapsack(10, 3)
    row = Rows.single(np.arange(10), 1.0, upper=-1.0)
    cuts = Cuts(row, Validity.IMPLIED, "wrong", local=True)
    both = [Event.CANDIDATE, Event.RELAXATION]
    for needs, expected in (
        (Needs([Event.CANDIDATE, Event.RELAXATION], [Validity.IMPLIED]), HandlerError),
        (Needs(both, [Validity.IMPLIED], local_cuts=True), InvalidCutError),
    ):
        backend = loaded(factory, model)
        if expected is InvalidCutError and not backend.capabilities.start:
            continue
        if backend.capabilities.start:
            backend.set_start(np.zeros(10))
        at = {Event.RELAXATION} if expected is InvalidCutError else set(Event)
        handler = FunctionHandler(lambda point, at=at: Reply(cuts=(cuts,)) if point.event in at else None, needs)  # type: ignore[misc]
        try:
            backend.solve(SolveOptions(native=backend.plain_options), handler)
        except expected:
            continue
        raise AssertionError(f"{expected.__name__} was expected")
