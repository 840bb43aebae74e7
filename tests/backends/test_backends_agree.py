"""Every backend, every preset: the oracle's optimum."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from helpers.mip_support import skip_unless_available
from helpers.random_suite import check, draw

import accel_oct
from accel_oct.mip import LicenceError, UnsupportedError, backend_class, backend_names
from accel_oct.solving.config import Config

SIZES = {2: (14, 3), 3: (8, 2)}


#: The backends that can take the master, variants included, whether or not their solvers are here.
BACKENDS = [name for name in backend_names() if backend_class(name.partition(":")[0]).capabilities.continuous_columns]


#: The rows of the paper's tables have tests of their own, in test_components.py.
PRESETS = ("default", "baseline", "paper")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_random_instances(backend: str, preset: str) -> None:
    """Objective, bound and history against the dynamic programme."""
    skip_unless_available(backend)
    rng = np.random.default_rng(23)
    for _ in range(4):
        check(draw(rng, SIZES), Config.preset(preset), backend)


def test_mock_serves_what_needs_no_solver() -> None:
    """The default preset decides small data before a backend runs; the master itself has continuous columns."""
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    assert accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, solver="mock").status == "optimal"
    with pytest.raises(UnsupportedError, match="mock"):
        accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, solver="mock", config="baseline")


def test_auto_names_the_backend_that_ran() -> None:
    """With a model that its licence takes, the strongest installed solver is chosen."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (12, 3)), np.arange(12) % 2
    result = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.0, solver="auto", config="baseline")
    assert result.status == "optimal" and result.backend in ("gurobi", "cplex", "xpress", "scip", "highs")


def _data_folder() -> Path | None:
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get("ACCEL_OCT_DATA", beside))
    return folder if folder.is_dir() else None


REAL = (
    "monk1", "monk2", "monk3", "hayes-roth", "iris_QT_5", "iris_QB_5", "soybean-small", "house-votes-84",
    "banknote_QT_5", "transfusion_QT_5",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(_data_folder() is None, reason="no data folder: set ACCEL_OCT_DATA")
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("backend", ["highs", "gurobi", "scip", "pyomo:highs", "copt", "cplex", "xpress"])
def test_ten_real_data_sets(backend: str, preset: str) -> None:
    """At depth 3 under a short time limit: no objective above the optimum, no bound below it, proofs agree."""
    skip_unless_available(backend)
    folder = _data_folder()
    assert folder is not None
    solved = 0
    for name in REAL:
        table = np.loadtxt(folder / f"{name}_enc.csv", delimiter=",", skiprows=1, dtype=str)
        X, y = table[:, :-1].astype(float).astype(int), table[:, -1]
        optimum = accel_oct.solve_path(X, y, max_depth=3, leaf_penalties=[0.04])[0].objective
        try:
            result = accel_oct.solve(
                X, y, max_depth=3, leaf_penalty=0.04, solver=backend, config=preset, time_limit=1.0
            )
        except LicenceError:  # the licences of the wheels are too small for some of these models
            continue
        solved += 1
        assert result.objective <= optimum + 1e-9 <= result.bound + 2e-9, name
        if result.status == "optimal":
            assert result.objective == pytest.approx(optimum, abs=1e-9)
    assert solved >= (4 if backend == "cplex" else 5)  # its community edition takes 1000 columns, the others more
