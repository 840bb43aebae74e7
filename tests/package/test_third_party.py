"""A package of somebody else's: one cut and one constraint, installed, found by name, used by solve() and estimator."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "third_party"

_USE = """
import numpy as np
import accel_oct
from oct_extras import BalancedUse

rng = np.random.default_rng(1)
X = rng.integers(0, 2, (40, 3))
y = X[:, 0] ^ X[:, 1] ^ (rng.random(40) < 0.1)
shared = dict(max_depth=2, leaf_penalty=0.0)

def most_used(tree):
    return np.bincount(tree.feature[tree.feature >= 0], minlength=1).max()

free = accel_oct.solve(X, y, **shared)
assert most_used(free.tree) == 2, "the example needs a feature twice"
for preset in ("default", "paper", "baseline"):
    result = accel_oct.solve(X, y, **shared, config=preset, components=["small_trees"], constraints=[BalancedUse(1)])
    assert result.status == "optimal" and most_used(result.tree) == 1, result
    assert result.objective < free.objective
    assert result.stats["small_trees"]["calls"] > 0
    model = accel_oct.OptimalTreeClassifier(
        **shared, config=preset, encoder=None, components=["small_trees"], constraints=[BalancedUse(1)]
    ).fit(X, y)
    assert model.objective_ == result.objective and model.status_ == "optimal"
    assert (model.predict(X) == y).mean() == model.objective_

# The truth, by looking at every tree: the root and its two children on different features, or fewer branches.
best = 0.0
for root in range(3):
    for left in (None, *range(3)):
        for right in (None, *range(3)):
            used = [f for f in (root, left, right) if f is not None]
            if len(set(used)) < len(used):
                continue
            hits = 0
            for side, second in ((0, left), (1, right)):
                here = X[:, root] == side
                parts = [here] if second is None else [here & (X[:, second] == value) for value in (0, 1)]
                hits += sum(max((y[part] == k).sum() for k in (0, 1)) for part in parts)
            best = max(best, hits / 40)
assert abs(best - result.objective) < 1e-9, (best, result.objective)
print("proven", result.objective)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, built from its own pyproject and installed into a folder of its own, with no network."""
    folder = tmp_path_factory.mktemp("third-party")
    copy, target = folder / "source", folder / "site"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    command += ["--no-index", "--no-build-isolation", "--target", str(target), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    return target


def test_it_is_used_by_name(installed: Path, tmp_path: Path) -> None:
    """The result is the true optimum under its constraint, for every preset."""
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", _USE],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("proven")


def test_it_uses_public_names_only() -> None:
    """Every import of ours is a package's public name: listed in its `__all__`, no underscore, no module below it."""
    import importlib

    seen = 0
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("accel_oct"):
                module = importlib.import_module(str(node.module))
                assert {alias.name for alias in node.names} <= set(module.__all__), (path.name, node.module)
                seen += 1
    assert seen >= 5
