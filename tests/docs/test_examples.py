"""The examples of the documentation do what they say, on every backend."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from helpers.estimator_support import mixed_frame, published_data
from helpers.mip_support import skip_unless_available

import accel_oct
from accel_oct import OptimalTreeClassifier
from accel_oct.mip import Termination, backend_names

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples"
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


def blocks_of(path: Path) -> list[str]:
    """The Python code of a page."""
    return [part.split("```")[0] for part in path.read_text(encoding="utf-8").split("```python\n")[1:]]


#: Pages and how many blocks of Python they have.
PAGES = {
    "near-optimal.md": 5,
    "certificates.md": 1,
    "write-a-cut.md": 10,
    "write-a-constraint.md": 10,
    "constraints.md": 5,
    "objectives.md": 6,
    "estimator.md": 4,
    "live-view.md": 5,
    "report.md": 1,
    "probabilities.md": 1,
    "sufficient-statistics.md": 5,
    "sufficient-statistics-constraints.md": 4,
    "data-in-pieces.md": 2,
    "files.md": 1,
    "interop.md": 1,
    "index.md": 1,
    "tutorial.md": 10,
    "guides/choose-a-backend.md": 2,
    "guides/deep-trees-on-a-cluster.md": 2,
    "guides/deploy.md": 9,
    "guides/explain.md": 3,
    "guides/fair-lending.md": 8,
    "guides/few-measurements.md": 5,
    "guides/large-tables.md": 1,
    "guides/missing-values.md": 4,
    "guides/reproduce-the-paper.md": 2,
    "guides/policies.md": 5,
    "guides/screening.md": 6,
}
#: A solver that does not exist; a command that shows a fault of one that does, by failing; and pages
#: that benchmarks/tests/test_pages.py runs.
NOT_RUN = {"write-a-backend.md", "solver-faults.md", "bench.md", "bench-reports.md"}


def taken_for_granted(page: str, folder: Path) -> dict[str, object]:
    """Names and files that a page does not make itself."""
    X, y = mixed_frame()
    if page == "certificates.md":
        return {"accel_oct": accel_oct, "X": np.random.default_rng(0).integers(0, 2, (60, 5)), "y": [0, 1] * 30}
    if page == "estimator.md":
        X = X.iloc[:, :8]  # without the noise, whose thresholds take their time in cross-validation
        return {"X": X, "y": y, "frame": X.assign(**{"class": y})}
    if page == "interop.md":
        return {"model": OptimalTreeClassifier(max_depth=2).fit(X, y)}
    if page == "guides/deep-trees-on-a-cluster.md":
        pytest.importorskip("distributed", reason="the extra accel-oct[dask] is not installed")
    if page == "files.md":
        pytest.importorskip("pyarrow", reason="the extra accel-oct[files] is not installed")
        table = X.assign(admitted=pd.date_range("2026-01-01", periods=len(X)))
        table.assign(**{"class": y}).to_csv(folder / "patients.csv.gz", index=False)
        table.to_parquet(folder / "new.parquet")
    return {}


@pytest.mark.daily(8)
@pytest.mark.parametrize("page", PAGES)
def test_the_code_in_the_guides_runs(page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A page's blocks, run one after the other, pass their own assertions."""
    found = blocks_of(DOCS / page)
    assert len(found) == PAGES[page]
    code = "\n".join(found)
    if "accel_oct.plotting" in code:
        matplotlib = pytest.importorskip("matplotlib", reason="the extra accel-oct[plot] is not installed")
        matplotlib.use("Agg")
    if "ACCEL_OCT_DATA" in code:
        monkeypatch.setenv("ACCEL_OCT_DATA", str(published_data()))
    monkeypatch.chdir(tmp_path)
    try:
        exec(code, taken_for_granted(page, tmp_path))
    finally:
        logging.getLogger("accel_oct").setLevel(logging.NOTSET)
    if "accel_oct.plotting" in code:
        from matplotlib import pyplot as plt

        plt.close("all")


def test_no_page_with_code_is_left_out() -> None:
    """A page that is not listed above would not be noticed when it breaks."""
    pages = {path.relative_to(DOCS) for path in DOCS.rglob("*.md") if blocks_of(path)}
    assert {str(page) for page in pages if page.parts[0] != "_build"} - NOT_RUN == set(PAGES)


GALLERY = sorted(path.name for path in (DOCS / "gallery").glob("*.py"))


@pytest.mark.daily(3)
@pytest.mark.parametrize("name", GALLERY)
def test_the_gallery_runs_and_draws(name: str) -> None:
    """Every example ends without an error and with at least one picture."""
    matplotlib = pytest.importorskip("matplotlib", reason="the extra accel-oct[plot] is not installed")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.close("all")
    exec(compile((DOCS / "gallery" / name).read_text(encoding="utf-8"), name, "exec"), {"__name__": "example"})
    drawn = plt.get_fignums()
    plt.close("all")
    assert drawn


def test_the_code_in_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The binary data are made here. Gurobi is not everywhere, so HiGHS stands in."""
    monkeypatch.chdir(tmp_path)
    raw, reasons, fair, binary = blocks_of(DOCS.parent / "README.md")
    text = (DOCS.parent / "README.md").read_text("utf-8")
    scope: dict[str, object] = {}
    for block in (raw, reasons):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(block, scope)
        assert textwrap.indent(printed.getvalue(), "    ") in text
    assert (tmp_path / "report.html").exists()
    exec(fair, scope)
    model = scope["model"]
    assert isinstance(model, OptimalTreeClassifier)
    assert model.status_ == "optimal" and 0.0 < model.constraints_[0].value <= 0.02  # type: ignore[operator]
    assert model.constraints_[0].multiplier > 0  # type: ignore[operator]
    rng = np.random.default_rng(0)
    ones = rng.integers(0, 2, (100, 6))
    scope = {"X": ones, "y": (ones[:, 0] & ones[:, 1]) ^ (rng.random(100) < 0.1)}
    assert 'solver="gurobi"' in binary
    exec(binary.replace('solver="gurobi"', 'solver="highs"'), scope)
    assert scope["result"].status == "optimal"  # type: ignore[attr-defined]


def test_a_constraint_on_the_exported_tree_model_is_respected() -> None:
    """The Pyomo example: with a limit on leaves the optimum is that of the frontier at that number of leaves."""
    pytest.importorskip("pyomo", reason="the extra accel-oct[pyomo] is not installed")
    import accel_oct

    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (24, 3))
    y = np.where(rng.random(24) < 0.15, rng.integers(0, 2, 24), X[:, 0] ^ X[:, 1])
    frontier = accel_oct.frontier(X, y, max_depth=2)
    scores = example("pyomo_tree").main()
    assert scores == {limit: pytest.approx(24 * frontier.scores[limit - 1]) for limit in (4, 3)}
