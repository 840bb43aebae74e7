"""Data whose rows carry what predictions earn, instead of the class that each sample has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.dataset import BinaryDataset, on_grid

__all__ = ["ScoredDataset", "scored_dataset"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoredDataset(BinaryDataset):
    """One row per sample and class that earns something there: predicting ``y`` for it earns ``weights``.

    The score of a tree on these rows is what its predictions earn on the samples, so whatever maximises weighted
    accuracy maximises any sum of rewards.

    Attributes
    ----------
    source : int64 array
        The row of the data set that each row was made from; every row of it is the source of one row at least.
    first : bool array
        Whether a row is the first of its source: to it belongs what is counted once per sample.
    """

    source: IntArray
    first: NDArray[np.bool_]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.source.flags.writeable = False
        self.first.flags.writeable = False


def scored_dataset(dataset: BinaryDataset, amounts: FloatArray) -> ScoredDataset:
    """The rows for some rewards.

    Parameters
    ----------
    dataset : BinaryDataset
    amounts : float array (n_samples, n_classes)
        What predicting each class for each sample earns: not negative, and positive somewhere. Rounded onto a grid of
        their own, see `BinaryDataset`.
    """
    earning = amounts > 0
    earning[~earning.any(axis=1), 0] = True  # who earns nothing may still be counted
    source, label = np.nonzero(earning)
    weights, grid_bits = on_grid(amounts[source, label])
    first = np.ones(len(source), dtype=bool)
    first[1:] = source[1:] != source[:-1]
    return ScoredDataset(
        X=dataset.X[source],
        y=label.astype(np.int64),
        weights=weights,
        classes=dataset.classes,
        feature_names=dataset.feature_names,
        class_names=dataset.class_names,
        grid_bits=grid_bits,
        sources=dataset.sources,
        source=source.astype(np.int64),
        first=first,
    )
