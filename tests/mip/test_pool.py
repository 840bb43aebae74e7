"""The cut pool: each row once, found again when it is violated."""

from __future__ import annotations

import numpy as np
from helpers.mip_support import dense_rows
from hypothesis import given
from hypothesis import strategies as st

from accel_oct.mip import Cuts, Rows, Validity
from accel_oct.mip.relaxation import CutPool


def cuts(rows: Rows, validity: Validity = Validity.REQUIRED) -> tuple[Cuts, ...]:
    return (Cuts(rows, validity, keeps="some" if validity is Validity.OPTIMALITY else None),)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 1), st.integers(-1, 1), st.integers(0, 1)), max_size=30))
def test_each_row_is_kept_once(entries: list[tuple[int, ...]]) -> None:
    """Rows are the same exactly when coefficients and bounds are; numbers follow the order of arrival."""
    pool, order = CutPool(3), []
    for row in entries:
        matrix = np.array([row[:3]], dtype=float)
        new = pool.add(cuts(dense_rows(matrix, np.array([float(row[3])]))))
        assert new.tolist() == ([] if row in order else [len(order)])
        if row not in order:
            order.append(row)
    assert len(pool) == pool.rows.n_rows == len(order)
    np.testing.assert_array_equal(pool.rows.upper, [row[3] for row in order])


def test_the_order_of_entries_and_the_sign_of_zero_do_not_matter() -> None:
    """A row written in another order, or with -0.0 for 0.0, is the same row; repeats in one batch too."""
    pool = CutPool(4)
    pool.add(cuts(Rows(np.array([0, 2]), [0, 3], [1.0, 2.0], [-np.inf], [0.0])))
    again = Rows(np.array([0, 2, 4]), [3, 0, 0, 3], [2.0, 1.0, 1.0, 2.0], [-np.inf] * 2, [-0.0] * 2)
    assert pool.add(cuts(again)).size == 0 and len(pool) == 1


def test_a_bound_tells_rows_apart() -> None:
    """The same left-hand side with another bound, or on the other side, is another row."""
    pool = CutPool(2)
    for row in (Rows.single([0], 1.0, upper=1.0), Rows.single([0], 1.0, upper=2.0), Rows.single([0], 1.0, lower=1.0)):
        assert pool.add(cuts(row)).size == 1


@given(st.integers(0, 2**32 - 1))
def test_violated_rows_are_found(seed: int) -> None:
    """All violated rows, and only those, by their numbers; `among` restricts them."""
    generator = np.random.default_rng(seed)
    matrix = generator.integers(-5, 6, size=(12, 4)).astype(float)
    pool = CutPool(4)
    pool.add(cuts(dense_rows(matrix, np.zeros(12))))
    x = generator.random(4)
    violation = pool.rows.violation(x)
    found = pool.violated(x)
    assert found.tolist() == np.flatnonzero(violation > 1e-6).tolist()
    among = generator.random(len(pool)) < 0.5
    assert pool.violated(x, among).tolist() == [row for row in found.tolist() if among[row]]


def test_only_rows_that_define_feasibility_reject() -> None:
    """An OPTIMALITY row rejects nothing, until the same row comes again as a REQUIRED one."""
    pool, row = CutPool(2), Rows.single([0, 1], 1.0, upper=1.0)
    pool.add(cuts(row, Validity.OPTIMALITY))
    assert not pool.rejects(np.ones(2)) and pool.violated(np.ones(2)).size == 1
    pool.add(cuts(row, Validity.REQUIRED))
    assert len(pool) == 1 and pool.rejects(np.ones(2)) and not pool.rejects(np.array([1.0, 0.0]))


def test_the_last_batch_of_a_key_is_the_one_in_use() -> None:
    """A later batch makes the rows before it superfluous; rows that come again, whole or in part, are in use again."""
    pool = CutPool(1)
    first, second = (Rows.single([0], 1.0, upper=bound) for bound in (0.0, 0.5))
    for rows, in_use in ((first, [0]), (second, [1]), (first, [0]), (Rows.concatenate([first, second]), [0, 1])):
        pool.add((Cuts(rows, Validity.IMPLIED, key="same"),))
        assert pool.violated(np.ones(1)).tolist() == in_use
    pool.add((Cuts(second, Validity.IMPLIED, key="other"),))
    assert pool.violated(np.ones(1)).tolist() == [0, 1]
