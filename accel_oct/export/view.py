"""The nodes of a fitted tree in the user's own terms: the input of every exporter, picture and report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from accel_oct.encoding.base import BinaryEncoder
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.values import format_number
from accel_oct.errors import InvalidInputError
from accel_oct.support.arrays import FloatArray
from accel_oct.tree.fitted_tree import FittedTree
from accel_oct.tree.probabilities import node_probabilities

#: Numbers of up to this many digits are written in full: encoders choose the shortest number in the middle of the gap
#: between two training values, so these digits are significant.
_ALL_UP_TO = 6
#: Longer numbers keep at least this many digits.
_FEWEST = 4


def question(condition: Condition, name: str, conditions: Iterable[Condition] = ()) -> str:
    """Return a condition in words, with few digits.

    `conditions` are all conditions of the encoder: shortened limits of one column stay distinct.
    """
    if condition.missing:
        return f"{question(condition.plain, name, conditions)} or missing"
    if condition.scale is not None or (condition.low is None and condition.high is None):
        return condition.text(name).replace(" >= ", " \u2265 ").replace(" <= ", " \u2264 ")
    others = {limit for c in conditions if c.column == condition.column for limit in (c.low, c.high)}
    low, high = (None if limit is None else few_digits(limit, others) for limit in (condition.low, condition.high))
    if low is None:
        return f"{name} < {high}"
    return f"{name} \u2265 {low}" if high is None else f"{low} \u2264 {name} < {high}"


def few_digits(value: float, others: Iterable[float | None] = ()) -> str:
    """Return a short number in full, a long one as its first digits and an ellipsis.

    At least four digits are kept, and enough to distinguish the number from all `others`. No digit is rounded.
    """
    exact = format_number(value)
    if "." not in exact or _n_digits(exact) <= _ALL_UP_TO:
        return exact
    texts = {format_number(other) for other in others if other is not None and other != value}
    for keep in range(_FEWEST, _n_digits(exact)):
        short = _cut(exact, keep)
        if all(_cut(text, keep) != short for text in texts):
            return short
    return exact


def _n_digits(text: str) -> int:
    """Count the significant digits as written."""
    return len(text.partition("e")[0].replace(".", "").lstrip("-0"))


def _cut(text: str, keep: int) -> str:
    """Return the first `keep` significant digits, and all digits before the point."""
    mantissa, mark, exponent = text.partition("e")
    seen, end = 0, len(mantissa)
    point = mantissa.find(".") if "." in mantissa else len(mantissa)
    for place, character in enumerate(mantissa):
        seen += character.isdigit() and (seen > 0 or character != "0")
        if seen >= keep and place > point:
            end = place + 1
            break
    return f"{mantissa[:end]}\u2026{mark}{exponent}" if end < len(mantissa) else text


#: Explanation of the asterisk at a leaf.
AGAINST_MAJORITY = "not the majority class of this leaf, because of constraints, class weights or costs"


@dataclass(frozen=True)
class NodeView:
    """A node in the user's terms.

    Attributes
    ----------
    index : int
        As in ``tree_``; the root is 0.
    yes, no : str
        The question of a branch node and its negation; empty at a leaf. The one named by `missing` ends in
        "or missing".
    condition : Condition or None
        The question as a value; None at leaves and with a foreign encoder.
    left, right : int
        Children for "no" and "yes"; -1 at a leaf.
    label : int
        Class index: the prediction of a leaf, the most frequent class of a branch node (in a policy tree the one of the
        largest mean reward).
    samples : int
        Number of training samples at the node.
    weights : tuple of float
        Their weight per class.
    share : float
        Share of the class `label` in that weight.
    missing : {"no", "yes"} or None
        The side of rows whose column is missing. None if no such row reaches the node, if the column had no missing
        value in training (then "no"), and if the question is whether the value is missing.
    question, brief : str
        The question without "or missing"; `brief` has few digits, for pictures.
    against_majority : bool
        Whether a leaf predicts a class other than that of most of its samples, without class weights.
    reward : float or None
        Of a policy tree: mean reward of the training samples if all of them are assigned `label`.
    """

    index: int
    depth: int
    yes: str
    no: str
    condition: Condition | None
    left: int
    right: int
    label: int
    samples: int
    weights: tuple[float, ...]
    share: float
    missing: Literal["no", "yes"] | None = None
    question: str = ""
    brief: str = ""
    against_majority: bool = False
    reward: float | None = None

    @property
    def is_leaf(self) -> bool:
        return self.left < 0

    @property
    def weight(self) -> float:
        """Weight of the training samples at the node."""
        return float(sum(self.weights))

    @property
    def answers(self) -> tuple[str, str]:
        """Labels of the edges to the left and the right child."""
        no, yes = (f"{answer} or missing" if answer == self.missing else answer for answer in ("no", "yes"))
        return no, yes


@dataclass(frozen=True)
class TreeView:
    """All nodes, depth first, with the names of classes and columns."""

    nodes: tuple[NodeView, ...]
    class_names: tuple[str, ...]
    classes: tuple[Any, ...]
    column_names: tuple[str, ...]
    kinds: tuple[str, ...]

    @cached_property
    def weighted(self) -> bool:
        """Whether the nodes show that samples have different weights.

        With equal weights, the weight of every node and class is a whole multiple of one unit.
        """
        root = self.nodes[0]
        unit = root.weight / root.samples if root.samples and root.weight else 1.0
        for node in self.nodes:
            counts = [weight / unit for weight in node.weights]
            whole = all(abs(count - round(count)) <= 1e-9 * max(1.0, count) for count in counts)
            if not whole or sum(map(round, counts)) != node.samples:
                return True
        return False

    def leaf_name(self, node: NodeView) -> str:
        """Class of a leaf, with an asterisk if it is not the majority class; `note` explains the asterisk."""
        return self.class_names[node.label] + (" *" if node.against_majority else "")

    @property
    def noun(self) -> str:
        """Noun for the classes: "class", or "treatment" in a policy tree."""
        return "class" if self.nodes[0].reward is None else "treatment"

    @property
    def note(self) -> str:
        """Explanation of the asterisk; empty if no leaf has one."""
        return f"* {AGAINST_MAJORITY}" if any(node.against_majority for node in self.nodes) else ""

    def passing(self, node: NodeView) -> str:
        """Number of training samples at a node, with their weight if samples are weighted."""
        samples = f"{node.samples} sample{'' if node.samples == 1 else 's'}"
        return f"weight {node.weight:.4g}, {samples}" if self.weighted else samples

    def purity(self, node: NodeView) -> str:
        """Share of the node's class, such as ``93.3% of 15``; in a policy tree the mean reward of its treatment."""
        if node.reward is not None:
            return f"mean reward {node.reward:.4g}, {self.passing(node)}"
        share = f"{node.share:.1%} of"
        return f"{share} {self.passing(node)}" if self.weighted else f"{share} {node.samples}"


def view(model: Any) -> TreeView:
    """Return the view of a fitted `OptimalTreeClassifier` or `OptimalTreeClassifierCV`."""
    check_is_fitted(model, "tree_")
    arrays, encoder = model.tree_, model.encoder_
    own = isinstance(encoder, BinaryEncoder)
    names = _column_names(model)
    binary_names = model.encoder_.get_feature_names_out() if not own else None
    # Columns with missing values in training: see BinaryEncoder.fit.
    with_missing = frozenset(c.column for c in encoder.conditions_ if c.holds_if_missing) if own else frozenset()
    nodes: list[NodeView] = []
    depths = {0: 0}
    can_miss = {0: with_missing}
    for index in range(arrays.node_count):
        left, right = int(arrays.children_left[index]), int(arrays.children_right[index])
        yes = no = asked = brief = ""
        condition = None
        missing: Literal["no", "yes"] | None = None
        if left >= 0:
            can_miss[left] = can_miss[right] = can_miss[index]
            depths[left] = depths[right] = depths[index] + 1
            feature = int(arrays.feature[index])
            if binary_names is None:
                condition = encoder.conditions_[feature]
                name = names[condition.column]
                asked, yes, no = condition.plain.text(name), condition.plain.text(name), condition.opposite(name)
                brief = question(condition.plain, name, encoder.conditions_)
                if condition.test != "is_missing" and condition.column in can_miss[index]:
                    missing = "yes" if condition.missing else "no"
                yes += " or missing" if missing == "yes" else ""
                no += " or missing" if missing == "no" else ""
                known = left if condition.holds_if_missing else right
                can_miss[known] = can_miss[known] - {condition.column}
            else:
                yes, no = str(binary_names[feature]), f"not ({binary_names[feature]})"
                asked = brief = yes
        ranked = arrays.class_weights if arrays.rewards is None else arrays.rewards
        label = int(arrays.label[index] if left < 0 else ranked[index].argmax())
        nodes.append(
            NodeView(
                index=index,
                depth=depths[index],
                yes=yes,
                no=no,
                condition=condition,
                left=left,
                right=right,
                label=label,
                samples=int(arrays.n_node_samples[index]),
                weights=tuple(arrays.class_weights[index].tolist()),
                share=float(arrays.value[index, 0, label]),
                missing=missing,
                question=asked,
                brief=brief,
                against_majority=bool(arrays.against_majority[index]),
                reward=None if arrays.rewards is None else float(arrays.rewards[index, label]),
            )
        )
    return TreeView(
        nodes=tuple(nodes),
        class_names=tuple(str(label) for label in model.classes_),
        classes=tuple(model.classes_.tolist()),
        column_names=names,
        kinds=tuple(encoder.kinds_) if own else (),
    )


def _column_names(model: Any) -> tuple[str, ...]:
    names = getattr(model, "feature_names_in_", None)
    return tuple(map(str, names)) if names is not None else tuple(f"x{j}" for j in range(model.n_features_in_))


def codable_view(model: Any, what: str) -> TreeView:
    """Like `view`, but raise if a condition or a class cannot be written as code; `what` names the caller."""
    tree = view(model)
    if any(node.condition is None and not node.is_leaf for node in tree.nodes):
        raise InvalidInputError(
            f"{what} cannot write the conditions of a {type(model.encoder_).__name__}; use an encoder of accel_oct"
        )
    if not all(isinstance(label, str | bool | int | float) for label in tree.classes):
        raise InvalidInputError(f"{what} can write classes that are text, numbers or booleans only")
    return tree


def matching_categories(condition: Condition) -> tuple[str, ...]:
    """Return the ordered categories for which a condition holds."""
    assert condition.scale is not None
    low = 0 if condition.low is None else int(condition.low)
    return condition.scale.categories[low : None if condition.high is None else int(condition.high)]


def class_probabilities(model: Any) -> FloatArray:
    """Return the probability of each class at each node, as `predict_proba` has them.

    In a leaf of a policy tree its treatment has the probability 1: the shares in ``tree_.value`` are those of the
    treatments that the training samples received.
    """
    arrays: FittedTree = model.tree_
    if arrays.rewards is None:
        return node_probabilities(arrays, model.smoothing_)
    shares = arrays.value[:, 0, :].copy()
    leaves = np.flatnonzero(arrays.label >= 0)
    shares[leaves] = np.eye(shares.shape[1])[arrays.label[leaves]]
    return shares
