"""solve(): equal to exhaustive search with every technique on and off, and clear about bad input."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.mip_support import skip_unless_available
from helpers.progress_support import Rows
from helpers.random_suite import QUICK_SIZES, VARIANTS, check, draw
from helpers.selection import daily

import accel_oct
from accel_oct import Solver
from accel_oct.errors import InvalidInputError
from accel_oct.mip import SolverError, UnknownBackendError
from accel_oct.solving.config import Config, EquivalentPointConfig

BACKENDS = sorted(QUICK_SIZES)


@pytest.mark.daily(6)
@pytest.mark.parametrize("seed", daily(range(2), 1))
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_to_the_oracle(backend: str, variant: str, seed: int) -> None:
    """On small random data, rich in ties: objective and bound are those of an independent dynamic programme."""
    skip_unless_available(backend)
    rng = np.random.default_rng([seed, *map(ord, backend + variant)])
    for _ in range(10 if backend == "gurobi" else 5):
        check(draw(rng, QUICK_SIZES[backend]), VARIANTS[variant], backend)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("variant", VARIANTS)
def test_equal_to_the_oracle_at_length(variant: str, seed: int) -> None:
    """The same on thousands of instances, up to 40 samples and 6 features at depth 1 to 3."""
    skip_unless_available("gurobi")
    rng = np.random.default_rng([seed, len(variant)])
    for _ in range(20):
        check(draw(rng, {2: (40, 6), 3: (40, 4)}), VARIANTS[variant], "gurobi")
    for _ in range(5):
        check(draw(rng, {2: (20, 4), 3: (12, 3)}), VARIANTS[variant], "highs")


XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


@pytest.mark.parametrize("preset", ["baseline", "default"])
def test_exclusive_or(preset: str) -> None:
    """Depth two is needed, and enough, for the exclusive or."""
    y = np.array(["no", "yes", "yes", "no"])
    deep = accel_oct.solve(XOR, y, max_depth=2, leaf_penalty=0.01, config=preset)
    assert deep.objective == pytest.approx(1 - 0.04) and deep.tree.n_leaves == 4 and deep.status == "optimal"
    shallow = accel_oct.solve(XOR, y, max_depth=1, leaf_penalty=0.01, config=preset)
    assert shallow.objective == pytest.approx(0.5 - 0.01) and shallow.tree.n_leaves == 1
    assert "yes" in deep.show() and "x0" in deep.show()


def test_trivial_answers_need_no_model() -> None:
    """Depth 0 and a single class give one leaf, proven."""
    zero = accel_oct.solve(XOR, [0, 1, 1, 1], max_depth=0, leaf_penalty=0.1)
    assert zero.tree.n_leaves == 1 and zero.objective == pytest.approx(0.75 - 0.1) and zero.status == "optimal"
    single = accel_oct.solve(XOR, ["a"] * 4, max_depth=3, leaf_penalty=0.0)
    assert single.tree.n_leaves == 1 and single.objective == 1.0 and single.gap == 0.0


def test_large_penalty_gives_one_leaf() -> None:
    """A penalty above 1 makes a single leaf best, with a negative objective."""
    result = accel_oct.solve(XOR, [0, 1, 1, 0], max_depth=3, leaf_penalty=2.0)
    assert result.tree.n_leaves == 1 and result.objective == pytest.approx(0.5 - 2.0) and result.status == "optimal"


def test_a_result_prints_as_a_line() -> None:
    """The representation has tree, objective and proof; history and statistics are attributes."""
    result = accel_oct.solve(XOR, np.array([0, 1, 1, 0]), max_depth=2, leaf_penalty=0.01)
    shown = repr(result)
    assert "status='optimal'" in shown and "n_leaves=4" in shown and len(shown) < 500
    assert "history" not in shown and "stats" not in shown


def test_progress_and_history() -> None:
    """The hook sees every row of the history, bounds fall and objectives rise."""
    rows = Rows()
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 2, (30, 4)), rng.integers(0, 2, 30)
    result = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, config="baseline", progress=rows)
    assert tuple(rows) == result.history and len(rows) >= 2
    bounds, objectives = [row.bound for row in rows], [row.objective for row in rows]
    assert bounds == sorted(bounds, reverse=True) and objectives == sorted(objectives)


def test_time_limit_returns_a_tree_and_a_valid_bound() -> None:
    """No time at all: still a tree, and a bound that is not below the optimum."""
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 2, (60, 8)), rng.integers(0, 3, 60)
    optimum = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.001, config="default").objective
    for seconds in (0.0, 0.02, 0.2):
        for preset in ("baseline", "default"):
            result = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.001, config=preset, time_limit=seconds)
            assert result.status in ("time_limit", "optimal")
            assert result.objective <= optimum + 1e-9 <= result.bound + 2e-9


def test_statistics_name_every_component() -> None:
    """Calls, cuts and seconds per component, and what decided the solve."""
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 2, (20, 3)), rng.integers(0, 2, 20)
    config = Config(polishing=True)
    stats = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.0, config=config).stats
    assert {"warm_start", "benders", "polishing", "solver", "subtree_cache", "decided_by"} <= set(stats)
    assert stats["benders"]["calls"] >= 1


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"X": [[0, 2], [1, 0]], "y": [0, 1]}, "column 1"),
        ({"X": [[0.5], [1]], "y": [0, 1]}, "OptimalTreeClassifier"),
        ({"X": [[np.nan], [1]], "y": [0, 1]}, "X"),
        ({"X": np.empty((0, 2)), "y": []}, "X is empty"),
        ({"X": np.empty((2, 0)), "y": [0, 1]}, "X"),
        ({"y": [0, 1, 1]}, "y"),
        ({"y": [0, 1, None, 1]}, "y"),
        ({"sample_weight": [1, 1, 1]}, "sample_weight"),
        ({"sample_weight": [1, -1, 1, 1]}, "sample_weight"),
        ({"sample_weight": [0, 0, 0, 0]}, "sample_weight"),
        ({"leaf_penalty": -0.1}, "leaf_penalty"),
        ({"leaf_penalty": float("nan")}, "leaf_penalty"),
        ({"leaf_penalty": "much"}, "leaf_penalty"),
        ({"max_depth": -1}, "max_depth"),
        ({"max_depth": 1.5}, "max_depth"),
        ({"max_depth": True}, "max_depth"),
        ({"config": "fastest"}, "preset"),
        ({"time_limit": -1}, "time_limit"),
        ({"solver": None}, "solver"),
        ({"config": None}, "config"),
    ],
)
def test_bad_input_names_the_argument(changes: dict[str, Any], fragment: str) -> None:
    """Each is an InvalidInputError (a ValueError) that says which argument is wrong."""
    arguments: dict[str, Any] = {"X": XOR, "y": [0, 1, 1, 0], "max_depth": 2, "leaf_penalty": 0.0} | changes
    with pytest.raises(InvalidInputError, match=fragment):
        accel_oct.solve(arguments.pop("X"), arguments.pop("y"), **arguments)


def test_unknown_backend() -> None:
    """The error lists the backends that are known."""
    with pytest.raises(UnknownBackendError, match="highs"):
        accel_oct.solve(XOR, [0, 1, 1, 0], max_depth=1, leaf_penalty=0.0, solver="cplx")


class TestConfig:
    """Configurations in Python and TOML."""

    def test_toml_round_trip(self, tmp_path: Any) -> None:
        """A preset with changes in nested tables."""
        path = tmp_path / "run.toml"
        path.write_text('preset = "paper"\npolishing = false\n[equivalent_points]\nmax_split_size = 1\n')
        expected = replace(
            Config.preset("paper"), polishing=False, equivalent_points=EquivalentPointConfig(True, max_split_size=1)
        )
        assert Config.from_toml(path) == expected

    @pytest.mark.parametrize(
        ("values", "fragment"),
        [
            ({"polshing": True}, "polshing"),
            ({"benders": {"stronger": True}}, "config.benders"),
            ({"polishing": "yes"}, "config.polishing"),
            ({"benders": True}, "config.benders"),
            ({"equivalent_points": {"max_split_size": 3}}, "max_split_size"),
            ({"equivalent_points": {"linking": "ring"}}, "linking"),
            ({"cache_memory_limit": -1}, "cache_memory_limit"),
            ({"preset": "best"}, "preset"),
        ],
    )
    def test_mistakes_name_the_key(self, values: dict[str, Any], fragment: str) -> None:
        """Unknown keys and wrong types are errors, wherever they stand."""
        with pytest.raises(InvalidInputError, match=fragment):
            Config.from_mapping(values)

    def test_broken_toml(self, tmp_path: Any) -> None:
        """A file that is not TOML is an InvalidInputError that names the file."""
        path = tmp_path / "broken.toml"
        path.write_text("= 3")
        with pytest.raises(InvalidInputError, match=r"broken\.toml"):
            Config.from_toml(path)


#: Bad for the warm start: CART's first split leaves it one leaf short, so a solver has something to do.
HARD = np.array([[i >> bit & 1 for bit in range(5)] for i in range(32)])
PARITY = HARD[:, :3].sum(axis=1) % 2


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        ("highs", {"mip_max_improving_sols": 1, "mip_heuristic_effort": 0.0}),
        ("gurobi", {"SolutionLimit": 1}),
        ("scip", {"limits/solutions": 1}),
    ],
)
def test_options_reach_the_solver(backend: str, options: dict[str, Any]) -> None:
    """A limit of the solver's own ends the solve, named as such, with a valid bound; a wrong name is refused."""
    skip_unless_available(backend)
    config = replace(Config(), warm_start="leaf", polish_warm_start=False)
    arguments: dict[str, Any] = dict(max_depth=3, leaf_penalty=0.001, config=config)
    stopped = accel_oct.solve(HARD, PARITY, solver=Solver(backend, options=options), **arguments)
    assert stopped.status == "stopped" and stopped.bound >= 1 - 0.008
    with pytest.raises(SolverError, match="no_such_option"):
        accel_oct.solve(HARD, PARITY, solver=Solver(backend, options={"no_such_option": 1}), **arguments)


@pytest.mark.parametrize("backend", ["highs", "gurobi", "scip"])
def test_the_node_limit_ends_the_solve(backend: str) -> None:
    """With no node to spend the status says so, and the bound is valid."""
    skip_unless_available(backend)
    config = replace(Config(), warm_start="leaf", polish_warm_start=False)
    result = accel_oct.solve(
        HARD, PARITY, max_depth=3, leaf_penalty=0.001, solver=Solver(backend, node_limit=0), config=config
    )
    assert result.status == "node_limit" and result.bound >= 1 - 0.008


@pytest.mark.parametrize(
    "options",
    [
        {"backend": 3},
        {"threads": 0},
        {"threads": 1.5},
        {"threads": "2"},
        {"threads": True},
        {"threads": None},
        {"seed": -1},
        {"seed": 0.5},
        {"seed": None},
        {"gap": -1},
        {"gap": float("inf")},
        {"gap": "small"},
        {"node_limit": -1},
        {"node_limit": 2.5},
        {"options": 3},
        {"options": ["presolve"]},
        {"options": {1: 2}},
    ],
)
def test_a_solver_names_what_it_cannot_use(options: dict[str, Any]) -> None:
    """When it is made, before any work."""
    with pytest.raises(InvalidInputError, match=f"`{next(iter(options))}`"):
        Solver(**options)


def test_a_solver_is_a_value() -> None:
    """Equal fields are equal solvers; nothing that was handed over can change one; all cores are a number of them."""
    options = {"a": 1}
    solver = Solver("scip", threads=-1, seed=3, options=options)
    options["a"] = 2
    assert solver.options == {"a": 1} and solver == copy.deepcopy(solver) == pickle.loads(pickle.dumps(solver))
    assert hash(solver) == hash(replace(solver)) and solver != replace(solver, seed=4)
    assert solver.n_threads >= 1 and Solver(threads=-(10**6)).n_threads == 1
    with pytest.raises(AttributeError):
        solver.seed = 4  # type: ignore[misc]


TABLES_OFF = replace(
    Config.preset("default"), subtree_bounds=replace(Config.preset("default").subtree_bounds, tables=False)
)


@pytest.mark.daily(3)
@pytest.mark.parametrize("config", [Config.preset("baseline"), Config.preset("paper"), TABLES_OFF])
@pytest.mark.parametrize("backend", ["highs", "gurobi", "scip"])
def test_a_solve_that_nothing_stopped_ends_with_a_proof(backend: str, config: Config) -> None:
    """Where values of trees lie closer together than a solver can tell, too: near ties, huge penalties and weights."""
    skip_unless_available(backend)
    rng = np.random.default_rng(7)
    for penalty, scale in ((1 / 54, 1), (1e6, 1), (0.02, 7_919), (0.02, 700_001)):
        for shift in (1e-7, -1e-8):
            X, y = rng.integers(0, 2, (18, 3)), rng.integers(0, 3, 18)
            weights = rng.integers(1, 2 * scale, 18) if scale > 1 else None
            arguments: dict[str, Any] = dict(max_depth=2, leaf_penalty=penalty * (1 + shift), sample_weight=weights)
            result = accel_oct.solve(X, y, solver=backend, config=config, **arguments)
            assert result.status == "optimal" and result.gap == 0.0
            assert result.objective == pytest.approx(accel_oct.solve(X, y, **arguments).objective, abs=1e-12)


@pytest.mark.parametrize(
    ("backend", "y", "weights", "depth", "penalty", "optimum"),
    [
        ("gurobi", [0, 1, 2, 3], [9, 5, 6, 3], 1, 0.5, 9 / 23 - 0.5),
        ("pyomo:gurobi", [1, 1, 0, 1, 1, 1, 2, 2], [4, 1, 4, 3, 5, 3, 2, 5], 2, 5 / 27, 16 / 27 - 5 / 27),
    ],
)
def test_branch_variables_that_are_almost_zero_add_no_score(
    backend: str, y: list[int], weights: list[int], depth: int, penalty: float, optimum: float
) -> None:
    """At Gurobi's default integrality tolerance this ended in an InvalidCutError."""
    skip_unless_available(backend)
    X = [[1, 0, 1] if backend != "gurobi" else [1, 0, 0]] * len(y)
    result = accel_oct.solve(
        X, y, sample_weight=weights, max_depth=depth, leaf_penalty=penalty, solver=backend, config="baseline"
    )
    assert result.status == "optimal" and result.objective == pytest.approx(optimum)
