"""The registry of checks, and the small models that they share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

import numpy as np

from accel_oct.mip.backend import Backend
from accel_oct.mip.errors import UnsupportedError
from accel_oct.mip.exchange import BoundReport, Cuts, Event, FunctionHandler, Needs, Point, Reply, Validity
from accel_oct.mip.model import MipModel
from accel_oct.mip.rows import Rows
from accel_oct.support.arrays import FloatArray

BackendFactory = Callable[[], Backend]

#: Results are compared with this tolerance; the models below have integral optima far apart.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class BackendCheck:
    """A property that a backend must have."""

    name: str
    statement: str
    function: Callable[[BackendFactory], None]

    def run(self, factory: BackendFactory) -> None:
        """Raise AssertionError if the backend lacks the property."""
        self.function(factory)


_CHECKS: list[BackendCheck] = []


def check(function: Callable[[BackendFactory], None]) -> Callable[[BackendFactory], None]:
    """Register a function as a check, described by its name and docstring."""
    statement = (function.__doc__ or "").strip().splitlines()[0]
    _CHECKS.append(BackendCheck(function.__name__, statement, function))
    return function


def check_with(*capabilities: str) -> Callable[[Callable[[BackendFactory], None]], Callable[[BackendFactory], None]]:
    """Register a check of backends that have these capabilities; all others pass."""

    def register(function: Callable[[BackendFactory], None]) -> Callable[[BackendFactory], None]:
        @wraps(function)
        def limited(factory: BackendFactory) -> None:
            able = factory().capabilities
            if all(getattr(able, name) for name in capabilities):
                function(factory)

        return check(limited)

    return register


def checks() -> tuple[BackendCheck, ...]:
    """Return all checks in the order of their definition."""
    return tuple(_CHECKS)


def loaded(factory: BackendFactory, model: MipModel) -> Backend:
    """Return a fresh backend with a model."""
    backend = factory()
    backend.load(model)
    return backend


def expect_unsupported(action: Callable[[], object]) -> None:
    """Raise AssertionError unless the action raises UnsupportedError."""
    try:
        action()
    except UnsupportedError:
        return
    raise AssertionError("a missing capability was ignored silently: UnsupportedError was expected")


def close(value: float | None, expected: float) -> bool:
    return value is not None and abs(value - expected) <= TOLERANCE * max(1.0, abs(expected))


def listening(
    on_bound: Callable[[BoundReport], Reply | None], handler: FunctionHandler | None = None, *events: Event
) -> FunctionHandler:
    """Return a handler with `on_bound` that otherwise behaves as `handler`, called for `events` in addition."""
    needs = Needs(events, bounds=True) | (Needs() if handler is None else handler.needs)
    return FunctionHandler(handler.function if handler is not None else lambda point: None, needs, on_bound)


# -------------------------------------------------------------------- models


def knapsack() -> MipModel:
    """max 10a + 13b + 7c + 8d, 3a + 4b + 2c + 3d <= 7: optimum 23 at {a, b}; LP bound above."""
    model = MipModel(maximise=True)
    take = model.add_block("take", 4, integer=True, objective=[10.0, 13.0, 7.0, 8.0])
    model.add_rows(Rows.single(take.index, [3.0, 4.0, 2.0, 3.0], upper=7.0))
    return model


KNAPSACK_OPTIMUM = 23.0


def covering() -> MipModel:
    """min sum of a 5-cycle's vertex cover: optimum 3, LP bound 2.5."""
    model = MipModel()
    pick = model.add_block("pick", 5, integer=True, objective=1.0)
    edge = np.arange(5)
    model.add_rows(
        Rows.from_entries(
            np.repeat(edge, 2),
            np.stack([pick.index, np.roll(pick.index, -1)], axis=1).ravel(),
            1.0,
            n_rows=5,
            lower=1.0,
        )
    )
    return model


def cardinality(n_columns: int = 12, seed: int = 7) -> MipModel:
    """max of distinct integer values, no rows: with at most k columns (a lazy row) the optimum is the k best."""
    values = np.random.default_rng(seed).permutation(np.arange(1, n_columns + 1)).astype(float)
    model = MipModel(maximise=True)
    model.add_block("x", n_columns, integer=True, objective=values)
    return model


def at_most(model: MipModel, limit: int, validity: Validity = Validity.REQUIRED) -> Cuts:
    """Return the row that `cardinality` lacks."""
    return Cuts(Rows.single(np.arange(model.n_columns), 1.0, upper=float(limit)), validity, "at most")


def hard_knapsack(n_columns: int = 60, n_rows: int = 8, seed: int = 3) -> MipModel:
    """A multi-dimensional knapsack that is not solved in the root node."""
    generator = np.random.default_rng(seed)
    model = MipModel(maximise=True)
    weights = generator.integers(20, 100, size=(n_rows, n_columns)).astype(float)
    value = weights.mean(axis=0) + generator.integers(1, 10, size=n_columns)
    take = model.add_block("take", n_columns, integer=True, objective=np.round(value))
    model.add_rows(
        Rows.from_entries(
            np.repeat(np.arange(n_rows), n_columns),
            np.tile(take.index, n_rows),
            weights.ravel(),
            n_rows=n_rows,
            upper=np.floor(weights.sum(axis=1) / 2),
        )
    )
    return model


def cardinality_handler(model: MipModel, limit: int, seen: list[FloatArray] | None = None) -> FunctionHandler:
    """Return a handler that rejects every candidate with more than `limit` columns at one."""
    cut = at_most(model, limit)

    def separate(point: Point) -> Reply | None:
        if seen is not None:
            seen.append(point.x)
        return Reply(cuts=(cut,)) if point.x.sum() > limit + TOLERANCE else None

    return FunctionHandler(separate, Needs([Event.CANDIDATE], [Validity.REQUIRED]))


def cardinality_optimum(model: MipModel, limit: int) -> float:
    return float(np.sort(model.objective)[-limit:].sum())
