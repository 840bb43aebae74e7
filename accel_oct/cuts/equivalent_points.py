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
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from accel_oct.cuts.equivalent_point_rows import LINKINGS, Groups, Link, Linking
from accel_oct.data.equivalent_points import equivalent_point_sets
from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Master, Site, TreePoint
from accel_oct.mip import Needs
from accel_oct.mip.rows import IntArray

logger = logging.getLogger(__name__)

Bounding = Literal["basic", "group_selection"]

#: A non-zero of a row: column index and coefficient.
_BYTES_PER_NONZERO = 16
#: Larger requests are refused, and ones larger than the second figure are announced as a warning.
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
        The constraint set H.
    disaggregated : bool
        Disaggregate the chain or recursive constraints.
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
    deadline : float, optional
        Reading of `time.monotonic` at which the solve ends: rows that cannot be written before it are left out.

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
        deadline: float | None = None,
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
        """As the switches ask, if they do."""
        if not switches.enabled:
            return None
        return cls(
            site.master,
            deadline=site.deadline,
            linking=switches.linking,
            disaggregated=switches.disaggregated,
            bounding=switches.bounding,
            max_split_size=switches.max_split_size,
        )

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

    def _is_in_time(self, deadline: float | None) -> bool:
        needed = _SECONDS_PER_NONZERO * self.size.nonzeros
        if deadline is None or time.monotonic() + needed < deadline:
            return True
        logger.info("equivalent-point inequalities are left out: they take about %.1f s, more than is left", needed)
        return False

    # ---------------------------------------------------------------- columns and rows

    def _build(self) -> None:
        model = self.master.model
        split: IntArray = np.empty(0, dtype=np.int64)
        if self._linked.size:
            split = LINKINGS[self.linking](self._link)
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
    def _link(self) -> Link:
        first = self.sets.samples[self.sets.indptr[:-1]][self._linked]
        return Link(self.master, self.sets.split_sets[self._linked], first, self.disaggregated)
