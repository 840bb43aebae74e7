"""When a bound proves a tree: never too early, and exactly when it should."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel_oct
from accel_oct.formulation.master import solver_scale
from accel_oct.solving.config import Config, SubtreeBoundConfig
from accel_oct.solving.problem import PROOF_TOLERANCE, BoundRounding

prices = st.one_of(
    st.sampled_from([0.0, 0.5, 0.8, 1.0, 1.5, 2.0, 7.25, 1e-3]), st.floats(0, 20).map(lambda price: round(price, 6))
)


@given(st.integers(2, 500), prices, st.integers(1, 16), st.data())
def test_a_noisy_bound_never_drops_below_a_value(
    total: int, price: float, max_leaves: int, data: st.DataObject
) -> None:
    """Whatever value the optimal tree has, a solver's bound that is off by less than the noise stays valid."""
    rounding = BoundRounding(float(total), price, max_leaves, integral=True)
    score = data.draw(st.integers(1, total))
    leaves = data.draw(st.integers(1, max_leaves))
    value = score - price * leaves
    for error in (-0.99, -0.5, 0.0, 0.5):
        assert rounding.valid(value + error * rounding.noise) >= value - 1e-12 * total


@pytest.mark.parametrize("total", [1.3, 250.0, 1e4, 1e8])
@pytest.mark.parametrize("integral", [True, False])
def test_the_noise_grows_with_the_total(total: float, integral: bool) -> None:
    """A solver's bound a share of 1e-9 of the total below a value, lattice or not, is raised to that value again."""
    price = 0.3 if integral else 0.01 * total
    rounding = BoundRounding(total, price, 4, integral, scale=1.0 if integral else 10 / total)
    value = np.floor(0.8 * total) - 2 * price if integral else 0.8 * total
    assert rounding.valid((value - 0.99e-9 * total) * rounding.scale) >= value
    if not integral:
        assert rounding.valid((value - 0.99 * rounding.noise) * rounding.scale) >= value


@given(st.integers(2, 500), prices, st.integers(1, 16), st.floats(-50, 600))
def test_rounding_never_loosens(total: int, price: float, max_leaves: int, bound: float) -> None:
    """The rounded bound is at most the solver's plus its noise, and never above the trivial one."""
    rounding = BoundRounding(float(total), price, max_leaves, integral=True)
    assert rounding.valid(bound) <= max(bound + rounding.noise, -math.inf) or rounding.valid(bound) == rounding.trivial
    assert rounding.valid(bound) <= rounding.trivial
    assert rounding.valid(math.inf) == rounding.trivial


def _proves(rounding: BoundRounding, solver_bound: float, value: float) -> bool:
    return rounding.valid(solver_bound) <= value + rounding.slack


def test_proof_at_the_next_lattice_point() -> None:
    """With unit weights and a price of 0.3: 9.4 is the best value below 9.69, so it is proven; 9.1 is not."""
    rounding = BoundRounding(12.0, 0.3, 4, integral=True)
    assert rounding.valid(9.69) == pytest.approx(9.4)
    assert _proves(rounding, 9.69, 10 - 0.3 * 2)
    assert not _proves(rounding, 9.69, 10 - 0.3 * 3)


def test_equal_values_with_other_leaves_do_not_block_a_proof() -> None:
    """26 - 7 * 0.8 and 22 - 2 * 0.8 are one value in decimal and two in binary: either is proven."""
    price = 0.8000000000000682  # 0.8 on a coarse grid
    rounding = BoundRounding(40.0, price, 8, integral=True)
    for value in (26 - 7 * price, 22 - 2 * price):
        assert _proves(rounding, 20.4 + 1e-7, value)


@pytest.mark.parametrize("price", [1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 9e-6])
def test_a_price_below_the_noise_does_not_block_a_proof(price: float) -> None:
    """A solver cannot see such prices; the claim is weaker by its noise, but the solve ends."""
    rounding = BoundRounding(12.0, price, 8, integral=True)
    for leaves in range(1, 9):
        value = 10 - price * leaves
        assert _proves(rounding, value + 1e-9, value)
        assert not _proves(rounding, value + 1.0, value)


@given(st.floats(1e-3, 1e3), st.floats(0, 1), st.integers(2, 500))
def test_a_noisy_bound_never_drops_below_a_real_value(total: float, share: float, n_samples: int) -> None:
    """The same without a lattice: what the solver may be off by is added, and no more."""
    rounding = BoundRounding(total, 0.0, 4, integral=False, scale=n_samples / total)
    value = share * total
    for error in (-0.99, -0.5, 0.0):
        valid = rounding.valid((value + error * rounding.noise) * rounding.scale)
        assert value - 1e-12 * total <= valid <= value + (1.01 + error) * rounding.noise


@pytest.mark.parametrize("weight", [1, 10**6, 10**10])
def test_a_bound_within_the_noise_proves_whatever_the_unit(weight: int) -> None:
    """Twelve samples of huge integer weight: a solver that is right up to its noise proves, one sample off does not."""
    total = 12.0 * weight
    rounding = BoundRounding(total, 0.5 * weight, 4, integral=True, scale=solver_scale(total, 12, integral=True))
    value = (9 - 2 * 0.5) * weight
    assert _proves(rounding, value * rounding.scale, value)
    assert not _proves(rounding, (value + weight) * rounding.scale, value)


def test_real_weights_keep_the_noise() -> None:
    """Without a lattice the bound is only raised by the noise, and the claim is that much weaker."""
    rounding = BoundRounding(1.3, 0.01, 4, integral=False, scale=10 / 1.3)
    bound = 0.9 * rounding.scale
    assert rounding.valid(bound) == pytest.approx(0.9 + rounding.noise)
    assert _proves(rounding, bound, 0.9) and not _proves(rounding, bound, 0.9 - 1e-5)
    assert rounding.slack <= 2e-6 * 1.3
    assert rounding.noise < 1e-6 and PROOF_TOLERANCE <= 1e-9


@pytest.mark.parametrize("factor", [1e-12, 1e-8, 1e-6, 1.0, 1e6])
def test_the_unit_of_weight_does_not_matter(factor: float) -> None:
    """Real weights of any magnitude: a warm start that is far from optimal is never taken for proven."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 8))
    y, weights = X[:, 0] ^ X[:, 1] ^ X[:, 2], factor * (1 + 0.5 * rng.random(200)) / 200
    rows_only = replace(Config.preset("default"), subtree_bounds=SubtreeBoundConfig(enabled=True, tables=False))
    for config in (Config.preset("default"), rows_only):
        result = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.01, sample_weight=weights, config=config)
        assert result.status == "optimal" and result.objective == pytest.approx(0.92)
        assert result.stats["decided_by"] != "warm start"


@pytest.mark.parametrize("weight", [1, 10**6, 10**10])
def test_large_integer_weights(weight: int) -> None:
    """Integer weights far above one go through every stage, by tables and by rows alone."""
    rng = np.random.default_rng(7)
    X, y = rng.integers(0, 2, (12, 3)), np.arange(12) % 2
    rows_only = replace(Config.preset("default"), subtree_bounds=SubtreeBoundConfig(enabled=True, tables=False))
    results = [
        accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.05, sample_weight=np.full(12, weight), config=config)
        for config in (Config.preset("default"), rows_only, Config.preset("paper"))
    ]
    assert all(result.status == "optimal" for result in results)
    assert len({round(result.objective, 9) for result in results}) == 1
