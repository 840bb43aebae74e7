"""Other trees that are almost as good."""

from __future__ import annotations

from typing import Any

from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.text import to_text
from accel_oct.near_optimal.trees import NearOptimalTrees
from accel_oct.report.markup import Markup, element
from accel_oct.report.wording import count, decimals, percent

__all__ = ["alternatives_section", "listed_alternatives"]

#: Trees that are written out.
_SHOWN = 5
#: Trees that are listed at most: under constraints, those that break one are left out of them.
_LISTED = 200
_TOLERANCE = 1e-9


def listed_alternatives(model: Any, X: Any, y: Any, sample_weight: Any, wanted: Any) -> NearOptimalTrees | None:
    """The trees, from a distance or as they were given.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier, or CV
    X, y, sample_weight
        What it was fitted on.
    wanted : float, NearOptimalTrees or None
    """
    if wanted is None or isinstance(wanted, NearOptimalTrees):
        return wanted
    if isinstance(wanted, bool) or not isinstance(wanted, int | float) or not 0 <= wanted < float("inf"):
        raise InvalidInputError(f"near_optimal must be a number >= 0, trees or None, got {shown(wanted)}")
    asked = getattr(model, "best_estimator_", model)
    found: NearOptimalTrees = asked.near_optimal(X, y, within=wanted, limit=_LISTED, sample_weight=sample_weight)
    return found


def alternatives_section(model: Any, trees: NearOptimalTrees | None) -> Markup | None:
    """How many there are, and the best of them as text; None where they were not asked for."""
    if trees is None:
        return None
    problem = _problem(model, trees)
    head = element("h2", "Trees that are almost as good", id="alternatives-title")
    parts = [head, element("p", problem or _summary(trees))]
    if not problem:
        own = to_text(model, show_counts=False)
        parts += [_tree(trees, place, own) for place in range(min(_SHOWN, len(trees)))]
        if len(trees) > _SHOWN:
            parts.append(element("p", f"The best {_SHOWN} are shown.", class_="quiet"))
    return element("section", parts, id="alternatives-section", aria_labelledby="alternatives-title")


def _problem(model: Any, trees: NearOptimalTrees) -> str | None:
    """Why the trees cannot stand beside this model."""
    if trees.optimum is None:
        return "The search for other trees ended before the best objective was known."
    limits = getattr(model, "constraints_", ())
    asked = (model.constraints, model.max_leaf_nodes, model.max_features_used)
    if limits and not any(asked) and model.min_samples_leaf == 1:
        return "Not listed: the constraints are not stored with this model, so it cannot be said which trees keep them."
    if model.status_ == "optimal" and not limits and abs(trees.optimum - model.objective_) > _TOLERANCE:
        return (
            f"Not listed: with what is known of this model and these data the best objective is "
            f"{decimals(trees.optimum)}, not {decimals(model.objective_)}."
        )
    return None


def _summary(trees: NearOptimalTrees) -> str:
    number = f"{trees.count:,}" if trees.count is not None else f"at least {trees.at_least:,}"
    be = "is" if number == "1" else "are"
    sizes = ""
    if trees.count_by_leaves:
        listed = ", ".join(f"{n:,} with {count(leaves, 'leaf')}" for leaves, n in trees.count_by_leaves.items())
        sizes = f" By size: {listed}."
    least = decimals(trees.optimum - trees.within) if trees.optimum is not None else "?"
    return (
        f"There {be} {number} tree{'' if number == '1' else 's'} with an objective of at least {least}, that is "
        f"{trees.within:g} below the best, the best included.{sizes}"
    )


def _tree(trees: NearOptimalTrees, place: int, own: str) -> Markup:
    entry = trees[place]
    text = to_text(trees.model(place), show_counts=False)
    mark = " \u2013 the tree of this report" if text == own else ""
    title = (
        f"{place + 1}. Objective {decimals(entry.objective)}, {percent(entry.accuracy)} right, "
        f"{count(entry.n_leaves, 'leaf')}{mark}"
    )
    return element(
        "details", element("summary", title), element("pre", text, dir="auto", tabindex=0), open=place == 1 or None
    )
