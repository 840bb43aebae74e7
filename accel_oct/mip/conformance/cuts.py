"""Cuts of the three validities, starts and injected solutions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from accel_oct.mip.backend import Backend
from accel_oct.mip.conformance.suite import (
    KNAPSACK_OPTIMUM,
    TOLERANCE,
    BackendFactory,
    at_most,
    cardinality,
    cardinality_handler,
    cardinality_optimum,
    check,
    check_with,
    close,
    covering,
    expect_unsupported,
    hard_knapsack,
    knapsack,
    listening,
    loaded,
)
from accel_oct.mip.errors import HandlerError, InvalidCutError
from accel_oct.mip.exchange import (
    BoundReport,
    Cuts,
    Event,
    FunctionHandler,
    MipResult,
    Needs,
    Point,
    Reply,
    Termination,
    Validity,
)
from accel_oct.mip.model import MipModel
from accel_oct.mip.options import SolveOptions
from accel_oct.mip.rows import Rows
from accel_oct.support.arrays import FloatArray


@check
def required_cuts_hold(factory: BackendFactory) -> None:
    """A row that is only ever separated lazily holds in the returned point, which is optimal under it."""
    model, seen = cardinality(), list[FloatArray]()
    backend = loaded(factory, model)
    handler = cardinality_handler(model, 4, seen)
    if not backend.capabilities.lazy_rows:
        expect_unsupported(lambda: backend.solve(handler=handler))
        return
    result = backend.solve(handler=handler)
    assert result.termination is Termination.OPTIMAL
    assert result.x is not None and result.x.sum() <= 4 + TOLERANCE
    assert close(result.objective, cardinality_optimum(model, 4)) and close(result.bound, result.objective or 0.0)
    assert result.statistics.rejected_candidates >= 1 and result.statistics.cuts["at most"] >= 1
    assert any(x.sum() > 4 for x in seen), "the handler never saw the point that it should have rejected"


@check_with("lazy_rows")
def candidates_are_integral_and_read_only(factory: BackendFactory) -> None:
    """At a candidate the integer columns are exact integers, and the handler cannot write to the point."""
    model, seen = cardinality(), list[FloatArray]()
    backend = loaded(factory, model)
    backend.solve(handler=cardinality_handler(model, 4, seen))
    assert seen
    for x in seen:
        assert x.shape == (model.n_columns,) and np.array_equal(x, np.round(x)) and not x.flags.writeable


@check_with("lazy_rows")
def violating_candidate_is_never_incumbent(factory: BackendFactory) -> None:
    """A rejected candidate, however good, is never the incumbent of a later point, report or result."""
    model = cardinality()
    best = cardinality_optimum(model, 3)
    incumbents: list[float | None] = []
    inner = cardinality_handler(model, 3)

    def separate(point: Point) -> Reply | None:
        incumbents.append(point.incumbent)
        return inner(point)

    backend = loaded(factory, model)
    reports: list[BoundReport] = []
    result = backend.solve(handler=listening(reports.append, FunctionHandler(separate, inner.needs)))
    assert reports
    values = [*incumbents, *(report.incumbent for report in reports), result.objective]
    assert all(value is None or value <= best + TOLERANCE for value in values)


@check_with("lazy_rows")
def cuts_do_not_outlive_the_solve(factory: BackendFactory) -> None:
    """A later solve without the handler does not have its cuts."""
    model = cardinality()
    backend = loaded(factory, model)
    backend.solve(handler=cardinality_handler(model, 2))
    assert close(backend.solve().objective, float(model.objective.sum()))


@check
def implied_cuts_tighten_the_bound(factory: BackendFactory) -> None:
    """At relaxation points an odd-cycle cut lifts the bound of the 5-cycle cover to its optimum."""
    model = covering()
    odd_cycle = Cuts(Rows.single(np.arange(5), 1.0, lower=3.0), Validity.IMPLIED, "odd cycle")
    relaxations: list[float] = []

    def separate(point: Point) -> Reply | None:
        if point.event is Event.RELAXATION:
            relaxations.append(float(point.x.sum()))
        return Reply(cuts=(odd_cycle,)) if point.x.sum() < 3.0 - TOLERANCE else None

    handler = FunctionHandler(separate, Needs([Event.RELAXATION], [Validity.IMPLIED]))
    backend = loaded(factory, model)
    if not (backend.capabilities.relaxation_points and backend.capabilities.user_cuts):
        expect_unsupported(lambda: backend.solve(handler=handler))
        return
    result = backend.solve(SolveOptions(native=backend.plain_options), handler)
    assert result.termination is Termination.OPTIMAL and close(result.objective, 3.0) and close(result.bound, 3.0)
    assert relaxations, "the handler was never shown a relaxation"


@check
def optimality_cuts_keep_the_stated_optimum(factory: BackendFactory) -> None:
    """An OPTIMALITY cut may remove feasible points; the optimum that it keeps is found and proven."""
    symmetry = Cuts(Rows.single([0], 1.0, lower=1.0), Validity.OPTIMALITY, "symmetry", keeps="column 0")

    def separate(point: Point) -> Reply | None:
        return Reply(cuts=(symmetry,)) if point.x[0] < 1.0 - TOLERANCE else None

    for events in ([Event.CANDIDATE], [Event.CANDIDATE, Event.RELAXATION]):
        backend = factory()
        backend.load(covering())  # every optimum is a rotation of one: keep those with column 0 at one
        handler = FunctionHandler(separate, Needs(events, [Validity.OPTIMALITY], keeps="column 0"))
        if not _can_deliver(backend, handler):
            continue
        result = backend.solve(handler=handler)
        assert result.termination is Termination.OPTIMAL and close(result.objective, 3.0) and close(result.bound, 3.0)


@check
def an_optimum_outside_of_the_optimality_cuts_stands(factory: BackendFactory) -> None:
    """A start that is an optimum outside of the OPTIMALITY cuts is optimal."""
    symmetry = Cuts(Rows.single([0], 1.0, lower=1.0), Validity.OPTIMALITY, "symmetry", keeps="column 0")
    handler = FunctionHandler(
        lambda point: Reply(cuts=(symmetry,)), Needs([Event.CANDIDATE], [Validity.OPTIMALITY], keeps="column 0")
    )
    backend = loaded(factory, covering())
    if not (_can_deliver(backend, handler) and backend.capabilities.start):
        return
    backend.set_start([0.0, 1.0, 0.0, 1.0, 1.0])
    result = backend.solve(handler=handler)
    assert result.termination is Termination.OPTIMAL and close(result.objective, 3.0) and close(result.bound, 3.0)


@check
def contradictory_optimality_cuts_raise(factory: BackendFactory) -> None:
    """OPTIMALITY cuts that exclude every point raise an error; nothing is proven."""
    first = Cuts(Rows.single([0], 1.0, lower=1.0), Validity.OPTIMALITY, "in", keeps="column 0")
    second = Cuts(Rows.single([0], 1.0, upper=0.0), Validity.OPTIMALITY, "out", keeps="column 0")
    for events in ([Event.CANDIDATE], [Event.RELAXATION], [Event.CANDIDATE, Event.RELAXATION]):
        for start in (None, np.ones(5)):
            backend = loaded(factory, covering())
            handler = FunctionHandler(
                lambda point: Reply(cuts=(first, second)), Needs(events, [Validity.OPTIMALITY], keeps="column 0")
            )
            if not _can_deliver(backend, handler):
                continue
            if start is not None and backend.capabilities.start:
                backend.set_start(start)
            options = SolveOptions(native=backend.plain_options)
            result = _invalid(lambda backend=backend, o=options, h=handler: backend.solve(o, h))  # type: ignore[misc]
            # A solver that finds no feasible point before the cuts empty its search has nothing to contradict them, and
            # one that solves the model without showing a point has not seen the cuts.
            assert (
                result is None
                or (result.termination is Termination.INFEASIBLE and start is None)
                or (Event.CANDIDATE not in events and not result.statistics.calls and close(result.objective, 3.0))
            ), f"{result.termination}, objective {result.objective}"


@check
def required_cuts_that_empty_the_problem_raise(factory: BackendFactory) -> None:
    """A REQUIRED or IMPLIED cut that removes an accepted solution is invalid."""
    model = cardinality()
    for validity in (Validity.REQUIRED, Validity.IMPLIED):
        impossible = Cuts(Rows.single(np.arange(model.n_columns), 1.0, upper=-1.0), validity, "impossible")
        shown: list[bool] = []

        def separate(point: Point, cut: Cuts = impossible, shown: list[bool] = shown) -> Reply | None:
            shown.append(True)
            return Reply(cuts=(cut,)) if len(shown) > 1 else None

        backend = loaded(factory, model)
        if not (backend.capabilities.start and backend.capabilities.lazy_rows):
            return
        backend.set_start(np.eye(model.n_columns)[0])
        handler = FunctionHandler(separate, Needs([Event.CANDIDATE], [validity]))
        assert _invalid(lambda backend=backend, handler=handler: backend.solve(handler=handler)) is None  # type: ignore[misc]


@check
def optimality_cuts_of_different_rules_are_refused(factory: BackendFactory) -> None:
    """OPTIMALITY cuts of two rules, which may keep different optima, and of undeclared rules are errors."""
    cut = Cuts(Rows.single([0], 1.0, lower=1.0), Validity.OPTIMALITY, "symmetry", keeps="column 0")
    for keeps in ([], ["column 1"], ["column 0", "column 1"]):
        handler = FunctionHandler(
            lambda point: Reply(cuts=(cut,)), Needs([Event.CANDIDATE], [Validity.OPTIMALITY], keeps=keeps)
        )
        backend = loaded(factory, covering())
        if not backend.capabilities.lazy_rows:
            return
        try:
            backend.solve(handler=handler)
        except HandlerError:
            continue
        raise AssertionError(f"OPTIMALITY cuts by the rule 'column 0' were taken from a handler that declared {keeps}")


def _invalid(solve: Callable[[], MipResult]) -> MipResult | None:
    """Return the result of a solve; None if it raised InvalidCutError."""
    try:
        return solve()
    except InvalidCutError:
        return None


@check
def required_cuts_found_at_relaxations_hold(factory: BackendFactory) -> None:
    """A REQUIRED row found at a relaxation is respected like one found at a candidate."""
    model = cardinality()
    cut = at_most(model, 5)

    def separate(point: Point) -> Reply | None:
        return Reply(cuts=(cut,)) if point.x.sum() > 5 + TOLERANCE else None

    handler = FunctionHandler(separate, Needs([Event.CANDIDATE, Event.RELAXATION], [Validity.REQUIRED]))
    backend = loaded(factory, model)
    if _can_deliver(backend, handler):
        assert close(backend.solve(handler=handler).objective, cardinality_optimum(model, 5))


@check_with("continuous_columns", "lazy_rows")
def required_cuts_hold_in_a_linear_model(factory: BackendFactory) -> None:
    """Without integer columns, a lazy row holds in the returned point, which is optimal under it."""
    model = MipModel(maximise=True)
    x = model.add_block("x", 3, objective=[3.0, 2.0, 1.0])
    cut = Cuts(Rows.single(x.index, 1.0, upper=1.5), Validity.REQUIRED)

    def separate(point: Point) -> Reply | None:
        return Reply(cuts=(cut,)) if point.x.sum() > 1.5 + TOLERANCE else None

    backend = factory()
    backend.load(model)
    result = backend.solve(handler=FunctionHandler(separate, Needs([Event.CANDIDATE], [Validity.REQUIRED])))
    assert result.termination is Termination.OPTIMAL and close(result.objective, 4.0) and close(result.bound, 4.0)


def _can_deliver(backend: Backend, handler: FunctionHandler) -> bool:
    """Return whether the backend supports the handler's events; if not, it must raise UnsupportedError."""
    able = backend.capabilities
    if able.lazy_rows and (able.relaxation_points or Event.RELAXATION not in handler.needs.events):
        return True
    expect_unsupported(lambda: backend.solve(handler=handler))
    return False


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
    """Injections that violate a bound, integrality or a REQUIRED cut are rejected and counted."""
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
    """Inject x at the first rejected candidate; None if the backend does not support it."""
    model = cardinality()
    inner, given = cardinality_handler(model, limit), list[bool]()

    def separate(point: Point) -> Reply | None:
        reply = inner(point)
        if reply is None or given:
            return reply
        given.append(True)
        return Reply(cuts=reply.cuts, solutions=(x,))

    handler = FunctionHandler(separate, Needs(inner.needs.events, inner.needs.cuts, injects=True))
    backend = loaded(factory, model)
    if not (backend.capabilities.injection and backend.capabilities.lazy_rows):
        expect_unsupported(lambda: backend.solve(handler=handler))
        return None
    result = backend.solve(handler=handler)
    assert result.termination is Termination.OPTIMAL
    statistics = result.statistics
    assert statistics.injections_offered == 1
    return result.objective, statistics.injections_accepted, statistics.injections_rejected


@check_with("continuous_columns", "relaxation_points")
def injection_into_columns_that_presolve_removes(factory: BackendFactory) -> None:
    """Solutions reach the solver in the original columns, even if presolve substitutes some of them."""
    backend = factory()
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
    """A feasible start is the first incumbent, also with a time limit of 0."""
    backend = loaded(factory, knapsack())
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


@check_with("start", "injection", "lazy_rows")
def solutions_proposed_for_the_start_are_used(factory: BackendFactory) -> None:
    """Solutions that the handler proposes for the start are checked at once, even if proposed only once."""
    model = hard_knapsack(14, 3)
    backend = factory()
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
    """Cuts hold even if returned only once: for a start, or together with an injection."""
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


@check_with("start", "lazy_rows")
def infeasible_start_ignored(factory: BackendFactory) -> None:
    """A start that violates the model or a REQUIRED cut has no effect."""
    model = cardinality()
    backend = loaded(factory, model)
    backend.set_start(np.ones(model.n_columns))
    result = backend.solve(handler=cardinality_handler(model, 2))
    assert close(result.objective, cardinality_optimum(model, 2))


@check
def injection_at_relaxations(factory: BackendFactory) -> None:
    """A solution proposed at a relaxation point becomes the incumbent before the solver ends."""
    model = hard_knapsack(20, 3)
    zero = np.zeros(model.n_columns)
    seen: list[float | None] = []

    def offer(point: Point) -> Reply | None:
        seen.append(point.incumbent)
        return Reply(solutions=(zero,)) if len(seen) == 1 else None

    backend = loaded(factory, model)
    handler = FunctionHandler(offer, Needs([Event.RELAXATION], injects=True))
    if not (backend.capabilities.relaxation_points and backend.capabilities.injection):
        expect_unsupported(lambda: backend.solve(handler=handler))
        return
    result = backend.solve(handler=handler)
    assert result.termination is Termination.OPTIMAL
    assert result.statistics.injections_offered == 1 and result.statistics.injections_rejected == 0
