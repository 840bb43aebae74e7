"""Weights at the edges of what a float can hold: the same optimum as in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import accel_oct
from accel_oct import OptimalTreeClassifier
from accel_oct.data.labels import as_weights
from accel_oct.encoding import TableEncoder

#: All rows of three binary features, and labels that no small tree gets right.
X = np.array([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)])
Y = np.array([0, 1, 1, 0, 1, 0, 0, 2])

#: From the smallest float to the largest that can still be added up.
EXPONENTS = [-1074, -1073, -1060, -1022, -1000, -600, -501, -499, -60, -53, 0, 1, 53, 60, 499, 501, 1000, 1015]


def exact_optimum(weights: list[Fraction], depth: int, penalty: Fraction) -> Fraction:
    """The best normalised objective, by trying every split in fractions."""
    price = penalty * sum(weights)

    def best(rows: list[int], room: int) -> Fraction:
        classes: dict[int, Fraction] = {}
        for row in rows:
            classes[int(Y[row])] = classes.get(int(Y[row]), Fraction(0)) + weights[row]
        value = max(classes.values(), default=Fraction(0)) - price
        for feature in range(X.shape[1]) if room else ():
            sides = [[row for row in rows if X[row, feature] == side] for side in (0, 1)]
            value = max(value, best(sides[0], room - 1) + best(sides[1], room - 1))
        return value

    return best(list(range(len(X))), depth) / sum(weights)


@st.composite
def weight_lists(draw: st.DrawFn) -> list[float]:
    """Eight weights, of one magnitude or of many."""
    exponents = st.sampled_from(EXPONENTS)
    common = draw(st.one_of(exponents.map(lambda e: [e] * 8), st.lists(exponents, min_size=8, max_size=8)))
    digits = draw(st.lists(st.integers(0, 15), min_size=8, max_size=8).filter(any))
    return [float(np.ldexp(float(digit), exponent)) for digit, exponent in zip(digits, common, strict=True)]


@given(weight_lists(), st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.3]), st.integers(1, 3))
@example([5e-324] * 8, 0.1, 2)
@example([5e-324, 1e-323, 5e-324, 5e-324, 5e-324, 5e-324, 2e-323, 5e-324], 0.05, 2)
@example([1.0, 5e-324, 1.0, 1.0, 1.0, 2.0**-53, 1.0, 1.0], 0.01, 3)
def test_solve_agrees_with_exact_fractions(weights: list[float], penalty: float, depth: int) -> None:
    """Objective and bound are those of exact arithmetic, up to the tolerance that is stated for real weights."""
    if not any(weights):
        return
    result = accel_oct.solve(X, Y, max_depth=depth, leaf_penalty=penalty, sample_weight=weights)
    optimum = exact_optimum([Fraction(weight) for weight in weights], depth, Fraction(penalty))
    tolerance = Fraction(1e-9) + Fraction(len(weights) + 2**depth, 2**46)
    assert result.status == "optimal"
    assert abs(Fraction(result.objective) - optimum) <= tolerance
    assert Fraction(result.bound) >= optimum - tolerance


@given(weight_lists())
@example([5e-324] * 8)
@example([1e300, 0.5, 1e300, 0.5, 1.0, 1.0, 1.0, 1.0])
def test_the_classifier_takes_any_magnitude(weights: list[float]) -> None:
    """Encoder and tree are found without overflow, and the shares at the root are those of exact fractions."""
    if not any(weights):
        return
    table = np.column_stack([X, np.arange(8.0), np.array([3, 1, 4, 1, 5, 9, 2, 6])])
    model = OptimalTreeClassifier(2, 0.01).fit(table, Y, weights)
    assert model.status_ == "optimal"
    total = sum(map(Fraction, weights))
    exact = [sum(Fraction(w) for w, y in zip(weights, Y.tolist(), strict=True) if y == k) / total for k in range(3)]
    assert model.tree_.value[0, 0] == pytest.approx([float(share) for share in exact], abs=1e-9)
    assert np.isfinite(model.predict_proba(table)).all()


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1.0, 1e300])
def test_balanced_classes_are_balanced_at_any_scale(scale: float) -> None:
    """One unit of the smallest float cannot be halved: classes of three and one rows still weigh the same."""
    table, y = np.arange(4.0)[:, None], np.array([0, 0, 0, 1])
    model = OptimalTreeClassifier(0, class_weight="balanced").fit(table, y, np.full(4, scale))
    assert model.tree_.value[0, 0] == pytest.approx([0.5, 0.5])


def test_usual_weights_are_not_touched() -> None:
    """Only beyond 2**500 are weights scaled, by a power of two; the encoder sees them so too."""
    for weights in ([1.0, 2.0, 0.1], [2.0**-500, 0.0, 2.0**-600], [2.0**499, 1.0, 3.0]):
        np.testing.assert_array_equal(as_weights(weights, 3), weights)
    np.testing.assert_array_equal(as_weights([5e-324, 1e-323, 0.0], 3), [0.25, 0.5, 0.0])
    tiny: Any = [5e-324, 1e-323, 5e-324, 5e-324]
    column = np.array([[1.0], [2.0], [3.0], [4.0]])
    expected = TableEncoder().fit(column, sample_weight=[0.25, 0.5, 0.25, 0.25]).conditions_
    assert TableEncoder().fit(column, sample_weight=tiny).conditions_ == expected
