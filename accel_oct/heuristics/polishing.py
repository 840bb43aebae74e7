"""Solution polishing during the solve (section 5.2), as a component."""

from __future__ import annotations

from accel_oct.formulation import Master, Response, Site, TreePoint
from accel_oct.heuristics.polish import SubtreeLookup, polish
from accel_oct.mip import Event, Needs
from accel_oct.tree import DecisionTree


class Polishing:
    """Polishes the tree of every candidate, whether or not the Benders cuts will reject its theta.

    Parameters
    ----------
    master : Master
    subtree_for : SubtreeLookup
        The cache that is shared with the path-bound cuts.
    """

    name = "polishing"
    needs = Needs([Event.CANDIDATE], injects=True)

    def __init__(self, master: Master, subtree_for: SubtreeLookup) -> None:
        self.master = master
        self._subtree_for = subtree_for
        self._last: DecisionTree | None = None

    @classmethod
    def build(cls, site: Site, enabled: bool) -> Polishing | None:
        """If it is switched on."""
        return cls(site.master, site.subtrees.at_price(site.master.leaf_price)) if enabled else None

    def respond(self, point: TreePoint) -> Response | None:
        if point.tree == self._last:
            return None
        self._last = point.tree
        polished = polish(point.tree, self.master.dataset, self.master.leaf_price, self._subtree_for)
        return Response(trees=(polished,)) if polished is not point.tree else None
