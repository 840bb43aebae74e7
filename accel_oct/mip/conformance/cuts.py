"""Cuts of the three validities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from accel_oct.mip.backend import Backend
from accel_oct.mip.conformance.suite import (
    TOLERANCE,
    BackendFactory,
    at_most,
    cardinality,
    cardinality_handler,
    cardinality_optimum,
    check,
    close,
    covering,
    expect_unsupported,
    listening,
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
    SolveOptions,
    Termination,
    Validity,
)
from accel_oct.mip.model import MipModel
from accel_oct.mip.rows import FloatArray, Rows


@check
def required_cuts_hold(factory: BackendFactory) -> None:
    """A row that is only ever separated lazily holds in the returned point, which is optimal under it."""
    model, seen = cardinality(), list[FloatArray]()
    backend = factory()
    backend.load(model)
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


@check
def candidates_are_integral_and_read_only(factory: BackendFactory) -> None:
    """At a candidate the integer columns are exact integers, and the handler cannot write to the point."""
    model, seen = cardinality(), list[FloatArray]()
    backend = factory()
    backend.load(model)
    if not backend.capabilities.lazy_rows:
        return
    backend.solve(handler=cardinality_handler(model, 4, seen))
    assert seen
    for x in seen:
        assert x.shape == (model.n_columns,) and np.array_equal(x, np.round(x)) and not x.flags.writeable


@check
def violating_candidate_is_never_incumbent(factory: BackendFactory) -> None:
    """However good a rejected candidate is, no later point, report or result shows it as incumbent."""
    model = cardinality()
    best = cardinality_optimum(model, 3)
    incumbents: list[float | None] = []
    inner = cardinality_handler(model, 3)

    def separate(point: Point) -> Reply | None:
        incumbents.append(point.incumbent)
        return inner(point)

    backend = factory()
    backend.load(model)
    if not backend.capabilities.lazy_rows:
        return
    reports: list[BoundReport] = []
    result = backend.solve(handler=listening(reports.append, FunctionHandler(separate, inner.needs)))
    assert reports
    values = [*incumbents, *(report.incumbent for report in reports), result.objective]
    assert all(value is None or value <= best + TOLERANCE for value in values)


@check
def cuts_do_not_outlive_the_solve(factory: BackendFactory) -> None:
    """A later solve without the handler is free of its cuts."""
    model = cardinality()
    backend = factory()
    backend.load(model)
    if not backend.capabilities.lazy_rows:
        return
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
    backend = factory()
    backend.load(model)
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
    """A start may be an optimum that the cuts do not keep: it is optimal all the same."""
    symmetry = Cuts(Rows.single([0], 1.0, lower=1.0), Validity.OPTIMALITY, "symmetry", keeps="column 0")
    handler = FunctionHandler(
        lambda point: Reply(cuts=(symmetry,)), Needs([Event.CANDIDATE], [Validity.OPTIMALITY], keeps="column 0")
    )
    backend = factory()
    backend.load(covering())
    if not (_can_deliver(backend, handler) and backend.capabilities.start):
        return
    backend.set_start([0.0, 1.0, 0.0, 1.0, 1.0])
    result = backend.solve(handler=handler)
    assert result.termination is Termination.OPTIMAL and close(result.objective, 3.0) and close(result.bound, 3.0)


@check
def contradictory_optimality_cuts_raise(factory: BackendFactory) -> None:
    """Cuts that keep an optimum cannot empty the master: if they do, nothing is proven."""
    first = Cuts(Rows.single([0], 1.0, lower=1.0), Validity.OPTIMALITY, "in", keeps="column 0")
    second = Cuts(Rows.single([0], 1.0, upper=0.0), Validity.OPTIMALITY, "out", keeps="column 0")
    for events in ([Event.CANDIDATE], [Event.RELAXATION], [Event.CANDIDATE, Event.RELAXATION]):
        for start in (None, np.ones(5)):
            backend = factory()
            backend.load(covering())
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
    """Once a solution was accepted as feasible, a REQUIRED or IMPLIED cut that removes it is invalid."""
    model = cardinality()
    for validity in (Validity.REQUIRED, Validity.IMPLIED):
        impossible = Cuts(Rows.single(np.arange(model.n_columns), 1.0, upper=-1.0), validity, "impossible")
        shown: list[bool] = []

        def separate(point: Point, cut: Cuts = impossible, shown: list[bool] = shown) -> Reply | None:
            shown.append(True)
            return Reply(cuts=(cut,)) if len(shown) > 1 else None

        backend = factory()
        backend.load(model)
        if not (backend.capabilities.start and backend.capabilities.lazy_rows):
            return
        backend.set_start(np.eye(model.n_columns)[0])
        handler = FunctionHandler(separate, Needs([Event.CANDIDATE], [validity]))
        assert _invalid(lambda backend=backend, handler=handler: backend.solve(handler=handler)) is None  # type: ignore[misc]


@check
def optimality_cuts_of_different_rules_are_refused(factory: BackendFactory) -> None:
    """Two families that are each right may keep different optima; a rule that was not declared is refused too."""
    cut = Cuts(Rows.single([0], 1.0, lower=1.0), Validity.OPTIMALITY, "symmetry", keeps="column 0")
    for keeps in ([], ["column 1"], ["column 0", "column 1"]):
        handler = FunctionHandler(
            lambda point: Reply(cuts=(cut,)), Needs([Event.CANDIDATE], [Validity.OPTIMALITY], keeps=keeps)
        )
        backend = factory()
        backend.load(covering())
        if not backend.capabilities.lazy_rows:
            return
        try:
            backend.solve(handler=handler)
        except HandlerError:
            continue
        raise AssertionError(f"OPTIMALITY cuts by the rule 'column 0' were taken from a handler that declared {keeps}")


def _invalid(solve: Callable[[], MipResult]) -> MipResult | None:
    """None when an invalid cut was noticed, else what came out."""
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
    backend = factory()
    backend.load(model)
    if _can_deliver(backend, handler):
        assert close(backend.solve(handler=handler).objective, cardinality_optimum(model, 5))


@check
def required_cuts_hold_in_a_linear_model(factory: BackendFactory) -> None:
    """With no integer column, too, a lazy row holds in the returned point, which is optimal under it."""
    model = MipModel(maximise=True)
    x = model.add_block("x", 3, objective=[3.0, 2.0, 1.0])
    cut = Cuts(Rows.single(x.index, 1.0, upper=1.5), Validity.REQUIRED)

    def separate(point: Point) -> Reply | None:
        return Reply(cuts=(cut,)) if point.x.sum() > 1.5 + TOLERANCE else None

    backend = factory()
    if not (backend.capabilities.continuous_columns and backend.capabilities.lazy_rows):
        return
    backend.load(model)
    result = backend.solve(handler=FunctionHandler(separate, Needs([Event.CANDIDATE], [Validity.REQUIRED])))
    assert result.termination is Termination.OPTIMAL and close(result.objective, 4.0) and close(result.bound, 4.0)


def _can_deliver(backend: Backend, handler: FunctionHandler) -> bool:
    """Whether the backend has the handler's events; if not, it must have refused it."""
    able = backend.capabilities
    if able.lazy_rows and (able.relaxation_points or Event.RELAXATION not in handler.needs.events):
        return True
    expect_unsupported(lambda: backend.solve(handler=handler))
    return False
