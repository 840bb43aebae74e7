"""When code is compiled and when matrix products do: on a new machine, and under short limits."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import numpy as np
import pytest
from oracles.dynamic_programme import optimal_value

from accel_oct import solve
from accel_oct.data import BinaryDataset
from accel_oct.subtree import best_tree, engine, pair_level
from accel_oct.subtree.code_choice import Code, numpy_seconds
from accel_oct.subtree.reduction import reduce_data
from accel_oct.subtree.stopping import Stopper

needs_numba = pytest.mark.skipif(not engine.numba_available(), reason="no numba")


class Left(Stopper):
    """So much time is left, always."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    @property
    def remaining(self) -> float:
        return self._seconds


@pytest.fixture
def new_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No code was used before."""
    monkeypatch.setattr(engine, "_used", set())
    monkeypatch.setattr(engine, "_code_folder", lambda: tmp_path)
    return tmp_path


def _data(n_samples: int = 40, n_features: int = 7) -> BinaryDataset:
    rng = np.random.default_rng(0)
    return BinaryDataset.from_arrays(rng.integers(0, 2, (n_samples, n_features)), rng.integers(0, 2, n_samples))


def _refuse(*given: object, **options: object) -> None:
    raise AssertionError("compiled code on a new machine")


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_small_tables_compile_nothing(new_machine: Path, monkeypatch: pytest.MonkeyPatch, depth: int) -> None:
    """On a new machine a small table is solved by matrix products, and proven as ever."""
    monkeypatch.setattr(pair_level, "CompiledCounts", _refuse)
    dataset = _data()
    price = dataset.leaf_price(0.01)
    found = best_tree(dataset.X, dataset.y, dataset.weights, 2, depth, price)
    assert found.exact and found.value == optimal_value(dataset, depth, price)
    assert solve(dataset, max_depth=depth, leaf_penalty=0.01).status == "optimal"
    assert not list(new_machine.iterdir())


@needs_numba
def test_code_that_was_used_is_used_again(new_machine: Path) -> None:
    """By this process, and by others that find its mark on the disk; level by level and type by type."""
    dataset = _data()
    data = reduce_data(dataset.X, dataset.y, dataset.weights, 2)
    assert not Code(data, 3, Left(math.inf)).allows(data, 2)
    engine.was_used("level-2-int16-plain")
    assert Code(data, 3, Left(0.0)).allows(data, 2)
    assert not Code(data, 3, Left(0.0)).allows(data, 3)
    engine._used.clear()
    assert Code(data, 3, Left(0.0)).allows(data, 2)
    heavy = reduce_data(dataset.X, dataset.y, dataset.weights * 2**10, 2)
    assert not Code(heavy, 3, Left(0.0)).allows(heavy, 2)


def test_a_short_limit_is_not_spent_on_compiling(new_machine: Path) -> None:
    """Large data are worth it when there is time, and only then; one search decides once."""
    data = reduce_data(*(getattr(_data(60, 40), name) for name in ("X", "y", "weights", "n_classes")))
    assert numpy_seconds(data.n_samples, data.n_features, 2, 5) > engine._WORTH_WAITING
    assert Code(data, 5, Left(math.inf)).allows(data, 2) and Code(data, 5, Left(60.0)).allows(data, 4)
    assert not Code(data, 5, Left(engine._SHORT_LIMIT / 2)).allows(data, 2)
    assert engine.subtree_engine(data.weights, math.inf) == "auto"
    assert engine.subtree_engine(data.weights, engine._SHORT_LIMIT / 2) == "numpy"
    left = Left(math.inf)
    code = Code(data, 5, left)
    assert code.allows(data, 2)
    left._seconds = 0.0
    assert code.allows(data, 2)


@needs_numba
def test_the_log_says_what_is_compiled(caplog: pytest.LogCaptureFixture) -> None:
    """One line per function and type, and none when it is called again."""
    from accel_oct.compiled.jit import EntryPoint

    fresh = EntryPoint(_doubled)
    with caplog.at_level(logging.INFO, logger="accel_oct"):
        assert fresh(np.arange(3.0)) == 6.0
        assert fresh(np.arange(4.0)) == 12.0
    lines = [line for line in caplog.messages if line.startswith("compiled _doubled")]
    assert len(lines) <= 1  # none where an earlier run of this test left it on the disk
    assert caplog.messages == lines


def _doubled(values):  # type: ignore[no-untyped-def]
    return 2 * values.sum()
