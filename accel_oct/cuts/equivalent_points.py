"""Equivalent-point inequalities (section 5.3 of the paper).

The samples of an equivalent-point set J agree on all features but those of its split set F*. Two constraint sets use
this: H(J, F*) forces a column beta^G to zero where the tree keeps all of J together, and G(J) then lets a leaf be right
about one class of J only. Every row holds for every tree with its scores, whatever else is demanded of the tree.

What the paper leaves open is settled like this:

- Terminal nodes have no beta: nothing is split there. So at an internal node whose children are terminal, the recursive
  beta^{n,l} and beta^{n,r} would be forced to zero, and are left out.
- An empty split set leaves nothing to link: beta^G is zero, the bound of G always holds, and H has no rows.
- In the recursive forms beta^G is bounded by beta^1 alone, so beta^1 takes its place.
- A group J_k of a single sample i has G_k = theta_i, so theta_i takes its place.
- Identical samples may be merged into one theta with a weight: scores and sizes of sets are weights.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from accel_oct.data.equivalent_points import EqpSets, equivalent_point_sets
from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Master, TreePoint
from accel_oct.mip import ColumnBlock, Needs, Rows
from accel_oct.mip.rows import FloatArray, IntArray
from accel_oct.tree import DecisionTree

logger = logging.getLogger(__name__)

BoolArray = npt.NDArray[np.bool_]

Linking = Literal["basic", "chain", "recursive"]
Bounding = Literal["basic", "group_selection"]

#: A non-zero of a row: column index and coefficient.
_BYTES_PER_NONZERO = 16
#: Larger requests are refused, and ones larger than the second figure are announced as a warning.
MEMORY_LIMIT = 4 << 30
_WARN_ABOVE = 256 << 20


@dataclass(frozen=True)
class EqpSize:
    """What the inequalities add to a model."""

    sets: int
    columns: int
    rows: int
    nonzeros: int

    @property
    def bytes(self) -> int:
        """Memory of the rows; building them and the solver's own copies take some times as much."""
        return _BYTES_PER_NONZERO * self.nonzeros

    def __str__(self) -> str:
        return (
            f"{self.sets} sets, {self.columns} columns, {self.rows} rows, {self.nonzeros} non-zeros "
            f"({self.bytes / 2**20:.1f} MiB)"
        )


class EquivalentPointInequalities:
    """Columns and rows that are added to the master when this is made; nothing is separated later.

    Parameters
    ----------
    master : Master
        Not loaded into a backend yet.
    linking : {"basic", "chain", "recursive"}
        H. "basic" only asks whether the tree branches on F* anywhere; the others follow the samples.
    disaggregated : bool
        One row per condition instead of their average; beta may be continuous then. No effect on "basic".
    bounding : {"basic", "group_selection"}
        G.
    max_split_size : {0, 1, 2}
        Largest split set that is modelled.
    memory_limit : int
        Bytes that the rows may take.

    Attributes
    ----------
    sets : EqpSets
    size : EqpSize

    Raises
    ------
    InvalidInputError
        When an option is unknown, or the rows would exceed the memory limit.
    """

    name = "equivalent_points"
    needs = Needs()

    def __init__(
        self,
        master: Master,
        *,
        linking: Linking = "recursive",
        disaggregated: bool = True,
        bounding: Bounding = "group_selection",
        max_split_size: int = 2,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        if linking not in ("basic", "chain", "recursive"):
            raise InvalidInputError(f"equivalent_points.linking must be basic, chain or recursive, got {linking!r}")
        if bounding not in ("basic", "group_selection"):
            raise InvalidInputError(f"equivalent_points.bounding must be basic or group_selection, got {bounding!r}")
        self.master = master
        self.linking = linking
        self.disaggregated = disaggregated
        self.bounding = bounding
        self.sets = equivalent_point_sets(master.dataset, max_split_size)
        self._groups = _Groups(master, self.sets)
        self._linked = np.flatnonzero(self.sets.split_sets[:, 0] >= 0)
        self.size = self._estimate()
        self._announce(memory_limit)
        if len(self.sets):
            self._build()

    def respond(self, point: TreePoint) -> None:
        """Nothing: all rows are in the model from the start."""

    # ---------------------------------------------------------------- size

    def _estimate(self) -> EqpSize:
        """Exact counts, from the shapes alone."""
        topology, n_features = self.master.topology, self.master.dataset.n_features
        n_linked, n_internal = self._linked.size, topology.n_internal
        n_inner = n_internal // 2
        split_total = int(np.count_nonzero(self.sets.split_sets >= 0))
        agreeing = n_linked * n_features - split_total  # entries of one left and one right capacity, over all sets
        n_pairs = int(sum(depth << depth for depth in range(topology.depth)))  # of a node and an ancestor
        if self.linking == "basic":
            columns, rows, nonzeros = 1, 1, n_linked + n_internal * split_total
        elif self.linking == "chain":
            # Over a level, as many ancestors go left as go right: half of the pairs see each capacity.
            columns = n_internal + 1
            rows = n_internal + 1 + (n_pairs if self.disaggregated else 0)
            nonzeros = n_linked * (2 * n_internal + 1) + n_internal * split_total + n_pairs // 2 * agreeing
            nonzeros += n_pairs * n_linked if self.disaggregated else 0
        else:
            columns = n_internal + 2 * n_inner
            rows = n_internal + (4 if self.disaggregated else 2) * n_inner
            nonzeros = n_linked * (n_internal + 2 * n_inner) + n_internal * split_total + n_inner * agreeing
            nonzeros += n_linked * n_inner * (6 if self.disaggregated else 4)
        n_sets, groups = len(self.sets), self._groups
        selecting = self.bounding == "group_selection"
        return EqpSize(
            sets=n_sets,
            columns=columns * n_linked + (groups.large.size if selecting else 0),
            rows=rows * n_linked + n_sets + (groups.large.size if selecting else 0),
            nonzeros=nonzeros
            + n_linked
            + (groups.n_groups + groups.in_large.sum() + groups.large.size if selecting else self.sets.samples.size),
        )

    def _announce(self, memory_limit: int) -> None:
        if self.size.bytes > memory_limit:
            raise InvalidInputError(
                f"equivalent-point inequalities would add {self.size}, more than {memory_limit / 2**20:.0f} MiB: "
                "lower equivalent_points.max_split_size, or use equivalent_points.linking = 'basic'"
            )
        level = logging.WARNING if self.size.bytes > _WARN_ABOVE else logging.INFO
        logger.log(level, "equivalent-point inequalities add %s", self.size)

    # ---------------------------------------------------------------- columns and rows

    def _build(self) -> None:
        model = self.master.model
        split: IntArray = np.empty(0, dtype=np.int64)
        if self._linked.size:
            split = _LINKINGS[self.linking](self._link)
        beta = np.full(len(self.sets), -1)
        beta[self._linked] = split
        if self.bounding == "basic":
            model.add_rows(self._groups.basic_rows(beta), "equivalent points: bounds")
            return
        block = model.add_block("eqp_group", self._groups.large.size)
        for rows in self._groups.selection_rows(beta, block):
            model.add_rows(rows, "equivalent points: group selection")
        self.master.add_lift(lambda tree, x: self._groups.fill(x, block))

    @cached_property
    def _link(self) -> _Link:
        first = self.sets.samples[self.sets.indptr[:-1]][self._linked]
        return _Link(self.master, self.sets.split_sets[self._linked], first, self.disaggregated)


class _Link:
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


def _basic(link: _Link) -> IntArray:
    """H^Basic: beta^G <= sum of b[n, f] over all nodes and F*."""
    split = link.model.add_block("eqp_split", link.n_sets)
    nodes = link.master.topology.internal.tolist()
    link.add(*(link.splitting(node) for node in nodes), _own(split.index))

    def fill(tree: DecisionTree, x: FloatArray) -> None:
        split.view(x)[:] = np.any([link.splits(tree, node) for node in nodes], axis=0)

    link.master.add_lift(fill)
    return split.index


def _chain(link: _Link) -> IntArray:
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


def _recursive(link: _Link) -> IntArray:
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


_LINKINGS: dict[Linking, Callable[[_Link], IntArray]] = {"basic": _basic, "chain": _chain, "recursive": _recursive}


class _Groups:
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
