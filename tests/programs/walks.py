"""Count the modules that the two walks of docs/architecture.md pass: a row of a CSV file in `fit`, and a row of a cut.

    PYTHONPATH=tests python -m programs.walks

A module counts for the row of a table if one of its functions is called between the file and the fitted tree, and for
the row of a cut if one of its functions takes, returns or holds a value that has the row: `Rows`, `Cuts`, `Response`,
`Reply` or `Verdict`. Rows of the model itself are not counted.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

from accel_oct import OptimalTreeClassifier, read_table, solve
from accel_oct.formulation.components import Response, TreeHandler
from accel_oct.mip import Cuts, Reply, Rows, backend_availability
from accel_oct.mip.relaxation import CutRelaxation
from accel_oct.mip.session import SolveSession, Verdict

_WITH_ROWS = (Rows, Cuts, Response, Reply, Verdict)


def modules_called(work: Callable[[], Any], *, with_rows: bool = False) -> list[str]:
    """Return the modules of the library whose functions `work` calls; with `with_rows`, those with rows of cuts."""
    found: set[str] = set()

    def seen(frame: FrameType, event: str, value: Any) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith("accel_oct") or event not in ("call", "return") or name in found:
            return
        values = [*frame.f_locals.values(), value]
        if not with_rows or (_is_answering(frame) and any(_has_rows(each) for each in values)):
            found.add(name)

    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return sorted(found)


def _has_rows(value: Any) -> bool:
    if isinstance(value, list | tuple) and len(value):
        return _has_rows(value[0])
    return isinstance(value, _WITH_ROWS)


def _is_answering(frame: FrameType | None) -> bool:
    """Return whether a cut is made or passed on here: below a handler, a session or a pool, or beside a verdict."""
    while frame is not None:
        here = frame.f_locals.get("self")
        if isinstance(here, TreeHandler | SolveSession):
            return True
        if isinstance(here, CutRelaxation) and frame.f_code.co_name == "add":
            return True
        if any(isinstance(value, Verdict) for value in frame.f_locals.values()):
            return True
        frame = frame.f_back
    return False


def fit_file(path: Path, **parameters: Any) -> None:
    """Read a table and fit a tree."""
    table = read_table(path)
    OptimalTreeClassifier(**parameters).fit(table, "class")


def solve_by_cuts(backend: str) -> None:
    """Solve a small problem by branch and cut."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 6))
    y = (X[:, 0] & X[:, 1]) ^ (rng.random(60) < 0.15)
    solve(X, y, max_depth=2, leaf_penalty=0.01, config="baseline", solver=backend)


def main() -> None:
    """Print the modules of every walk, and their numbers."""
    iris = load_iris(as_frame=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "iris.csv")
        pd.concat([iris.data, iris.target.rename("class")], axis=1).to_csv(path, index=False)
        for name, parameters in (("tables", {"max_depth": 2}), ("every split", {"max_depth": 4})):
            fit_file(path, **parameters)
            _show(f"a row of a CSV file in fit, {name}", modules_called(lambda p=parameters: fit_file(path, **p)))
    for backend in ("highs", "scip", "gurobi"):
        if backend_availability(backend).installed:
            _show(f"a row of a cut, {backend}", modules_called(lambda b=backend: solve_by_cuts(b), with_rows=True))


def _show(title: str, modules: list[str]) -> None:
    print(f"{title}: {len(modules)} modules\n    " + "\n    ".join(modules))


if __name__ == "__main__":
    main()
