"""The rows of equivalent-point inequalities: the constraint sets H and G of section 5.3 of the paper.

See `accel_oct.cuts.equivalent_points` for what they are and for what the paper leaves open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from accel_oct.data.equivalent_points import EqpSets
from accel_oct.formulation import Master
from accel_oct.mip import ColumnBlock, Rows
from accel_oct.mip.rows import FloatArray, IntArray
from accel_oct.tree import DecisionTree

BoolArray = npt.NDArray[np.bool_]

Linking = Literal["basic", "chain", "recursive"]


class Link:
    """What the forms of H have in common: which b keep a set together, and which split it."""

    def __init__(self, master: Master, split_sets: IntArray, first: IntArray, disaggregated: bool) -> None:
        self.master = master
        self.model = master.model
        self.split_sets = split_sets
        self.n_sets = len(split_sets)
        self.disaggregated = disaggregated
        self._x = master.dataset.X[first]
        in_split = np.zeros(self._x.shape, dtype=bool)
        owner, place = np.nonzero(split_sets >= 0)
        in_split[owner, split_sets[owner, place]] = True
        self._splits = in_split
        self._goes = (~self._x & ~in_split, self._x & ~in_split)

    def splitting(self, node: int) -> _Term:
        """``- sum of b[node, f] over f in F*``."""
        columns = self.master.b.index[node - 1][self.split_sets]
        return _Term(columns, -1.0, self.split_sets >= 0)

    def leading(self, node: int, direction: int) -> _Term:
        """``- sum of b[node, f] over the f outside of F* that send the set in that direction``."""
        return _Term(self.master.b.index[node - 1][None, :], -1.0, self._goes[direction])

    def splits(self, tree: DecisionTree, node: int) -> BoolArray:
        """Per set: whether the tree's node branches on F*."""
        feature = tree.feature[node - 1]
        return self._splits[:, feature] if feature >= 0 else np.zeros(self.n_sets, dtype=bool)

    def goes(self, tree: DecisionTree, node: int, direction: int) -> BoolArray:
        """Per set: whether the tree's node sends all of the set in that direction."""
        feature = tree.feature[node - 1]
        return self._goes[direction][:, feature] if feature >= 0 else np.zeros(self.n_sets, dtype=bool)

    def add(self, *terms: _Term) -> None:
        """Rows ``sum of the terms <= 0``, one per set."""
        self.model.add_rows(_rows(self.n_sets, terms), "equivalent points: linking")


def _basic(link: Link) -> IntArray:
    """H^Basic: beta^G <= sum of b[n, f] over all nodes and F*."""
    split = link.model.add_block("eqp_split", link.n_sets)
    nodes = link.master.topology.internal.tolist()
    link.add(*(link.splitting(node) for node in nodes), _own(split.index))

    def fill(tree: DecisionTree, x: FloatArray) -> None:
        split.view(x)[:] = np.any([link.splits(tree, node) for node in nodes], axis=0)

    link.master.add_lift(fill)
    return split.index


def _chain(link: Link) -> IntArray:
    """H^Chain and its disaggregation: beta^n <= every condition for the set to be split at n."""
    topology = link.master.topology
    at_node = link.model.add_block("eqp_node", (link.n_sets, topology.n_internal), integer=not link.disaggregated)
    split = link.model.add_block("eqp_split", link.n_sets)
    for node in topology.internal.tolist():
        path = [*topology.ancestors(node).tolist(), node]
        conditions = [link.leading(above, below & 1) for above, below in pairwise(path)]
        conditions.append(link.splitting(node))
        own = at_node.index[:, node - 1]
        if link.disaggregated:
            for condition in conditions:
                link.add(condition, _own(own))
        else:
            link.add(*conditions, _own(own, float(len(conditions))))
    link.add(_Term(at_node.index, -1.0), _own(split.index))

    def fill(tree: DecisionTree, x: FloatArray) -> None:
        beta = at_node.view(x)
        here = np.zeros((topology.n_nodes, link.n_sets), dtype=bool)
        here[0] = True
        for node in topology.internal.tolist():
            beta[:, node - 1] = here[node - 1] & link.splits(tree, node)
            for direction in (0, 1):
                here[2 * node + direction - 1] = here[node - 1] & link.goes(tree, node, direction)
        split.view(x)[:] = beta.any(axis=1)

    link.master.add_lift(fill)
    return split.index


def _recursive(link: Link) -> IntArray:
    """H^Recursive and its disaggregation: beta^n <= split here, or in the child that the set goes to."""
    topology = link.master.topology
    n_inner = topology.n_internal // 2  # nodes with internal children
    below = link.model.add_block("eqp_node", (link.n_sets, topology.n_internal))
    via = link.model.add_block("eqp_child", (link.n_sets, n_inner, 2), integer=not link.disaggregated)
    for node in topology.internal.tolist():
        inner = node <= n_inner
        children = [_Term(via.index[:, node - 1], -1.0)] if inner else []
        link.add(link.splitting(node), _own(below.index[:, node - 1]), *children)
        for direction in (0, 1) if inner else ():
            leads = link.leading(node, direction)
            continues = _own(below.index[:, 2 * node + direction - 1], -1.0)
            own = via.index[:, node - 1, direction]
            if link.disaggregated:
                link.add(leads, _own(own))
                link.add(continues, _own(own))
            else:
                link.add(leads, continues, _own(own, 2.0))

    def fill(tree: DecisionTree, x: FloatArray) -> None:
        beta, child = below.view(x), via.view(x)
        for node in topology.internal[::-1].tolist():
            beta[:, node - 1] = link.splits(tree, node)
            for direction in (0, 1) if node <= n_inner else ():
                taken = link.goes(tree, node, direction) & (beta[:, 2 * node + direction - 1] > 0)
                child[:, node - 1, direction] = taken
                beta[taken, node - 1] = 1.0

    link.master.add_lift(fill)
    return below.index[:, 0]


LINKINGS: dict[Linking, Callable[[Link], IntArray]] = {"basic": _basic, "chain": _chain, "recursive": _recursive}


class Groups:
    """The samples of every set by class, and the forms of G."""

    def __init__(self, master: Master, sets: EqpSets) -> None:
        self.master = master
        dataset = master.dataset
        owner = np.repeat(np.arange(len(sets)), np.diff(sets.indptr))
        key = owner * dataset.n_classes + dataset.y[sets.samples]
        order = np.argsort(key, kind="stable")
        self.samples = sets.samples[order]
        self.weight = dataset.weights[self.samples] * master.scale  # a solver's tolerances are absolute
        groups, self.group_of = np.unique(key[order], return_inverse=True)
        self.n_sets, self.n_groups = len(sets), len(groups)
        self.set_of = groups // dataset.n_classes
        self.group_weight = np.bincount(self.group_of, self.weight, self.n_groups)
        counts = np.bincount(self.group_of, minlength=self.n_groups)
        self.large: IntArray = np.flatnonzero(counts > 1)
        self.in_large: BoolArray = counts[self.group_of] > 1
        self._large_place = np.cumsum(counts > 1) - 1
        self.classes_of_set: IntArray = np.bincount(self.set_of, minlength=self.n_sets)

    def basic_rows(self, beta: IntArray) -> Rows:
        """G^Basic: the set scores at most its heaviest class, or everything where it is split."""
        heaviest = np.zeros(self.n_sets)
        np.maximum.at(heaviest, self.set_of, self.group_weight)
        slack = np.bincount(self.set_of, self.group_weight, self.n_sets) - heaviest
        linked = np.flatnonzero(beta >= 0)
        return Rows.from_entries(
            np.concatenate([self.set_of[self.group_of], linked]),
            np.concatenate([self.master.theta.index[self.samples], beta[linked]]),
            np.concatenate([self.weight, -slack[linked]]),
            n_rows=self.n_sets,
            upper=heaviest,
        )

    def selection_rows(self, beta: IntArray, block: ColumnBlock) -> tuple[Rows, Rows]:
        """G^GS: one class of the set is free, or all where it is split; a class is free as far as it scores."""
        theta = self.master.theta.index
        free = np.empty(self.n_groups, dtype=np.int64)
        free[self.group_of] = theta[self.samples]  # right for groups of one sample
        free[self.large] = block.index
        linked = np.flatnonzero(beta >= 0)
        select = Rows.from_entries(
            np.concatenate([self.set_of, linked]),
            np.concatenate([free, beta[linked]]),
            np.concatenate([np.ones(self.n_groups), 1.0 - self.classes_of_set[linked]]),
            n_rows=self.n_sets,
            upper=1.0,
        )
        share = Rows.from_entries(
            np.concatenate([self._large_place[self.group_of[self.in_large]], np.arange(self.large.size)]),
            np.concatenate([theta[self.samples[self.in_large]], block.index]),
            np.concatenate([self.weight[self.in_large], -self.group_weight[self.large]]),
            n_rows=self.large.size,
            lower=0.0,
            upper=0.0,
        )
        return select, share

    def fill(self, x: FloatArray, block: ColumnBlock) -> None:
        """G_k from the scores, which the master has filled in already."""
        scored = np.bincount(self.group_of, self.weight * self.master.theta.view(x)[self.samples], self.n_groups)
        block.view(x)[:] = scored[self.large] / self.group_weight[self.large]


@dataclass(frozen=True)
class _Term:
    """Entries of a batch of rows: `columns` of shape (n_sets, m) or (1, m), used where `mask` (n_sets, m) holds."""

    columns: IntArray
    value: float
    mask: BoolArray | None = None


def _own(columns: IntArray, value: float = 1.0) -> _Term:
    return _Term(columns[:, None], value)


def _rows(n_rows: int, terms: tuple[_Term, ...]) -> Rows:
    """``sum of the terms <= 0``."""
    widths = [term.columns.shape[1] for term in terms]
    columns = np.concatenate(
        [np.broadcast_to(term.columns, (n_rows, width)) for term, width in zip(terms, widths, strict=True)], axis=1
    )
    keep = np.concatenate(
        [
            np.broadcast_to(True if term.mask is None else term.mask, (n_rows, width))
            for term, width in zip(terms, widths, strict=True)
        ],
        axis=1,
    )
    values = np.broadcast_to(np.repeat([term.value for term in terms], widths), keep.shape)
    starts = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(keep.sum(axis=1), out=starts[1:])
    return Rows(starts, columns[keep], values[keep], np.full(n_rows, -np.inf), np.zeros(n_rows))
