"""
A cut of one's own
==================

A component is a class with a name, its needs, and ``respond(point)``. It runs on every backend, and is tested without
any. This one knows the best score of every number of leaves, and says so in rows: a tree with h leaves scores no more
than any line that lies above all those best scores.
"""

import numpy as np
from matplotlib import pyplot as plt

import accel_oct
from accel_oct.formulation import Master, Response, TreePoint
from accel_oct.mip import Cuts, Event, Needs, Rows, Validity


class LeafLines:
    """score <= a + g * (number of leaves), for the edges of the concave hull of the frontier.

    Every tree with h leaves scores at most s[h], and the line is above s[h] for every h: the rows are IMPLIED.
    """

    name = "leaf_lines"
    needs = Needs([Event.CANDIDATE, Event.RELAXATION], [Validity.IMPLIED])

    def __init__(self, master: Master) -> None:
        data = master.dataset
        frontier = accel_oct.frontier(data.X, data.y, max_depth=master.topology.depth, sample_weight=data.weights)
        s = np.asarray(frontier.scores) * data.total_weight
        columns = np.concatenate([master.theta.index, master.p.index])
        rows, h = [], 0
        while h + 1 < s.size:
            gains = (s[h + 1 :] - s[h]) / np.arange(1, s.size - h)
            step = int(np.argmax(gains))  # the steepest way on is the next edge of the hull
            values = np.concatenate([data.weights, np.full(master.p.size, -gains[step])])
            rows.append(
                Rows.single(columns, values * master.scale, upper=(s[h] - gains[step] * (h + 1)) * master.scale)
            )
            h += step + 1
        self.rows = Rows.concatenate(rows)

    def respond(self, point: TreePoint) -> Response | None:
        if self.rows.violation(point.point.x).max() <= 1e-6:
            return None
        return Response((Cuts(self.rows, Validity.IMPLIED, self.name),))


# %%
# Hand the class to ``solve``. The config "baseline" is the plain model with Benders cuts.

rng = np.random.default_rng(0)
X = rng.integers(0, 2, (60, 5))
y = (X[:, 0] & X[:, 1]) ^ (rng.random(60) < 0.1)
settings = {"max_depth": 2, "leaf_penalty": 0.01, "config": "baseline"}

plain = accel_oct.solve(X, y, **settings)
with_cut = accel_oct.solve(X, y, components=[LeafLines], **settings)
assert plain.objective == with_cut.objective and with_cut.status == "optimal"
print("nodes:", plain.nodes, "without,", with_cut.nodes, "with the cut")
print(with_cut.stats["leaf_lines"])

# %%
# The bound over time, in both solves:

fig, ax = plt.subplots()
for result, label in ((plain, "without"), (with_cut, "with the cut")):
    seconds, _, bounds = np.array([[row.seconds, row.objective, row.bound] for row in result.history]).T
    ax.step(seconds, bounds, where="post", label=f"bound, {label}")
ax.axhline(plain.objective, color="grey", linestyle=":", label="the optimum")
ax.set(xlabel="seconds", ylabel="objective")
ax.legend()
