"""How far a search on all of the data is, for whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass, field

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


@dataclass
class SearchCounts:
    """How many sets of samples were looked at on which level, how many root features; and how far all is."""

    pair_levels: int = 0
    level_three: int = 0
    level_four: int = 0
    roots: int = 0
    steps: Steps = field(default_factory=Steps)
