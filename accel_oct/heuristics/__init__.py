"""Heuristics: a greedy warm start, polishing, and local search."""

from accel_oct.heuristics.cart import cart
from accel_oct.heuristics.polish import polish, polish_roots

__all__ = ["cart", "polish", "polish_roots"]
