"""Starts and injected solutions."""

from __future__ import annotations

import numpy as np

from accel_oct.mip.conformance.suite import (
    KNAPSACK_OPTIMUM,
    BackendFactory,
    at_most,
    cardinality,
    cardinality_handler,
    cardinality_optimum,
    check,
    close,
    expect_unsupported,
    hard_knapsack,
    knapsack,
    listening,
)
from accel_oct.mip.exchange import (
    BoundReport,
    Event,
    FunctionHandler,
    Needs,
    Point,
    Reply,
    SolveOptions,
    Termination,
    Validity,
)
from accel_oct.mip.rows import FloatArray, Rows


@check
def injection_accepted(factory: BackendFactory) -> None:
    """A better solution in a reply becomes the incumbent and is counted."""
    model, limit = cardinality(), 3
    best = np.zeros(model.n_columns)
    best[np.argsort(-model.objective)[:limit]] = 1.0
    result = _solve_injecting(factory, best, limit)
    if result is None:
        return
    objective, accepted, rejected = result
    assert close(objective, cardinality_optimum(model, limit))
    assert accepted == 1 and rejected == 0


@check
def infeasible_injection_rejected(factory: BackendFactory) -> None:
    """Injections that break a bound, integrality or a REQUIRED cut are rejected and counted; the optimum stands."""
    model, limit = cardinality(), 3
    too_many, beyond, half = np.ones(model.n_columns), np.zeros(model.n_columns), np.zeros(model.n_columns)
    beyond[0], half[0] = 2.0, 0.5
    for x in (too_many, beyond, half):
        result = _solve_injecting(factory, x, limit)
        if result is None:
            return
        objective, accepted, rejected = result
        assert close(objective, cardinality_optimum(model, limit))
        assert accepted == 0 and rejected == 1


def _solve_injecting(factory: BackendFactory, x: FloatArray, limit: int) -> tuple[float | None, int, int] | None:
    """Inject x at the first rejected candidate; None when the backend rightly refuses."""
    model = cardinality()
    inner, given = cardinality_handler(model, limit), list[bool]()

    def separate(point: Point) -> Reply | None:
        reply = inner(point)
        if reply is None or given:
            return reply
        given.append(True)
        return Reply(cuts=reply.cuts, solutions=(x,))

    handler = FunctionHandler(separate, Needs(inner.needs.events, inner.needs.cuts, injects=True))
    backend = factory()
    backend.load(model)
    if not (backend.capabilities.injection and backend.capabilities.lazy_rows):
        expect_unsupported(lambda: backend.solve(handler=handler))
        return None
    result = backend.solve(handler=handler)
    assert result.termination is Termination.OPTIMAL
    statistics = result.statistics
    assert statistics.injections_offered == 1
    return result.objective, statistics.injections_accepted, statistics.injections_rejected


@check
def injection_into_columns_that_presolve_removes(factory: BackendFactory) -> None:
    """Solutions reach the solver in the original columns, also where equations let presolve substitute some of them."""
    backend = factory()
    if not (backend.capabilities.continuous_columns and backend.capabilities.relaxation_points):
        return
    model = hard_knapsack(20, 3)
    mean = model.add_block("mean", 4, upper=np.inf)
    groups = np.repeat(np.arange(4), 5)
    model.add_rows(
        Rows.from_entries(
            np.concatenate([groups, np.arange(4)]),
            np.concatenate([np.arange(20), mean.index]),
            np.concatenate([np.ones(20), np.full(4, -5.0)]),
            n_rows=4,
            lower=0.0,
            upper=0.0,
        )
    )
    some = np.zeros(model.n_columns)
    some[0], some[mean.index[0]] = 1.0, 0.2
    given: list[bool] = []

    def offer(point: Point) -> Reply | None:
        if given:
            return None
        given.append(True)
        return Reply(solutions=(some,))

    backend.load(model)
    result = backend.solve(handler=FunctionHandler(offer, Needs([Event.CANDIDATE, Event.RELAXATION], injects=True)))
    backend.load(hard_knapsack(20, 3))
    assert result.termination is Termination.OPTIMAL and close(result.objective, backend.solve().objective or 0.0)
    assert result.statistics.injections_rejected == 0


@check
def start_used(factory: BackendFactory) -> None:
    """A feasible start is the first incumbent, also when there is no time for anything else."""
    backend = factory()
    backend.load(knapsack())
    start = np.array([0.0, 1.0, 1.0, 0.0])
    if not backend.capabilities.start:
        expect_unsupported(lambda: backend.set_start(start))
        return
    backend.set_start(start)
    reports: list[BoundReport] = []
    backend.solve(handler=listening(reports.append))
    assert close(reports[0].incumbent, 20.0)
    result = backend.solve(SolveOptions(time_limit=0.0))
    assert result.objective is not None and result.objective >= 20.0 - 1e-6 and result.bound >= KNAPSACK_OPTIMUM - 1e-6


@check
def solutions_proposed_for_the_start_are_used(factory: BackendFactory) -> None:
    """What the handler proposes when it is shown the start is vetted then and there, also if it says it only once."""
    model = hard_knapsack(14, 3)
    backend = factory()
    if not (backend.capabilities.start and backend.capabilities.injection and backend.capabilities.lazy_rows):
        return
    backend.load(model)
    best = backend.solve().x
    assert best is not None
    seen: list[float | None] = []

    def offer(point: Point) -> Reply | None:
        seen.append(point.incumbent)
        return Reply(solutions=(best,)) if len(seen) == 1 else None

    backend.set_start(np.zeros(model.n_columns))
    reports: list[BoundReport] = []
    inner = FunctionHandler(offer, Needs([Event.CANDIDATE], injects=True))
    result = backend.solve(handler=listening(reports.append, inner))
    assert result.statistics.injections_accepted == 1 and result.termination is Termination.OPTIMAL
    assert close(reports[0].incumbent, 0.0) and close(reports[1].incumbent, float(model.objective @ best))


@check
def cuts_that_reject_a_start_or_an_injection_hold(factory: BackendFactory) -> None:
    """Also when the handler says them only once: while a start is vetted, or in the reply that brings the injection."""
    model, limit = cardinality(), 3
    everything = np.ones(model.n_columns)
    for as_start in (True, False):
        backend = factory()
        able = backend.capabilities
        if not (able.lazy_rows and able.injection and able.start):
            return
        backend.load(model)
        said: list[bool] = []

        def separate(point: Point, said: list[bool] = said, inject: bool = not as_start) -> Reply | None:
            if said or point.x.sum() <= limit:
                return None
            said.append(True)
            return Reply((at_most(model, limit),), (everything,) if inject else ())

        if as_start:
            backend.set_start(everything)
        needs = Needs([Event.CANDIDATE], [Validity.REQUIRED], injects=True)
        result = backend.solve(handler=FunctionHandler(separate, needs))
        assert close(result.objective, cardinality_optimum(model, limit)), f"objective {result.objective}"


@check
def infeasible_start_ignored(factory: BackendFactory) -> None:
    """A start that breaks the model or a REQUIRED cut changes nothing."""
    model = cardinality()
    backend = factory()
    backend.load(model)
    if not (backend.capabilities.start and backend.capabilities.lazy_rows):
        return
    backend.set_start(np.ones(model.n_columns))
    result = backend.solve(handler=cardinality_handler(model, 2))
    assert close(result.objective, cardinality_optimum(model, 2))


@check
def injection_at_relaxations(factory: BackendFactory) -> None:
    """A solution offered at a relaxation point becomes the incumbent before the solver ends."""
    model = hard_knapsack(20, 3)
    zero = np.zeros(model.n_columns)
    seen: list[float | None] = []

    def offer(point: Point) -> Reply | None:
        seen.append(point.incumbent)
        return Reply(solutions=(zero,)) if len(seen) == 1 else None

    backend = factory()
    backend.load(model)
    handler = FunctionHandler(offer, Needs([Event.RELAXATION], injects=True))
    if not (backend.capabilities.relaxation_points and backend.capabilities.injection):
        expect_unsupported(lambda: backend.solve(handler=handler))
        return
    result = backend.solve(handler=handler)
    assert result.termination is Termination.OPTIMAL
    assert result.statistics.injections_offered == 1 and result.statistics.injections_rejected == 0
