"""Constraints on rates against an oracle in exact rationals, on weights that span fourteen orders of magnitude.

    python -m programs.fuzz_rates --count 100000                 instances 0 to 99,999
    python -m programs.fuzz_rates --start 50000 --count 50000    the second half of them

Limits lie on rates that some tree attains, or beside one by a few units in the last place or by about the tolerance.
Instance number i is the same in every run. Wrong is: "optimal" with less than the best tree that satisfies every limit,
a tree that breaks one, "infeasible" where a tree satisfies all, a reported value that is not the tree's. What is
refused with a sentence about sample_weight, or not finished, is counted apart; a longer --time-limit finishes more.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from oracles import rates as oracle
from oracles.rates import Rate

import accel_oct
from accel_oct import constraints as library
from accel_oct.errors import InvalidInputError
from accel_oct.solving.config import Config

SINGLE = ("Recall", "FalsePositiveRate", "Specificity", "Precision", "PositiveBudget")
BETWEEN = ("StatisticalParity", "EqualOpportunity", "PredictiveEquality", "EqualisedOdds", "ConditionalParity")
#: Seconds for one solve: all but one or two of a thousand take far less.
TIME_LIMIT = 5.0
MAX_FAILURES = 10

_NO_PRICES = replace(Config.preset("default"), prices=False)


@dataclass(frozen=True)
class Case:
    """One call of the library.

    Attributes
    ----------
    way : {"prices", "sets", "solver"}
        Which part of the library decides.
    """

    X: list[list[int]]
    y: list[int]
    weights: list[float]
    penalty: float
    max_depth: int
    rates: tuple[Rate, ...]
    way: str


def draw(number: int) -> Case:
    """Instance number i."""
    rng = np.random.default_rng([27, number])
    n_rows, n_features = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    n_classes = 2 if rng.random() < 0.85 else 3
    X = rng.integers(0, 2, (n_rows, n_features))
    y = rng.integers(0, n_classes, n_rows)
    y[rng.permutation(n_rows)[:2]] = 0, 1
    y = np.unique(y, return_inverse=True)[1]
    group = rng.integers(0, 2 if rng.random() < 0.8 else 3, n_rows)
    group[rng.permutation(n_rows)[:2]] = 0, 1
    given = rng.integers(0, 2, n_rows)
    given[rng.permutation(n_rows)[:2]] = 0, 1
    weights = _weights(rng, n_rows, y if rng.random() < 0.5 else group)
    max_depth = int(rng.integers(1, 4))
    penalty = float(rng.choice([0.0, 0.01, 0.01, 0.1, 1e-7]))
    exact = [Fraction(weight) for weight in weights]
    trees = list(oracle.predictions(X.tolist(), int(y.max()) + 1, max_depth))
    rates = []
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        kind = str(rng.choice(SINGLE + BETWEEN))
        count = kind == "PositiveBudget" and bool(rng.random() < 0.5)
        rate = Rate(kind, int(rng.integers(0, int(y.max()) + 1)), count=count)
        if kind in BETWEEN:
            rate = replace(rate, group=tuple(group.tolist()), given=tuple(given.tolist()))
        rates.append(with_limits(rng, rate, y.tolist(), exact, trees))
    way = str(rng.choice(["prices", "sets", "solver"], p=[0.85, 0.1, 0.05]))
    return Case(X.tolist(), y.tolist(), weights, penalty, max_depth, tuple(rates), way)


def _weights(rng: np.random.Generator, n_rows: int, by: np.ndarray) -> list[float]:
    """Between 1e-14 and about 2, each for itself or by class or group; some have few digits."""
    style = int(rng.integers(4))
    if style == 0:
        exponents = rng.uniform(-14, 0, n_rows)
    elif style == 1:
        exponents = rng.choice([0.0, -5.0, -9.0, -12.0, -14.0], n_rows)
    else:
        exponents = rng.choice([0.0, -3.0, -8.0, -10.0, -13.0, -14.0], int(by.max()) + 1)[by]
    digits = rng.uniform(1, 2, n_rows) if rng.random() < 0.5 else rng.integers(1, 22, n_rows) / 10
    weights = [float(digit * 10.0**exponent) for digit, exponent in zip(digits, exponents, strict=True)]
    if rng.random() < 0.5:
        weights[int(rng.integers(n_rows))] = 2.0
    if rng.random() < 0.1:
        weights[int(rng.integers(n_rows))] = 0.0
    return weights if any(weights) else [1.0] * n_rows


def with_limits(
    rng: np.random.Generator, rate: Rate, y: list[int], weights: list[Fraction], trees: list[tuple[int, ...]]
) -> Rate:
    """Return the rate with limits that some tree attains, or beside them."""

    def limit() -> float:
        value = oracle.measured(rate, y, weights, trees[int(rng.integers(len(trees)))])
        attained = 0.5 if value is None else float(value)
        unit = float(sum(weights)) if rate.count else 1.0
        moved = attained + unit * float(
            rng.choice([0, 0, 0, 0, 3e-10, -3e-10, 9e-10, -9e-10, 2e-9, -2e-9, 1e-9, -1e-9])
        )
        moved = float(np.nextafter(moved, rng.choice([-1.0, 10.0]))) if rng.random() < 0.2 else moved
        return float(max(0.0, moved) if rate.count else min(1.0, max(0.0, moved)))

    if rate.kind in BETWEEN or rate.kind == "PositiveBudget":
        return replace(rate, upper=limit())
    which = int(rng.integers(4))
    if which == 0:
        return replace(rate, upper=limit())
    if which == 1:
        return replace(rate, lower=limit())
    low, high = sorted((limit(), limit()))
    return replace(rate, lower=low, upper=low if which == 2 else high)


def as_constraint(rate: Rate) -> Any:
    """The library's."""
    kind = getattr(library, rate.kind)
    if rate.kind == "PositiveBudget":
        return kind(rate.upper, rate.positive, count=rate.count)
    if rate.kind == "ConditionalParity":
        return kind(np.array(rate.group), rate.upper, rate.positive, np.array(rate.given))
    if rate.kind in BETWEEN:
        return kind(np.array(rate.group), rate.upper, rate.positive)
    return kind(rate.positive, rate.lower, rate.upper)


def solved(case: Case, time_limit: float = TIME_LIMIT) -> Any:
    """What the library says."""
    wanted = [as_constraint(rate) for rate in case.rates]
    if case.way == "sets":
        wanted.append(library.MaxFeatures(len(case.X[0])))  # forbids nothing
    return accel_oct.solve(
        np.array(case.X),
        np.array(case.y),
        sample_weight=case.weights,
        max_depth=case.max_depth,
        leaf_penalty=case.penalty,
        constraints=wanted,
        config=_NO_PRICES if case.way == "solver" else "default",
        time_limit=time_limit,
    )


def walked(feature: list[int], label: list[int], X: list[list[int]]) -> list[int]:
    """What a tree in heap order predicts."""
    found = []
    for x in X:
        node = 0
        while feature[node] >= 0:
            node = 2 * node + 1 + x[feature[node]]
        found.append(label[node])
    return found


def problems(case: Case, result: Any) -> Iterator[str]:
    """Everything that is wrong with the answer."""
    optimum = oracle.best(case.X, case.y, case.weights, case.penalty, case.max_depth, case.rates)
    n_rows, exact = len(case.y), [Fraction(weight) for weight in case.weights]
    # As docs/decisions.md has it: tables and prices, or a solver.
    noise = Fraction(1e-9) + Fraction(n_rows, 2**46)
    by_solver = "branch and cut" in result.stats["decided_by"]
    tolerance = Fraction(1e-6 + 2e-6 / n_rows) + noise if by_solver else noise
    if result.status == "infeasible":
        if optimum is not None:
            yield f"infeasible, but a tree that satisfies every limit is worth {float(optimum)!r}"
        return
    if optimum is None and result.found is not None:
        yield "a tree, but none satisfies every limit"
    if optimum is not None and Fraction(result.bound) < optimum - tolerance:
        yield f"bound {result.bound!r}, but the optimum is {float(optimum)!r}"
    if result.status == "optimal" and (optimum is None or abs(Fraction(result.objective) - optimum) > tolerance):
        yield f"optimal {result.objective!r}, but the optimum is {optimum and float(optimum)!r}"
    if result.found is None:
        return
    feature, label = result.tree.feature.tolist(), result.tree.label.tolist()
    predicted = walked(feature, label, case.X)
    value = oracle.worth(case.y, exact, predicted, sum(entry >= 0 for entry in label), case.penalty)
    if abs(value - Fraction(result.objective)) > noise:
        yield f"objective {result.objective!r}, but the tree is worth {float(value)!r}"
    for rate, report in zip(case.rates, result.constraints, strict=False):
        attained = oracle.measured(rate, case.y, exact, predicted)
        if not oracle.keeps(rate, exact, attained):
            yield f"{rate.kind} {rate.lower} to {rate.upper} is broken: {attained and float(attained)!r}"
        if (attained is None) != bool(np.isnan(report.value)):
            yield f"{rate.kind} is reported as {report.value!r}, and is {attained and float(attained)!r}"
        elif attained is not None and abs(Fraction(report.value) - attained) > Fraction(1e-15) * max(1, attained):
            yield f"{rate.kind} is reported as {report.value!r}, and is {float(attained)!r}"


def run(
    start: int, count: int, tell: Any = None, time_limit: float = TIME_LIMIT
) -> tuple[Counter[str], list[str], list[int]]:
    """Try some instances: what came of them, what is wrong, and which ones are not finished."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    unfinished: list[int] = []
    for number in range(start, start + count):
        case = draw(number)
        counts["tried"] += 1
        counts[f"by {case.way}"] += 1
        try:
            result = solved(case, time_limit)
        except InvalidInputError as error:
            if "sample_weight" not in str(error):
                failures.append(f"# instance {number}: {error}\n{case}\n")
            counts["refused"] += 1
            continue
        except Exception as error:  # whatever it is, it is wrong
            failures.append(f"# instance {number}: {type(error).__name__}: {error}\n{case}\n")
            continue
        if result.status not in ("optimal", "infeasible"):
            counts["unfinished"] += 1
            unfinished.append(number)
        counts[f"decided by {result.stats['decided_by']}"] += 1
        counts[result.status] += 1
        found = list(problems(case, result))
        if found:
            failures.append(f"# instance {number}: {'; '.join(found)}\n{case}\n")
        if tell is not None:
            tell(number, len(failures))
        if len(failures) >= MAX_FAILURES:
            break
    return counts, failures, unfinished


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="number of instances")
    parser.add_argument("--start", type=int, default=0, help="number of the first one")
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT, help="seconds for one instance")
    chosen = parser.parse_args(arguments)
    began = last = time.monotonic()

    def tell(number: int, wrong: int) -> None:
        nonlocal last
        if time.monotonic() - last > 30:
            last = time.monotonic()
            print(f"{number + 1 - chosen.start}/{chosen.count}, {wrong} wrong", file=sys.stderr, flush=True)

    counts, failures, unfinished = run(chosen.start, chosen.count, tell, chosen.time_limit)
    print("\n".join(failures))
    print(", ".join(f"{name} {number}" for name, number in counts.items()))
    print(f"instances {chosen.start} to {chosen.start + counts['tried'] - 1}, {time.monotonic() - began:.0f} s")
    print(f"{len(failures)} wrong, not finished: {unfinished or 'none'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
