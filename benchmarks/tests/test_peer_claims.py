"""The search for wrong claims: its optimum is that of the oracle, its tables are what it says, and shrinking stops."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from oracles.exact import exact_value
from oracles.instances import Instance

import accel_oct
from accel_oct.errors import SingleLeafWarning
from accel_oct_bench.peers import PEERS
from accel_oct_bench.studies.near_optimal import is_counted
from accel_oct_bench.studies.peer_claims import SUBJECTS, Case, cases, for_peer, optimum, shrunk

TABLES = list(cases(25, 1))


def test_the_optimum_is_that_of_the_oracle() -> None:
    """On tables of 0 and 1, at their depth and without a limit."""
    for case in TABLES:
        if case.X.dtype == bool:
            assert case.depth is not None
            given = Instance(case.X, case.y, None, case.penalty, case.depth)
            assert optimum(case) == pytest.approx(exact_value(given), abs=1e-12)


def test_the_optimum_over_thresholds_is_ours() -> None:
    """On tables of numbers, by the search over every split."""
    for case in TABLES:
        if case.X.dtype != bool:
            warnings.simplefilter("ignore", SingleLeafWarning)
            model = accel_oct.OptimalTreeClassifier(case.depth, case.penalty).fit(case.X, case.y)
            assert model.status_ == "optimal" and optimum(case) == pytest.approx(model.objective_, abs=1e-9)


def test_without_a_depth_limit_no_depth_is_better() -> None:
    """A peer without one is compared with the optimum over all depths."""
    for case in TABLES[:10]:
        unlimited = for_peer(case, PEERS["imodels"])
        assert unlimited.depth is None and optimum(unlimited) >= optimum(case) - 1e-12
        assert for_peer(case, PEERS["dl85"]).penalty == 0


def test_tables_are_tied_and_repeat() -> None:
    """The same seed gives the same tables; classes are numbered without gaps."""
    for case, again in zip(TABLES, cases(25, 1), strict=True):
        assert str(case) == str(again)
        assert sorted(set(case.y.tolist())) == list(range(max(case.y) + 1)) and 0 <= case.penalty <= max(
            0.1, 1 / len(case.y)
        )
    assert any(len(np.unique(case.X, axis=0)) < len(case.X) for case in TABLES)


def test_shrinking_keeps_what_is_wrong() -> None:
    """Down to the fewest rows, columns, classes and levels for which it holds."""
    start = max(TABLES, key=lambda case: case.X.size)

    def is_wrong(case: Case) -> bool:
        return optimum(Case(case.X, case.y, 1, 0.0)) < optimum(Case(case.X, case.y, 2, 0.0))

    assert is_wrong(start)
    small = shrunk(start, is_wrong)
    assert is_wrong(small) and small.X.size <= 8 and len(small.y) <= 4 and small.depth == 1 and small.penalty == 0


def test_only_peers_that_claim_are_examined() -> None:
    """Greedy ones are left out."""
    assert not {"cart", "licketysplit"} & set(SUBJECTS) and {"gosdt", "streed", "imodels"} <= set(SUBJECTS)


def test_trees_of_praxis_that_are_not_counted() -> None:
    """Sibling leaves of one class, and splits with an empty side."""
    X = np.array([[0, 0], [0, 1], [1, 1]])
    assert is_counted((0, (1, 0, 1), 0), X) and is_counted(1, X)
    assert not is_counted((0, 1, 1), X) and not is_counted((0, 0, (1, 0, 1)), X)
