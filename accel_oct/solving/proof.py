"""Proofs: when a bound proves a tree optimal.

The bound of a solver carries floating-point noise. So a bound slightly below the optimum must not be used as it is, and
a bound slightly above it should not keep a solve from ending.
"""

from __future__ import annotations

import numpy as np

#: Error of a MIP solver's bound, in units of weight and relative to the total weight. Solvers have row tolerances of
#: 1e-7 to 1e-6.
SOLVER_NOISE = 1e-6
SOLVER_NOISE_RELATIVE = 1e-9

#: Tolerance of "optimal": no tree beats the returned one by more than this in the normalised objective. Two trees with
#: equal values for the decimal leaf penalty differ by less in binary arithmetic.
PROOF_TOLERANCE = 1e-9


class BoundRounding:
    """Turns a solver's bound into a valid one on the lattice of values that trees can have.

    With integral weights the value of every tree is an integer minus `leaf_price` times its number of leaves, so a
    bound may be lowered to the largest such number that is not above it; with real weights only the noise is added.

    Parameters
    ----------
    total_weight, leaf_price : float
        In units of weight.
    max_leaves : int
        An upper bound on the leaves of some optimal tree.
    integral : bool
        Whether all weights are integers.
    scale : float
        The solver's objective is the value times this.

    Attributes
    ----------
    slack : float
        A tree is proven when a valid bound exceeds its value by no more than this: `PROOF_TOLERANCE`, and more where
        values lie closer together than a solver can tell.
    """

    def __init__(
        self, total_weight: float, leaf_price: float, max_leaves: int, integral: bool, scale: float = 1.0
    ) -> None:
        self.total_weight = total_weight
        self.leaf_price = leaf_price
        self.max_leaves = max_leaves
        self.integral = integral
        self.scale = scale
        self.noise = max(SOLVER_NOISE / scale, SOLVER_NOISE_RELATIVE * total_weight)
        self.slack = PROOF_TOLERANCE * total_weight
        if not integral or self.noise > 0.1:
            # No lattice, or a unit below the precision of the total: every theta may be off by a row's tolerance.
            self.slack += 2 * self.noise + SOLVER_NOISE * total_weight
        elif 0 < leaf_price < 10 * self.noise:
            # Trees that differ only in their number of leaves are closer together than the noise.
            self.slack += 2 * self.noise

    @property
    def trivial(self) -> float:
        """The bound without a solver: one leaf that is always right."""
        return self.total_weight - self.leaf_price

    def next_above(self, value: float) -> float:
        """Return a lower bound on the value of every tree that beats `value` by more than the tolerance."""
        if not self.integral or not np.isfinite(value):
            return value
        paid = self.leaf_price * np.arange(1, self.max_leaves + 1)
        tolerance = PROOF_TOLERANCE * self.total_weight
        return float(np.min(np.floor(value + tolerance + paid) + 1.0 - paid)) - self.noise

    def valid(self, solver_bound: float) -> float:
        """Return a valid bound on the value of every tree from the bound that a solver reports, possibly infinite."""
        bound = solver_bound / self.scale
        if not bound < self.trivial:
            return self.trivial
        if not self.integral:
            return min(bound + self.noise, self.trivial)
        paid = self.leaf_price * np.arange(1, self.max_leaves + 1)
        return float(np.max(np.floor(bound + self.noise + paid) - paid))
