"""Small random models whose hidden rows are known to a lazy handler only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st

from accel_oct.mip import (
    Cuts,
    Event,
    FunctionHandler,
    MipModel,
    Needs,
    Point,
    Reply,
    Rows,
    Validity,
    backend_availability,
)


def dense_rows(matrix: np.ndarray, upper: np.ndarray) -> Rows:
    """``matrix @ x <= upper``, zeros left out."""
    row, column = np.nonzero(matrix)
    return Rows.from_entries(row, column, matrix[row, column], n_rows=len(matrix), upper=upper)


@dataclass(frozen=True)
class HiddenRowsProblem:
    """A pure-binary model in two forms: complete, or with some rows left to a handler."""

    maximise: bool
    objective: np.ndarray
    shown: Rows
    hidden: Rows

    def model(self, *, complete: bool) -> MipModel:
        model = MipModel(maximise=self.maximise)
        model.add_block("x", len(self.objective), integer=True, objective=self.objective)
        model.add_rows(self.shown)
        if complete:
            model.add_rows(self.hidden)
        return model

    def handler(self, *events: Event, once: bool = False) -> FunctionHandler:
        """Returns the hidden rows that a point violates; with `once`, each row a single time."""
        returned: set[int] = set()

        def separate(point: Point) -> Reply | None:
            violated = [int(row) for row in np.flatnonzero(self.hidden.violation(point.x) > 1e-6)]
            rows = [row for row in violated if not (once and row in returned)]
            returned.update(rows)
            return Reply(cuts=(Cuts(self.hidden.take(rows), Validity.REQUIRED, "hidden"),)) if rows else None

        return FunctionHandler(separate, Needs(events, [Validity.REQUIRED]))


@st.composite
def hidden_rows_problems(draw: st.DrawFn, max_columns: int = 8) -> HiddenRowsProblem:
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    n_columns = draw(st.integers(2, max_columns), label="columns")

    def rows(n_rows: int) -> Rows:
        matrix = generator.integers(-4, 6, size=(n_rows, n_columns)).astype(float)
        return dense_rows(matrix, generator.integers(-1, 8, size=n_rows).astype(float))

    return HiddenRowsProblem(
        maximise=draw(st.booleans(), label="maximise"),
        objective=generator.integers(-9, 10, size=n_columns).astype(float),
        shown=rows(draw(st.integers(0, 3), label="shown")),
        hidden=rows(draw(st.integers(1, 5), label="hidden")),
    )


def requires(name: str) -> pytest.MarkDecorator:
    """Skip, with the backend's own reason, where a backend cannot run."""
    found = backend_availability(name)
    return pytest.mark.skipif(not found, reason=found.reason or "available")


def skip_unless_available(name: str) -> None:
    """The same for a test in its body, so that nothing is asked of a solver while tests are collected."""
    found = backend_availability(name)
    if not found:
        pytest.skip(found.reason)
