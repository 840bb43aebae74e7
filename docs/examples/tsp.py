"""The travelling-salesman problem, its subtour constraints separated lazily: the same code on every backend.

    python docs/examples/tsp.py highs

Two instances of TSPLIB (distances of type GEO) with their published optima: burma14 3323, ulysses16 6859.
"""

from __future__ import annotations

import sys

import numpy as np

from accel_oct.mip import (
    Cuts,
    Event,
    FunctionHandler,
    MipModel,
    MipResult,
    Needs,
    Point,
    Reply,
    Rows,
    Validity,
    create_backend,
)  # fmt: skip

BURMA14 = """16.47 96.10 16.47 94.44 20.09 92.54 22.39 93.37 25.23 97.24 22.00 96.05 20.47 97.02 17.20 96.29 16.30 97.38
14.05 98.12 16.53 97.38 21.52 95.59 19.41 97.13 20.09 94.55"""
ULYSSES16 = """38.24 20.42 39.57 26.15 40.56 25.32 36.26 23.12 33.48 10.54 37.56 12.19 38.42 13.11 37.52 20.44 41.23
9.10 41.17 13.05 36.08 -5.21 38.47 15.13 38.15 15.35 37.51 15.17 35.49 14.32 39.36 19.56"""
INSTANCES = {"burma14": (BURMA14, 3323), "ulysses16": (ULYSSES16, 6859)}


def distances(coordinates: str) -> np.ndarray:
    """TSPLIB's GEO distances: degrees and minutes on a sphere, in whole kilometres."""
    x = np.array(coordinates.split(), dtype=float).reshape(-1, 2)
    radians = 3.141592 * (np.trunc(x) + 5.0 * (x - np.trunc(x)) / 3.0) / 180.0
    latitude, longitude = radians.T
    q1 = np.cos(longitude[:, None] - longitude)
    q2, q3 = np.cos(latitude[:, None] - latitude), np.cos(latitude[:, None] + latitude)
    return np.trunc(6378.388 * np.arccos(np.clip(0.5 * ((1 + q1) * q2 - (1 - q1) * q3), -1.0, 1.0)) + 1.0)


def weak_cuts(weight: np.ndarray) -> list[np.ndarray]:
    """City sets that edges of total weight below 2 join to the rest: the phases of Stoer and Wagner's algorithm."""
    weight, member, alive, found = weight.copy(), np.eye(len(weight), dtype=bool), list(range(len(weight))), []
    while len(alive) > 1:
        last, rest, joined = alive[0], alive[1:], weight[alive[0]].copy()
        while rest:  # take up what is joined most strongly to what was taken up
            previous, last = last, max(rest, key=joined.__getitem__)
            rest.remove(last)
            strength = joined[last]
            joined += weight[last]
        if strength < 2.0 - 1e-6:
            found.append(member[last].copy())
        member[previous] |= member[last]
        weight[previous] += weight[last]
        weight[:, previous] = weight[previous]
        weight[previous, previous] = 0.0
        alive.remove(last)
    return found


def solve_tsp(length: np.ndarray, backend_name: str) -> MipResult:
    n_cities = len(length)
    tail, head = np.triu_indices(n_cities, 1)
    model = MipModel()
    edge = model.add_block("edge", len(tail), integer=True, objective=length[tail, head])
    both_ends, twice = np.concatenate([tail, head]), np.tile(edge.index, 2)
    model.add_rows(Rows.from_entries(both_ends, twice, 1.0, n_rows=n_cities, lower=2.0, upper=2.0))

    def separate(point: Point) -> Reply:
        """Every tour crosses the border of a set of cities at least twice."""
        weight = np.zeros((n_cities, n_cities))
        weight[tail, head] = weight[head, tail] = edge.view(point.x)
        rows = [Rows.single(edge.index[s[tail] != s[head]], 1.0, lower=2.0) for s in weak_cuts(weight)]
        return Reply(cuts=(Cuts(Rows.concatenate(rows), Validity.REQUIRED, "subtour"),))

    backend = create_backend(backend_name)
    backend.load(model)
    events = [Event.CANDIDATE] + [Event.RELAXATION] * bool(backend.capabilities.relaxation_points)
    return backend.solve(handler=FunctionHandler(separate, Needs(events, [Validity.REQUIRED])))


if __name__ == "__main__":
    for name, (coordinates, optimum) in INSTANCES.items():
        result = solve_tsp(distances(coordinates), sys.argv[1] if len(sys.argv) > 1 else "highs")
        print(f"{name}: {result.objective:.0f} (published {optimum}), bound {result.bound:.0f}, {result.seconds:.2f} s")
