"""Plain solves, limits, stops, exceptions, and bounds reported between points."""

from __future__ import annotations

import itertools
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
from accel_oct.mip.errors import HandlerError, ModelError, UnsupportedError
from accel_oct.mip.exchange import (
    BoundReport,
    Cuts,
    Event,
    FunctionHandler,
    MipResult,
    Needs,
    Point,
    Reply,
    SolutionStatus,
    Termination,
    Validity,
)
from accel_oct.mip.model import MipModel
from accel_oct.mip.options import SolveOptions
from accel_oct.mip.rows import Rows


@check
def lp_optimum(factory: BackendFactory) -> None:
    """A model with no integer column is solved as an LP."""
    model = MipModel(maximise=True)
    x = model.add_block("x", 2, upper=np.inf, objective=[3.0, 2.0])
    model.add_rows(Rows.from_entries([0, 0, 1], x.index[[0, 1, 0]], 1.0, n_rows=2, upper=[4.0, 1.5]))
    backend = factory()
    if not backend.capabilities.continuous_columns:
        expect_unsupported(lambda: backend.load(model))
        return
    backend.load(model)
    result = backend.solve()
    assert result.termination is Termination.OPTIMAL and result.status is SolutionStatus.OPTIMAL
    assert close(result.objective, 9.5) and close(result.bound, 9.5)
    assert result.x is not None and np.allclose(result.x, [1.5, 2.5])


@check
def mip_optimum_when_maximising(factory: BackendFactory) -> None:
    """The optimum of a small knapsack, with a bound that proves it."""
    backend = loaded(factory, knapsack())
    result = backend.solve()
    assert result.termination is Termination.OPTIMAL and result.status is SolutionStatus.OPTIMAL
    assert close(result.objective, KNAPSACK_OPTIMUM) and close(result.bound, KNAPSACK_OPTIMUM)
    assert result.gap <= 1e-9


@check
def mip_optimum_when_minimising(factory: BackendFactory) -> None:
    """The optimum of a small covering problem, with a bound that proves it."""
    backend = loaded(factory, covering())
    result = backend.solve()
    assert result.termination is Termination.OPTIMAL
    assert close(result.objective, 3.0) and close(result.bound, 3.0)


@check
def mixed_integer_optimum(factory: BackendFactory) -> None:
    """Integer and continuous columns together."""
    model = MipModel(maximise=True)
    n = model.add_block("n", 1, integer=True, upper=10.0, objective=5.0)
    y = model.add_block("y", 1, upper=10.0, objective=4.0)
    columns = np.concatenate([n.index, y.index])
    model.add_rows(Rows.from_entries([0, 0, 1, 1], np.tile(columns, 2), [6, 4, 1, 2], n_rows=2, upper=[24.0, 6.0]))
    backend = factory()
    if not backend.capabilities.continuous_columns:
        expect_unsupported(lambda: backend.load(model))
        return
    backend.load(model)
    result = backend.solve()
    assert result.x is not None and close(result.x[0], 3.0) and close(result.objective, 21.0)


@check
def infeasible_model(factory: BackendFactory) -> None:
    """An infeasible model is reported as such, with no point."""
    model = knapsack()
    model.add_rows(Rows.single(np.arange(4), 1.0, lower=4.0))
    backend = loaded(factory, model)
    result = backend.solve()
    assert result.termination is Termination.INFEASIBLE
    assert result.status is SolutionStatus.NONE and result.x is None and result.objective is None
    assert math.isinf(result.gap)


@check
def unbounded_model(factory: BackendFactory) -> None:
    """An unbounded model is distinguished from an infeasible one."""
    for integer in (False, True):
        model = MipModel(maximise=True)
        x = model.add_block("x", 2, upper=np.inf, integer=integer, objective=1.0)
        model.add_rows(Rows.single(x.index, [1.0, -1.0], upper=1.0))
        backend = factory()
        if not backend.capabilities.continuous_columns:  # such a backend takes binary models only
            expect_unsupported(lambda backend=backend, model=model: backend.load(model))  # type: ignore[misc]
            continue
        backend.load(model)
        assert backend.solve().termination is Termination.UNBOUNDED


@check
def x_in_original_columns(factory: BackendFactory) -> None:
    """Columns that presolve fixes or removes are in the returned point, at their positions."""
    model = MipModel(maximise=True)
    model.add_block("fixed", 2, lower=[1.0, 0.0], upper=[1.0, 0.0], integer=True, objective=2.0)
    take = model.add_block("take", 3, integer=True, objective=[1.0, 5.0, -1.0])
    model.add_block("idle", 1, integer=True)
    model.add_rows(Rows.single(take.index[:2], 1.0, upper=1.0))
    backend = loaded(factory, model)
    result = backend.solve()
    assert result.x is not None and result.x.shape == (6,)
    assert np.allclose(result.x[:5], [1, 0, 0, 1, 0]) and close(result.objective, 7.0)
    assert close(result.objective, float(model.objective @ result.x))


@check
def two_solves_in_one_process(factory: BackendFactory) -> None:
    """Solving again, and loading another model, does not depend on earlier solves."""
    backend = loaded(factory, knapsack())
    first, second = backend.solve(), backend.solve()
    assert close(first.objective, KNAPSACK_OPTIMUM) and close(second.objective, KNAPSACK_OPTIMUM)
    backend.load(covering())
    assert close(backend.solve().objective, 3.0)
    other = factory()
    other.load(knapsack())
    assert close(other.solve().objective, KNAPSACK_OPTIMUM)


@check
def added_rows_stay(factory: BackendFactory) -> None:
    """Rows added after loading hold in every later solve."""
    backend = loaded(factory, knapsack())
    backend.add_rows(Rows.single([0, 1], 1.0, upper=1.0))
    for _ in range(2):
        assert close(backend.solve().objective, 21.0)


@check
def same_seed_same_result(factory: BackendFactory) -> None:
    """Two solves with the same seed return the same point, bound and number of nodes."""
    results = []
    for _ in range(2):
        backend = loaded(factory, knapsack())
        results.append(backend.solve(SolveOptions(seed=5)))
    assert results[0].x is not None and results[1].x is not None
    assert np.array_equal(results[0].x, results[1].x)
    assert results[0].bound == results[1].bound and results[0].nodes == results[1].nodes


@check
def branch_priorities_accepted(factory: BackendFactory) -> None:
    """Branch priorities do not change the result; a backend without them raises an error."""
    backend = loaded(factory, knapsack())
    options = SolveOptions(branch_priorities=np.array([3, 2, 1, 0]))
    if not backend.capabilities.branch_priorities:
        expect_unsupported(lambda: backend.solve(options))
        return
    assert close(backend.solve(options).objective, KNAPSACK_OPTIMUM)


class _OddError(Exception):
    """Raised only by the handlers below."""


def _sized(backend: Backend) -> MipModel:
    """Return a hard model of a size that the backend supports."""
    return hard_knapsack() if backend.capabilities.continuous_columns else hard_knapsack(16, 4)


@check
def bound_valid_at_time_limit(factory: BackendFactory) -> None:
    """With any time limit, the bound is not below the optimum and the incumbent is feasible."""
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
    """A node limit of 0 ends the solve with a valid bound."""
    backend = loaded(factory, knapsack())
    result = backend.solve(SolveOptions(node_limit=0))
    assert result.termination in (Termination.NODE_LIMIT, Termination.OPTIMAL)
    assert result.bound >= KNAPSACK_OPTIMUM - 1e-6


@check_with("lazy_rows")
def interrupt_returns_the_incumbent(factory: BackendFactory) -> None:
    """A stop requested by the handler ends the solve with the incumbent and a valid bound."""
    backend = factory()
    model = _sized(backend)
    backend.load(model)
    began = time.perf_counter()
    handler = FunctionHandler(lambda point: Reply(stop=True), Needs([Event.CANDIDATE]))
    result = backend.solve(SolveOptions(time_limit=60.0), handler)
    assert time.perf_counter() - began < 30.0
    assert result.termination in (Termination.STOPPED, Termination.OPTIMAL)
    assert result.x is not None and result.objective is not None and result.bound >= result.objective - 1e-6
    assert np.all(model.rows.violation(result.x) <= 1e-6)


@check
def solves_outside_the_main_thread(factory: BackendFactory) -> None:
    """A solve works outside of the main thread."""
    objectives: list[float | None] = []

    def work() -> None:
        backend = loaded(factory, knapsack())
        objectives.append(backend.solve().objective)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert close(objectives[0], KNAPSACK_OPTIMUM)


@check_with("lazy_rows")
def handler_exception_comes_out_unchanged(factory: BackendFactory) -> None:
    """The caller receives the exception of a handler unchanged, and the backend remains usable."""
    backend = loaded(factory, cardinality())
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


@check_with("lazy_rows")
def undeclared_needs_raise(factory: BackendFactory) -> None:
    """Cuts of an undeclared validity, and undeclared solutions, are errors."""
    model = cardinality()
    backend = loaded(factory, model)
    implied = at_most(model, 3, Validity.IMPLIED)
    _expect(HandlerError, backend, Needs([Event.CANDIDATE], [Validity.REQUIRED]), Reply(cuts=(implied,)))
    zero = np.zeros(model.n_columns)
    _expect(HandlerError, backend, Needs([Event.CANDIDATE], [Validity.REQUIRED]), Reply(solutions=(zero,)))


@check_with("lazy_rows")
def malformed_replies_raise(factory: BackendFactory) -> None:
    """Wrong lengths, bad indices, NaN and duplicate entries in a reply are errors."""
    model = cardinality()
    backend = loaded(factory, model)
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


@check
def bounds_are_reported(factory: BackendFactory) -> None:
    """A handler receives valid bounds, each tighter than the last or much later, and finally those of the result."""
    small = hard_knapsack(12, 4)
    reference = factory()
    reference.load(small)
    optimum = reference.solve().objective
    assert optimum is not None
    for model, expected in ((knapsack(), KNAPSACK_OPTIMUM), (covering(), 3.0), (small, optimum)):
        for events in _events(reference):
            _solve_listening(factory, model, expected, listening(lambda report: None, None, *events))


@check_with("lazy_rows")
def bounds_reported_with_cuts_are_valid(factory: BackendFactory) -> None:
    """Bounds reported while cuts are added are valid for the problem that the cuts define."""
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
    """The caller receives an exception of `on_bound` unchanged, and the backend remains usable."""
    backend = loaded(factory, knapsack())
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
    """Cuts and solutions in reply to a bound are errors, and so are declared bounds without a method `on_bound`."""
    solution = Reply(solutions=(np.zeros(4),))
    deaf = FunctionHandler(lambda point: None, Needs(bounds=True))
    for handler in (listening(lambda report: solution), listening(lambda report: 1), deaf):  # type: ignore[arg-type, return-value]
        backend = loaded(factory, knapsack())
        try:
            backend.solve(handler=handler)
        except HandlerError:
            continue
        raise AssertionError("a HandlerError was expected")


def _solve_listening(
    factory: BackendFactory, model: MipModel, optimum: float, handler: FunctionHandler
) -> tuple[MipResult, list[BoundReport]]:
    """Solve to optimality, and compare all reports with the optimum and the result."""
    heard: list[BoundReport] = []
    backend = loaded(factory, model)
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
        changed = (before.bound, before.incumbent) != (after.bound, after.incumbent)
        assert changed or after.seconds - before.seconds > 0.4  # without a change only after half a second
        assert before.seconds <= after.seconds and before.nodes <= after.nodes
    assert (heard[-1].bound, heard[-1].incumbent) == (result.bound, result.objective)
    assert heard[-1].nodes <= result.nodes
    assert result.statistics.calls["bound"] == len(heard)
    return result, heard


def _events(backend: Backend) -> list[tuple[Event, ...]]:
    """Return no events, and relaxations if the backend supports them."""
    return [(), (Event.RELAXATION,)] if backend.capabilities.relaxation_points else [()]


@check
def the_log_is_passed_on(factory: BackendFactory) -> None:
    """The solver's log goes to the log of the options, line by line, and nothing is printed."""
    backend, lines = loaded(factory, knapsack()), list[str]()
    if not backend.capabilities.log:
        expect_unsupported(lambda: backend.solve(SolveOptions(log=lines.append)))
        return
    with _printed() as read:
        assert close(backend.solve().objective, KNAPSACK_OPTIMUM)
        assert close(backend.solve(SolveOptions(log=lines.append)).objective, KNAPSACK_OPTIMUM)
        printed = read()
    assert not printed, f"printed: {printed!r}"
    assert any(line.strip() for line in lines) and not any("\n" in line for line in lines)
    error = _OddError("kept")

    def fail(line: str) -> None:
        raise error

    try:
        backend.solve(SolveOptions(log=fail))
    except _OddError as caught:
        assert caught is error
    else:
        raise AssertionError("the exception of a log was swallowed")
    assert close(backend.solve().objective, KNAPSACK_OPTIMUM)


@contextmanager
def _printed() -> Iterator[Callable[[], str]]:
    """Keep what the block writes to the standard streams, native code included; yields a function that returns it."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(stream) for stream in (1, 2)]
    with tempfile.TemporaryFile() as file:

        def read() -> str:
            file.seek(0)
            return file.read().decode(errors="replace")

        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
        try:
            yield read
        finally:
            for stream, console in zip((1, 2), saved, strict=True):
                os.dup2(console, stream)
                os.close(console)


@check
def the_best_solutions_found_are_returned(factory: BackendFactory) -> None:
    """As many as asked for: distinct, feasible, best first, the start among them and the optimum the first."""
    model = knapsack()
    for count in (1, 3):
        backend = loaded(factory, model)
        if backend.capabilities.start:
            backend.set_start([0.0, 1.0, 1.0, 0.0])
        result = backend.solve(SolveOptions(solutions=count))
        assert result.x is not None and 1 <= len(result.solutions) <= count
        assert np.array_equal(result.solutions[0].x, result.x) and result.solutions[0].objective == result.objective
        values = [solution.objective for solution in result.solutions]
        assert values == sorted(values, reverse=True)
        assert len({solution.x.tobytes() for solution in result.solutions}) == len(values)
        for solution in result.solutions:
            assert close(solution.objective, float(model.objective @ solution.x))
            assert np.all(model.rows.violation(solution.x) <= TOLERANCE)
        assert count == 1 or not backend.capabilities.start or any(close(value, 20.0) for value in values)


@check_with("lazy_rows")
def solutions_satisfy_the_cuts(factory: BackendFactory) -> None:
    """No rejected candidate is among the solutions found."""
    model = cardinality()
    backend = loaded(factory, model)
    result = backend.solve(SolveOptions(solutions=10), cardinality_handler(model, 4))
    assert result.solutions and close(result.solutions[0].objective, cardinality_optimum(model, 4))
    assert all(solution.x.sum() <= 4 + TOLERANCE for solution in result.solutions)
