"""A mixed-integer model as arrays: columns in named, shaped blocks and rows in batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from accel_oct.mip.errors import ModelError
from accel_oct.mip.rows import FloatArray, IntArray, Rows

BoolArray = npt.NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)

#: Two reals closer than this are the same to a MIP solver; row, bound and integrality checks use it.
FEASIBILITY_TOLERANCE = 1e-6

#: A candidate is rejected when it violates a cut by more than this. Looser than the solvers' own tolerance, because
#: rounding the integer columns moves a point that the solver holds for feasible.
REJECTION_TOLERANCE = 1e-5


@dataclass(frozen=True)
class ColumnBlock:
    """A named range of columns that is read and written as an array of the given shape."""

    name: str
    start: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many columns the block has."""
        return math.prod(self.shape)

    @property
    def stop(self) -> int:
        """The first column after the block."""
        return self.start + self.size

    @cached_property
    def index(self) -> IntArray:
        """The column index of every element, in the block's shape."""
        return np.arange(self.start, self.stop, dtype=np.int64).reshape(self.shape)

    def view(self, x: FloatArray) -> FloatArray:
        """The block's part of a full column vector, reshaped without a copy."""
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
        """Append columns; bounds, integrality and objective are scalars or arrays of the block's shape."""
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
        """Append rows; nothing is changed when they are malformed."""
        rows.check(self._n_columns, what)
        self.row_batches.append((what, rows))

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
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
        """Which columns must be integral."""
        return _joined(self._integer, np.empty(0, dtype=bool))

    @property
    def rows(self) -> Rows:
        """All rows, as one batch."""
        return Rows.concatenate([rows for _, rows in self.row_batches])

    def column_names(self) -> list[str]:
        """A readable name per column, such as ``b[3,17]``."""
        return [
            f"{block.name}[{','.join(map(str, position))}]"
            for block in self.blocks.values()
            for position in np.ndindex(*block.shape)
        ]


@dataclass(frozen=True)
class ModelArrays:
    """A model frozen into arrays at the moment it is loaded into a backend; its rows are scaled up."""

    maximise: bool
    objective: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray
    rows: Rows

    @classmethod
    def of(cls, model: MipModel) -> ModelArrays:
        """The arrays of a model as it is now."""
        return cls(model.maximise, model.objective, model.lower, model.upper, model.integer, model.rows.scaled_up())

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return int(self.objective.size)

    @property
    def sign(self) -> float:
        """+1 when maximising, -1 when minimising: ``sign * objective`` is better when larger."""
        return 1.0 if self.maximise else -1.0

    def value(self, x: FloatArray) -> float:
        """Objective of a point."""
        return float(self.objective @ x)

    def rounded(self, x: FloatArray) -> FloatArray:
        """A copy of x with its integer columns rounded: what separation works on."""
        result = np.array(x, dtype=np.float64)
        result[self.integer] = np.round(result[self.integer])
        return result

    def is_integral(self, x: FloatArray) -> bool:
        """Whether the integer columns of a point are integral, up to the tolerance."""
        part = x[self.integer]
        return bool(np.all(np.abs(part - np.round(part)) <= FEASIBILITY_TOLERANCE))

    def keeps_rows(self, x: FloatArray) -> bool:
        """Whether x keeps the rows up to what rounding may cost: relative to a row's sides, as solvers have it."""
        return bool(np.all(self.rows.violation(x) <= self._row_tolerance))

    @cached_property
    def _row_tolerance(self) -> FloatArray:
        sides = [np.abs(np.where(np.isfinite(side), side, 0.0)) for side in (self.rows.lower, self.rows.upper)]
        tolerance: FloatArray = REJECTION_TOLERANCE * np.maximum(1.0, np.maximum(*sides))
        return tolerance

    def is_feasible(self, x: FloatArray) -> bool:
        """Whether x keeps every bound, row and integrality of the model itself (cuts aside)."""
        return bool(
            np.isfinite(x).all()
            and np.all(x >= self.lower - FEASIBILITY_TOLERANCE)
            and np.all(x <= self.upper + FEASIBILITY_TOLERANCE)
            and self.is_integral(x)
            and np.all(self.rows.violation(x) <= FEASIBILITY_TOLERANCE)
        )


def _joined(parts: list[npt.NDArray[Scalar]], empty: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    return np.concatenate(parts) if parts else empty
