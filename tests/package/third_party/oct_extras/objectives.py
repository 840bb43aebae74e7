"""An objective that is no sum over predictions, with Benders cuts of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_oct.cuts import path_rows
from accel_oct.data import BinaryDataset
from accel_oct.formulation import Claims, Master, Response, TreePoint
from accel_oct.mip import Cuts, Event, Needs, Validity
from accel_oct.objectives import LinearScore, Objective, StrictScore
from accel_oct.tree import DecisionTree


@dataclass(frozen=True, eq=False)
class WholeGroups(Objective):
    """Share of the weight of the rows whose group is right as a whole: a row counts if all rows of its group are right.

    Parameters
    ----------
    group : array (n_samples,)
        Number of the group of every row.
    cuts : bool
        Whether the score brings cuts; without them candidates are cut off one tree at a time.
    """

    group: Any
    cuts: bool = True

    def bind(self, dataset: BinaryDataset) -> GroupScore:
        return GroupScore(dataset, np.asarray(self.group), self.cuts)


class GroupScore(StrictScore):
    """The score on some data: at most their accuracy."""

    def __init__(self, dataset: BinaryDataset, group: Any, with_cuts: bool) -> None:
        accuracy = LinearScore("accuracy", dataset, None, dataset.total_weight)
        super().__init__("whole groups", dataset, accuracy, arrays=("group",))
        self.group, self.with_cuts = group, with_cuts

    def wrong(self, tree: DecisionTree) -> Any:
        """Rows that are predicted wrong."""
        return tree.predictions(self.dataset.X) != self.dataset.y

    def counted(self, tree: DecisionTree) -> Any:
        return np.bincount(self.group, self.wrong(tree))[self.group] == 0

    def cuts(self, master: Master) -> GroupCuts | None:
        return GroupCuts(master, self) if self.with_cuts else None


class GroupCuts:
    """theta of a row is bounded by the Benders cut of a row of its group that is wrong."""

    name = "group_cuts"
    needs = Needs([Event.CANDIDATE], [Validity.REQUIRED])

    def __init__(self, master: Master, score: GroupScore) -> None:
        self.master, self.score = master, score

    def respond(self, point: TreePoint) -> Response | None:
        tree, data, group = point.as_predicted, self.master.dataset, self.score.group
        wrong = np.flatnonzero(self.score.wrong(tree))
        culprit = np.full(group.max() + 1, -1)
        culprit[group[wrong]] = wrong
        rows = np.flatnonzero((culprit[group] >= 0) & (point.theta > 1e-4))
        if not rows.size:
            return None
        others = culprit[group[rows]]
        claims = Claims(data.X, others, data.y[others], self.master.theta.index[rows])
        found = path_rows(self.master, claims, np.arange(rows.size), tree.apply(data.X)[others])
        return Response((Cuts(found, Validity.REQUIRED, self.name),))
