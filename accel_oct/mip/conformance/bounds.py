"""Bounds that are reported between points."""

from __future__ import annotations

import itertools
import math

import numpy as np

from accel_oct.mip.backend import Backend
from accel_oct.mip.conformance.suite import (
    KNAPSACK_OPTIMUM,
    TOLERANCE,
    BackendFactory,
    cardinality,
    cardinality_handler,
    cardinality_optimum,
    check,
    close,
    covering,
    hard_knapsack,
    knapsack,
    listening,
)
from accel_oct.mip.errors import HandlerError
from accel_oct.mip.exchange import (
    BoundReport,
    Event,
    FunctionHandler,
    MipResult,
    Needs,
    Reply,
    SolutionStatus,
    SolveOptions,
    Termination,
)
from accel_oct.mip.model import MipModel


class _OddError(Exception):
    """Raised by a listener below; nothing else raises it."""


@check
def bounds_are_reported(factory: BackendFactory) -> None:
    """A handler that wants bounds hears valid ones, each tighter than the last, and at the end those of the result."""
    small = hard_knapsack(12, 4)
    reference = factory()
    reference.load(small)
    optimum = reference.solve().objective
    assert optimum is not None
    for model, expected in ((knapsack(), KNAPSACK_OPTIMUM), (covering(), 3.0), (small, optimum)):
        for events in _events(reference):
            _solve_listening(factory, model, expected, listening(lambda report: None, None, *events))


@check
def bounds_reported_with_cuts_are_valid(factory: BackendFactory) -> None:
    """Also while cuts come, what is reported holds for the problem that the cuts define."""
    if not factory().capabilities.lazy_rows:
        return
    model = cardinality()
    for events in _events(factory()):
        inner = cardinality_handler(model, 4)
        _solve_listening(factory, model, cardinality_optimum(model, 4), listening(lambda _: None, inner, *events))


@check
def a_stop_at_a_bound_ends_the_solve(factory: BackendFactory) -> None:
    """A reply to the first bound, or to the first incumbent, can end the solve with the start and a valid bound."""
    for seek_bound in (True, False):
        backend = factory()
        if not backend.capabilities.start:
            return
        model = _sized(backend)
        backend.load(model)
        backend.set_start(np.zeros(model.n_columns))
        heard: list[BoundReport] = []

        def stop(report: BoundReport, heard: list[BoundReport] = heard, seek_bound: bool = seek_bound) -> Reply | None:
            heard.append(report)
            return Reply(stop=True) if math.isfinite(report.bound) or not seek_bound else None

        events = _events(backend)[-1] if seek_bound else ()
        result = backend.solve(SolveOptions(time_limit=60.0), listening(stop, None, *events))
        assert result.seconds < 30.0
        assert result.termination is Termination.STOPPED, f"{result.termination} after {heard}"
        assert result.status is SolutionStatus.FEASIBLE and result.x is not None and result.objective is not None
        assert np.all(model.rows.violation(result.x) <= TOLERANCE)
        assert result.bound >= result.objective - TOLERANCE and (math.isfinite(result.bound) or not seek_bound)
        assert heard[0].incumbent == 0.0 and (heard[-1].bound, heard[-1].incumbent) == (result.bound, result.objective)


@check
def an_exception_at_a_bound_comes_out_unchanged(factory: BackendFactory) -> None:
    """What the handler raises when it hears a bound is what the caller catches, and the backend is usable again."""
    backend = factory()
    backend.load(knapsack())
    error = _OddError("kept")

    def fail(report: BoundReport) -> Reply | None:
        raise error

    try:
        backend.solve(handler=listening(fail))
    except _OddError as caught:
        assert caught is error
    else:
        raise AssertionError("the handler's exception was swallowed")
    assert close(backend.solve().objective, KNAPSACK_OPTIMUM)


@check
def wrong_replies_to_bounds_raise(factory: BackendFactory) -> None:
    """Cuts and solutions cannot be used there, whatever was declared, and a listener must be able to listen."""
    solution = Reply(solutions=(np.zeros(4),))
    deaf = FunctionHandler(lambda point: None, Needs(bounds=True))
    for handler in (listening(lambda report: solution), listening(lambda report: 1), deaf):  # type: ignore[arg-type, return-value]
        backend = factory()
        backend.load(knapsack())
        try:
            backend.solve(handler=handler)
        except HandlerError:
            continue
        raise AssertionError("a HandlerError was expected")


def _solve_listening(
    factory: BackendFactory, model: MipModel, optimum: float, handler: FunctionHandler
) -> tuple[MipResult, list[BoundReport]]:
    """Solve to optimality, and hold everything that was reported against the optimum and the result."""
    heard: list[BoundReport] = []
    backend = factory()
    backend.load(model)
    result = backend.solve(handler=FunctionHandler(handler.function, handler.needs, heard.append))
    assert result.termination is Termination.OPTIMAL and close(result.objective, optimum)
    assert heard, "the handler never heard a bound"
    sign = 1.0 if model.maximise else -1.0
    for report in heard:
        assert sign * (report.bound - optimum) >= -TOLERANCE, f"{report} against the optimum {optimum}"
        assert report.incumbent is None or sign * (optimum - report.incumbent) >= -TOLERANCE, f"{report}"
    for before, after in itertools.pairwise(heard):
        assert sign * after.bound <= sign * before.bound + TOLERANCE, f"{before}, then {after}"
        assert before.incumbent is None or sign * ((after.incumbent or 0.0) - before.incumbent) >= 0.0
        assert (before.bound, before.incumbent) != (after.bound, after.incumbent)
        assert before.seconds <= after.seconds and before.nodes <= after.nodes
    assert (heard[-1].bound, heard[-1].incumbent) == (result.bound, result.objective)
    assert heard[-1].nodes <= result.nodes
    assert result.statistics.calls["bound"] == len(heard)
    return result, heard


def _events(backend: Backend) -> list[tuple[Event, ...]]:
    """Alone, and together with the relaxations that a backend can show."""
    return [(), (Event.RELAXATION,)] if backend.capabilities.relaxation_points else [()]


def _sized(backend: Backend) -> MipModel:
    """A model as hard as the backend can take."""
    return hard_knapsack() if backend.capabilities.continuous_columns else hard_knapsack(16, 4)
