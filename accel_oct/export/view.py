"""What every form of export reads: the nodes of a fitted tree, in the user's own terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from accel_oct.encoding.base import BinaryEncoder
from accel_oct.encoding.conditions import Condition

__all__ = ["NodeView", "TreeView", "view"]


@dataclass(frozen=True)
class NodeView:
    """A node and what is to be said of it.

    Attributes
    ----------
    index : int
        As in ``tree_``; the root is 0.
    yes, no : str
        The question of a branch node, and its negation; empty at a leaf.
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

    @property
    def is_leaf(self) -> bool:
        return self.left < 0


@dataclass(frozen=True)
class TreeView:
    """All nodes, depth first, and the names of classes and columns."""

    nodes: tuple[NodeView, ...]
    class_names: tuple[str, ...]
    classes: tuple[Any, ...]
    column_names: tuple[str, ...]
    kinds: tuple[str, ...]


def view(model: Any) -> TreeView:
    """Read a fitted `OptimalTreeClassifier` (or CV)."""
    check_is_fitted(model, "tree_")
    arrays, encoder = model.tree_, model.encoder_
    own = isinstance(encoder, BinaryEncoder)
    names = _column_names(model)
    binary_names = model._binary_names() if not own else None
    nodes: list[NodeView] = []
    depths = {0: 0}
    for index in range(arrays.node_count):
        left, right = int(arrays.children_left[index]), int(arrays.children_right[index])
        yes = no = ""
        condition = None
        if left >= 0:
            depths[left] = depths[right] = depths[index] + 1
            feature = int(arrays.feature[index])
            if binary_names is None:
                condition = encoder.conditions_[feature]
                yes, no = (say(names[condition.column]) for say in (condition.text, condition.opposite))
            else:
                yes, no = str(binary_names[feature]), f"not ({binary_names[feature]})"
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
