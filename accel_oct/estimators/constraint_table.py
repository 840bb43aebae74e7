"""Values and slacks of constraints as a printable table; alignment of tables in text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from accel_oct.errors import AccelOctError
from accel_oct.solving.result import ConstraintReport, Result

_HEAD = ("constraint", "at least", "at most", "value", "slack", "multiplier")


class ConstraintTable(tuple[ConstraintReport, ...]):
    """One `ConstraintReport` per constraint, on the training data; `print` and notebooks show it as a table.

    Attributes
    ----------
    proof : str
        Description of what is proven among the trees that satisfy the constraints; the last line of the table.
    cost : str
        What the constraints without a form, such as `Monotone`, cost in the objective, if it is known: a line before
        the last one.
    """

    proof: str
    cost: str

    def __new__(cls, reports: Iterable[ConstraintReport] = (), proof: str = "", cost: str = "") -> ConstraintTable:
        table = super().__new__(cls, reports)
        table.proof, table.cost = proof, cost
        return table

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self), self.proof, self.cost)

    @classmethod
    def of(cls, result: Result, proof: str) -> ConstraintTable:
        """Return the table of a result."""
        names, best = result.stats.get("relaxed_constraints", ()), result.stats.get("relaxed_objective")
        if best is None or not result.constraints:
            return cls(result.constraints, proof)
        lost = f"{'' if result.status == 'optimal' else 'at most '}{max(0.0, best - result.objective):.4g}"
        listed = ", ".join(f"`{name}`" for name in names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
        cost = f"without {listed} the best objective over these splits is {best:.4g}: they cost {lost}"
        return cls(result.constraints, proof, cost)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return (name, lower, upper, value, slack, multiplier) of each constraint."""
        return [(r.name, r.lower, r.upper, r.value, r.slack, r.multiplier) for r in self]

    def to_frame(self) -> Any:
        """Return a pandas data frame."""
        return data_frame(self.rows(), _HEAD)

    def __str__(self) -> str:
        return "\n".join([*aligned([_HEAD, *(_cells(row) for row in self.rows())], n_left=1), *self._claim()])

    def _claim(self) -> list[str]:
        claim = [f"{self.proof}, among trees that satisfy the constraints"] if self.proof else []
        return [line for line in (self.cost, *claim) if line] if self else []

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in _HEAD)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(row)) + "</tr>" for row in self.rows()
        )
        claim = "".join(f"<caption>{escape(line)}</caption>" for line in self._claim())
        return f"<table>{claim}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: tuple[Any, ...]) -> tuple[str, ...]:
    return (row[0], *("" if value is None else f"{value:.4g}" for value in row[1:]))


def aligned(rows: Sequence[Sequence[str]], n_left: int = 0) -> list[str]:
    """Return the rows of a table as lines; the first `n_left` columns are aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < n_left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def data_frame(rows: Iterable[Sequence[Any]], columns: Sequence[str]) -> Any:
    """Return a pandas data frame."""
    try:
        import pandas as pd
    except ImportError:
        raise AccelOctError("to_frame needs pandas: pip install 'accel-oct[pandas]'") from None
    return pd.DataFrame(list(rows), columns=list(columns))
