"""The master problem of BendOCT (section 4 of the paper) as columns and rows.

In units of weight, up to a scale: maximise ``sum_i w_i theta_i - leaf_price * sum_n p_n`` over trees (b, p, w) and
scores theta. The master does not link theta to the tree; the Benders cuts do (`accel_oct.cuts`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from accel_oct.data import BinaryDataset
from accel_oct.data.binary_matrix import BoolMatrix, pack_rows
from accel_oct.data.dataset import equal_rows
from accel_oct.data.weights import accurate_sums
from accel_oct.errors import InvalidInputError
from accel_oct.mip import MipModel, Rows
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray
from accel_oct.tree import DecisionTree, Topology


@dataclass(frozen=True)
class Claims:
    """Columns that state that a point is predicted to be of a class; Benders cuts link each to the tree.

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
        """Number of claims."""
        return int(self.column.size)


class Predictions:
    """The predictions of a tree as columns z, for constraints that depend on predictions.

    Samples with equal features share a prediction, so there is one column z[x, k] per distinct point x and class k,
    with

        sum of z[x, k] over k = 1,    theta_i = z[x_i, y_i],

    and the Benders cuts of every class bound z[x, k] by the tree's prediction. As the z of a point sum to one, upper
    bounds on all of them fix the prediction, while theta alone could be lowered to satisfy a fairness constraint.

    Parameters
    ----------
    master : Master
        Not loaded into a backend yet.
    X : bool array
        The user's rows, on which constraints are defined; the master may have merged them.

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
        if not master.is_strict:
            self._link(master, pack_rows(self.points))
        master.add_lift(self._fill)

    def _link(self, master: Master, words: NDArray[np.uint64]) -> None:
        """Add rows: theta of a sample equals z of its point and class."""
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
        """Claims of every point and class."""
        n_points, n_classes = self.z.shape
        return Claims(
            self.points,
            np.repeat(np.arange(n_points), n_classes),
            np.tile(np.arange(n_classes), n_points),
            self.z.index.ravel(),
        )

    def coefficients(self, coefficients: FloatArray) -> FloatArray:
        """Convert coefficients (rows of X, classes) of predictions to coefficients of z, (n_points, n_classes)."""
        return accurate_sums(coefficients, self.point_of, self.z.shape[0])


Lift = Callable[[DecisionTree, FloatArray], None]

#: Above this total weight the objective is scaled to a mean weight of one, because tolerances of solvers are absolute.
_LARGE_TOTAL = 1e7


def solver_scale(total_weight: float, n_samples: int, integral: bool) -> float:
    """Return the factor of the values of trees in the solver's objective.

    It is 1 for integral weights of usual size, so that values are whole numbers.
    """
    return 1.0 if integral and total_weight <= _LARGE_TOTAL else n_samples / total_weight


_SECONDS_PER_COLUMN = 1e-6


class Master:
    """The master problem for one data set, depth and leaf price.

    Parameters
    ----------
    dataset : BinaryDataset
    max_depth : int
        At least 1; a single leaf needs no model.
    leaf_price : float
        In units of weight, on the grid of the data set.
    integral_predictions : bool
        Whether w is binary. It may be continuous under the standard Benders cuts (end of section 4), and must be binary
        under the strengthened ones (section 5.1).
    original : BinaryDataset, optional
        The user's data, if `dataset` has other rows: constraints are defined on its rows.
    counted : callable (DecisionTree) -> bool array, optional
        Which rows of `dataset` count, if not all that are predicted right: theta of a row is at most this, and the cuts
        of the objective define it (`accel_oct.objectives.StrictScore`). Needs integral predictions.

    Attributes
    ----------
    model : MipModel
    b : ColumnBlock (n_internal, n_features)
        Node n branches on feature f.
    p : ColumnBlock (n_nodes,)
        Node n is a leaf.
    w : ColumnBlock (n_nodes, n_classes)
        Node n predicts class k.
    theta : ColumnBlock (n_samples,)
        Score of sample i.
    scale : float
        The objective of the model is the value of the tree times this, see `solver_scale`.
    """

    def __init__(
        self,
        dataset: BinaryDataset,
        max_depth: int,
        leaf_price: float,
        *,
        integral_predictions: bool = False,
        original: BinaryDataset | None = None,
        counted: Callable[[DecisionTree], BoolArray] | None = None,
    ) -> None:
        if counted is not None and not integral_predictions:
            raise InvalidInputError("an objective with cuts of its own needs a master with integral predictions")
        self.dataset = dataset
        self._counted = counted
        self.leaf_price = leaf_price
        self.integral_predictions = integral_predictions
        self.topology = Topology(max_depth)
        self.scale = solver_scale(dataset.total_weight, dataset.n_samples, dataset.integral)
        self.model = MipModel(maximise=True)
        n_internal, n_nodes = self.topology.n_internal, self.topology.n_nodes
        self.b = self.model.add_block("b", (n_internal, dataset.n_features), integer=True)
        self.p = self.model.add_block("p", n_nodes, integer=True, objective=-leaf_price * self.scale)
        self.w = self.model.add_block("w", (n_nodes, dataset.n_classes), integer=integral_predictions)
        self.theta = self.model.add_block("theta", dataset.n_samples, objective=dataset.weights * self.scale)
        self.original = dataset if original is None else original
        self._predictions: Predictions | None = None
        self._lifts: list[Lift] = []
        self._couplings: list[str] = []
        self._add_tree_rows()

    @staticmethod
    def seconds_to_build(dataset: BinaryDataset, max_depth: int) -> float:
        """Return a high estimate of the time to build and load the model, which cannot be interrupted."""
        topology = Topology(max_depth)
        branching = topology.n_internal * (dataset.n_features + max_depth)
        return _SECONDS_PER_COLUMN * (branching + topology.n_nodes * (dataset.n_classes + max_depth))

    def _add_tree_rows(self) -> None:
        """Add the constraints (branch variables), (prediction variables) and (path predictions) of the paper."""
        topology, n_features = self.topology, self.dataset.n_features
        path_row, path_node = self._paths
        internal = path_row < topology.n_internal
        branch_rows = np.repeat(np.arange(topology.n_internal), n_features)
        self.model.add_rows(
            Rows.from_entries(
                np.concatenate([branch_rows, path_row[internal]]),
                np.concatenate([self.b.index.ravel(), self.p.index[path_node[internal]]]),
                1.0,
                n_rows=topology.n_internal,
                lower=1.0,
                upper=1.0,
            ),
            "branch variables",
        )
        nodes = np.arange(topology.n_nodes)
        n_classes = self.dataset.n_classes
        self.model.add_rows(
            Rows.from_entries(
                np.concatenate([np.repeat(nodes, n_classes), nodes]),
                np.concatenate([self.w.index.ravel(), self.p.index]),
                np.concatenate([np.ones(self.w.size), -np.ones(topology.n_nodes)]),
                n_rows=topology.n_nodes,
                lower=0.0,
                upper=0.0,
            ),
            "prediction variables",
        )
        self.model.add_rows(
            Rows.from_entries(
                path_row[~internal] - topology.n_internal,
                self.p.index[path_node[~internal]],
                1.0,
                n_rows=topology.n_terminal,
                lower=1.0,
                upper=1.0,
            ),
            "path predictions",
        )

    @cached_property
    def _paths(self) -> tuple[IntArray, IntArray]:
        """Pairs (position of n, position of m) for every node n and every m on its path, including n."""
        node = self.topology.nodes
        position: list[IntArray] = []
        on_path: list[IntArray] = []
        while node.size:
            position.append(np.flatnonzero(self.topology.depth_of >= len(position)))
            on_path.append(node - 1)
            node = node[node > 1] // 2
        return np.concatenate(position), np.concatenate(on_path)

    @property
    def predictions(self) -> Predictions:
        """Columns of the predictions for the rows of `original`, added to the model on first access."""
        if self._predictions is None:
            self._predictions = Predictions(self, self.original.X)
        return self._predictions

    @property
    def has_predictions(self) -> bool:
        """Whether a constraint has added the columns of predictions."""
        return self._predictions is not None

    @property
    def claims(self) -> Claims:
        """The columns that Benders cuts link to the tree: theta, or all predictions if they have columns."""
        if self._predictions is not None:
            return self._predictions.claims
        data = self.dataset
        return Claims(data.X, np.arange(data.n_samples), data.y, self.theta.index)

    def couple_subtrees(self, reason: str) -> None:
        """Declare that a constraint, such as a limit on leaves, couples disjoint subtrees.

        OPTIMALITY cuts that choose subtrees one by one are then invalid and raise an error. `accel_oct.solve` calls
        this for every constraint.
        """
        self._couplings.append(reason)

    @property
    def couplings(self) -> tuple[str, ...]:
        """Reasons why subtrees are coupled."""
        return tuple(self._couplings)

    @property
    def subtrees_are_independent(self) -> bool:
        """Whether a subtree may be replaced by a better one for its samples in any tree."""
        return not self._couplings

    def add_lift(self, lift: Lift) -> None:
        """Register a function with which a constraint or a component fills its own columns of a lifted tree."""
        self._lifts.append(lift)

    @property
    def lifts(self) -> tuple[Lift, ...]:
        """The registered functions, in order."""
        return tuple(self._lifts)

    def lift(self, tree: DecisionTree) -> FloatArray:
        """Return the full column vector of a tree, with theta and the columns of all components."""
        tree = tree.with_max_depth(self.topology.depth)
        x = self.lift_plain(tree)
        for fill in self._lifts:
            fill(tree, x)
        return x

    def lift_plain(self, tree: DecisionTree) -> FloatArray:
        """Return the column vector of a tree with b, p, w and theta; all other columns are zero."""
        tree = tree.with_max_depth(self.topology.depth)
        x = np.zeros(self.model.n_columns)
        branches = tree.branch_nodes - 1
        self.b.view(x)[branches, tree.feature[branches]] = 1.0
        leaves = tree.leaves - 1
        self.p.view(x)[leaves] = 1.0
        self.w.view(x)[leaves, tree.label[leaves]] = 1.0
        self.theta.view(x)[:] = self.counted(tree)
        return x

    @property
    def is_strict(self) -> bool:
        """Whether theta of a row may be less than whether its prediction is right."""
        return self._counted is not None

    def counted(self, tree: DecisionTree) -> BoolArray:
        """Return the score of every row of `dataset` for a tree: whether it is predicted right, unless `is_strict`."""
        if self._counted is not None:
            return self._counted(tree)
        right: BoolArray = tree.predictions(self.dataset.X) == self.dataset.y
        return right

    def decode(self, x: FloatArray) -> DecisionTree:
        """Return the tree of an integral point; if a relaxed w is split between classes, the largest decides."""
        b, p, w = self.b.view(x), self.p.view(x), self.w.view(x)
        n_internal = self.topology.n_internal
        feature = np.full(self.topology.n_nodes, -1)
        branches = np.flatnonzero(b.max(axis=1) > 0.5)
        feature[branches] = b[branches].argmax(axis=1)
        assert np.all(feature[n_internal:] < 0)
        return DecisionTree(feature, np.where(p > 0.5, w.argmax(axis=1), -1))

    @cached_property
    def branch_priorities(self) -> IntArray:
        """Branch on the root first, and leave the rest to the solver.

        With priorities level by level, some instances took two to four times as long as with none.
        """
        priorities = np.zeros(self.model.n_columns, dtype=np.int64)
        priorities[self.b.index[0]] = 1
        priorities[self.p.index[0]] = 1
        return priorities
