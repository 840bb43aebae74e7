"""Table that is read and encoded once, for use in several calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from accel_oct.data.dataset import BinaryDataset
from accel_oct.data.tally import Tally
from accel_oct.errors import InvalidInputError


@dataclass(frozen=True, eq=False, kw_only=True)
class EncodedTable:
    """Immutable table of binary features with classes, weights and the columns that constraints may name.

    `OptimalTreeClassifier.encode` creates one from rows in memory, `gather` from data in pieces. Pass it as X, without
    y and sample_weight, to `solve`, `frontier`, `solve_path`, `near_optimal` and `trade_off`, or to `fit`, `path`,
    `frontier`, `near_optimal` and `trade_off` of a classifier. Trees then branch on the features of the table; the
    parameters `encoder`, `missing` and `exclude` of the classifier are not used.

    Attributes
    ----------
    data : BinaryDataset or Tally
        Rows with class indices and weights, or a tally of many rows.
    encoder : fitted transformer
        Computes the features from the columns.
    features : tuple of str
        The columns that the encoder reads.
    n_rows : int
        Number of rows of the table; `data` may hold fewer if equal rows were merged.
    sensitive_features : tuple of str
        Columns that define the group of a sample.
    weighted : bool
        Whether samples have weights.
    n_pieces : int
        Number of pieces that the table was read from.
    rank_errors : mapping of str to float
        Largest error of a quantile as a share of the weight, for numeric columns with too many distinct values to be
        counted exactly. Quantiles of all other columns are exact.
    sampled : bool
        Whether the encoder was fitted on a sample of the rows.
    named : bool
        Whether the column names are the user's.

    Examples
    --------
    >>> import accel_oct
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> table = accel_oct.OptimalTreeClassifier(max_depth=2).encode(X, y)
    >>> accel_oct.solve(table, max_depth=2, leaf_penalty=0.01).status
    'optimal'
    """

    data: BinaryDataset | Tally
    encoder: Any
    features: tuple[str, ...]
    n_rows: int
    sensitive_features: tuple[str, ...] = ()
    weighted: bool = False
    n_pieces: int = 1
    rank_errors: Mapping[str, float] = field(default_factory=dict)
    sampled: bool = False
    named: bool = True

    def check_alone(self, **others: Any) -> None:
        """Raise `InvalidInputError` if an argument is given that the table already holds."""
        for name, value in others.items():
            if value is not None:
                raise InvalidInputError(f"{name} must be None when X is an EncodedTable, which holds it already")

    @property
    def classes(self) -> NDArray[Any]:
        """Sorted labels; class index k stands for ``classes[k]``."""
        return self.data.classes

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the binary features."""
        return self.data.feature_names
