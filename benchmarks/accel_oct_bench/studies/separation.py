"""Separation of all Benders cuts at once, against a loop over samples in the same run.

python -m accel_oct_bench.studies.separation
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np

from accel_oct.cuts.benders import BendersCuts, separate_fractional
from accel_oct.data import BinaryDataset
from accel_oct.formulation import Master, TreePoint
from accel_oct.heuristics.cart import cart
from accel_oct.mip import Event, Point
from accel_oct_bench.studies.common import timed

N_SAMPLES, N_FEATURES, DEPTH, REPEATS = 7200, 90, 4, 7


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((N_SAMPLES, N_FEATURES)) < rng.uniform(0.1, 0.9, N_FEATURES)
    y = (X[:, 0] ^ X[:, 1] ^ (rng.random(N_SAMPLES) < 0.3)).astype(int)
    dataset = BinaryDataset.from_arrays(X, y)
    master = Master(dataset, DEPTH, 0.0)
    x = master.lift(cart(dataset, DEPTH, 0.0))
    master.theta.view(x)[:] = 1.0
    component = BendersCuts(master)

    def at_once() -> int:
        response = component.respond(TreePoint(master, Point(Event.CANDIDATE, x, 0.0, None, np.inf, 0.0)))
        return 0 if response is None else response.cuts[0].rows.n_rows

    def fractional() -> int:
        return separate_fractional(master, master.claims, x).n_rows

    n_cuts = at_once()
    assert n_cuts == fractional() == len(loop_over_samples(master, x))
    ways: tuple[Callable[[], object], ...] = (at_once, fractional, partial(loop_over_samples, master, x))
    fast, cut, slow = (median(timed(way)[1].seconds for _ in range(REPEATS)) for way in ways)
    print(f"{N_SAMPLES} samples x {N_FEATURES} features, depth {DEPTH}: {n_cuts} violated cuts")
    print(f"{'all samples at once':28s} {1e3 * fast:9.1f} ms")
    print(f"{'minimum cuts (fractional)':28s} {1e3 * cut:9.1f} ms")
    print(f"{'loop over samples':28s} {1e3 * slow:9.1f} ms   {slow / fast:.0f}x")


def loop_over_samples(master: Master, x: np.ndarray) -> list[dict[int, float]]:
    """Separate as in a textbook: route one sample after the other, and write its cut term by term."""
    b, p, w, theta = (block.view(x) for block in (master.b, master.p, master.w, master.theta))
    cuts = []
    for i in range(master.dataset.n_samples):
        features, label, node, path = master.dataset.X[i], master.dataset.y[i], 1, []
        while p[node - 1] < 0.5:
            feature = next(f for f in range(master.dataset.n_features) if b[node - 1, f] > 0.5)
            path.append((node, bool(features[feature])))
            node = 2 * node + int(features[feature])
        if theta[i] <= w[node - 1, label] + 1e-4:
            continue
        cut = {int(master.theta.index[i]): 1.0}
        for ancestor, right in path:
            for f in range(master.dataset.n_features):
                if bool(features[f]) != right:
                    cut[int(master.b.index[ancestor - 1, f])] = -1.0
            cut[int(master.w.index[ancestor - 1, label])] = -1.0
        if node <= master.topology.n_internal:
            for f in range(master.dataset.n_features):
                cut[int(master.b.index[node - 1, f])] = -1.0
        cut[int(master.w.index[node - 1, label])] = -1.0
        cuts.append(cut)
    return cuts


if __name__ == "__main__":
    main()
