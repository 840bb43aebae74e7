"""How often the splits of a tree come back when it is fitted to resampled rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SplitStability:
    """A split of the fitted tree.

    Attributes
    ----------
    node : int
        As in ``tree_``.
    question : str
    near : str
        What counts as the same split: a threshold within an interval, or the same condition.
    share : float
        Share of the resampled trees with such a split.
    column_share : float
        Share of the resampled trees that use the column.
    """

    node: int
    question: str
    near: str
    share: float
    column_share: float


@dataclass(frozen=True)
class Stability:
    """Splits of trees that were fitted to bootstrap samples of the rows; `print` shows a table.

    Attributes
    ----------
    n_trees, n_wanted : int
        Trees that were fitted, and how many were asked for: fewer if a limit or Ctrl-C ended the work.
    n_failed : int
        Samples without a tree that satisfies the constraints, or with a single class; they are not counted as trees.
    seed : int
    splits : tuple of SplitStability
        In the order of the nodes.
    columns : dict of float
        Share of the trees that use each column, the largest first; columns that no tree uses are left out.
    agreement : float
        Mean share of all rows to which a tree gives the same class as the fitted tree.
    """

    n_trees: int
    n_wanted: int
    n_failed: int
    seed: int
    splits: tuple[SplitStability, ...]
    columns: dict[str, float]
    agreement: float

    def __str__(self) -> str:
        lines = [
            f"{self.n_trees} of {self.n_wanted} resampled trees (seed {self.seed}); same class on "
            f"{self.agreement:.1%} of the rows"
        ]
        lines += [f"{split.share:6.1%}  {split.question}  (counted: {split.near})" for split in self.splits]
        lines += [f"{share:6.1%}  use {name}" for name, share in self.columns.items()]
        return "\n".join(lines)
