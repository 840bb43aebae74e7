"""The master problem of BendOCT (section 4 of the paper) as columns and rows.

In units of weight, up to a scale: maximise ``sum_i w_i theta_i - leaf_price * sum_n p_n`` over trees (b, p, w) and
scores theta. Nothing in the master ties theta to the tree; that is the Benders cuts' work (`accel_oct.cuts`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from accel_oct.data import BinaryDataset
from accel_oct.formulation.predictions import Claims, Predictions
from accel_oct.mip import MipModel, Rows
from accel_oct.mip.rows import FloatArray, IntArray
from accel_oct.tree import DecisionTree, Topology

Lift = Callable[[DecisionTree, FloatArray], None]

#: Above this total weight a solver's objective is scaled to a mean weight of one: its tolerances are absolute.
_LARGE_TOTAL = 1e7


def solver_scale(total_weight: float, n_samples: int, integral: bool) -> float:
    """What the values of trees are multiplied by in a solver's objective.

    One for integral weights of a usual size, so that the lattice below is as coarse as it can be.
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
        In units of weight, on the data set's grid.
    integral_predictions : bool
        Whether w is binary. It may be continuous under the standard Benders cuts (end of section 4), and must be binary
        under the strengthened ones (section 5.1).
    original : BinaryDataset, optional
        The data as the user gave them, where `dataset` has merged rows: constraints speak of its rows.

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
        The model's objective is the value of the tree times this, see `solver_scale`.
    """

    def __init__(
        self,
        dataset: BinaryDataset,
        max_depth: int,
        leaf_price: float,
        *,
        integral_predictions: bool = False,
        original: BinaryDataset | None = None,
    ) -> None:
        self.dataset = dataset
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
        """What building the model and loading it take, roughly and rather too much; they cannot be interrupted."""
        topology = Topology(max_depth)
        branching = topology.n_internal * (dataset.n_features + max_depth)
        return _SECONDS_PER_COLUMN * (branching + topology.n_nodes * (dataset.n_classes + max_depth))

    def _add_tree_rows(self) -> None:
        """Constraints (branch variables), (prediction variables) and (path predictions) of the minimal model."""
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
        """Pairs (position of n, position of m) for every node n and every m on its path, n included."""
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
        """What the tree predicts for the rows of `original`, as columns; added to the model when first asked for."""
        if self._predictions is None:
            self._predictions = Predictions(self, self.original.X)
        return self._predictions

    @property
    def has_predictions(self) -> bool:
        """Whether they have columns: some constraint asked for them."""
        return self._predictions is not None

    @property
    def claims(self) -> Claims:
        """The columns that Benders cuts hold to the tree: theta, or all predictions where they have columns."""
        if self._predictions is not None:
            return self._predictions.claims
        data = self.dataset
        return Claims(data.X, np.arange(data.n_samples), data.y, self.theta.index)

    def couple_subtrees(self, reason: str) -> None:
        """Declare that a constraint ties disjoint subtrees together, such as a limit on leaves.

        OPTIMALITY cuts that choose subtrees one by one are wrong then, and refuse to work. `accel_oct.solve` does this
        for every constraint that it is given.
        """
        self._couplings.append(reason)

    @property
    def couplings(self) -> tuple[str, ...]:
        """What ties subtrees together."""
        return tuple(self._couplings)

    @property
    def subtrees_are_independent(self) -> bool:
        """Whether a subtree may be replaced by a better one for its samples, whatever the rest of the tree is."""
        return not self._couplings

    def add_lift(self, lift: Lift) -> None:
        """Register how a constraint or a component fills its own columns of a lifted tree."""
        self._lifts.append(lift)

    @property
    def lifts(self) -> tuple[Lift, ...]:
        """What was registered, first to last."""
        return tuple(self._lifts)

    def lift(self, tree: DecisionTree) -> FloatArray:
        """The full column vector of a tree, theta and every component's own columns included."""
        tree = tree.with_max_depth(self.topology.depth)
        x = self.lift_plain(tree)
        for fill in self._lifts:
            fill(tree, x)
        return x

    def lift_plain(self, tree: DecisionTree) -> FloatArray:
        """The column vector of a tree with b, p, w and theta; all other columns are zero."""
        tree = tree.with_max_depth(self.topology.depth)
        x = np.zeros(self.model.n_columns)
        branches = tree.branch_nodes - 1
        self.b.view(x)[branches, tree.feature[branches]] = 1.0
        leaves = tree.leaves - 1
        self.p.view(x)[leaves] = 1.0
        self.w.view(x)[leaves, tree.label[leaves]] = 1.0
        self.theta.view(x)[:] = tree.predictions(self.dataset.X) == self.dataset.y
        return x

    def decode(self, x: FloatArray) -> DecisionTree:
        """The tree of an integral point; where a relaxed w is split between classes, the largest one counts."""
        b, p, w = self.b.view(x), self.p.view(x), self.w.view(x)
        n_internal = self.topology.n_internal
        feature = np.full(self.topology.n_nodes, -1)
        branches = np.flatnonzero(b.max(axis=1) > 0.5)
        feature[branches] = b[branches].argmax(axis=1)
        assert np.all(feature[n_internal:] < 0)
        return DecisionTree(feature, np.where(p > 0.5, w.argmax(axis=1), -1))

    @cached_property
    def branch_priorities(self) -> npt.NDArray[np.int64]:
        """Decide the root first, and leave the rest to the solver.

        With priorities level by level some instances took two to four times as long as with none.
        """
        priorities = np.zeros(self.model.n_columns, dtype=np.int64)
        priorities[self.b.index[0]] = 1
        priorities[self.p.index[0]] = 1
        return priorities
