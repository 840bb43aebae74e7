"""SCIP: the settings without which its answers are wrong, and what the plugins promise."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from accel_oct_backends import scip

from accel_oct.mip import (
    Cuts,
    Event,
    FunctionHandler,
    MipModel,
    Needs,
    Point,
    Reply,
    Rows,
    SolveOptions,
    SolverError,
    Termination,
    Validity,
)
from accel_oct.mip.conformance.suite import cardinality, cardinality_handler, hard_knapsack, knapsack

pytest.importorskip("pyscipopt")

from accel_oct_backends import scip_native

STRONG, WEAK, SYMMETRY = "misc/allowstrongdualreds", "misc/allowweakdualreds", "misc/usesymmetry"
OPTIMUM = 3.0


def lazy_optimum() -> float | None:
    """Columns 0 and 1, and 2 and 3, look alike; a row that SCIP does not know yet tells 0 from 1 and 2 from 3.

    max 3a + 3b + c + d, 2a + 2b + 5c + 5d <= 6, and hidden: a <= c. Optimum 3 at {b}.
    """
    model = MipModel(maximise=True)
    model.add_block("x", 4, integer=True, objective=[3.0, 3.0, 1.0, 1.0])
    model.add_rows(Rows.single(np.arange(4), [2.0, 2.0, 5.0, 5.0], upper=6.0))
    hidden = Cuts(Rows.single([0, 2], [1.0, -1.0], upper=0.0), Validity.REQUIRED, "hidden")

    def separate(point: Point) -> Reply | None:
        return Reply(cuts=(hidden,)) if hidden.rows.violation(point.x)[0] > 1e-6 else None

    backend = scip.ScipBackend()
    backend.load(model)
    handler = FunctionHandler(separate, Needs([Event.CANDIDATE], [Validity.REQUIRED]))
    return backend.solve(handler=handler).objective


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, object], None]:
    return lambda name, value: monkeypatch.setitem(scip.LAZY_SETTINGS, name, value)


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(scip_native.LazyRows, "conslock", lambda *_: None)


def test_with_every_setting_the_answer_is_right() -> None:
    """The model of the tests below, as the backend solves it."""
    assert lazy_optimum() == OPTIMUM


def test_locks_are_needed(put: Callable[[str, object], None], no_locks: Callable[[], None]) -> None:
    """Locks alone keep SCIP from fixing columns by their known rows; without them it does."""
    put(STRONG, True)
    put(WEAK, True)
    assert lazy_optimum() == OPTIMUM
    no_locks()
    assert lazy_optimum() != OPTIMUM


def test_symmetry_handling_has_to_be_off(put: Callable[[str, object], None]) -> None:
    """SCIP's symmetries are those of the known rows: handling them removes the optimum, in spite of the locks."""
    put(STRONG, True)
    put(WEAK, True)
    assert lazy_optimum() == OPTIMUM
    put(SYMMETRY, 7)
    assert lazy_optimum() != OPTIMUM


def test_strong_dual_reductions_have_to_be_off(
    put: Callable[[str, object], None], no_locks: Callable[[], None]
) -> None:
    """Off, they make up for missing locks; on, they do not."""
    no_locks()
    assert lazy_optimum() == OPTIMUM
    put(STRONG, True)
    assert lazy_optimum() != OPTIMUM


def test_settings_are_in_force_exactly_when_there_are_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weak dual reductions, too: no model was found that needs them off, so this only shows that they are."""
    import pyscipopt

    seen: list[dict[str, object]] = []
    original = pyscipopt.Model.optimizeNogil

    class Spy(pyscipopt.Model):  # type: ignore[misc]
        def optimizeNogil(self) -> None:
            seen.append({name: self.getParam(name) for name in (STRONG, WEAK, SYMMETRY)})
            original(self)

    monkeypatch.setattr(pyscipopt, "Model", Spy)
    backend = scip.ScipBackend()
    backend.load(cardinality())
    backend.solve(handler=cardinality_handler(cardinality(), 3))
    backend.solve()
    assert seen[0] == {STRONG: False, WEAK: False, SYMMETRY: 0}
    assert seen[1][STRONG] and seen[1][WEAK] and seen[1][SYMMETRY]


def test_random_lazy_models() -> None:
    """Rows that are separated lazily give the optimum of the model that holds them from the start."""
    generator = np.random.default_rng(11)
    for _ in range(40):
        n_columns = int(generator.integers(4, 12))
        plain, full = MipModel(maximise=True), MipModel(maximise=True)
        objective = generator.integers(-3, 6, n_columns).astype(float)
        hidden = Rows.from_entries(
            np.repeat(np.arange(3), n_columns),
            np.tile(np.arange(n_columns), 3),
            generator.integers(-3, 4, 3 * n_columns),
            n_rows=3,
            upper=generator.integers(-1, 5, 3),
        )
        for model in (plain, full):
            model.add_block("x", n_columns, integer=True, objective=objective)
        full.add_rows(hidden)

        def separate(point: Point, hidden: Rows = hidden) -> Reply:
            violated = hidden.violation(point.x) > 1e-6
            return Reply(cuts=(Cuts(hidden.take(violated), Validity.REQUIRED),))

        backend = scip.ScipBackend()
        backend.load(full)
        expected = backend.solve().objective
        backend.load(plain)
        for events in ([Event.CANDIDATE], [Event.CANDIDATE, Event.RELAXATION]):
            handler = FunctionHandler(separate, Needs(events, [Validity.REQUIRED]))
            assert backend.solve(handler=handler).objective == expected


def test_no_candidate_is_shown_twice() -> None:
    """SCIP checks and enforces the same point; the handler is asked once."""
    seen: list[bytes] = []
    inner = cardinality_handler(cardinality(), 4)

    def separate(point: Point) -> Reply | None:
        seen.append(point.x.tobytes())
        return inner(point)

    backend = scip.ScipBackend()
    backend.load(cardinality())
    backend.solve(handler=FunctionHandler(separate, inner.needs))
    assert seen and len(seen) == len(set(seen))


def test_stop_from_another_thread_is_prompt() -> None:
    """A request to stop, as Ctrl-C makes it, ends a long solve with a valid bound."""
    from accel_oct.mip.model import ModelArrays
    from accel_oct.mip.session import SolveSession

    session = SolveSession(ModelArrays.of(hard_knapsack()), SolveOptions(), None)
    threading.Timer(1.0, lambda: session.request_stop(Termination.INTERRUPTED)).start()
    began = time.perf_counter()
    result = session.result(*scip.ScipBackend()._solve(session))
    assert time.perf_counter() - began < 10.0
    assert result.termination in (Termination.INTERRUPTED, Termination.OPTIMAL)
    assert result.objective is not None and result.bound >= result.objective


def test_injection_reaches_scip(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCIP itself stores an injected solution, so that it prunes with it."""
    from pyscipopt import SCIP_RESULT

    results: list[int] = []
    original = scip_native.Injection._inject

    def spy(plugin: scip_native.Injection) -> int:
        results.append(original(plugin))
        return results[-1]

    monkeypatch.setattr(scip_native.Injection, "_inject", spy)
    backend = scip.ScipBackend()
    backend.load(hard_knapsack(20, 3))
    best = backend.solve().x
    assert best is not None
    handler = FunctionHandler(lambda point: Reply(solutions=(best,)), Needs([Event.RELAXATION], injects=True))
    result = backend.solve(handler=handler)
    assert result.termination is Termination.OPTIMAL and result.statistics.injections_accepted == 1
    assert results == [SCIP_RESULT.FOUNDSOL]


def test_unknown_native_option_is_named() -> None:
    """A wrong option is an error that names it, not a solve without it."""
    backend = scip.ScipBackend()
    backend.load(knapsack())
    with pytest.raises(SolverError, match="no/such/option"):
        backend.solve(SolveOptions(native={"no/such/option": 1}))
