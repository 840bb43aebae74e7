"""A mixed-integer model as arrays: columns in named, shaped blocks and rows in batches."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from accel_oct.mip.errors import ModelError
from accel_oct.mip.rows import Rows
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray

Scalar = TypeVar("Scalar", bound=np.generic)

#: Tolerance of MIP solvers, used in checks of rows, bounds and integrality.
FEASIBILITY_TOLERANCE = 1e-6

#: A candidate is rejected if it violates a cut by more than this. Looser than the tolerance of solvers, because
#: rounding the integer columns moves a point that is feasible for the solver.
REJECTION_TOLERANCE = 1e-5


@dataclass(frozen=True)
class ColumnBlock:
    """A named range of columns that is read and written as an array of the given shape."""

    name: str
    start: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of columns of the block."""
        return math.prod(self.shape)

    @property
    def stop(self) -> int:
        """The first column after the block."""
        return self.start + self.size

    @cached_property
    def index(self) -> IntArray:
        """Column index of every element, in the shape of the block."""
        return np.arange(self.start, self.stop, dtype=np.int64).reshape(self.shape)

    def view(self, x: FloatArray) -> FloatArray:
        """Return the block of a full column vector, reshaped without a copy."""
        return x[self.start : self.stop].reshape(self.shape)


class MipModel:
    """A model under construction; backends read its arrays when it is loaded.

    Parameters
    ----------
    maximise : bool
        Direction of the objective.

    Examples
    --------
    >>> model = MipModel(maximise=True)
    >>> take = model.add_block("take", 3, integer=True, objective=[5.0, 4.0, 3.0])
    >>> model.add_rows(Rows.single(take.index, [2.0, 3.0, 1.0], upper=4.0))
    """

    def __init__(self, *, maximise: bool = False) -> None:
        self.maximise = maximise
        self.blocks: dict[str, ColumnBlock] = {}
        self._lower: list[FloatArray] = []
        self._upper: list[FloatArray] = []
        self._objective: list[FloatArray] = []
        self._integer: list[BoolArray] = []
        self.row_batches: list[tuple[str, Rows]] = []
        self._n_columns = 0

    def add_block(
        self,
        name: str,
        shape: int | tuple[int, ...],
        *,
        lower: npt.ArrayLike = 0.0,
        upper: npt.ArrayLike = 1.0,
        integer: npt.ArrayLike = False,
        objective: npt.ArrayLike = 0.0,
    ) -> ColumnBlock:
        """Append columns; bounds, integrality and objective are scalars or arrays of the shape of the block."""
        if name in self.blocks:
            raise ModelError(f"column block {name!r} exists already")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        block = ColumnBlock(name, self._n_columns, shape)

        def spread(values: npt.ArrayLike, what: str) -> FloatArray:
            try:
                return np.broadcast_to(np.asarray(values, dtype=np.float64), shape).flatten()  # a copy
            except ValueError as error:
                raise ModelError(f"column block {name!r}: `{what}` does not fit the shape {shape}") from error

        lower_, upper_, objective_ = (
            spread(lower, "lower"),
            spread(upper, "upper"),
            spread(objective, "objective"),
        )
        integer_ = spread(integer, "integer").astype(bool)
        if np.isnan(lower_).any() or np.isnan(upper_).any():
            raise ModelError(f"column block {name!r}: a bound is NaN")
        if np.any((lower_ > upper_) | (lower_ == np.inf) | (upper_ == -np.inf)):
            raise ModelError(f"column block {name!r}: a lower bound is above its upper bound")
        if not np.isfinite(objective_).all():
            raise ModelError(f"column block {name!r}: an objective coefficient is NaN or infinite")
        self._lower.append(lower_)
        self._upper.append(upper_)
        self._objective.append(objective_)
        self._integer.append(integer_)
        self.blocks[name] = block
        self._n_columns = block.stop
        return block

    def add_rows(self, rows: Rows, what: str = "rows") -> None:
        """Append rows; malformed rows raise an error and change nothing."""
        rows.check(self._n_columns, what)
        self.row_batches.append((what, rows))

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self._n_columns

    @property
    def lower(self) -> FloatArray:
        """Lower bound of every column."""
        return _joined(self._lower, np.empty(0))

    @property
    def upper(self) -> FloatArray:
        """Upper bound of every column."""
        return _joined(self._upper, np.empty(0))

    @property
    def objective(self) -> FloatArray:
        """Objective coefficient of every column."""
        return _joined(self._objective, np.empty(0))

    @property
    def integer(self) -> BoolArray:
        """Whether each column must be integral."""
        return _joined(self._integer, np.empty(0, dtype=bool))

    @property
    def rows(self) -> Rows:
        """All rows, as one batch."""
        return Rows.concatenate([rows for _, rows in self.row_batches])

    def column_names(self) -> list[str]:
        """Return a readable name per column, such as ``b[3,17]``."""
        return [
            f"{block.name}[{','.join(map(str, position))}]"
            for block in self.blocks.values()
            for position in np.ndindex(*block.shape)
        ]


@dataclass(frozen=True)
class ModelArrays:
    """The arrays of a model when it is loaded into a backend; its rows are scaled up by ``2.0**exponents``."""

    maximise: bool
    objective: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray
    rows: Rows
    exponents: IntArray

    @classmethod
    def of(cls, model: MipModel) -> ModelArrays:
        """Return the arrays of a model in its current state."""
        rows = model.rows
        return cls(
            model.maximise, model.objective, model.lower, model.upper, model.integer, rows.scaled_up(), rows.exponents
        )

    def with_rows(self, rows: Rows) -> ModelArrays:
        """Return the model with further rows."""
        exponents = np.concatenate([self.exponents, rows.exponents])
        return replace(self, rows=Rows.concatenate([self.rows, rows.scaled_up()]), exponents=exponents)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.objective.size)

    @property
    def sign(self) -> float:
        """1 for maximisation, -1 for minimisation: larger ``sign * objective`` is better."""
        return 1.0 if self.maximise else -1.0

    def with_columns(self, block: MipModel, entries: Rows) -> ModelArrays:
        """Return the model with the columns of another model, and their coefficients in the rows of this one."""
        old = self.rows
        numbers = np.concatenate([old.row_of_entry, entries.row_of_entry])
        columns = np.concatenate([old.columns, entries.columns + self.n_columns])
        # In the units in which the rows were given: with the new columns they are scaled anew.
        values = np.concatenate([np.ldexp(old.values, -self.exponents[old.row_of_entry]), entries.values])
        lower, upper = (np.ldexp(side, -self.exponents) for side in (old.lower, old.upper))
        rows = Rows.from_entries(numbers, columns, values, n_rows=old.n_rows, lower=lower, upper=upper)
        return ModelArrays(
            self.maximise,
            np.concatenate([self.objective, block.objective]),
            np.concatenate([self.lower, block.lower]),
            np.concatenate([self.upper, block.upper]),
            np.concatenate([self.integer, block.integer]),
            rows.scaled_up(),
            rows.exponents,
        )

    def value(self, x: FloatArray) -> float:
        """Return the objective of a point."""
        return float(self.objective @ x)

    def rounded(self, x: FloatArray) -> FloatArray:
        """Return a copy of x with integer columns rounded, for separation."""
        result = np.array(x, dtype=np.float64)
        result[self.integer] = np.round(result[self.integer])
        return result

    def is_integral(self, x: FloatArray) -> bool:
        """Return whether the integer columns of a point are integral, up to the tolerance."""
        part = x[self.integer]
        return bool(np.all(np.abs(part - np.round(part)) <= FEASIBILITY_TOLERANCE))

    def keeps_rows(self, x: FloatArray) -> bool:
        """Return whether x satisfies the rows, up to a tolerance for rounding relative to the row bounds."""
        return bool(np.all(self.rows.violation(x) <= self._row_tolerance))

    @cached_property
    def _row_tolerance(self) -> FloatArray:
        sides = [np.abs(np.where(np.isfinite(side), side, 0.0)) for side in (self.rows.lower, self.rows.upper)]
        tolerance: FloatArray = REJECTION_TOLERANCE * np.maximum(1.0, np.maximum(*sides))
        return tolerance

    def is_feasible(self, x: FloatArray) -> bool:
        """Return whether x satisfies the bounds, rows and integrality of the model, without cuts."""
        return bool(
            np.isfinite(x).all()
            and np.all(x >= self.lower - FEASIBILITY_TOLERANCE)
            and np.all(x <= self.upper + FEASIBILITY_TOLERANCE)
            and self.is_integral(x)
            and np.all(self.rows.violation(x) <= FEASIBILITY_TOLERANCE)
        )


def _joined(parts: list[npt.NDArray[Scalar]], empty: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    return np.concatenate(parts) if parts else empty
