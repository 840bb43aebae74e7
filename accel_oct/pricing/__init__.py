"""Constraints by prices: a bound from multipliers, and every tree that the bound leaves open.

For multipliers mu >= 0 of limits use_j(T) <= upper_j,

    L(T, mu) = value(T) + sum of mu_j (upper_j - use_j(T))

is the value of T in the same problem with other rewards and another leaf price, which the subtree tables solve. Its
maximum L(mu) bounds every tree that keeps the limits (`dual`). Every such tree that is better than v has L(T, mu) >= v,
so all trees within L(mu) - v of the best priced one are enumerated, and the best of them that keeps the limits is the
optimum (`closing`). What cannot be enumerated is handed on as bounds by root (`knowledge`).
"""

from accel_oct.pricing.closing import Closing
from accel_oct.pricing.dual import Dual
from accel_oct.pricing.knowledge import PriceBound, PricedKnowledge
from accel_oct.pricing.priced_search import PricedSearch
from accel_oct.pricing.repair import Repair
from accel_oct.pricing.roots import RootByRoot

__all__ = [
    "Closing",
    "Dual",
    "PriceBound",
    "PricedKnowledge",
    "PricedSearch",
    "Repair",
    "RootByRoot",
]
