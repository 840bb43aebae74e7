"""A table that was read and encoded once, for any number of questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from accel_oct.data.dataset import BinaryDataset
from accel_oct.data.tally import Tally

__all__ = ["EncodedTable"]


@dataclass(frozen=True, eq=False, kw_only=True)
class EncodedTable:
    """A table in binary features with its classes, its weights and the columns that constraints may name.

    `OptimalTreeClassifier.encode` makes one from rows in memory, `gather` from data in pieces. It takes the place of X
    in `solve`, `frontier`, `solve_path`, `near_optimal` and `trade_off`, and in `fit`, `path`, `frontier`,
    `near_optimal` and `trade_off` of a classifier; y and sample_weight are left out. Trees then branch on the features
    of the table, whatever `encoder`, `missing` and `exclude` of the classifier say. It never changes.

    Attributes
    ----------
    data : BinaryDataset or Tally
        Rows with class indices and weights; or the tally of many rows.
    encoder : fitted transformer
        Makes the features from the columns.
    features : tuple of str
        The columns that the encoder reads.
    n_rows : int
        Rows of the table; `data` may hold fewer, where equal ones were merged.
    sensitive_features : tuple of str
        Columns that tell to which group a sample belongs.
    weighted : bool
        Whether samples have weights.
    n_pieces : int
        From how many pieces the table was read.
    rank_errors : mapping of str to float
        For columns of numbers that had too many distinct values to be counted one by one: by which share of the weight
        a quantile may be off. All other quantiles are exact.
    sampled : bool
        Whether the encoder has seen a sample of the rows instead of all.
    named : bool
        Whether the names of the columns are the user's own.

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

    @property
    def classes(self) -> NDArray[Any]:
        """The labels, sorted; class index k stands for ``classes[k]``."""
        return self.data.classes

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Of the binary features."""
        return self.data.feature_names
