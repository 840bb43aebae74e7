"""Equivalent-point inequalities (section 5.3 of the paper).

The samples of an equivalent-point set J agree on all features but those of its split set F*. Two constraint sets use
this: H(J, F*) forces a column beta^G to zero if the tree keeps all of J together, and G(J) then allows the leaf to be
correct on one class of J only. Every row holds for every tree with its scores, under any further constraint.

Choices that the paper leaves open:

- Terminal nodes have no beta: nothing is split there. At an internal node whose children are terminal, the recursive
  beta^{n,l} and beta^{n,r} would be zero, and are left out.
- With an empty split set, beta^G is zero, the bound of G always holds, and H has no rows.
- In the recursive forms beta^G is bounded by beta^1 alone, so beta^1 replaces it.
- A group J_k of a single sample i has G_k = theta_i, so theta_i replaces it.
- Identical samples may be merged into one theta with a weight: scores and sizes of sets are weights.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from accel_oct.data.equivalent_points import EqpSets, equivalent_point_sets
from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Master, Site, TreePoint
from accel_oct.mip import ColumnBlock, Needs, Rows
from accel_oct.support.arrays import BoolArray, FloatArray, IntArray
from accel_oct.tree import DecisionTree

logger = logging.getLogger(__name__)

#: Column index and coefficient.
_BYTES_PER_NONZERO = 16
#: Bytes of rows above which an error is raised, and above which a warning is logged.
MEMORY_LIMIT = 4 << 30
_WARN_ABOVE = 256 << 20
_SECONDS_PER_NONZERO = 5e-7


@dataclass(frozen=True)
class EquivalentPointConfig:
    """Equivalent-point inequalities (section 5.3).

    Parameters
    ----------
    enabled : bool
    linking : {"basic", "chain", "recursive"}
        The constraint set H. "basic" only asks whether the tree branches on F* anywhere; the others follow the samples.
    disaggregated : bool
        One row per condition instead of their sum, so that beta may be continuous. No effect on "basic".
    bounding : {"basic", "group_selection"}
        The constraint set G.
    max_split_size : {0, 1, 2}
        Largest split set F* that is modelled.
    """

    enabled: bool = False
    linking: Literal["basic", "chain", "recursive"] = "recursive"
    disaggregated: bool = True
    bounding: Literal["basic", "group_selection"] = "group_selection"
    max_split_size: Literal[0, 1, 2] = 2


@dataclass(frozen=True)
class EqpSize:
    """Size of the inequalities in a model."""

    sets: int
    columns: int
    rows: int
    nonzeros: int

    @property
    def bytes(self) -> int:
        """Memory of the rows; building them and the copies of the solver take a multiple of it."""
        return _BYTES_PER_NONZERO * self.nonzeros

    def __str__(self) -> str:
        return (
            f"{self.sets} sets, {self.columns} columns, {self.rows} rows, {self.nonzeros} non-zeros "
            f"({self.bytes / 2**20:.1f} MiB)"
        )


class EquivalentPointInequalities:
    """Adds columns and rows to the master at construction; nothing is separated later.

    Parameters
    ----------
    master : Master
        Not loaded into a backend yet.
    memory_limit : int
        Limit on the bytes of the rows.
    deadline : float, optional
        Value of `time.monotonic` at which the solve ends: rows that cannot be built before it are left out.

    Attributes
    ----------
    sets : EqpSets
    size : EqpSize

    Raises
    ------
    InvalidInputError
        If an option is unknown, or the rows would exceed the memory limit.
    """

    name = "equivalent_points"
    needs = Needs()

    def __init__(
        self,
        master: Master,
        config: EquivalentPointConfig | None = None,
        *,
        memory_limit: int = MEMORY_LIMIT,
        deadline: float | None = None,
    ) -> None:
        config = config or EquivalentPointConfig()
        for name, known in (("linking", LINKINGS), ("bounding", ("basic", "group_selection"))):
            if getattr(config, name) not in known:
                raise InvalidInputError(
                    f"equivalent_points.{name} must be one of {', '.join(known)}, got {getattr(config, name)!r}"
                )
        self.master = master
        self.config = config
        self.sets = equivalent_point_sets(master.dataset, config.max_split_size)
        self._groups = Groups(master, self.sets)
        self._linked = np.flatnonzero(self.sets.split_sets[:, 0] >= 0)
        self.size = self._estimate()
        if not self._is_in_time(deadline):
            return
        self._announce(memory_limit)
        if len(self.sets):
            self._build()

    @classmethod
    def build(cls, site: Site, switches: EquivalentPointConfig) -> EquivalentPointInequalities | None:
        """Build the component if it is enabled."""
        return cls(site.master, switches, deadline=site.deadline) if switches.enabled else None

    def respond(self, point: TreePoint) -> None:
        """Return nothing: all rows are in the model from the start."""

    # ---------------------------------------------------------------- size

    def _estimate(self) -> EqpSize:
        """Return exact counts, computed from the shapes."""
        topology, n_features = self.master.topology, self.master.dataset.n_features
        n_linked, n_internal = self._linked.size, topology.n_internal
        n_inner = n_internal // 2
        split_total = int(np.count_nonzero(self.sets.split_sets >= 0))
        agreeing = n_linked * n_features - split_total  # entries of one left and one right capacity, over all sets
        n_pairs = int(sum(depth << depth for depth in range(topology.depth)))  # of a node and an ancestor
        if self.config.linking == "basic":
            columns, rows, nonzeros = 1, 1, n_linked + n_internal * split_total
        elif self.config.linking == "chain":
            # Over a level, as many ancestors go left as go right: half of the pairs see each capacity.
            columns = n_internal + 1
            rows = n_internal + 1 + (n_pairs if self.config.disaggregated else 0)
            nonzeros = n_linked * (2 * n_internal + 1) + n_internal * split_total + n_pairs // 2 * agreeing
            nonzeros += n_pairs * n_linked if self.config.disaggregated else 0
        else:
            columns = n_internal + 2 * n_inner
            rows = n_internal + (4 if self.config.disaggregated else 2) * n_inner
            nonzeros = n_linked * (n_internal + 2 * n_inner) + n_internal * split_total + n_inner * agreeing
            nonzeros += n_linked * n_inner * (6 if self.config.disaggregated else 4)
        n_sets, groups = len(self.sets), self._groups
        selecting = self.config.bounding == "group_selection"
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

    def _is_in_time(self, deadline: float | None) -> bool:
        needed = _SECONDS_PER_NONZERO * self.size.nonzeros
        if deadline is None or time.monotonic() + needed < deadline:
            return True
        logger.info("equivalent-point inequalities are left out: they need about %.1f s, more than remains", needed)
        return False

    # ---------------------------------------------------------------- columns and rows

    def _build(self) -> None:
        model = self.master.model
        split: IntArray = np.empty(0, dtype=np.int64)
        if self._linked.size:
            split = LINKINGS[self.config.linking](self._link)
        beta = np.full(len(self.sets), -1)
        beta[self._linked] = split
        if self.config.bounding == "basic":
            model.add_rows(self._groups.basic_rows(beta), "equivalent points: bounds")
            return
        block = model.add_block("eqp_group", self._groups.large.size)
        for rows in self._groups.selection_rows(beta, block):
            model.add_rows(rows, "equivalent points: group selection")
        self.master.add_lift(lambda tree, x: self._groups.fill(x, block))

    @cached_property
    def _link(self) -> Link:
        first = self.sets.samples[self.sets.indptr[:-1]][self._linked]
        return Link(self.master, self.sets.split_sets[self._linked], first, self.config.disaggregated)


class Link:
    """Common parts of the forms of H: the b that keep a set together, and those that split it."""

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
        """Return ``- sum of b[node, f] over f in F*``."""
        columns = self.master.b.index[node - 1][self.split_sets]
        return _Term(columns, -1.0, self.split_sets >= 0)

    def leading(self, node: int, direction: int) -> _Term:
        """Return ``- sum of b[node, f] over the f outside of F* that send the set in that direction``."""
        return _Term(self.master.b.index[node - 1][None, :], -1.0, self._goes[direction])

    def splits(self, tree: DecisionTree, node: int) -> BoolArray:
        """Return per set whether the node of the tree branches on F*."""
        feature = tree.feature[node - 1]
        return self._splits[:, feature] if feature >= 0 else np.zeros(self.n_sets, dtype=bool)

    def goes(self, tree: DecisionTree, node: int, direction: int) -> BoolArray:
        """Return per set whether the node of the tree sends all of it in that direction."""
        feature = tree.feature[node - 1]
        return self._goes[direction][:, feature] if feature >= 0 else np.zeros(self.n_sets, dtype=bool)

    def add(self, *terms: _Term) -> None:
        """Add rows ``sum of the terms <= 0``, one per set."""
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


LINKINGS: dict[str, Callable[[Link], IntArray]] = {"basic": _basic, "chain": _chain, "recursive": _recursive}


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
        """Return G^Basic: the score of a set is at most that of its heaviest class, unless it is split."""
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
        """Return G^GS: one class of a set is selected, or all if it is split; a class scores as far as selected."""
        theta = self.master.theta.index
        free = np.empty(self.n_groups, dtype=np.int64)
        free[self.group_of] = theta[self.samples]  # for groups of one sample
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
        """Fill G_k from the scores, which the master has filled before."""
        scored = np.bincount(self.group_of, self.weight * self.master.theta.view(x)[self.samples], self.n_groups)
        block.view(x)[:] = scored[self.large] / self.group_weight[self.large]


@dataclass(frozen=True)
class _Term:
    """Entries of a batch of rows: `columns` of shape (n_sets, m) or (1, m), used if `mask` (n_sets, m) holds."""

    columns: IntArray
    value: float
    mask: BoolArray | None = None


def _own(columns: IntArray, value: float = 1.0) -> _Term:
    return _Term(columns[:, None], value)


def _rows(n_rows: int, terms: tuple[_Term, ...]) -> Rows:
    """Build ``sum of the terms <= 0``."""
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
