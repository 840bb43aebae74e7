"""Constraints of a row, checked from the predictions of its tree; no code is shared with the library.

Names and arguments are those of docs/constraints.md. A limit may be missed by `FORGIVEN`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FORGIVEN", "Reached", "UnknownLimitError", "broken"]

FORGIVEN = 1e-9


class UnknownLimitError(Exception):
    """A constraint that cannot be checked here."""


@dataclass(frozen=True)
class Reached:
    """The predictions and leaves of all samples in a tree.

    Attributes
    ----------
    y, predicted : int arrays
        Class indices.
    classes : list
        The labels in sorted order.
    leaf : int array
        The leaf of every sample.
    leaves : list of int
        All leaves, also those that no sample reaches.
    paths : list of tuple of int
        The features on the way to each leaf.
    group : array or None
    """

    y: NDArray[np.int64]
    predicted: NDArray[np.int64]
    classes: list[Any]
    leaf: NDArray[np.int64]
    leaves: list[int]
    paths: list[tuple[int, ...]]
    group: Any = None

    @property
    def features(self) -> set[int]:
        return {feature for path in self.paths for feature in path}


def broken(text: str, reached: Reached) -> str | None:
    """Return a sentence about how a constraint is broken; None if it is kept.

    Raises
    ------
    UnknownLimitError
        If the constraint is not known here.
    """
    try:
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        check = _CHECKS[call.func.id]
        given = [_value(node) for node in call.args]
        named = {str(keyword.arg): _value(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError, TypeError, AssertionError, KeyError, RecursionError, MemoryError):
        raise UnknownLimitError(f"the constraint {text!r} is not known here") from None
    try:
        missed = next(check(reached, *given, **named), None)
    except (TypeError, LookupError, ValueError, OverflowError) as error:
        raise UnknownLimitError(f"the constraint {text!r} cannot be counted: {error}") from None
    return None if missed is None else f"{text} is broken: {missed}"


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.List):
        return [_value(entry) for entry in node.elts]
    return ast.literal_eval(node)


def _class(reached: Reached, positive: Any) -> int:
    if positive is None:
        if len(reached.classes) != 2:
            raise ValueError("positive must name a class")
        return 1
    return reached.classes.index(positive)


def _within(rate: float, at_least: float | None, at_most: float | None) -> Iterator[str]:
    if at_least is not None and rate < at_least - FORGIVEN:
        yield f"{rate:.6f} is below {at_least:g}"
    if at_most is not None and rate > at_most + FORGIVEN:
        yield f"{rate:.6f} is above {at_most:g}"


def _rate(among: Callable[[Any, Any, int], Any], hits: Callable[[Any, Any, int], Any]) -> Callable[..., Iterator[str]]:
    """Check the share of `hits` among the samples of `among`; kept if there are none."""

    def check(
        reached: Reached, positive: Any = None, at_least: float | None = None, at_most: float | None = None
    ) -> Iterator[str]:
        k = _class(reached, positive)
        whole = among(reached.y, reached.predicted, k)
        if whole.any():
            yield from _within(float(hits(reached.y, reached.predicted, k)[whole].mean()), at_least, at_most)

    return check


def _between(*populations: Callable[[Any, int], Any]) -> Callable[..., Iterator[str]]:
    """Check the difference between groups of the share predicted positive, in each of some populations."""

    def check(reached: Reached, group: Any = None, at_most: float = 0.0, positive: Any = None) -> Iterator[str]:
        if group not in (None, "group") or reached.group is None:
            raise ValueError("there are no such groups with the data")
        k = _class(reached, positive)
        for population in populations:
            rows = population(reached.y, k)
            inside = [rows & (reached.group == name) for name in sorted(set(reached.group.tolist()))]
            rates = [float((reached.predicted[members] == k).mean()) for members in inside if members.any()]
            if rates:
                yield from _within(max(rates) - min(rates), None, at_most)

    return check


def _budget(reached: Reached, at_most: float, positive: Any = None, count: bool = False) -> Iterator[str]:
    share = float((reached.predicted == _class(reached, positive)).mean())
    yield from _within(share, None, at_most / len(reached.y) if count else at_most)


def _max_leaves(reached: Reached, n: int) -> Iterator[str]:
    if len(reached.leaves) > n:
        yield f"there are {len(reached.leaves)} leaves"


def _min_leaf(
    reached: Reached, amount: float | None = None, share: float | None = None, samples: int | None = None
) -> Iterator[str]:
    sizes = [int((reached.leaf == leaf).sum()) for leaf in reached.leaves]
    least = amount if amount is not None else samples if samples is not None else float(share or 0) * len(reached.y)
    if min(sizes) < float(least) - FORGIVEN * len(reached.y):
        yield f"a leaf has {min(sizes)} samples"


def _forbidden(reached: Reached, features: Any) -> Iterator[str]:
    used = sorted(reached.features & set(features if isinstance(features, list | tuple) else [features]))
    if used:
        yield f"the tree branches on {used[0]}"


def _pairs(reached: Reached, pairs: Any, on: str = "path") -> Iterator[str]:
    together = [set(path) for path in reached.paths] if on == "path" else [reached.features]
    for used in together:
        for first, second in pairs:
            if {first, second} <= used:
                yield f"{first} and {second} are used together"


def _max_features(reached: Reached, n: int) -> Iterator[str]:
    if len(reached.features) > n:
        yield f"{len(reached.features)} features are used"


_CHECKS: dict[str, Callable[..., Iterator[str]]] = {
    "recall": _rate(lambda y, _, k: y == k, lambda _, predicted, k: predicted == k),
    "false_positive_rate": _rate(lambda y, _, k: y != k, lambda _, predicted, k: predicted == k),
    "specificity": _rate(lambda y, _, k: y != k, lambda _, predicted, k: predicted != k),
    "precision": _rate(lambda _, predicted, k: predicted == k, lambda y, _, k: y == k),
    "positive_budget": _budget,
    "statistical_parity": _between(lambda y, _: np.ones(len(y), dtype=bool)),
    "equal_opportunity": _between(lambda y, k: y == k),
    "predictive_equality": _between(lambda y, k: y != k),
    "equalised_odds": _between(lambda y, k: y == k, lambda y, k: y != k),
    "max_leaves": _max_leaves,
    "min_leaf_weight": _min_leaf,
    "forbidden_features": _forbidden,
    "forbidden_pairs": _pairs,
    "max_features": _max_features,
}
