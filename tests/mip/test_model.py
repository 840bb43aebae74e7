"""Models as arrays: blocks, bounds, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from accel_oct.mip import MipError, MipModel, ModelArrays, ModelError, Rows, SolveOptions, create_backend


def small_model() -> MipModel:
    model = MipModel(maximise=True)
    model.add_block("n", (2, 3), integer=True, objective=np.arange(6.0).reshape(2, 3))
    model.add_block("y", 1, upper=4.0, objective=-1.0)
    model.add_rows(Rows.single([0, 6], [1.0, 2.0], upper=3.0))
    return model


def test_blocks_are_consecutive_views() -> None:
    """A block's view shares memory with the vector, and its index array says where it lies."""
    model = small_model()
    x = np.arange(7.0)
    block = model.blocks["n"]
    assert np.shares_memory(block.view(x), x)
    np.testing.assert_array_equal(block.view(x), x[block.index])
    assert (block.start, block.stop, block.size) == (0, 6, 6) and model.blocks["y"].start == 6
    assert model.column_names()[:2] == ["n[0,0]", "n[0,1]"] and model.column_names()[-1] == "y[0]"


def test_scalars_and_arrays_spread_over_a_block() -> None:
    """Bounds, integrality and objective may be scalars or arrays of the block's shape."""
    arrays = ModelArrays.of(small_model())
    assert arrays.objective.tolist() == [0, 1, 2, 3, 4, 5, -1]
    assert arrays.integer.tolist() == [True] * 6 + [False] and arrays.upper.tolist() == [1.0] * 6 + [4.0]
    assert arrays.value(np.ones(7)) == 14.0


def test_the_model_keeps_copies() -> None:
    """Writing to the caller's arrays afterwards does not change the model."""
    objective = np.array([1.0, 2.0])
    model = MipModel()
    model.add_block("x", 2, objective=objective)
    objective[:] = 9.0
    assert model.objective.tolist() == [1.0, 2.0]


def test_a_loaded_model_does_not_follow_its_source() -> None:
    """Columns and rows added after loading are not seen by the backend."""
    model = MipModel(maximise=True)
    model.add_block("x", 2, integer=True, objective=1.0)
    backend = create_backend("mock")
    backend.load(model)
    model.add_rows(Rows.single([0, 1], 1.0, upper=1.0))
    assert backend.solve().objective == 2.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lower": 2.0}, "a lower bound is above its upper bound"),
        ({"lower": np.inf, "upper": np.inf}, "a lower bound is above its upper bound"),
        ({"upper": np.nan}, "a bound is NaN"),
        ({"objective": [1.0, np.nan]}, "an objective coefficient is NaN or infinite"),
        ({"objective": np.inf}, "an objective coefficient is NaN or infinite"),
        ({"objective": [1.0, 2.0, 3.0]}, r"`objective` does not fit the shape \(2,\)"),
        ({"integer": [True] * 3}, "`integer` does not fit"),
    ],
)
def test_bad_blocks_leave_the_model_as_it_was(settings: dict[str, object], message: str) -> None:
    """The error names block and argument, and no half of the block stays behind."""
    model = small_model()
    with pytest.raises(ModelError, match=f"'bad'.*{message}"):
        model.add_block("bad", 2, **settings)  # type: ignore[arg-type]
    assert model.n_columns == 7 and "bad" not in model.blocks
    assert model.lower.size == model.upper.size == model.objective.size == model.integer.size == 7


def test_block_names_are_unique() -> None:
    """A second block of the same name is refused."""
    model = small_model()
    with pytest.raises(ModelError, match="'n' exists already"):
        model.add_block("n", 1)


def test_bad_rows_leave_model_and_backend_as_they_were() -> None:
    """A malformed batch is refused by the model and by the backend, which both go on without it."""
    model = MipModel(maximise=True)
    model.add_block("x", 2, integer=True, objective=1.0)
    bad = Rows.single([2], 1.0, upper=0.0)
    backend = create_backend("mock")
    backend.load(model)
    for add in (model.add_rows, backend.add_rows):
        with pytest.raises(ModelError, match="column 2"):
            add(bad)
    assert model.rows.n_rows == 0 and backend.solve().objective == 2.0


@pytest.mark.parametrize(
    ("x", "feasible"),
    [
        ([1, 0, 0, 0, 0, 0, 1.0], True),
        ([1, 0, 0, 0, 0, 0, 1.1], False),  # row
        ([1e-7, 0, 0, 0, 0, 0, 0.5], True),  # integral within the tolerance
        ([0.5, 0, 0, 0, 0, 0, 0.5], False),  # integrality
        ([-1, 0, 0, 0, 0, 0, 0.5], False),  # bound
        ([0, 0, 0, 0, 0, 0, np.nan], False),
    ],
)
def test_feasibility(x: list[float], feasible: bool) -> None:
    """A point is feasible when it keeps bounds, rows and integrality."""
    assert ModelArrays.of(small_model()).is_feasible(np.array(x)) is feasible


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (np.zeros(6), r"shape \(6,\), but the model has 7 columns"),
        (np.zeros((7, 1)), r"shape \(7, 1\)"),
        ([np.nan] + [0.0] * 6, "NaN or infinite"),
    ],
)
def test_bad_starts_are_refused(start: object, message: str) -> None:
    """A start of the wrong length, or with a NaN, says so; an earlier start stays."""
    backend = create_backend("highs")
    backend.load(small_model())
    backend.set_start(np.zeros(7))
    with pytest.raises(ModelError, match=message):
        backend.set_start(start)  # type: ignore[arg-type]
    assert backend.solve(SolveOptions(time_limit=0.0)).objective == 0.0


def test_nothing_works_before_a_model_is_loaded() -> None:
    """Solving, adding rows and starting without a model are errors that say so."""
    backend = create_backend("mock")
    for action in (backend.solve, lambda: backend.add_rows(Rows.empty()), lambda: backend.set_start([0.0])):
        with pytest.raises(MipError, match="no model is loaded"):
            action()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time_limit": -1.0}, "`time_limit`"),
        ({"time_limit": np.nan}, "`time_limit`"),
        ({"gap": -0.1}, "`gap`"),
        ({"gap": np.nan}, "`gap`"),
        ({"threads": 0}, "`threads`"),
        ({"node_limit": -1}, "`node_limit`"),
    ],
)
def test_bad_options_are_refused(settings: dict[str, float], message: str) -> None:
    """Each option that makes no sense is named."""
    with pytest.raises(ModelError, match=message):
        SolveOptions(**settings)  # type: ignore[arg-type]


def test_branch_priorities_must_match_the_columns() -> None:
    """One priority per column."""
    backend = create_backend("mock")
    model = MipModel()
    model.add_block("x", 3, integer=True)
    backend.load(model)
    with pytest.raises(ModelError, match="`branch_priorities` has shape"):
        backend.solve(SolveOptions(branch_priorities=np.zeros(2, dtype=int)))
