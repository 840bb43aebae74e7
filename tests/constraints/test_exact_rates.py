"""Rates and their limits on the weights as they were given, whatever their size."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import rates as oracle
from oracles.rates import Rate
from programs import fuzz_rates

import accel_oct
from accel_oct import OptimalTreeClassifier, Tally, gather
from accel_oct.constraints import (
    MinLeafWeight,
    PositiveBudget,
    Precision,
    Recall,
    Specificity,
    StatisticalParity,
)
from accel_oct.constraints.linear import LinearLimit
from accel_oct.data import BinaryDataset
from accel_oct.data.weights import ExactWeights, accurate_sums
from accel_oct.errors import InvalidInputError
from accel_oct.formulation import Master
from accel_oct.objectives import ClassWeights
from accel_oct.tree import DecisionTree

LIGHT = [2.1e-14, 1.9e-14, 1e-14, 2.0]


def stump() -> DecisionTree:
    return DecisionTree.branch(0, DecisionTree.leaf(0), DecisionTree.leaf(1))


# ---------------------------------------------------------------- exact sums

sizes = st.integers(-1074, 960)
weight = st.one_of(
    st.just(0.0), st.builds(lambda digits, e: float(np.ldexp(float(digits), e)), st.integers(1, 2**53 - 1), sizes)
)


@given(st.lists(st.tuples(weight, st.integers(0, 3)), min_size=1, max_size=30))
def test_sums_are_those_of_fractions(rows: list[tuple[float, int]]) -> None:
    """From the smallest float to the largest, in every cell."""
    weights, cells = (np.array(part) for part in zip(*rows, strict=True))
    exact = ExactWeights(weights)
    expected = [sum((Fraction(w) for w, cell in rows if cell == c), Fraction(0)) for c in range(4)]
    assert [total * exact.unit for total in exact.sums(cells.astype(np.int64), 4)] == expected
    some = cells == 1
    assert exact.total(some) * exact.unit == expected[1]
    shares = exact.shares(some)
    for share, w in zip(shares[some].tolist(), weights[some].tolist(), strict=True):
        if expected[1]:
            assert abs(Fraction(share) - Fraction(w) / expected[1]) <= Fraction(2) ** -48
    assert not shares[~some].any()


def test_sums_of_many_equal_numbers_are_not_off_by_their_number() -> None:
    """A million times 0.1 one after the other is off by 1e-11 of the sum."""
    amounts = np.full((10**6, 1), 0.1)
    amounts[::2] *= -1e-3
    found = accurate_sums(amounts, np.zeros(10**6, dtype=np.int64), 1)
    expected = 500_000 * (Fraction(0.1) + Fraction(float(amounts[0, 0])))
    assert abs(Fraction(float(found[0, 0])) - expected) < Fraction(1e-15) * expected


# ---------------------------------------------------------------- light rows


def test_specificity_of_light_rows() -> None:
    """Three rows that vanish beside a fourth have a specificity, 0.42, and it breaks a limit of 0.45."""
    X, y = np.array([[0], [1], [1], [1]]), np.array([0, 0, 0, 1])
    rule = Specificity(1, at_least=0.45)
    bound = rule.bind(BinaryDataset.from_arrays(X, y, LIGHT))
    assert bound.value(stump()) == pytest.approx(0.42, abs=1e-12)
    assert bound.violation(stump()) == pytest.approx(0.03, abs=1e-8)
    result = accel_oct.solve(X, y, sample_weight=LIGHT, max_depth=1, leaf_penalty=0.0, constraints=[rule])
    assert result.status == "optimal" and result.constraints[0].value == 1.0
    assert result.objective == pytest.approx(0.0, abs=1e-12)
    model = OptimalTreeClassifier(1, 0.0, constraints=[rule]).fit(X, y, sample_weight=LIGHT)
    assert [row.value for row in model.constraints_] == [1.0]


def test_parity_with_a_light_group() -> None:
    """A group of weight 1.6e-14 differs from the others by 0.25."""
    X, y = np.array([[0], [1], [0], [1]]), np.array([0, 1, 0, 1])
    group, weights = ["a", "a", "b", "b"], [1.0, 1.0, 4e-15, 1.2e-14]
    bound = StatisticalParity(group, at_most=0.2).bind(BinaryDataset.from_arrays(X, y, weights))
    assert bound.value(stump()) == pytest.approx(0.25, abs=1e-12) and bound.violation(stump()) > 0
    rules = [StatisticalParity(group, at_most=0.2)]
    result = accel_oct.solve(X, y, sample_weight=weights, max_depth=1, leaf_penalty=0.0, constraints=rules)
    assert result.status == "optimal" and result.objective == pytest.approx(0.5) and result.constraints[0].value == 0.0


def test_rates_of_two_weights_on_many_rows() -> None:
    """Half of the weight of 964,800 rows is 0.1 each, the other half 0.3 each: the rate is one half on the way in."""
    X = np.repeat([[0], [1], [1]], [723_600, 241_200, 1], axis=0)
    y = np.repeat([1, 1, 0], [723_600, 241_200, 1])
    weights = np.repeat([0.1, 0.3, 0.1], [723_600, 241_200, 1])
    rules = [Recall(1, at_least=0.5, at_most=0.5)]
    result = accel_oct.solve(X, y, sample_weight=weights, max_depth=1, leaf_penalty=0.0, constraints=rules)
    assert result.status == "optimal"
    assert result.constraints[0].value == pytest.approx(0.5, abs=1e-15)


@pytest.mark.parametrize("number", [127, 181, 313, 554, 654, 702, 780, 815, 1027, 1114, 1234, 1473, 1694, 1898])
def test_instances_that_rounded_weights_get_wrong(number: int) -> None:
    """On weights rounded to a grid of their total: a worse tree, one that breaks a limit, or none at all."""
    case = fuzz_rates.draw(number)
    assert not list(fuzz_rates.problems(case, fuzz_rates.solved(case)))


def test_light_samples_are_samples() -> None:
    """A sample of weight 1e-14 beside others of weight 1 counts where leaves need samples; one of weight 0 does not."""
    X, y = np.array([[0], [0], [1], [1]]), np.array([0, 0, 1, 1])
    for light, leaves in ((1e-14, 2), (0.0, 1)):
        weights = [1.0, 1.0, 1.0, light]
        rules = [MinLeafWeight(samples=2)]
        result = accel_oct.solve(X, y, sample_weight=weights, max_depth=1, leaf_penalty=0.0, constraints=rules)
        assert result.tree.n_leaves == leaves


def test_amounts_are_in_the_unit_of_the_weights() -> None:
    """Weights at either end of what a float can hold, and amounts in the same unit."""
    X, y = np.array([[0], [1], [1]]), np.array([0, 1, 1])
    for unit in (5e-324, 1e-300, 1.0, 1e300):
        weights = [unit, unit, 2 * unit]
        for amount, expected in ((3 * unit, 1.0), (2 * unit, 0.25)):
            for rule in (PositiveBudget(amount, count=True), PositiveBudget(amount / unit / 4)):
                result = accel_oct.solve(X, y, sample_weight=weights, max_depth=1, leaf_penalty=0.0, constraints=[rule])
                assert result.status == "optimal" and result.objective == pytest.approx(expected), (unit, rule)
        far = PositiveBudget(1e308, count=True), MinLeafWeight(amount=1e308)
        data = BinaryDataset.from_arrays(X, y, weights)
        assert far[0].bind(data).violation(stump()) < 0 < far[1].bind(data).violation(stump())
        for amount, leaves in ((unit, 2), (2 * unit, 1)):
            rules: list[Any] = [MinLeafWeight(amount=amount)]
            result = accel_oct.solve(X, y, sample_weight=weights, max_depth=1, leaf_penalty=0.0, constraints=rules)
            assert result.tree.n_leaves == leaves and result.constraints[0].lower == amount


@pytest.mark.parametrize("excess, kept", [(0.0, True), (0.7e-9, True), (1.01e-9, False)])
def test_the_least_weight_of_leaves_on_many_rows(excess: float, kept: bool) -> None:
    """Rounding 10**6 weights of 0.1 to a grid of 46 bits changes a share by more than the tolerance of 1e-9."""
    X = np.repeat([[0], [1]], [600_000, 400_000], axis=0)
    y, weights = X[:, 0], np.where(X[:, 0], 0.3, 0.1)
    light = 60_000 / 180_000
    rule = MinLeafWeight(share=light + excess).bind(BinaryDataset.from_arrays(X, y, weights))
    assert (rule.violation(stump()) <= 0) == kept
    assert rule.value(stump()) == pytest.approx(60_000, rel=1e-15)


def test_scores_do_not_exceed_what_there_is() -> None:
    """Rewards of 10**5 rows, each rounded up, add up to more than 1; the score of a perfect tree does not."""
    X = np.repeat([[0], [1]], [60_000, 40_000], axis=0)
    for first in (3.7, 3.1, 2.9, 1.3):
        objective = ClassWeights({0: first, 1: 0.1})
        result = accel_oct.solve(X, X[:, 0], max_depth=1, leaf_penalty=0.0, objective=objective)
        assert result.status == "optimal" and 1 - 1e-8 < result.objective <= result.bound <= 1.0
        assert max(accel_oct.frontier(X, X[:, 0], max_depth=1, objective=objective).bounds) <= 1.0


# ---------------------------------------------------------------- rows of the master


def test_small_coefficients_are_left_out_on_the_safe_side() -> None:
    """A solver drops coefficients of 1e-10; a thousand of them are worth more than its tolerance."""
    n = 1000
    X = (np.arange(n + 1)[:, None] >> np.arange(10) & 1).astype(bool)
    y = (np.arange(n + 1) % 2).astype(np.int64)
    data = BinaryDataset.from_arrays(X, y)
    coefficients = np.zeros((n + 1, 2))
    coefficients[:n, 1] = -1e-10
    coefficients[n, 0] = 1.0
    for sign in (1.0, -1.0):
        master = Master(data, 1, 0.0, integral_predictions=True, original=data)
        kept, broken = (DecisionTree.leaf(label, 1) for label in ((1, 0) if sign > 0 else (0, 1)))
        LinearLimit("limit", sign * coefficients, -1e-7 if sign > 0 else -1.0).add_to(master)
        rows = master.model.rows
        assert np.abs(rows.values[rows.starts[-2] :]).min() >= 1e-9
        assert rows.violation(master.lift(kept)).max() <= 1e-12
        assert rows.violation(master.lift(broken)).max() > 0.9


# ---------------------------------------------------------------- against the oracle


def test_the_oracle_itself() -> None:
    """By hand: two trees of depth one on three rows, and the limit that parts them."""
    X, y, weights = [[0], [1], [1]], [0, 1, 0], [1.0, 1.0, 0.5]
    assert len(oracle.predictions(X, 2, 1)) == 4
    assert oracle.best(X, y, weights, 0.0, 1, [Rate("Precision", 1, lower=0.7)]) == Fraction(3, 5)
    assert oracle.best(X, y, weights, 0.0, 1, [Rate("Precision", 1, lower=2 / 3)]) == Fraction(4, 5)
    assert oracle.best(X, y, weights, 0.0, 1, [Rate("Recall", 1, lower=0.5), Rate("Recall", 0, lower=0.7)]) is None


def test_constraints_on_rates_agree_with_exact_rationals() -> None:
    """A sample of `python -m programs.fuzz_rates`: no wrong claim, no broken limit, no wrong value."""
    counts, failures, _ = fuzz_rates.run(0, 150)
    assert not failures, failures[0]
    assert counts["optimal"] > 120 and counts["infeasible"] and counts["refused"] == 0


@pytest.mark.long
def test_constraints_on_rates_agree_with_exact_rationals_at_length() -> None:
    """Thousands of them."""
    counts, failures, _ = fuzz_rates.run(150, 20_000)
    assert not failures, failures[0]
    assert counts["refused"] == 0


@given(st.integers(0, 2**32), st.sampled_from([Precision, Recall, Specificity]), st.booleans())
def test_violation_is_decided_exactly(seed: int, kind: type, above: bool) -> None:
    """At the tolerance itself: a limit that is missed by it is kept, one that is missed by a hair more is not."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, (6, 1)), np.array([0, 1, 0, 1, 0, 1])
    weights = (10.0 ** rng.uniform(-14, 0, 6)).tolist()
    predicted = X[:, 0].tolist()
    rate = oracle.measured(Rate(kind.__name__, 1), y.tolist(), [Fraction(w) for w in weights], predicted)
    if rate is None or not Fraction(2, 10**9) < rate < 1 - Fraction(2, 10**9):
        return
    edge = float(rate - Fraction(1e-9) if above else rate + Fraction(1e-9))
    for limit in (np.nextafter(edge, 0.0), edge, np.nextafter(edge, 1.0)):
        value = float(limit)
        rule = kind(1, at_most=value) if above else kind(1, at_least=value)
        kept = abs(rate - Fraction(value)) <= Fraction(1e-9)
        assert (rule.bind(BinaryDataset.from_arrays(X, y, weights)).violation(stump()) <= 0) == kept


# ---------------------------------------------------------------- data in pieces and tallies


def pieces(light: float) -> list[pd.DataFrame]:
    frame = pd.DataFrame({"a": [0, 1, 0, 1], "y": [0, 1, 0, 1], "sex": ["f", "f", "m", "m"]})
    return [
        frame.assign(w=[1.0, 0.7, 0.25 * light, 0.75 * light]),
        frame.assign(w=[0.3, 1.1, 0.25 * light, 0.75 * light]),
    ]


def test_pieces_with_light_groups_are_refused() -> None:
    """Weights of data in pieces are rounded before equal rows are merged; rates that this may change are refused."""
    parity = StatisticalParity("sex", at_most=0.5, positive=1)

    def found(light: float, target: str, rule: Any) -> Any:
        groups = "sex" if target == "y" else None
        gathered = gather(pieces(light), target, sample_weight="w", sensitive_features=groups, depth=1)
        return accel_oct.solve(gathered, max_depth=1, leaf_penalty=0.0, constraints=[rule])

    assert found(1e-3, "y", parity).constraints[0].value == pytest.approx(0.75 - 1.8 / 3.1, abs=1e-9)
    for target, rule in (("y", parity), ("sex", Recall("m", at_least=0.1))):
        with pytest.raises(InvalidInputError, match="sample_weight"):
            found(1e-14, target, rule)


def test_tallies_refuse_what_they_would_count_as_nothing() -> None:
    """A row that is rounded to zero would vanish from its group without a word."""
    with pytest.raises(InvalidInputError, match=r"sample_weight: row 0 has the weight 2\.1e-14"):
        Tally.of(np.array([[0], [1], [1], [1]]), [0, 0, 0, 1], sample_weight=LIGHT)
    Tally.of(np.array([[0], [1], [1], [1]]), [0, 0, 0, 1], sample_weight=[0.0, 0.1, 1e-8, 1.0])
