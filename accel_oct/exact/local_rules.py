"""Rules about single leaves and single paths, under which subtrees stay independent of each other.

There are two kinds: every leaf has at least some mass, and two columns may not share a path from the root to a leaf. A
leaf or a split that breaks a rule has the score minus infinity in the tables. Two facts are used in many places:

- The trees of a set of samples depend on its masses and on the set of columns of its path: columns may share a path if
  all pairs of them may.
- If a tree satisfies the rules, so does the leaf that replaces it: it has the masses of all leaves below, and no path
  is longer. So a set of samples allows a single leaf, and with it some tree for every number of leaves, or no tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from accel_oct.errors import InvalidInputError
from accel_oct.support.arrays import Array, BoolArray, FloatArray
from accel_oct.tree import DecisionTree


@dataclass(frozen=True, eq=False)
class LocalRules:
    """Least masses of leaves and pairs of columns that must stay apart; made by `leaves`, `pairs` and `joined`.

    Attributes
    ----------
    masses : float array (J, n)
        One or more masses of every sample, not negative, in general not the weights of the objective.
    least : tuple of J floats
        A leaf is allowed if each of its masses is at least this, exactly; tolerances are already subtracted.
    apart : bool array (F, F) or None
        Symmetric; columns that may not share a path. A column apart from itself may not be used at all.
    """

    masses: FloatArray
    least: tuple[float, ...]
    apart: BoolArray | None = None

    @classmethod
    def leaves(cls, masses: ArrayLike, least: float) -> LocalRules:
        """Return the rule that every leaf has at least this mass.

        Parameters
        ----------
        masses : array-like (n,)
            Multiples of some power of two with a sum below 2**53 multiples, as the weights of a `BinaryDataset` are:
            then all sums are exact, and so is the comparison with the least mass.
        least : float

        Raises
        ------
        InvalidInputError
            If a mass is negative or not finite, or if sums of masses would be rounded.
        """
        values = np.asarray(masses, dtype=np.float64)
        if values.ndim != 1 or not np.all(np.isfinite(values)) or np.any(values < 0) or math.isnan(least):
            raise InvalidInputError("a local rule needs one finite, nonnegative mass per sample and a least mass")
        fine = np.ldexp(values, 53 - math.frexp(float(values.sum()))[1])
        if np.any(fine != np.rint(fine)):
            raise InvalidInputError("a local rule needs masses with exact sums, such as the weights of the data")
        return cls(values[None], (float(least),))

    @classmethod
    def pairs(cls, n_samples: int, n_features: int, pairs: Iterable[tuple[int, int]]) -> LocalRules:
        """Return the rule that no path uses both columns of a pair."""
        apart = np.zeros((n_features, n_features), dtype=bool)
        for f, g in pairs:
            apart[f, g] = apart[g, f] = True
        np.fill_diagonal(apart, False)
        return cls(np.zeros((1, n_samples)), (0.0,), apart)

    @staticmethod
    def joined(rules: Sequence[LocalRules]) -> LocalRules | None:
        """Return the conjunction of rules (of several minima of one mass the largest), None if nothing is forbidden."""
        masses: list[FloatArray] = []
        least: list[float] = []
        apart: BoolArray | None = None
        for rule in rules:
            for mass, minimum in zip(rule.masses, rule.least, strict=True):
                known = [place for place, other in enumerate(masses) if np.array_equal(mass, other)]
                if known:
                    least[known[0]] = max(least[known[0]], minimum)
                elif minimum > 0:
                    masses.append(mass)
                    least.append(minimum)
            if rule.apart is not None and rule.apart.any():
                apart = rule.apart if apart is None else apart | rule.apart
        if not masses and apart is None:
            return None
        if not masses:
            return LocalRules(rules[0].masses[:1] * 0.0, (0.0,), apart)
        return LocalRules(np.array(masses), tuple(least), apart)

    @cached_property
    def totals(self) -> FloatArray:
        """Masses (J,) of all samples."""
        return np.asarray(self.masses.sum(axis=1))

    @cached_property
    def allow_a_leaf(self) -> bool:
        """Whether all samples together may be a leaf; if not, no tree is allowed."""
        return bool(np.all(self.enough(self.totals)))

    def enough(self, masses: Array) -> BoolArray:
        """Return whether sets with these masses (J, ...) may be a leaf."""
        return np.asarray(np.all([mass >= least for mass, least in zip(masses, self.least, strict=True)], axis=0))

    def room_for(self, leaves: int, masses: Array) -> BoolArray:
        """Return whether sets with these masses (J, ...) may be heavy enough for this number of leaves."""
        # Relaxed by far more than the rounding of the product: the answer may be true too often, never too seldom.
        need = [max(0.0, leaves * least * (1 - 1e-12)) for least in self.least]
        return np.asarray(np.all([mass >= least for mass, least in zip(masses, need, strict=True)], axis=0))

    def excess(self, tree: DecisionTree, X: BoolArray) -> float:
        """Return by how much a tree breaks the rules: missing mass relative to the total, or one for columns on a path.

        At most zero if the tree satisfies the rules, minus one if no tree could break them. X has the rows of the
        masses.
        """
        if self.apart is not None:
            paths = [[feature for feature, _ in tree.path(leaf)] for leaf in tree.leaves.tolist()]
            if any(self.apart[np.ix_(path, path)].any() for path in paths):
                return 1.0
        leaf_of = tree.leaf_of(X) - 1
        worst = -1.0
        for mass, least, total in zip(self.masses, self.least, self.totals.tolist(), strict=True):
            if least > 0:
                lightest = np.bincount(leaf_of, mass, tree.feature.size)[tree.leaves - 1].min()
                worst = max(worst, float(least - lightest) / (total or 1.0))
        return worst

    def carries_over(self, column: int) -> BoolArray:
        """Return for every column whether all columns allowed below it are allowed below `column` too."""
        if self.apart is None:
            return np.ones(1, dtype=bool)
        return np.asarray(~(self.apart[column] & ~self.apart).any(axis=1))

    def fit(self, n_samples: int, n_features: int) -> bool:
        """Return whether the arrays have these numbers of samples and columns."""
        return self.masses.shape[1] == n_samples and (self.apart is None or len(self.apart) == n_features)

    # ---------------------------------------------------------------- parts

    def of_rows(self, rows: Array) -> LocalRules:
        """Return the rules for some of the samples."""
        return LocalRules(self.masses[:, rows], self.least, self.apart)

    def below(self, path: Sequence[int]) -> LocalRules:
        """Return the rules for subtrees below a path of columns."""
        if self.apart is None or not path:
            return self
        apart = self.apart.copy()
        partners = np.flatnonzero(self.apart[list(path)].any(axis=0))
        apart[partners, partners] = True
        return LocalRules(self.masses, self.least, apart)

    def of_columns(self, columns: Array) -> LocalRules:
        """Return the rules for some of the columns."""
        apart = None if self.apart is None else self.apart[np.ix_(columns, columns)]
        return LocalRules(self.masses, self.least, apart if apart is not None and apart.any() else None)
