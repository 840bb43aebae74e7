"""Features that may not occur together, on a path or in a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from accel_oct.constraints.arguments import feature_places, listed
from accel_oct.constraints.features import use_columns
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.exact import LocalRules
from accel_oct.formulation import Master
from accel_oct.mip import Rows
from accel_oct.tree import DecisionTree


@dataclass(frozen=True, eq=False)
class ForbiddenPairs:
    """No path from the root to a leaf, or no tree, branches on both columns of a pair.

    On a path: ``b[m, f] + sum of b[n, g] over the partners g of f <= 1`` for every node n and every m above it. In the
    tree: ``u_f + u_g <= 1`` for every pair.

    Parameters
    ----------
    pairs : sequence of pairs of int or str
        Two columns each, by index or by name; columns of the user's table stand for all features made from them.
    on : {"path", "tree"}

    Notes
    -----
    On paths, subtrees stay independent, and the subtree tables know the rule (`local`). In a tree the rule is
    about the set of features that the tree uses, and is proven like `MaxFeatures`.
    """

    pairs: Any
    on: Literal["path", "tree"] = "path"

    def __post_init__(self) -> None:
        if not isinstance(self.on, str) or self.on not in ("path", "tree"):
            raise InvalidInputError(f"ForbiddenPairs: on must be 'path' or 'tree', got {shown(self.on)}")

    def bind(self, dataset: BinaryDataset) -> BoundForbiddenPairs:
        where = "ForbiddenPairs: pairs"
        pairs = set()
        for pair in listed(self.pairs, where):
            members = [feature_places(value, dataset, where) for value in listed(pair, where)]
            if len(members) != 2 or set(members[0]) & set(members[1]):
                raise InvalidInputError(f"{where} must hold two different columns each, got {shown(pair)}")
            pairs |= {(min(f, g), max(f, g)) for f in members[0] for g in members[1]}
        return BoundForbiddenPairs(tuple(sorted(pairs)), self.on, dataset.X.shape)


@dataclass(frozen=True)
class BoundForbiddenPairs:
    """Pairs of columns, the smaller one first, for data of some shape."""

    pairs: tuple[tuple[int, int], ...]
    on: Literal["path", "tree"]
    shape: tuple[int, int]

    @cached_property
    def local(self) -> LocalRules | None:
        """None for pairs in a tree."""
        return LocalRules.pairs(*self.shape, self.pairs) if self.on == "path" else None

    @property
    def name(self) -> str:
        return f"{len(self.pairs)} forbidden pairs in a {self.on}"

    @property
    def allowed(self) -> tuple[None, float]:
        return None, 0.0

    def value(self, tree: DecisionTree) -> float:
        """How many pairs occur."""
        return self.violation(tree)

    def violation(self, tree: DecisionTree) -> float:
        """How many pairs occur; on paths, each path counts for itself."""
        return float(sum(f in used and g in used for used in self._sets(tree) for f, g in self.pairs))

    def _sets(self, tree: DecisionTree) -> Iterator[set[int]]:
        if self.on == "tree":
            yield set(tree.features_used)
        else:
            yield from ({feature for feature, _ in tree.path(leaf)} for leaf in tree.leaves.tolist())

    def add_to(self, master: Master) -> None:
        if not self.pairs:
            return
        if self.on == "path":
            master.model.add_rows(self._path_rows(master), self.name)
            return
        wanted = np.zeros(master.dataset.n_features, dtype=bool)
        wanted[np.unique(self.pairs)] = True
        used = use_columns(master, np.arange(wanted.size), wanted, self.name)
        columns = used.index[(np.cumsum(wanted) - 1)[np.array(self.pairs)]]
        rows = np.repeat(np.arange(len(columns)), 2)
        master.model.add_rows(Rows.from_entries(rows, columns.ravel(), 1.0, n_rows=len(columns), upper=1.0), self.name)

    def _path_rows(self, master: Master) -> Rows:
        """One row per feature f, node n and node m above it: f at m leaves no partner of f for n."""
        partners: dict[int, list[int]] = {}
        for f, g in self.pairs:
            partners.setdefault(f, []).append(g)
            partners.setdefault(g, []).append(f)
        b = master.b.index
        rows = [
            Rows.single([b[(n >> step) - 1, f], *b[n - 1, others]], 1.0, upper=1.0)
            for n in master.topology.internal.tolist()
            for step in range(1, n.bit_length())
            for f, others in partners.items()
        ]
        return Rows.concatenate(rows)
