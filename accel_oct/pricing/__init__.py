"""Pricing of constraints: a bound from multipliers, and the enumeration of every tree that the bound leaves open.

For multipliers mu >= 0 of limits use_j(T) <= upper_j,

    L(T, mu) = value(T) + sum of mu_j (upper_j - use_j(T))

is the value of T in the same problem with other rewards and another leaf price, which the subtree tables solve. Its
maximum L(mu) bounds every tree that satisfies the limits (`dual`). Every such tree that is better than v has
L(T, mu) >= v, so all trees within L(mu) - v of the best priced one are enumerated, and the best of them that satisfies
the limits is the optimum (`closing`). Where that is too much, bounds by root remain (`RootBounds`).
"""

from accel_oct.pricing.closing import Closing, RootByRoot
from accel_oct.pricing.dual import Dual
from accel_oct.pricing.repair import Repair
from accel_oct.pricing.search import PriceBound, PricedSearch, RootBounds

__all__ = [
    "Closing",
    "Dual",
    "PriceBound",
    "PricedSearch",
    "Repair",
    "RootBounds",
    "RootByRoot",
]
