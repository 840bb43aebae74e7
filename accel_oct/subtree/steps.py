"""How far a search on all of the data is, for whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass

_LEVELS = {0: "", 3: "level three", 4: "level four"}


@dataclass
class Steps:
    """Filled while the search goes on; other threads may read it at any time.

    Attributes
    ----------
    level : int
        Of the tables that are being filled; 0 before.
    features : (int, int)
        That the level is done with, of how many.
    roots : (int, int)
        Root features that may still hold a better tree, of how many.
    """

    level: int = 0
    features: tuple[int, int] = (0, 0)
    roots: tuple[int, int] = (0, 0)

    @property
    def doing(self) -> str:
        """In words."""
        return "root features" if self.roots[1] else _LEVELS[self.level]

    @property
    def figures(self) -> dict[str, tuple[int, int]]:
        """By name."""
        if self.roots[1]:
            return {"roots open": self.roots}
        return {"features": self.features} if self.features[1] else {}
