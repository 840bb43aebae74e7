"""Policy trees against STreeD and econml's greedy trees on generated trials, and with a budget against all trees.

    python -m accel_oct_bench.studies.policies [--rows 500 5000] [--columns 30] [--depths 3 4] [--seeds 5]

Trials with binary columns: treatment at random with known chances that depend on a column, outcomes with noise, and
effects that change sign. All receive the same outcome predictions (linear, fitted per treatment) and the known
chances; the objective is recomputed from the assigned treatments, by the same formula. CPU seconds of the search alone,
one thread. STreeD (pystreed) is of the extra `rivals`, econml of `peers`; those that are not installed are left out.
econml's PolicyTree is greedy and claims nothing; it may split down to single rows, and holds none back. policytree,
which is exact on numbers, is a package of R and is not run.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression

from accel_oct import OptimalPolicyTree
from accel_oct.constraints import PositiveBudget
from accel_oct_bench.measurement import timed
from accel_oct_bench.studies.common import MarkdownTable, parser_of
from accel_oct_bench.studies.rival_calls import missing

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


def streed(method: str, X: Any, depth: int, trial_columns: Any, rewards: Any) -> tuple[Any, float]:
    """Return the treatments that STreeD's tree assigns, and its CPU seconds."""
    from pystreed import STreeDPrescriptivePolicyGenerator

    model = STreeDPrescriptivePolicyGenerator(max_depth=depth, teacher_method=method)
    table = X.astype(np.int32)
    _, spent = timed(partial(model.fit, table, trial_columns))
    return np.asarray(model.predict(table), dtype=np.int64), spent.cpu


def econml(method: str, X: Any, depth: int, trial_columns: Any, rewards: Any) -> tuple[Any, float]:
    """Return the treatments that econml's greedy tree assigns, and its CPU seconds."""
    from econml.policy import PolicyTree

    settings = {"min_samples_split": 2, "min_samples_leaf": 1, "min_balancedness_tol": 0.5, "honest": False}
    model = PolicyTree(max_depth=depth, random_state=0, **settings)
    table = X.astype(np.float64)
    _, spent = timed(partial(model.fit, table, rewards))
    return np.asarray(model.predict(table), dtype=np.int64), spent.cpu


def compare(options: Any) -> None:
    """Print the objectives and the times of all that are installed."""
    peers = {"pystreed": streed, "econml": econml}
    peers = {package: peer for package, peer in peers.items() if not missing(package)}
    print(f"{options.columns} binary columns, {options.seeds} trials per line: CPU seconds of all together\n")
    columns = [text for package in peers for text in (f"{package}: same", "largest difference", "s")]
    table = MarkdownTable("method", "treatments", "rows", "depth", "accel_oct, s", *columns)
    for method, n_treatments, n_rows, depth in itertools.product(METHODS, (2, 3), options.rows, options.depths):
        ours = 0.0
        differences: dict[str, list[float]] = {package: [] for package in peers}
        seconds = dict.fromkeys(peers, 0.0)
        for seed in range(options.seeds):
            X, treatment, outcome, chance, predicted = trial(n_rows, options.columns, n_treatments, seed)
            rewards = scores(method, treatment, outcome, chance, predicted)
            policy = OptimalPolicyTree(depth, encoder=None)
            _, spent = timed(partial(policy.fit_rewards, X, rewards))
            if policy.status_ != "optimal":
                raise SystemExit(f"not proven: {policy.status_}")
            ours += spent.cpu
            given = np.column_stack([treatment, outcome, chance, predicted])
            rows = np.arange(n_rows)
            own = float(rewards[rows, policy.predict(X)].mean())
            for package, peer in peers.items():
                assigned, taken = peer(method, X, depth, given, rewards)
                differences[package].append(own - float(rewards[rows, assigned].mean()))
                seconds[package] += taken
        cells = [
            cell
            for package, found in differences.items()
            for cell in (
                f"{sum(abs(each) <= TOLERANCE for each in found)}/{options.seeds}",
                f"{max(found, key=abs):.1e}",
                f"{seconds[package]:.3f}",
            )
        ]
        table.row(METHODS[method], n_treatments, n_rows, depth, f"{ours:.3f}", *cells)


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
    compare(options)
    budgets(options)


if __name__ == "__main__":
    main()
