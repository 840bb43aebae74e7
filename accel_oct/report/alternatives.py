"""The section on other nearly optimal trees."""

from __future__ import annotations

from typing import Any

from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.text import to_text
from accel_oct.report.markup import Markup, count, decimals, element, percent, section
from accel_oct.solving.near_optimal import NearOptimalTree, NearOptimalTrees

#: Number of trees that are written out.
_SHOWN = 5
#: Limit of the search; under constraints, trees that violate one are removed afterwards.
_LISTED = 200
_TOLERANCE = 1e-9


def listed_alternatives(model: Any, X: Any, y: Any, sample_weight: Any, wanted: Any) -> NearOptimalTrees | None:
    """Search for the trees within the distance `wanted`; given trees and None are returned unchanged."""
    if wanted is None or isinstance(wanted, NearOptimalTrees):
        return wanted
    if isinstance(wanted, bool) or not isinstance(wanted, int | float) or not 0 <= wanted < float("inf"):
        raise InvalidInputError(f"near_optimal must be a number >= 0, NearOptimalTrees or None, got {shown(wanted)}")
    asked = getattr(model, "best_estimator_", model)
    found: NearOptimalTrees = asked.near_optimal(X, y, within=wanted, limit=_LISTED, sample_weight=sample_weight)
    return found


def alternatives_section(model: Any, trees: NearOptimalTrees | None) -> Markup | None:
    """Return their number and the best of them as text; None without `trees`."""
    if trees is None:
        return None
    problem = _problem(model, trees)
    parts = [element("p", problem or _summary(model, trees))]
    if not problem:
        own = to_text(model, show_counts=False)
        texts = [to_text(trees.model(place), show_counts=False) for place in range(min(_SHOWN, len(trees)))]
        opened = next((place for place, text in enumerate(texts) if text != own), None)
        parts += [_tree(trees[k], k + 1, text, text == own, k == opened) for k, text in enumerate(texts)]
        if len(trees) > _SHOWN:
            parts.append(element("p", f"The best {_SHOWN} are shown.", class_="quiet"))
    return section("alternatives", "Other nearly optimal trees", parts)


def _problem(model: Any, trees: NearOptimalTrees) -> str | None:
    """Return why the trees cannot be compared with this model, or None."""
    if trees.optimum is None:
        return "The search for other trees ended before the best objective was known."
    limits = getattr(model, "constraints_", ())
    by_parameter = (
        *(model.min_samples_leaf != 1, model.max_leaf_nodes is not None, model.max_features_used is not None),
        model.interaction_cst is not None,
    )
    if len(limits) > len(model.constraints or ()) + sum(by_parameter):
        return "Not listed: the constraints are not stored with this model, so trees cannot be checked against them."
    if model.status_ == "optimal" and not limits and abs(trees.optimum - model.objective_) > _TOLERANCE:
        return (
            f"Not listed: on these data, with the stored settings, the best objective is {decimals(trees.optimum)}, "
            f"not {decimals(model.objective_)}."
        )
    return None


def _summary(model: Any, trees: NearOptimalTrees) -> str:
    number = f"{trees.at_least:,}" if trees.counted else f"at least {trees.at_least:,}"
    one = trees.at_least == 1
    assert trees.optimum is not None  # _problem was asked
    least = decimals(trees.optimum - trees.within)
    if getattr(model, "constraints_", ()):
        return (
            f"The best objective of all trees that satisfy the constraints is {decimals(trees.optimum)}. {number} "
            f"{'tree satisfies' if one else 'trees satisfy'} them with an objective of at least {least}, that is "
            f"{trees.within:g} less."
        )
    sizes = ""
    if trees.count_by_leaves:
        listed = ", ".join(f"{n:,} with {count(leaves, 'leaf')}" for leaves, n in trees.count_by_leaves.items())
        sizes = f" By size: {listed}."
    return (
        f"There {'is' if one else 'are'} {number} tree{'' if one else 's'} with an objective of at least {least}, that "
        f"is {trees.within:g} below the best, the best included.{sizes}"
    )


def _tree(entry: NearOptimalTree, number: int, text: str, own: bool, opened: bool) -> Markup:
    title = (
        f"{number}. Objective {decimals(entry.objective)}, {percent(entry.accuracy)} right, "
        f"{count(entry.n_leaves, 'leaf')}"
    )
    title += " \u2013 the tree of this report" if own else ""
    return element("details", element("summary", title), element("pre", text, dir="auto", tabindex=0), open=opened)
