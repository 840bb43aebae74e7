"""Benders cuts of BendOCT: standard, strengthened, and at fractional points.

For a sample i that reaches leaf n of an integral tree but is not classified there, equations (Benders Cuts) and
(Benders Cuts Special Case) of the paper read

    theta_i <= sum of b[a, f] over the ancestors a of n and the features f that lead i off the path
             + sum of b[n, f] over all f, when n is an internal node
             + sum of w[m, y_i] over n and its ancestors m.

If constraints depend on predictions, the column z[x, k] of a point x and a class k replaces theta, and k replaces y_i:
see `accel_oct.formulation.Predictions`.

Every such row holds for every tree, by the definition of theta, and together they define theta: they are REQUIRED at
candidates, where they decide feasibility, and IMPLIED at fractional points, where they only tighten.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from accel_oct.formulation import Claims, Master, Response, Site, TreePoint
from accel_oct.mip import Cuts, Event, Needs, Rows, Validity
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray

#: A theta that exceeds the value of its tree by more than this is cut off.
VIOLATION = 1e-4

#: Number of claims that are separated at a time.
_CHUNK = 2000


@dataclass(frozen=True)
class BendersConfig:
    """Benders cuts (sections 4 and 5.1).

    Parameters
    ----------
    strengthened : bool
        Use the strengthened form where a sample reaches a terminal node whose sibling misclassifies it too. Needs
        integral predictions.
    fractional : bool
        Separate relaxations as well, by a minimum cut in the tree for every sample.
    """

    strengthened: bool = False
    fractional: bool = False


class BendersCuts:
    """Separation of all samples at once at candidates, and optionally at fractional points.

    Parameters
    ----------
    strengthened, fractional : bool
        See `BendersConfig`.
    """

    name = "benders"

    def __init__(self, master: Master, *, strengthened: bool = False, fractional: bool = False) -> None:
        self.master = master
        self.strengthened = strengthened
        events = [Event.CANDIDATE, Event.RELAXATION] if fractional else [Event.CANDIDATE]
        kinds = [Validity.REQUIRED, Validity.IMPLIED] if fractional else [Validity.REQUIRED]
        self.needs = Needs(events, kinds)

    @classmethod
    def build(cls, site: Site, switches: BendersConfig) -> BendersCuts:
        """Build the component; it is always present, because these cuts define theta."""
        fractional = switches.fractional and site.shows_relaxations
        return cls(site.master, strengthened=switches.strengthened, fractional=fractional)

    @cached_property
    def claims(self) -> Claims:
        """The claims that the cuts bound; known once every constraint has added its columns."""
        return self.master.claims

    def respond(self, point: TreePoint) -> Response | None:
        if point.is_candidate:
            rows, validity = self._separate_candidate(point), Validity.REQUIRED
        else:
            rows, validity = separate_fractional(self.master, self.claims, point.point.x), Validity.IMPLIED
        return Response((Cuts(rows, validity, self.name),)) if rows.n_rows else None

    def _separate_candidate(self, point: TreePoint) -> Rows:
        """Return one row per claim that exceeds the prediction of its class at its leaf."""
        claims = self.claims
        leaf_of = point.tree.leaf_of(claims.points)[claims.point]
        violated = point.point.x[claims.column] > point.w[leaf_of - 1, claims.label] + VIOLATION
        chosen = np.flatnonzero(violated)
        leaf_of = leaf_of[chosen]
        sibling_wrong = np.zeros(chosen.size, dtype=bool)
        if self.strengthened:
            terminal = leaf_of > self.master.topology.n_internal
            # XOR with 1 turns a node into its sibling: children are 2n and 2n + 1.
            sibling_wrong = terminal & (point.w[(leaf_of ^ 1) - 1, claims.label[chosen]] < 0.5)
        return path_rows(self.master, claims, chosen, leaf_of, strengthened=sibling_wrong)


def path_rows(
    master: Master, claims: Claims, chosen: IntArray, leaves: IntArray, *, strengthened: BoolArray | None = None
) -> Rows:
    """Return the Benders cuts of claims whose points reach the given leaves, in one batch.

    Parameters
    ----------
    chosen : int array
        Positions in `claims`.
    leaves : int array
        Node number per claim.
    strengthened : bool array, optional
        Claims for which the parent's terms are halved and half of the sibling's prediction is added (terminal leaves
        only).
    """
    topology = master.topology
    depth = topology.depth_of[leaves - 1][:, None]
    # Slot s of a sample is the node of its path at depth s; the leaf itself has branches only if it is internal.
    above = depth - np.arange(topology.depth)
    nodes = leaves[:, None] >> np.maximum(above, 0)
    goes_right = (leaves[:, None] >> np.maximum(above - 1, 0) & 1).astype(bool)
    mask = claims.points[claims.point[chosen]][:, None, :] != goes_right[:, :, None]
    mask[above == 0] = True
    mask[above < 0] = False
    above = depth - np.arange(topology.depth + 1)
    w_nodes = leaves[:, None] >> np.maximum(above, 0)
    w_weight = (above >= 0).astype(np.float64)
    b_weight = None
    if strengthened is not None and strengthened.any():
        b_weight = np.ones(nodes.shape)
        b_weight[strengthened, -1] = 0.5  # the parent of a terminal leaf is the last slot
        # XOR with 1 turns a node into its sibling: children are 2n and 2n + 1.
        w_nodes = np.append(w_nodes, leaves[:, None] ^ 1, axis=1)
        w_weight = np.append(w_weight, np.where(strengthened, 0.5, 0.0)[:, None], axis=1)
        order = np.argsort(w_nodes, axis=1, kind="stable")  # columns increase
        w_nodes, w_weight = (np.take_along_axis(part, order, axis=1) for part in (w_nodes, w_weight))
    return _assembled(master, claims, chosen, mask, nodes, b_weight, w_nodes, w_weight)


def all_path_rows(master: Master) -> Rows:
    """Return every standard Benders cut, one row per claim and node: with them the master needs no handler.

    For exports and small data: there are as many rows as claims (samples, or points times classes) times
    ``2**(max_depth + 1) - 1``.
    """
    claims, nodes = master.claims, master.topology.nodes
    chosen = np.arange(claims.size)
    return path_rows(master, claims, np.tile(chosen, nodes.size), np.repeat(nodes, chosen.size))


def separate_fractional(master: Master, claims: Claims, x: FloatArray) -> Rows:
    """Return the most violated Benders cut of every sample at a fractional point.

    The largest theta_i that the tree allows is a maximum flow from the root: at node n a unit may end (capacity w[n,
    y_i]) or continue to a child (capacity: the b[n, f] that lead there). In a tree it is found bottom-up,

        flow(n) = w[n, y_i] + min(cap_left(n), flow(left)) + min(cap_right(n), flow(right)),

    and the minimum cut top-down: a child belongs to the source side if its flow is below the capacity that leads to
    it. At an integral point these are the rows of `path_rows`.
    """
    topology, b, w, claimed = master.topology, master.b.view(x), master.w.view(x), x[claims.column]
    batches = []
    for first in range(0, claims.size, _CHUNK):
        block = np.arange(first, min(first + _CHUNK, claims.size))
        X = claims.points[claims.point[block]].astype(np.float64)
        right = X @ b.T
        left = b.sum(axis=1)[None, :] - right
        flow = w[:, claims.label[block]].T.copy()
        child_inside = np.zeros(flow.shape, dtype=bool)
        child_inside[:, 0] = True
        for position in range(topology.n_internal - 1, -1, -1):
            children = (2 * position + 1, 2 * position + 2)
            for child, capacity in zip(children, (left[:, position], right[:, position]), strict=True):
                child_inside[:, child] = flow[:, child] < capacity - 1e-9
                flow[:, position] += np.minimum(flow[:, child], capacity)
        violated = claimed[block] > flow[:, 0] + VIOLATION
        if violated.any():
            batches.append(_cut_rows(master, claims, block[violated], child_inside[violated]))
    return Rows.concatenate(batches)


def _cut_rows(master: Master, claims: Claims, chosen: IntArray, inside: BoolArray) -> Rows:
    """Return the rows of minimum cuts; `inside` marks nodes on the source side, if their parents are on it too."""
    topology = master.topology
    inside = inside.copy()
    for position in range(1, topology.n_nodes):
        inside[:, position] &= inside[:, (position - 1) // 2]
    n_internal = topology.n_internal
    leaves_left = inside[:, :n_internal] & ~inside[:, 1::2]
    leaves_right = inside[:, :n_internal] & ~inside[:, 2::2]
    X = claims.points[claims.point[chosen]][:, None, :]
    mask = (leaves_left[:, :, None] & ~X) | (leaves_right[:, :, None] & X)
    nodes = np.broadcast_to(topology.internal, (chosen.size, n_internal))
    w_nodes = np.broadcast_to(topology.nodes, inside.shape)
    return _assembled(master, claims, chosen, mask, nodes, None, w_nodes, inside.astype(np.float64))


def _assembled(
    master: Master,
    claims: Claims,
    chosen: IntArray,
    mask: BoolArray,
    nodes: IntArray,
    b_weight: FloatArray | None,
    w_nodes: IntArray,
    w_weight: FloatArray,
) -> Rows:
    """Build ``theta_i - sum b_weight b - sum w_weight w[., y_i] <= 0``, with the column of a claim for theta.

    b[nodes[i, s], f] is in the row of claim i if ``mask[i, s, f]`` holds, with the weight of its slot s; w if it has
    weight. Nodes increase along the slots, so columns increase in every row, and no check for duplicates is needed.
    """
    (n_rows, n_slots, n_features), tail = mask.shape, w_weight > 0
    in_slot = np.count_nonzero(mask, axis=2)
    in_tail = np.count_nonzero(tail, axis=1)
    in_b = in_slot.sum(axis=1)
    starts = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(in_b + in_tail + 1, out=starts[1:])
    columns = np.empty(starts[-1], dtype=np.int64)
    values = np.full(starts[-1], -1.0)
    # The flat index of an entry of `mask` is (row, slot, feature); that of its column is (node, feature).
    slot_base = (np.arange(n_rows * n_slots) * n_features).reshape(n_rows, n_slots)
    shift = master.b.start + (nodes - 1) * n_features - slot_base
    entries = np.flatnonzero(mask) + np.repeat(shift.ravel(), in_slot.ravel())
    in_front = np.ones(starts[-1], dtype=bool)  # positions of b, before w and theta
    w_place = np.repeat(starts[:-1] + in_b - (np.cumsum(in_tail) - in_tail), in_tail) + np.arange(in_tail.sum())
    in_front[w_place] = False
    in_front[starts[1:] - 1] = False
    columns[in_front] = entries
    if b_weight is not None:
        values[in_front] = -np.repeat(b_weight.ravel(), in_slot.ravel())
    row, which = np.nonzero(tail)
    columns[w_place] = master.w.index[w_nodes[row, which] - 1, claims.label[chosen[row]]]
    values[w_place] = -w_weight[row, which]
    columns[starts[1:] - 1] = claims.column[chosen]
    values[starts[1:] - 1] = 1.0
    return Rows(starts, columns, values, np.full(n_rows, -np.inf), np.zeros(n_rows))
