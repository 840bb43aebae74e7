"""What every form of export reads: the nodes of a fitted tree, in the user's own terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from sklearn.utils.validation import check_is_fitted

from accel_oct.encoding.base import BinaryEncoder
from accel_oct.encoding.conditions import Condition
from accel_oct.export.digits import question

__all__ = ["AGAINST_MAJORITY", "NodeView", "TreeView", "view"]

#: What the mark at a leaf means.
AGAINST_MAJORITY = "not the class of most samples in this leaf: constraints, class weights or costs decide"


@dataclass(frozen=True)
class NodeView:
    """A node and what is to be said of it.

    Attributes
    ----------
    index : int
        As in ``tree_``; the root is 0.
    yes, no : str
        The question of a branch node, and its negation; empty at a leaf. The one of them that `missing` names ends in
        "or missing".
    question, brief : str
        The question without a word on missing values, and as pictures write it: see `accel_oct.export.digits`.
    condition : Condition or None
        The question as a value, where the encoder is ours.
    left, right : int
        The children for "no" and for "yes"; -1 at a leaf.
    label : int
        Class index of a leaf; at a branch node the class that is most frequent there.
    samples : int
        Training samples that pass.
    weights : tuple of float
        Their weight per class.
    share : float
        Of the class `label` in that weight.
    missing : {"no", "yes"} or None
        What rows answer in which the column is missing; None where none can come to this node, where no value of the
        column was missing in the training data (then they answer "no"), and where the question is whether it is.
    against_majority : bool
        Whether a leaf predicts another class than that of most of its samples, class weights left aside.
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

    @property
    def is_leaf(self) -> bool:
        return self.left < 0

    @property
    def weight(self) -> float:
        """Of the training samples that pass."""
        return float(sum(self.weights))

    @property
    def answers(self) -> tuple[str, str]:
        """What is written on the edges to the left and to the right child."""
        no, yes = (f"{answer} or missing" if answer == self.missing else answer for answer in ("no", "yes"))
        return no, yes


@dataclass(frozen=True)
class TreeView:
    """All nodes, depth first, and the names of classes and columns."""

    nodes: tuple[NodeView, ...]
    class_names: tuple[str, ...]
    classes: tuple[Any, ...]
    column_names: tuple[str, ...]
    kinds: tuple[str, ...]

    @cached_property
    def weighted(self) -> bool:
        """Whether samples have different weights, as far as the nodes show it: then shares are not shares of samples.

        With equal weights every node and class has a whole number of samples, each of the same weight.
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
        """The class of a leaf; marked with an asterisk where most of its samples are of another one, see `note`."""
        return self.class_names[node.label] + (" *" if node.against_majority else "")

    @property
    def note(self) -> str:
        """What the asterisk means; empty where no leaf has one."""
        return f"* {AGAINST_MAJORITY}" if any(node.against_majority for node in self.nodes) else ""

    def passing(self, node: NodeView) -> str:
        """How much of the training data comes to a node."""
        samples = f"{node.samples} sample{'' if node.samples == 1 else 's'}"
        return f"weight {node.weight:.4g}, {samples}" if self.weighted else samples

    def purity(self, node: NodeView) -> str:
        """The share of the node's class, and of what."""
        share = f"{node.share:.1%} of"
        return f"{share} {self.passing(node)}" if self.weighted else f"{share} {node.samples}"


def view(model: Any) -> TreeView:
    """Read a fitted `OptimalTreeClassifier` (or CV)."""
    check_is_fitted(model, "tree_")
    arrays, encoder = model.tree_, model.encoder_
    own = isinstance(encoder, BinaryEncoder)
    names = _column_names(model)
    binary_names = model._binary_names() if not own else None
    # These columns had missing values when fitting: see BinaryEncoder.fit.
    holed = frozenset(c.column for c in encoder.conditions_ if c.holds_if_missing) if own else frozenset()
    nodes: list[NodeView] = []
    depths = {0: 0}
    can_miss = {0: holed}
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
        label = int(arrays.label[index] if left < 0 else arrays.class_weights[index].argmax())
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
