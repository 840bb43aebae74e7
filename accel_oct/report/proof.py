"""What was reached and what is proven about it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from accel_oct.encoding.base import BinaryEncoder
from accel_oct.export.view import TreeView
from accel_oct.report.convergence import convergence_picture
from accel_oct.report.markup import Content, Markup, element
from accel_oct.report.wording import count, decimals, percent

__all__ = ["gap_of", "leaf_penalty_of", "proof_section", "verdict"]

#: Far below what a row is worth, far above what rounding does.
_TOLERANCE = 1e-7
_ENDED = {
    "gap_limit": "the gap that was asked for was reached",
    "time_limit": "the time limit was reached",
    "node_limit": "the node limit was reached",
    "interrupted": "it was interrupted",
    "stopped": "it was stopped",
    "solver_failed": "the solver failed",
}


def verdict(model: Any) -> str:
    """One sentence on what is proven."""
    words = str(model.proof_).replace("_", " ")
    return words[:1].upper() + words[1:] + "."


def proof_section(model: Any, tree: TreeView) -> Markup:
    """Figures, what they are over, and the curve."""
    result = model.result_
    picture = convergence_picture(result.history, result.seconds)
    seconds = f"{result.seconds:.3g} s"
    if picture is None:
        curve: Content = element("p", f"There is no curve to draw: the solve took {seconds} and one step.")
        if not result.history:
            curve = element("p", "The history of the solve is not stored with this model.")
    else:
        caption = [
            element("span", "bound", class_="key bound"),
            " no tree over the same splits is better; ",
            element("span", "objective", class_="key objective"),
            f" of the best tree so far. {seconds} in all.",
        ]
        curve = element("figure", picture, element("figcaption", caption))
    return element(
        "section",
        element("h2", "Proof", id="proof-title"),
        element("p", element("strong", verdict(model)), " ", _meaning(model)),
        element("div", element("dl", _figures(model), class_="figures"), curve, class_="beside"),
        _questions(model, tree),
        id="proof-section",
        aria_labelledby="proof-title",
    )


def leaf_penalty_of(model: Any) -> float:
    """The one that the tree was found with: chosen by cross-validation, or given."""
    return float(model.leaf_penalty_ if hasattr(model, "leaf_penalty_") else model.leaf_penalty)


def gap_of(model: Any) -> str:
    """Relative distance of objective and bound."""
    return percent(model.gap_) if model.gap_ < 10 else "above 1000%"


def _meaning(model: Any) -> str:
    splits = model._scope(model.result_).splits
    over = f"The search was over {splits}"
    if model.exact_:
        over += ": a threshold between any two neighbouring values, one category against all others."
    else:
        bound = model.table_bound_
        most = "" if bound is None else f" by {bound - model.objective_:.4g} at most"
        over += f"; a tree that splits elsewhere could be better{most}."
    if model.status_ == "optimal":
        return over
    ended = _ENDED.get(model.status_, model.status_)
    return f"The search ended before a proof was complete: {ended}. {over}"


def _figures(model: Any) -> list[Markup]:
    result, penalty, leaves = model.result_, leaf_penalty_of(model), model.get_n_leaves()
    score = model.objective_ + penalty * leaves
    made_of = f"{_score_name(model, score)} {decimals(score)}"
    if penalty:
        made_of += f" \u2212 {leaves} \u00d7 {penalty:g}"
    scope = model._scope(model.result_)
    others = f"no tree of {scope.depth} over these splits"
    if model.constraints_:
        others += " that keeps the constraints"
    pairs: list[tuple[str, Content]] = [
        ("Objective", [decimals(model.objective_), element("small", f" = {made_of}")]),
        ("Bound", [decimals(model.bound_), element("small", f" {others} is better")]),
        ("Gap", gap_of(model)),
        ("Status", model.status_.replace("_", " ")),
        ("Splits", scope.splits),
        ("Size", f"{count(leaves, 'leaf')}, depth {model.get_depth()}"),
        ("Seconds", f"{result.seconds:.3g}"),
    ]
    decided = result.stats.get("decided_by")
    if isinstance(decided, str) and model.status_ == "optimal":
        pairs.append(("Decided by", decided.replace("_", " ")))
    return [element("div", element("dt", term), element("dd", value)) for term, value in pairs]


def _score_name(model: Any, score: float) -> str:
    """What the objective is made of; a model that was stored may have lost the name of it, so counts decide."""
    if isinstance(model.objective, str):
        return model.objective.replace("_", " ")
    arrays = model.tree_
    leaves = np.flatnonzero(arrays.children_left < 0)
    weights = arrays.class_weights[leaves]
    right = weights[np.arange(len(leaves)), arrays.label[leaves]].sum() / weights.sum()
    if model.objective is not None or abs(right - score) > _TOLERANCE:
        return "score"
    return "accuracy" if model.class_weight is None else "weighted accuracy"


def _questions(model: Any, tree: TreeView) -> Markup | None:
    """How many questions could be asked of each column, where they were chosen."""
    if not isinstance(model.encoder_, BinaryEncoder) or "every_split" in model.result_.stats:
        return None
    asked = Counter(condition.column for condition in model.encoder_.conditions_)
    used = {node.condition.column for node in tree.nodes if node.condition is not None}
    rows = [
        element(
            "tr",
            element("th", element("bdi", name), scope="row"),
            element("td", asked[column]),
            element("td", "yes" if column in used else "no"),
        )
        for column, name in enumerate(tree.column_names)
    ]
    head = element("tr", (element("th", text, scope="col") for text in ("column", "questions", "in the tree")))
    table = element("table", element("thead", head), element("tbody", rows))
    return element(
        "details",
        element("summary", "Questions that could be asked, by column"),
        element("div", table, class_="scroll", tabindex=0, role="region", aria_label="Questions by column"),
    )
