"""The examples of the documentation do what they say, on every backend."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from mip_support import skip_unless_available

from accel_oct.mip import Termination, backend_names

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
#: The mock enumerates at most 20 columns.
NAMES = [name for name in backend_names() if name != "mock"]


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("instance", ["burma14", "ulysses16"])
@pytest.mark.parametrize("name", NAMES)
def test_tsp_reaches_the_published_optima(name: str, instance: str) -> None:
    """Lazy subtour rows give TSPLIB's optimum, proven, on every backend."""
    skip_unless_available(name)
    tsp = example("tsp")
    coordinates, optimum = tsp.INSTANCES[instance]
    result = tsp.solve_tsp(tsp.distances(coordinates), name)
    assert result.termination is Termination.OPTIMAL
    assert result.objective == pytest.approx(optimum) and result.bound == pytest.approx(optimum)


def test_tsp_runs_as_a_script() -> None:
    """The command given in the example's docstring prints both optima."""
    run = subprocess.run([sys.executable, EXAMPLES / "tsp.py", "highs"], capture_output=True, text=True, check=True)
    assert "burma14: 3323 (published 3323)" in run.stdout and "ulysses16: 6859 (published 6859)" in run.stdout


@pytest.mark.parametrize(
    ("page", "blocks"),
    [("write-a-cut.md", 6), ("write-a-constraint.md", 2), ("constraints.md", 1), ("near-optimal.md", 4)],
)
def test_the_code_in_the_guides_runs(page: str, blocks: int) -> None:
    """A page's blocks, run one after the other, pass their own assertions."""
    text = (EXAMPLES.parent / page).read_text(encoding="utf-8")
    found = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    assert len(found) == blocks
    exec("\n".join(found), {})


def test_a_constraint_on_the_exported_tree_model_is_respected() -> None:
    """The Pyomo example: with a limit on leaves the optimum is that of the frontier at that number of leaves."""
    pytest.importorskip("pyomo", reason="the extra accel-oct[pyomo] is not installed")
    import numpy as np

    import accel_oct

    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (24, 3))
    y = np.where(rng.random(24) < 0.15, rng.integers(0, 2, 24), X[:, 0] ^ X[:, 1])
    frontier = accel_oct.frontier(X, y, max_depth=2)
    scores = example("pyomo_tree").main()
    assert scores == {limit: pytest.approx(24 * frontier.scores[limit - 1]) for limit in (4, 3)}
