"""Benders cuts of BendOCT: standard, strengthened, and at fractional points.

For a sample i that reaches leaf n of an integral tree but is not classified there, equations (Benders Cuts) and
(Benders Cuts Special Case) of the paper read

    theta_i <= sum of b[a, f] over the ancestors a of n and the features f that lead i off the path
             + sum of b[n, f] over all f, when n is an internal node
             + sum of w[m, y_i] over n and its ancestors m.

Every such row holds for every tree (it is implied by the meaning of theta), and together they define theta: REQUIRED at
candidates, where they decide feasibility; IMPLIED at fractional points, where they only tighten.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accel_oct.formulation import Master, Response, TreePoint
from accel_oct.mip import Cuts, Event, Needs, Rows, Validity
from accel_oct.mip.rows import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]

#: A theta above what its tree allows by more than this is cut off.
VIOLATION = 1e-4


class BendersCuts:
    """Separation of all samples at once at candidates, and optionally at fractional points.

    Parameters
    ----------
    master : Master
    strengthened : bool
        Use the strengthened form (section 5.1) where a sample reaches a terminal node whose sibling misclassifies it
        too. Needs a master with integral predictions.
    fractional : bool
        Separate relaxations as well, by a minimum cut in the tree for every sample.
    """

    name = "benders"

    def __init__(self, master: Master, *, strengthened: bool = False, fractional: bool = False) -> None:
        self.master = master
        self.strengthened = strengthened
        events = [Event.CANDIDATE, Event.RELAXATION] if fractional else [Event.CANDIDATE]
        kinds = [Validity.REQUIRED, Validity.IMPLIED] if fractional else [Validity.REQUIRED]
        self.needs = Needs(events, kinds)

    def respond(self, point: TreePoint) -> Response | None:
        if point.is_candidate:
            rows, validity = self._separate_candidate(point), Validity.REQUIRED
        else:
            rows, validity = separate_fractional(self.master, point.b, point.w, point.theta), Validity.IMPLIED
        return Response((Cuts(rows, validity, self.name),)) if rows.n_rows else None

    def _separate_candidate(self, point: TreePoint) -> Rows:
        """One row per sample whose theta exceeds the prediction of its class at its leaf."""
        y = self.master.dataset.y
        violated = point.theta > point.w[point.leaf_of - 1, y] + VIOLATION
        samples = np.flatnonzero(violated)
        leaf_of = point.leaf_of[samples]
        sibling_wrong = np.zeros(samples.size, dtype=bool)
        if self.strengthened:
            terminal = leaf_of > self.master.topology.n_internal
            # XOR with 1 turns a node into its sibling: children are 2n and 2n + 1.
            sibling_wrong = terminal & (point.w[(leaf_of ^ 1) - 1, y[samples]] < 0.5)
        batches = [
            path_rows(self.master, samples[chosen], int(leaf), strengthened=halve)
            for halve in (False, True)
            for leaf in np.unique(leaf_of[sibling_wrong == halve])
            if (chosen := (leaf_of == leaf) & (sibling_wrong == halve)).any()
        ]
        return Rows.concatenate(batches)


def path_rows(master: Master, samples: IntArray, leaf: int, *, strengthened: bool = False) -> Rows:
    """Benders cuts of samples that all reach the same leaf.

    Parameters
    ----------
    samples : int array
    leaf : int
        Node number.
    strengthened : bool
        Halve the parent's terms and add half of the sibling's prediction (terminal leaves only).
    """
    topology, dataset = master.topology, master.dataset
    ancestors = topology.ancestors(leaf)
    X = dataset.X[samples]
    parts, nodes = [], list(ancestors)
    for ancestor in ancestors:
        goes_left = ancestor in topology.ancestors_left(leaf)
        parts.append(X if goes_left else ~X)
    if leaf <= topology.n_internal:
        parts.append(np.ones_like(X))
        nodes.append(leaf)
    n_features = dataset.n_features
    weight = None
    predicting = np.append(ancestors, leaf)
    predicting_weight = np.ones(predicting.size)
    if strengthened:
        weight = np.ones(len(nodes) * n_features)
        weight[-n_features:] = 0.5  # a terminal leaf is not among `nodes`, so the parent is last
        predicting = np.append(predicting, leaf ^ 1)
        predicting_weight = np.append(predicting_weight, 0.5)
    return _assembled(
        master,
        samples,
        mask=np.concatenate(parts, axis=1) if parts else np.empty((samples.size, 0), dtype=bool),
        b_columns=master.b.index[np.array(nodes, dtype=np.int64) - 1].ravel(),
        b_weight=weight,
        w_nodes=np.broadcast_to(predicting, (samples.size, predicting.size)),
        w_weight=np.broadcast_to(predicting_weight, (samples.size, predicting.size)),
    )


def all_path_rows(master: Master) -> Rows:
    """Every standard Benders cut: one row per sample and node. With them the master is complete, with no handler.

    For exports and small data; the number of rows is n_samples times ``2**(max_depth + 1) - 1``.
    """
    samples = np.arange(master.dataset.n_samples)
    return Rows.concatenate([path_rows(master, samples, int(node)) for node in master.topology.nodes])


def separate_fractional(master: Master, b: FloatArray, w: FloatArray, theta: FloatArray, chunk: int = 2000) -> Rows:
    """Most violated Benders cut of every sample at a fractional point.

    The largest theta_i that the tree allows is a maximum flow from the root: at node n a unit may end (capacity w[n,
    y_i]) or go on to a child (capacity: the b[n, f] that lead there). In a tree it is found bottom-up,

        flow(n) = w[n, y_i] + min(cap_left(n), flow(left)) + min(cap_right(n), flow(right)),

    and the minimum cut top-down: a child belongs to the source side when its flow is below the capacity that leads to
    it. At an integral point this gives the rows of `path_rows`.
    """
    topology, dataset = master.topology, master.dataset
    batches = []
    for first in range(0, dataset.n_samples, chunk):
        block = np.arange(first, min(first + chunk, dataset.n_samples))
        X = dataset.X[block].astype(np.float64)
        right = X @ b.T
        left = b.sum(axis=1)[None, :] - right
        flow = w[:, dataset.y[block]].T.copy()
        child_inside = np.zeros(flow.shape, dtype=bool)
        child_inside[:, 0] = True
        for position in range(topology.n_internal - 1, -1, -1):
            children = (2 * position + 1, 2 * position + 2)
            for child, capacity in zip(children, (left[:, position], right[:, position]), strict=True):
                child_inside[:, child] = flow[:, child] < capacity - 1e-9
                flow[:, position] += np.minimum(flow[:, child], capacity)
        violated = theta[block] > flow[:, 0] + VIOLATION
        if violated.any():
            batches.append(_cut_rows(master, block[violated], child_inside[violated]))
    return Rows.concatenate(batches)


def _cut_rows(master: Master, samples: IntArray, inside: BoolArray) -> Rows:
    """Rows of minimum cuts: `inside` marks the nodes on the source side, provided that their parents are."""
    topology, dataset = master.topology, master.dataset
    inside = inside.copy()
    for position in range(1, topology.n_nodes):
        inside[:, position] &= inside[:, (position - 1) // 2]
    n_internal = topology.n_internal
    leaves_left = inside[:, :n_internal] & ~inside[:, 1::2]
    leaves_right = inside[:, :n_internal] & ~inside[:, 2::2]
    X = dataset.X[samples][:, None, :]
    mask = (leaves_left[:, :, None] & ~X) | (leaves_right[:, :, None] & X)
    return _assembled(
        master,
        samples,
        mask=mask.reshape(samples.size, -1),
        b_columns=master.b.index.ravel(),
        b_weight=None,
        w_nodes=np.broadcast_to(topology.nodes, inside.shape),
        w_weight=inside.astype(np.float64),
    )


def _assembled(
    master: Master,
    samples: IntArray,
    *,
    mask: BoolArray,
    b_columns: IntArray,
    b_weight: FloatArray | None,
    w_nodes: IntArray,
    w_weight: FloatArray,
) -> Rows:
    """``theta_i - sum b_weight b - sum w_weight w[., y_i] <= 0``, with b where `mask` holds and w where it has weight.

    `b_columns` rise, so that the columns of every row do: what takes the rows need not look for duplicates.
    """
    n_rows, tail = samples.size, w_weight > 0
    entry = np.flatnonzero(mask)  # row by row, so columns rise within each row
    from_b = np.count_nonzero(mask, axis=1)
    from_w = np.count_nonzero(tail, axis=1)
    starts = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(from_b + from_w + 1, out=starts[1:])
    columns = np.empty(starts[-1], dtype=np.int64)
    values = np.full(starts[-1], -1.0)
    # b entries of row r stand `sum of the earlier rows' tails` places further back than in `entry`.
    place = np.arange(entry.size) + np.repeat(starts[:-1] - (np.cumsum(from_b) - from_b), from_b)
    position = entry % mask.shape[1] if entry.size else entry
    columns[place] = b_columns[position]
    if b_weight is not None:
        values[place] = -b_weight[position]
    w_columns = master.w.index[w_nodes - 1, master.dataset.y[samples][:, None]]
    row, which = np.nonzero(tail)
    place = (starts[:-1] + from_b)[row] + np.arange(row.size) - np.repeat(np.cumsum(from_w) - from_w, from_w)
    columns[place] = w_columns[row, which]
    values[place] = -w_weight[row, which]
    columns[starts[1:] - 1] = master.theta.index[samples]
    values[starts[1:] - 1] = 1.0
    return Rows(starts, columns, values, np.full(n_rows, -np.inf), np.zeros(n_rows))
