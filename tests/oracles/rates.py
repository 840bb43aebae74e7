"""Constraints on rates in exact rationals: every tree on a few rows, its value and what it comes to.

Nothing is shared with the library: trees are sets of rows as bit masks, weights and limits are the binary fractions
that they are given as, and every quotient is a `Fraction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

#: By how much a limit may be missed, as docs/constraints.md has it.
TOLERANCE = Fraction(1e-9)


@dataclass(frozen=True)
class Rate:
    """A constraint on two or more classes, in plain values.

    Attributes
    ----------
    kind : str
        The name of the library's class.
    positive : int
    lower, upper : float or None
    group, given : tuple of int or None
        A value per row, for the kinds that compare groups.
    count : bool
        For "PositiveBudget": the limit is an amount.
    """

    kind: str
    positive: int
    lower: float | None = None
    upper: float | None = None
    group: tuple[int, ...] | None = None
    given: tuple[int, ...] | None = None
    count: bool = False


def predictions(X: Sequence[Sequence[int]], n_classes: int, max_depth: int) -> dict[tuple[int, ...], int]:
    """Everything that trees can predict for the rows, and the fewest leaves that do so."""
    n_rows, n_features = len(X), len(X[0])
    ones = [sum(1 << i for i in range(n_rows) if X[i][feature]) for feature in range(n_features)]
    known: dict[tuple[int, int], dict[tuple[int, ...], int]] = {}

    def below(rows: int, depth: int) -> dict[tuple[int, ...], int]:
        """The rows of each class, as masks, to leaves."""
        if (rows, depth) in known:
            return known[rows, depth]
        found = {tuple(rows if k == label else 0 for k in range(n_classes)): 1 for label in range(n_classes)}
        for column in ones if depth else ():
            one = rows & column
            if not one or one == rows:
                continue
            for zero_masks, zero_leaves in below(rows ^ one, depth - 1).items():
                for one_masks, one_leaves in below(one, depth - 1).items():
                    masks = tuple(a | b for a, b in zip(zero_masks, one_masks, strict=True))
                    found[masks] = min(found.get(masks, 1 << 30), zero_leaves + one_leaves)
        known[rows, depth] = found
        return found

    result = {}
    for masks, leaves in below((1 << n_rows) - 1, max_depth).items():
        result[tuple(next(k for k in range(n_classes) if masks[k] >> i & 1) for i in range(n_rows))] = leaves
    return result


def measured(rate: Rate, y: Sequence[int], weights: Sequence[Fraction], predicted: Sequence[int]) -> Fraction | None:
    """What is limited; None where there is nothing to take a share of, and no limit then."""
    rows = range(len(y))
    own = [y[i] == rate.positive for i in rows]
    chosen = [predicted[i] == rate.positive for i in rows]

    def share(among: Sequence[bool], of: Sequence[bool]) -> Fraction | None:
        whole = sum((weights[i] for i in rows if among[i]), Fraction(0))
        part = sum((weights[i] for i in rows if among[i] and of[i]), Fraction(0))
        return part / whole if whole else None

    other, everyone = [not value for value in own], [True for _ in rows]
    if rate.kind == "Recall":
        return share(own, chosen)
    if rate.kind == "FalsePositiveRate":
        return share(other, chosen)
    if rate.kind == "Specificity":
        return share(other, [not value for value in chosen])
    if rate.kind == "Precision":
        return share(chosen, own)
    if rate.kind == "PositiveBudget":
        amount = sum((weights[i] for i in rows if chosen[i]), Fraction(0))
        return amount if rate.count else amount / sum(weights)
    assert rate.group is not None
    families = {
        "StatisticalParity": [everyone],
        "EqualOpportunity": [own],
        "PredictiveEquality": [other],
        "EqualisedOdds": [own, other],
    }.get(rate.kind)
    if families is None:
        assert rate.kind == "ConditionalParity" and rate.given is not None
        families = [[rate.given[i] == value for i in rows] for value in sorted(set(rate.given))]
    largest = Fraction(0)
    for family in families:
        shares = [share([family[i] and rate.group[i] == g for i in rows], chosen) for g in sorted(set(rate.group))]
        present = [value for value in shares if value is not None]
        if present:
            largest = max(largest, max(present) - min(present))
    return largest


def keeps(rate: Rate, weights: Sequence[Fraction], value: Fraction | None, tolerance: Fraction = TOLERANCE) -> bool:
    """Whether a value is within the limits, up to a tolerance; amounts are measured by the total weight."""
    if value is None:
        return True
    room = tolerance * (sum(weights) if rate.count else 1)
    return (rate.lower is None or value >= Fraction(rate.lower) - room) and (
        rate.upper is None or value <= Fraction(rate.upper) + room
    )


def worth(
    y: Sequence[int], weights: Sequence[Fraction], predicted: Sequence[int], leaves: int, penalty: float
) -> Fraction:
    """The normalised objective."""
    score = sum((weights[i] for i in range(len(y)) if predicted[i] == y[i]), Fraction(0))
    return score / sum(weights) - Fraction(penalty) * leaves


def best(
    X: Sequence[Sequence[int]],
    y: Sequence[int],
    weights: Sequence[float],
    penalty: float,
    max_depth: int,
    rates: Sequence[Rate],
) -> Fraction | None:
    """The largest objective of the trees that satisfy every limit up to the tolerance; None where no tree does."""
    exact = [Fraction(weight) for weight in weights]
    found = None
    for predicted, leaves in predictions(X, max(y) + 1, max_depth).items():
        value = worth(y, exact, predicted, leaves, penalty)
        if (found is None or value > found) and all(
            keeps(rate, exact, measured(rate, y, exact, predicted)) for rate in rates
        ):
            found = value
    return found
