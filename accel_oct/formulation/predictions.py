"""What a tree predicts, as columns of the master: for constraints that speak of predictions.

Samples with equal features share a prediction, so there is one column z[x, k] per distinct point x and class k, with

    sum of z[x, k] over k = 1,    theta_i = z[x_i, y_i],

and the Benders cuts of every class: z[x, k] is at most what the tree allows x to be predicted as k. As the z of a point
add up to one, upper bounds on all of them leave no room to report another prediction than the tree's, while theta alone
could be lowered to look fair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from accel_oct.data.binary_matrix import BoolMatrix, pack_rows
from accel_oct.data.dataset import equal_rows
from accel_oct.data.weights import accurate_sums
from accel_oct.mip import Rows
from accel_oct.mip.rows import FloatArray, IntArray
from accel_oct.tree import DecisionTree

if TYPE_CHECKING:
    from accel_oct.formulation.master import Master


@dataclass(frozen=True)
class Claims:
    """Columns that claim that some point is predicted to be of some class; Benders cuts hold each to the tree.

    Attributes
    ----------
    points : bool array (n_points, n_features)
    point, label, column : int arrays (n_claims,)
        Row of `points`, class, and column of the model.
    """

    points: BoolMatrix
    point: IntArray
    label: IntArray
    column: IntArray

    @property
    def size(self) -> int:
        """How many claims there are."""
        return int(self.column.size)


class Predictions:
    """The block z of a master.

    Parameters
    ----------
    master : Master
        Not loaded into a backend yet.
    X : bool array
        The user's rows, which constraints speak of; the master may have merged them.

    Attributes
    ----------
    z : ColumnBlock (n_points, n_classes)
    point_of : int array
        The point of every row of X.
    """

    def __init__(self, master: Master, X: BoolMatrix) -> None:
        points = equal_rows(X)
        first = points.first
        self.points = X[first]
        self.point_of: IntArray = points.group_of
        n_classes = master.dataset.n_classes
        self.z = master.model.add_block("z", (first.size, n_classes))
        ones = np.ones(self.z.size)
        master.model.add_rows(
            Rows.from_entries(
                np.repeat(np.arange(first.size), n_classes),
                self.z.index.ravel(),
                ones,
                n_rows=first.size,
                lower=1.0,
                upper=1.0,
            ),
            "one prediction per point",
        )
        self._link(master, pack_rows(self.points))
        master.add_lift(self._fill)

    def _link(self, master: Master, words: NDArray[np.uint64]) -> None:
        """theta of a sample is z of its point and class."""
        data = master.dataset
        own = {word.tobytes(): place for place, word in enumerate(words)}
        point = np.array([own[word.tobytes()] for word in pack_rows(data.X)], dtype=np.int64)
        rows = np.arange(data.n_samples)
        master.model.add_rows(
            Rows.from_entries(
                np.tile(rows, 2),
                np.concatenate([master.theta.index, self.z.index[point, data.y]]),
                np.repeat([1.0, -1.0], data.n_samples),
                n_rows=data.n_samples,
                lower=0.0,
                upper=0.0,
            ),
            "scores are predictions",
        )

    def _fill(self, tree: DecisionTree, x: FloatArray) -> None:
        self.z.view(x)[np.arange(len(self.points)), tree.predictions(self.points)] = 1.0

    @property
    def claims(self) -> Claims:
        """Every point and class."""
        n_points, n_classes = self.z.shape
        return Claims(
            self.points,
            np.repeat(np.arange(n_points), n_classes),
            np.tile(np.arange(n_classes), n_points),
            self.z.index.ravel(),
        )

    def coefficients(self, coefficients: FloatArray) -> FloatArray:
        """Coefficients (rows of X, classes) of predictions as coefficients of z, (n_points, n_classes)."""
        return accurate_sums(coefficients, self.point_of, self.z.shape[0])
