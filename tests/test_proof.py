"""When a bound proves a tree: never too early, and exactly when it should."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_oct.proof import PROOF_TOLERANCE, BoundRounding

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


@given(st.integers(2, 500), prices, st.integers(1, 16), st.floats(-50, 600))
def test_rounding_never_loosens(total: int, price: float, max_leaves: int, bound: float) -> None:
    """The rounded bound is at most the solver's plus its noise, and never above the trivial one."""
    rounding = BoundRounding(float(total), price, max_leaves, integral=True)
    assert rounding.valid(bound) <= max(bound + rounding.noise, -math.inf) or rounding.valid(bound) == rounding.trivial
    assert rounding.valid(bound) <= rounding.trivial
    assert rounding.valid(math.inf) == rounding.trivial


def test_proof_at_the_next_lattice_point() -> None:
    """With unit weights and a price of 0.3: 9.4 is the best value below 9.69, so it is proven; 9.1 is not."""
    rounding = BoundRounding(12.0, 0.3, 4, integral=True)
    assert rounding.valid(9.69) == pytest.approx(9.4)
    assert rounding.proves(rounding.valid(9.69), 10 - 0.3 * 2)
    assert not rounding.proves(rounding.valid(9.69), 10 - 0.3 * 3)


def test_equal_values_with_other_leaves_do_not_block_a_proof() -> None:
    """26 - 7 * 0.8 and 22 - 2 * 0.8 are one value in decimal and two in binary: either is proven."""
    price = 0.8000000000000682  # 0.8 on a coarse grid
    rounding = BoundRounding(40.0, price, 8, integral=True)
    for value in (26 - 7 * price, 22 - 2 * price):
        assert rounding.proves(rounding.valid(20.4 + 1e-7), value)


def test_real_weights_keep_the_noise() -> None:
    """Without a lattice the bound is only raised by the noise, and the claim is that much weaker."""
    rounding = BoundRounding(1.3, 0.01, 4, integral=False, scale=10 / 1.3)
    bound = 0.9 * rounding.scale
    assert rounding.valid(bound) == pytest.approx(0.9 + rounding.noise)
    assert rounding.proves(rounding.valid(bound), 0.9)
    assert not rounding.proves(rounding.valid(bound), 0.9 - 1e-5)
    assert rounding.noise < 1e-6 and PROOF_TOLERANCE <= 1e-9
