"""Drawing a tree in plain text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["render_text"]


def render_text(
    feature: NDArray[np.int64],
    label: NDArray[np.int64],
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
) -> str:
    """One line per node: the branching feature in brackets, or the predicted class.

    Names default to ``x3`` for feature 3 and to the class index.
    """

    def caption(node: int) -> str:
        split, prediction = int(feature[node - 1]), int(label[node - 1])
        if split < 0:
            return f"predict {class_names[prediction] if class_names is not None else prediction}"
        return f"[{feature_names[split] if feature_names is not None else f'x{split}'}]"

    lines = [caption(1)]

    def draw_children(node: int, indent: str) -> None:
        if feature[node - 1] < 0:
            return
        for direction, (corner, deeper) in enumerate((("|-- ", "|   "), ("`-- ", "    "))):
            child = 2 * node + direction
            lines.append(f"{indent}{corner}{direction}: {caption(child)}")
            draw_children(child, indent + deeper)

    draw_children(1, "")
    return "\n".join(lines)
