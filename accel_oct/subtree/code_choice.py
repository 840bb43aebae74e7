"""Which levels of a search use compiled code, when some of it would have to be compiled first."""

from __future__ import annotations

import numpy as np

from accel_oct.subtree import engine
from accel_oct.subtree.layout import counter_type
from accel_oct.subtree.pair_level import PairLevel
from accel_oct.subtree.reduction import Reduced
from accel_oct.subtree.stopping import Stopper


class Code:
    """Decides once per search, level and type of counters.

    Code that was used before is used. Else it is compiled, unless matrix products would take less than a second for
    the whole search, or the time limit is so short that it would be gone (`engine.worth_compiling`). Both ways give a
    best tree and valid bounds; between trees that are equally good they may choose differently.

    Parameters
    ----------
    data : Reduced
        All data of the search.
    depth : int
    stopper : Stopper
    """

    def __init__(self, data: Reduced, depth: int, stopper: Stopper) -> None:
        self._seconds = numpy_seconds(data.n_samples, data.n_features, data.n_classes, depth)
        self._stopper = stopper
        self._allowed: dict[str, bool] = {}

    def allows(self, data: Reduced, level: int) -> bool:
        """Whether compiled code of a level (2, 3 or 4) may be used for some data."""
        name = _name(data, level)
        known = self._allowed.get(name)
        if known is None:
            worth = engine.worth_compiling(self._seconds, self._stopper.remaining)
            known = self._allowed[name] = worth or engine.at_hand(name)
        return known

    def used(self, pairs: PairLevel, level: int) -> None:
        """Remember that a level was computed by compiled code, where it was."""
        if pairs.compiled is not None and pairs.exact:
            engine.was_used(_name(pairs.data, level))


def numpy_seconds(n_samples: int, n_features: int, n_classes: int, depth: int) -> float:
    """What a search by matrix products takes, roughly: pairs of features, for both sides of each further root."""
    channels = 1 if n_classes == 2 else n_classes
    seconds, sides = 0.0, 1.0
    for level in range(max(0, depth - 2) + 1):
        cells = channels * float(n_features) ** 2
        seconds += sides * (3e-4 + cells * (2e-8 + 5e-10 * n_samples / 2.0**level))
        sides *= 2 * n_features
    return seconds


def _name(data: Reduced, level: int) -> str:
    masses = None if data.rules is None else data.rules.masses
    counters = np.dtype(counter_type(data.weights, masses)).name
    return f"level-{level}-{counters}-{'plain' if masses is None else 'ruled'}"
