"""Random small integer models, compared with the best of all points of their boxes.

The registered checks run a few dozen models; `compare` runs any number, and its message reproduces a failure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accel_oct.mip.backend import Backend
from accel_oct.mip.conformance.suite import TOLERANCE, BackendFactory, check, check_with, close
from accel_oct.mip.errors import MipError
from accel_oct.mip.exchange import Cuts, Event, FunctionHandler, MipResult, Needs, Point, Reply, Termination, Validity
from accel_oct.mip.model import MipModel
from accel_oct.mip.rows import Rows
from accel_oct.support.arrays import BoolArray, FloatArray

#: Models per registered check: they take seconds on solvers that are started as separate programs.
CASES = 40
#: A redundant bound; a solver or a file that adds or prints it carelessly loses digits.
WIDE = 1e9
_MAX_COLUMNS = 6
_MAX_ROWS = 5
_MAX_POINTS = 5000
_OBJECTIVE_SCALES = (1.0, 1.0, 1.0, 0.5, 0.1, 1e-3)


@dataclass(frozen=True, eq=False)
class RandomModel:
    """A small model whose feasible points lie in a box; `optimum` enumerates it if all columns are integer.

    `lower` and `upper` are the bounds of the columns; if they are wider than the `box`, rows state the box.
    """

    maximise: bool
    objective: FloatArray
    integer: BoolArray
    lower: FloatArray
    upper: FloatArray
    box: tuple[FloatArray, FloatArray]
    shown: Rows
    hidden: Rows
    """Rows that only a handler knows."""

    def model(self) -> MipModel:
        """Return the model for the backend."""
        model = MipModel(maximise=self.maximise)
        model.add_block(
            "x",
            self.objective.size,
            lower=self.lower,
            upper=self.upper,
            integer=self.integer,
            objective=self.objective,
        )
        model.add_rows(self.shown)
        return model

    def handler(self, *events: Event) -> FunctionHandler:
        """Return a handler that returns violated hidden rows as REQUIRED cuts."""

        def separate(point: Point) -> Reply | None:
            violated = self.hidden.violation(point.x) > TOLERANCE
            return Reply(cuts=(Cuts(self.hidden.take(violated), Validity.REQUIRED),)) if violated.any() else None

        return FunctionHandler(separate, Needs(events, [Validity.REQUIRED]))

    def optimum(self) -> float | None:
        """Return the best objective by enumeration; None if no point is feasible."""
        axes = [np.arange(low, high + 1.0) for low, high in zip(*self.box, strict=True)]
        points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        rows = Rows.concatenate([self.shown, self.hidden])
        matrix = np.zeros((rows.n_rows, self.objective.size))
        matrix[rows.row_of_entry, rows.columns] = rows.values
        activity = points @ matrix.T
        values = points[np.all((activity >= rows.lower) & (activity <= rows.upper), axis=1)] @ self.objective
        if not values.size:
            return None
        return float(values.max() if self.maximise else values.min())

    def is_feasible(self, x: FloatArray) -> bool:
        rows = Rows.concatenate([self.shown, self.hidden])
        inside = np.all((x >= self.lower) & (x <= self.upper) & (x == np.round(x)))
        return bool(inside and np.all(rows.violation(x) <= TOLERANCE))


def random_model(rng: np.random.Generator, *, binary: bool = False, lazy: bool = False) -> RandomModel:
    """Draw a model.

    Parameters
    ----------
    binary : bool
        Binary columns only, for backends that support no others.
    lazy : bool
        Hide some of the rows.
    """
    n_columns = int(rng.integers(1, _MAX_COLUMNS + 1))
    low, high = _box(rng, n_columns, binary)
    lower, upper = low.copy(), high.copy()
    stated = Rows.empty()
    if not binary and rng.random() < 0.3:
        wide = rng.random(n_columns) < 0.5
        lower[wide], upper[wide] = -WIDE, WIDE
        columns = np.flatnonzero(wide)
        stated = Rows.from_entries(
            np.arange(columns.size), columns, 1.0, n_rows=columns.size, lower=low[columns], upper=high[columns]
        )
    objective = rng.integers(-5, 6, n_columns) * rng.choice(_OBJECTIVE_SCALES)
    if rng.random() < 0.15:
        objective = np.zeros(n_columns)
    rows = Rows.concatenate([_row(rng, low, high) for _ in range(rng.integers(0, _MAX_ROWS + 1))])
    hidden = rng.random(rows.n_rows) < (0.7 if lazy else 0.0)
    return RandomModel(
        maximise=bool(rng.integers(2)),
        objective=objective,
        integer=np.ones(n_columns, dtype=bool),
        lower=lower,
        upper=upper,
        box=(low, high),
        shown=Rows.concatenate([stated, rows.take(~hidden)]),
        hidden=rows.take(hidden),
    )


def _box(rng: np.random.Generator, n_columns: int, binary: bool) -> tuple[FloatArray, FloatArray]:
    """Draw bounds with few points between them; some columns are fixed."""
    width = 1 if binary else int(_MAX_POINTS ** (1 / n_columns)) - 1
    low = np.zeros(n_columns, dtype=np.int64) if binary else rng.integers(-4, 3, n_columns)
    high = low + rng.integers(1, min(width, 9) + 1, n_columns)
    fixed = rng.random(n_columns) < 0.1
    low[fixed] = high[fixed]
    return low.astype(np.float64), high.astype(np.float64)


def _row(rng: np.random.Generator, low: FloatArray, high: FloatArray) -> Rows:
    """Draw a row near some point of the box: one-sided, an equation, ranged, wide, or without columns."""
    values = rng.integers(-4, 5, low.size) * (rng.random(low.size) < 0.7).astype(np.float64)
    if rng.random() < 0.05:
        values[:] = 0.0
    columns = np.flatnonzero(values)
    point = low + np.floor(rng.random(low.size) * (high - low + 1.0))
    middle = float(values @ point) + float(rng.integers(-1, 2) if rng.random() < 0.4 else 0)
    lower, upper = {
        "at most": (-math.inf, middle),
        "at least": (middle, math.inf),
        "equation": (middle, middle),
        "ranged": (middle - float(rng.integers(0, 3)), middle + float(rng.integers(0, 3))),
        "wide at most": (-WIDE, middle),
        "wide at least": (middle, WIDE),
        "idle": (-WIDE, WIDE),
    }[str(rng.choice(_ROW_KINDS, p=_ROW_SHARES))]
    return Rows.single(columns, values[columns], lower=lower, upper=upper)


_ROW_KINDS = ("at most", "at least", "equation", "ranged", "wide at most", "wide at least", "idle")
_ROW_SHARES = (0.3, 0.25, 0.15, 0.15, 0.05, 0.05, 0.05)


def compare(factory: BackendFactory, cases: int, seed: int = 0, *, lazy: bool = False) -> None:
    """Solve random models; raise AssertionError with the first wrong result; arguments as in `mixed_sizes.compare`."""
    binary = not factory().capabilities.continuous_columns  # such a backend supports binary models only
    for case in range(cases):
        drawn = random_model(np.random.default_rng([seed, case]), binary=binary, lazy=lazy)
        fault = find_fault(factory(), drawn, lazy=lazy)
        assert fault is None, f"case {case} of seed {seed}: {fault}; {drawn!r}"


def find_fault(backend: Backend, drawn: RandomModel, *, lazy: bool = False) -> str | None:
    """Return the fault of the backend's result, or None."""
    try:
        result = solve(backend, drawn, lazy=lazy)
    except MipError as error:
        return f"{type(error).__name__}: {error}"
    return _judge(drawn, result)


def solve(backend: Backend, drawn: RandomModel, *, lazy: bool) -> MipResult:
    """Solve a model, with `lazy` its hidden rows as REQUIRED cuts."""
    backend.load(drawn.model())
    handler = None
    if lazy:
        able = backend.capabilities
        handler = drawn.handler(*([Event.CANDIDATE, Event.RELAXATION] if able.relaxation_points else [Event.CANDIDATE]))
    return backend.solve(handler=handler)


def _judge(drawn: RandomModel, result: MipResult) -> str | None:
    optimum = drawn.optimum()
    if optimum is None:
        wrong = result.termination is not Termination.INFEASIBLE or result.x is not None
        return f"infeasible, but the backend reports {result.termination.value} ({result.objective})" if wrong else None
    if result.termination is not Termination.OPTIMAL:
        return f"the optimum is {optimum}, but the backend reports {result.termination.value}"
    if not close(result.objective, optimum) or not close(result.bound, optimum):
        return f"the optimum is {optimum}, but the backend reports {result.objective}, bound {result.bound}"
    if result.x is None or not drawn.is_feasible(result.x):
        return f"the point {result.x} is not feasible"
    return None


@check
def random_models_match_brute_force(factory: BackendFactory) -> None:
    """On random small integer models: the optimum with a bound equal to it, or INFEASIBLE."""
    compare(factory, CASES)


@check_with("lazy_rows")
def random_lazy_rows_match_brute_force(factory: BackendFactory) -> None:
    """The same where rows come only as REQUIRED cuts."""
    compare(factory, CASES, lazy=True)
