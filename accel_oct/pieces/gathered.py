"""Data in pieces once they have been read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from accel_oct.data.dataset import BinaryDataset
from accel_oct.data.tally import Tally

__all__ = ["Gathered"]


@dataclass(frozen=True, eq=False)
class Gathered:
    """What `gather` made of data in pieces; hand `data` to `solve`, `frontier` or `near_optimal` in the place of X.

    Attributes
    ----------
    data : BinaryDataset or Tally
        Distinct rows with their weights, whose groups constraints may name; or the tally.
    encoder : fitted transformer
    classes : array
    features : tuple of str
        The columns that were encoded.
    sensitive_features : tuple of str
    n_rows, n_pieces : int
    rank_errors : dict of str to float
        For columns of numbers that had too many distinct values to be counted one by one: by which share of the weight
        a quantile may be off. All other quantiles are exact.
    sampled : bool
        Whether the encoder has seen a sample of the rows instead of all.
    named : bool
        Whether the names of the features are the user's own.
    """

    data: BinaryDataset | Tally
    encoder: Any
    classes: NDArray[Any]
    features: tuple[str, ...]
    sensitive_features: tuple[str, ...]
    n_rows: int
    n_pieces: int
    rank_errors: dict[str, float]
    sampled: bool
    named: bool

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Of the binary features."""
        return self.data.feature_names
