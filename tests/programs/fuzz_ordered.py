"""The search over every threshold against exhaustive search, on random small tables: as many as you like.

    python -m programs.fuzz_ordered --count 100000

Case number i is the same in every run. It stops at the first wrong value, bound, tree or row of a history.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from oracles.ordered import BITS, OrderedCase, best_value, draw

from accel_oct.exact import ordered
from accel_oct.exact.ordered import OrderedOutcome, OrderedProblem, OrderedTree, ordered_problem, search_ordered


def check_tree(case: OrderedCase, tree: OrderedTree, value: float) -> None:
    """The tree satisfies all limits and is worth what is claimed."""
    leaves, n = tree.leaves_of(case.ranks), case.ranks.shape[1]
    score = float(case.gains[np.arange(n), tree.predict(case.ranks)].sum())
    assert score - case.price * tree.n_leaves == value
    assert case.max_depth is None or tree.depth <= case.max_depth
    assert case.max_leaves is None or tree.n_leaves <= case.max_leaves
    if case.limits is not None:
        for leaf in (node for node, column in enumerate(tree.column) if column < 0):
            masses = case.limits.masses[:, leaves == leaf].sum(axis=1)
            assert (masses >= case.limits.least).all(), "a leaf is too light"
        if case.limits.apart is not None:
            check_paths(tree, case.limits.apart, 0, ())


def check_paths(tree: OrderedTree, apart: np.ndarray, node: int, path: tuple[int, ...]) -> None:
    """No path has two columns that must stay apart."""
    column = tree.column[node]
    if column < 0:
        return
    assert not apart[column, [*path, column]].any(), "columns that must stay apart share a path"
    for child in (tree.left[node], tree.right[node]):
        check_paths(tree, apart, child, (*path, column))


def check(seed: int) -> OrderedOutcome:
    """Search case number `seed` and compare all that is claimed with exhaustive search."""
    case, rng = draw(seed), np.random.default_rng([seed, 1])
    problem = ordered_problem(case.ranks, case.gains, BITS, case.limits)
    outcome = search_ordered(
        problem,
        case.max_depth,
        case.price,
        max_leaves=case.max_leaves,
        threads=int(rng.integers(1, 3)),
        slack=float(rng.choice([0.0, 0.5, 1.0])),
    )
    best = best_value(case)
    assert outcome.finished, seed
    assert outcome.value == outcome.bound == best, (seed, outcome.value, outcome.bound, best)
    for _, value, bound in outcome.history:
        assert value <= best <= bound, (seed, value, bound, best)
    if best > -math.inf:
        assert outcome.tree is not None
        check_tree(case, outcome.tree, best)
        again = search_ordered(problem, case.max_depth, case.price, max_leaves=case.max_leaves, known_value=best)
        assert again.finished, seed
        assert again.tree is None, seed
        assert again.bound == best, seed
    check_stopped(case, problem, best, int(rng.integers(0, 5)))
    return outcome


def check_stopped(case: OrderedCase, problem: OrderedProblem, best: float, looks: int) -> None:
    """A search that is stopped after some looks at it has a valid bound, and a tree that is worth what is claimed."""
    left = iter(range(looks))
    stopped = search_ordered(
        problem,
        case.max_depth,
        case.price,
        max_leaves=case.max_leaves,
        should_stop=lambda: next(left, None) is None,
    )
    for _, value, bound in stopped.history:
        assert value <= best <= bound, (value, bound, best)
    if stopped.tree is not None:
        check_tree(case, stopped.tree, stopped.value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    arguments = parser.parse_args()
    ordered._FIRST_LOOK = ordered._POLL = 1e-5  # so that histories have rows of unfinished searches
    began = time.perf_counter()
    for seed in range(arguments.start, arguments.start + arguments.count):
        check(seed)
    print(f"{arguments.count} cases, 0 wrong, {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
