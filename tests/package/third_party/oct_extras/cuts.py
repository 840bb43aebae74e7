"""The best score with two leaves bounds larger trees."""

from __future__ import annotations

import numpy as np

from accel_oct.formulation import Master, Response, TreePoint
from accel_oct.mip import Cuts, Event, Needs, Rows, Validity


class SmallTrees:
    """score <= CS_2 + (W - CS_2) * (number of leaves - 2), where there are two leaves or more."""

    name = "small_trees"
    needs = Needs([Event.CANDIDATE], [Validity.IMPLIED])

    def __init__(self, master: Master) -> None:
        data, theta, p = master.dataset, master.theta.index, master.p.index
        sides = [data.class_weights(data.X[:, f] == side).max() for f in range(data.n_features) for side in (0, 1)]
        best = max(data.class_weights().max(), np.reshape(sides, (-1, 2)).sum(axis=1).max())
        slack = data.total_weight - best
        values = np.concatenate([data.weights, np.full(p.size, -slack)])
        values[theta.size] -= slack
        self.row = Rows.single(
            np.concatenate([theta, p]), values * master.scale, upper=(best - 2 * slack) * master.scale
        )

    def respond(self, point: TreePoint) -> Response | None:
        if self.row.violation(point.point.x).max() <= 1e-6:
            return None
        return Response((Cuts(self.row, Validity.IMPLIED, self.name),))
