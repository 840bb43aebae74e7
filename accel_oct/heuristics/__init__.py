"""Trees that are found quickly: a greedy warm start, and the polishing of any tree."""

from accel_oct.heuristics.cart import cart
from accel_oct.heuristics.polish import polish, polish_roots

__all__ = ["cart", "polish", "polish_roots"]
