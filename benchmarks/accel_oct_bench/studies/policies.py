"""Policy trees against STreeD on generated trials with the same scores, and with a budget against a list of all trees.

    python -m accel_oct_bench.studies.policies [--rows 500 5000] [--columns 30] [--depths 3 4] [--seeds 5]

Trials with binary columns: treatment at random with known chances that depend on a column, outcomes with noise, and
effects that change sign. Both receive the same outcome predictions (linear, fitted per treatment) and the known
chances; the objective is recomputed from the assigned treatments, by the same formula. CPU seconds of the search alone,
one thread. STreeD (pystreed) is the package of the extra `rivals`; without it, only the second part runs.
"""

from __future__ import annotations

import importlib.util
import itertools
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression

from accel_oct import OptimalPolicyTree
from accel_oct.constraints import PositiveBudget
from accel_oct_bench.measurement import timed
from accel_oct_bench.studies.common import MarkdownTable, parser_of

#: Of STreeD and of our own parameter `method`.
METHODS = {"DM": "direct", "IPW": "inverse propensity", "DR": "doubly robust"}
#: Two means of rewards are the same if they differ by less; objectives are about 1.
TOLERANCE = 1e-7


def trial(n_rows: int, n_columns: int, n_treatments: int, seed: int) -> tuple[Any, Any, Any, Any, Any]:
    """Return columns, treatments, outcomes, chances of the treatment received, and predictions of outcomes."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n_rows, n_columns))
    chances = np.where(X[:, :1] == 1, np.linspace(1, 2, n_treatments), np.linspace(2, 1, n_treatments))
    chances = chances / chances.sum(axis=1, keepdims=True)
    treatment = (rng.random(n_rows)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    effects = [X[:, 1] * 0.5, (X[:, 0] & X[:, 2]) - 0.3, np.where(X[:, 3] == X[:, 4], 0.6, -0.4)][:n_treatments]
    means = np.column_stack(effects) + 0.3 * X[:, 5:6]
    rows = np.arange(n_rows)
    outcome = means[rows, treatment] + rng.normal(scale=0.5, size=n_rows)
    own = [treatment == k for k in range(n_treatments)]
    predicted = np.column_stack([LinearRegression().fit(X[here], outcome[here]).predict(X) for here in own])
    return X, treatment, outcome, chances[rows, treatment], predicted


def scores(method: str, treatment: Any, outcome: Any, chance: Any, predicted: Any) -> Any:
    """Return the scores of a method of `METHODS`, (rows, treatments)."""
    rows = np.arange(len(treatment))
    found = np.zeros_like(predicted) if method == "IPW" else predicted.copy()
    if method != "DM":
        found[rows, treatment] += (outcome - found[rows, treatment]) / chance
    return found


def compare(options: Any) -> None:
    """Print the objectives and the times of both."""
    from pystreed import STreeDPrescriptivePolicyGenerator

    print(f"{options.columns} binary columns, {options.seeds} trials per line: CPU seconds of all together\n")
    table = MarkdownTable("method", "treatments", "rows", "depth", "same", "largest difference", "accel_oct", "STreeD")
    for method, n_treatments, n_rows, depth in itertools.product(METHODS, (2, 3), options.rows, options.depths):
        same, difference, ours, theirs = 0, 0.0, 0.0, 0.0
        for seed in range(options.seeds):
            X, treatment, outcome, chance, predicted = trial(n_rows, options.columns, n_treatments, seed)
            rewards = scores(method, treatment, outcome, chance, predicted)
            policy = OptimalPolicyTree(depth, encoder=None)
            _, spent = timed(partial(policy.fit_rewards, X, rewards))
            streed = STreeDPrescriptivePolicyGenerator(max_depth=depth, teacher_method=method)
            given = np.column_stack([treatment, outcome, chance, predicted])
            _, other = timed(partial(streed.fit, X.astype(np.int32), given))
            assigned = [policy.predict(X), np.asarray(streed.predict(X.astype(np.int32)), dtype=np.int64)]
            means = [float(rewards[np.arange(n_rows), each].mean()) for each in assigned]
            if policy.status_ != "optimal":
                raise SystemExit(f"not proven: {policy.status_}")
            ours, theirs = ours + spent.cpu, theirs + other.cpu
            difference = max(difference, means[0] - means[1], key=abs)
            same += abs(means[0] - means[1]) <= TOLERANCE
        said = f"{difference:.1e}", f"{ours:.3f}", f"{theirs:.3f}"
        table.row(METHODS[method], n_treatments, n_rows, depth, f"{same}/{options.seeds}", *said)


def all_assigned(X: Any, n_treatments: int, depth: int) -> Any:
    """Return what each tree assigns to the rows, one tree per row of the array, without repetitions."""
    found = np.repeat(np.arange(n_treatments, dtype=np.int8)[:, None], len(X), axis=1)
    for _ in range(depth):
        parts = [found]
        for column in X.T.astype(bool):
            low, high = (np.unique(np.where(side, found, 0), axis=0) for side in (~column, column))
            parts.append((low[:, None] + high[None]).reshape(-1, len(X)))
        found = np.unique(np.concatenate(parts), axis=0)
    return found


def budgets(options: Any) -> None:
    """Print how often the optimum under a budget is that of the list of all trees."""
    print("\nUnder a budget, 60 rows, 5 binary columns, depth 2, against all trees:\n")
    table = MarkdownTable("treatments", "budget", "same", "largest difference", "CPU seconds")
    for n_treatments, limit in itertools.product((2, 3), (0.1, 0.2, 0.4)):
        same, difference, seconds = 0, 0.0, 0.0
        for seed in range(options.budget_seeds):
            X, treatment, outcome, chance, predicted = trial(60, 6, n_treatments, seed)
            X = X[:, :5]
            rewards = scores("DR", treatment, outcome, chance, predicted)
            trees = all_assigned(X, n_treatments, 2)
            kept = trees[(trees == 1).sum(axis=1) <= limit * 60]
            best = max(float(rewards[np.arange(60), each].mean()) for each in kept)
            policy = OptimalPolicyTree(2, encoder=None, constraints=[PositiveBudget(limit, positive=1)])
            _, spent = timed(partial(policy.fit_rewards, X, rewards))
            if policy.status_ != "optimal" or (policy.predict(X) == 1).sum() > limit * 60:
                raise SystemExit(f"not proven, or not within the budget: {policy.status_}")
            own = float(rewards[np.arange(60), policy.predict(X)].mean())
            difference = max(difference, own - best, key=abs)
            same, seconds = same + (abs(own - best) <= TOLERANCE), seconds + spent.cpu
        table.row(n_treatments, limit, f"{same}/{options.budget_seeds}", f"{difference:.1e}", f"{seconds:.3f}")


def main() -> None:
    parser = parser_of(__doc__, data_dir=False)
    parser.add_argument("--rows", nargs="*", type=int, default=[500, 5000])
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--depths", nargs="*", type=int, default=[3, 4])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget-seeds", type=int, default=20)
    options = parser.parse_args()
    X, *_, predicted = trial(100, options.columns, 3, 0)
    OptimalPolicyTree(2, encoder=None).fit_rewards(X, predicted)  # loads all code before anything is measured
    if importlib.util.find_spec("pystreed") is not None:
        compare(options)
    budgets(options)


if __name__ == "__main__":
    main()
