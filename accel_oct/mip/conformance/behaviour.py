"""Limits, interrupts, exceptions and refusals."""

from __future__ import annotations

import threading
import time

import numpy as np

from accel_oct.mip.backend import Backend
from accel_oct.mip.conformance.suite import (
    KNAPSACK_OPTIMUM,
    BackendFactory,
    at_most,
    cardinality,
    check,
    close,
    hard_knapsack,
    knapsack,
    listening,
)
from accel_oct.mip.errors import HandlerError, ModelError, UnsupportedError
from accel_oct.mip.exchange import (
    BoundReport,
    Cuts,
    Event,
    FunctionHandler,
    Needs,
    Point,
    Reply,
    SolutionStatus,
    SolveOptions,
    Termination,
    Validity,
)
from accel_oct.mip.model import MipModel
from accel_oct.mip.rows import Rows


class _OddError(Exception):
    """Raised by handlers below; nothing else raises it."""


def _sized(backend: Backend) -> MipModel:
    """A model as hard as the backend can take."""
    return hard_knapsack() if backend.capabilities.continuous_columns else hard_knapsack(16, 4)


@check
def bound_valid_at_time_limit(factory: BackendFactory) -> None:
    """However short the time, the bound is not below the optimum and the incumbent is feasible."""
    backend = factory()
    model = hard_knapsack(30, 4) if backend.capabilities.continuous_columns else hard_knapsack(14, 4)
    backend.load(model)
    optimum = backend.solve().objective
    assert optimum is not None
    for seconds in (0.0, 0.01, 0.05):
        reports: list[BoundReport] = []
        result = backend.solve(SolveOptions(time_limit=seconds), listening(reports.append))
        assert result.termination in (Termination.TIME_LIMIT, Termination.OPTIMAL)
        assert result.bound >= optimum - 1e-6
        assert all(report.bound >= optimum - 1e-6 for report in reports)
        if result.x is not None:
            assert result.objective is not None and result.objective <= optimum + 1e-6
            assert np.all(model.rows.violation(result.x) <= 1e-6)
        else:
            assert result.status is SolutionStatus.NONE


@check
def node_limit_ends_the_solve(factory: BackendFactory) -> None:
    """A node limit of nothing ends the solve with a valid bound."""
    backend = factory()
    backend.load(knapsack())
    result = backend.solve(SolveOptions(node_limit=0))
    assert result.termination in (Termination.NODE_LIMIT, Termination.OPTIMAL)
    assert result.bound >= KNAPSACK_OPTIMUM - 1e-6


@check
def interrupt_returns_the_incumbent(factory: BackendFactory) -> None:
    """A stop asked for by the handler ends the solve with the incumbent and a valid bound."""
    backend = factory()
    model = _sized(backend)
    backend.load(model)
    if not backend.capabilities.lazy_rows:
        return
    began = time.perf_counter()
    handler = FunctionHandler(lambda point: Reply(stop=True), Needs([Event.CANDIDATE]))
    result = backend.solve(SolveOptions(time_limit=60.0), handler)
    assert time.perf_counter() - began < 30.0
    assert result.termination in (Termination.STOPPED, Termination.OPTIMAL)
    assert result.x is not None and result.objective is not None and result.bound >= result.objective - 1e-6
    assert np.all(model.rows.violation(result.x) <= 1e-6)


@check
def solves_outside_the_main_thread(factory: BackendFactory) -> None:
    """A solve works in a thread of the caller's."""
    objectives: list[float | None] = []

    def work() -> None:
        backend = factory()
        backend.load(knapsack())
        objectives.append(backend.solve().objective)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert close(objectives[0], KNAPSACK_OPTIMUM)


@check
def handler_exception_comes_out_unchanged(factory: BackendFactory) -> None:
    """What a handler raises is what the caller catches, and the backend is usable again."""
    backend = factory()
    backend.load(cardinality())
    if not backend.capabilities.lazy_rows:
        return
    error = _OddError("kept")

    def fail(point: Point) -> Reply | None:
        raise error

    for event in (Event.CANDIDATE, Event.RELAXATION):
        if event is Event.RELAXATION and not backend.capabilities.relaxation_points:
            continue
        handler = FunctionHandler(fail, Needs([event]))
        try:
            backend.solve(handler=handler)
        except _OddError as caught:
            assert caught is error
        else:
            assert event is Event.RELAXATION, "the handler's exception was swallowed"
    assert close(backend.solve().objective, float(cardinality().objective.sum()))


@check
def undeclared_needs_raise(factory: BackendFactory) -> None:
    """Cuts of an undeclared validity, and undeclared solutions, are errors."""
    model = cardinality()
    backend = factory()
    backend.load(model)
    if not backend.capabilities.lazy_rows:
        return
    implied = at_most(model, 3, Validity.IMPLIED)
    _expect(HandlerError, backend, Needs([Event.CANDIDATE], [Validity.REQUIRED]), Reply(cuts=(implied,)))
    zero = np.zeros(model.n_columns)
    _expect(HandlerError, backend, Needs([Event.CANDIDATE], [Validity.REQUIRED]), Reply(solutions=(zero,)))


@check
def malformed_replies_raise(factory: BackendFactory) -> None:
    """Wrong lengths, bad indices, NaN and duplicate entries in a reply are errors that say so."""
    model = cardinality()
    backend = factory()
    backend.load(model)
    if not backend.capabilities.lazy_rows:
        return
    cut_needs = Needs([Event.CANDIDATE], [Validity.REQUIRED])
    for rows in (
        Rows.single([0, model.n_columns], 1.0, upper=1.0),
        Rows.single([-1], 1.0, upper=1.0),
        Rows.single([0, 1], [1.0, np.nan], upper=1.0),
        Rows.single([0, 1], [1.0, np.inf], upper=1.0),
        Rows.single([2, 2], 1.0, upper=1.0),
        Rows.single([0], 1.0, lower=2.0, upper=1.0),
    ):
        _expect(ModelError, backend, cut_needs, Reply(cuts=(Cuts(rows, Validity.REQUIRED),)))
    if backend.capabilities.injection:
        needs = Needs([Event.CANDIDATE], injects=True)
        _expect(HandlerError, backend, needs, Reply(solutions=(np.zeros(model.n_columns + 1),)))


def _expect(kind: type[Exception], backend: Backend, needs: Needs, reply: Reply) -> None:
    try:
        backend.solve(handler=FunctionHandler(lambda point: reply, needs))
    except kind as error:
        assert not isinstance(error, UnsupportedError)
        return
    raise AssertionError(f"{kind.__name__} was expected")
