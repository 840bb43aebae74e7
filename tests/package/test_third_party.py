"""A third-party package: a cut, constraints and an objective, installed and used by solve() and estimator."""

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
from oct_extras import BalancedParts, BalancedUse

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
    if preset == "default":
        assert result.stats["enumeration"]["trees"] > 1
        parts = accel_oct.solve(X, y, **shared, constraints=[BalancedParts(1)])
        assert parts.status == "optimal" and parts.objective == result.objective
        assert parts.stats["enumeration"]["refused_parts"] > 0
        assert parts.stats["enumeration"]["trees"] < result.stats["enumeration"]["trees"]
    else:
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


_TRAITS = """
import numpy as np
import accel_oct
from accel_oct.constraints import MaxFeatures, MinLeafWeight, PositiveBudget
from oct_extras import ClassSupport, FalseAlarms, FewFeatures

rng = np.random.default_rng(5)
X = rng.integers(0, 2, (300, 12))
y = ((X[:, 0] & X[:, 1]) | (X[:, 2] & X[:, 3])) ^ (rng.random(300) < 0.1)
shared = dict(max_depth=3, leaf_penalty=0.002)

def solved(constraint, data=(X, y), **options):
    result = accel_oct.solve(*data, **{**shared, **options}, constraints=[constraint])
    assert result.status == "optimal", result
    return result

# The same phase as a constraint of the library, with the same work.
for n in (1, 2, 3):
    mine, theirs = solved(FewFeatures(n)), solved(MaxFeatures(n))
    assert mine.objective == theirs.objective and len(mine.tree.features_used) <= n
    assert mine.stats["decided_by"] == theirs.stats["decided_by"] == "feature sets"
    work = [{k: v for k, v in r.stats["feature_sets"].items() if k != "seconds"} for r in (mine, theirs)]
    assert work[0] == work[1], work
mine = solved(FalseAlarms(1, at_most=9))
assert mine.stats["decided_by"] == solved(PositiveBudget(0.2)).stats["decided_by"] == "prices"
assert mine.constraints[0].value <= 9 and mine.constraints[0].multiplier is not None
local = solved(ClassSupport(1, at_least=5))
assert local.stats["decided_by"] == solved(MinLeafWeight(5)).stats["decided_by"] == "subtree bounds"
assert accel_oct.frontier(X, y, max_depth=3, constraints=[ClassSupport(1, 5)]).best(0.002).objective == local.objective

# By branch and cut, where rows follow from the traits.
for rule in (FewFeatures(1), ClassSupport(1, 40), FalseAlarms(1, 9)):
    small = dict(data=(X[:, :4], y), max_depth=2)
    assert abs(solved(rule, config="baseline", **small).objective - solved(rule, **small).objective) < 1e-6

# What reads classes and weights alone is taken on a tally.
tally = accel_oct.Tally.of(X, y, depth=3)
for rule, on_rows in ((FalseAlarms(1, 9), mine), (ClassSupport(1, 5), local)):
    assert solved(rule, data=(tally,)).objective == on_rows.objective

# A local rule that names no feature is kept over every split of a table.
table = np.column_stack([rng.normal(size=300).round(1), rng.normal(size=300).round(1)])
label = (table[:, 0] + table[:, 1] > 0.2).astype(int)
model = accel_oct.OptimalTreeClassifier(4, 0.002, constraints=[ClassSupport(1, 5)]).fit(table, label)
assert model.result_.stats["decided_by"] == "search over every split", model.result_.stats
leaves = model.apply(table)
assert all((label[leaves == leaf] == 1).sum() >= 5 for leaf in set(leaves))
print("proven")
"""


_OBJECTIVE = """
import itertools
import numpy as np
import accel_oct
from oct_extras import WholeGroups

rng = np.random.default_rng(2)
X = rng.integers(0, 2, (24, 3))
y = (X[:, 0] | X[:, 1]) ^ (rng.random(24) < 0.1)
group = np.arange(24) // 2

# The truth, by looking at every labelled tree of depth two.
leaf = [np.zeros(24, bool), np.ones(24, bool)]
below = [(1, p) for p in leaf] + [
    (2, np.where(X[:, f] == 1, one, zero)) for f in range(3) for zero, one in itertools.product(leaf, leaf)
]
trees = [(1, p) for p in leaf] + [
    (a + b, np.where(X[:, f] == 1, one, zero))
    for f in range(3)
    for (a, zero), (b, one) in itertools.product(below, below)
]
def counted(p):
    return (np.bincount(group, p != y)[group] == 0).mean()
best = max(counted(p) - 0.01 * leaves for leaves, p in trees)
plain = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01)
assert plain.objective > best, "the example needs another optimum than accuracy"

for solver in ("highs", "auto"):
    for preset in ("default", "baseline", "paper"):
        for own in (True, False):
            objective = WholeGroups(group, own)
            options = dict(objective=objective, config=preset, solver=solver)
            result = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, **options)
            assert result.status == "optimal" and abs(result.objective - best) < 1e-9, (result, best)
            assert all(row.bound >= best - 1e-9 for row in result.history)
            cuts = result.stats.get("group_cuts" if own else "strict")
            assert preset == "default" or cuts["cuts"] > 0
model = accel_oct.OptimalTreeClassifier(2, 0.01, encoder=None, objective=WholeGroups(group)).fit(X, y)
assert model.objective_ == result.objective
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


@pytest.mark.parametrize("program", [_USE, _TRAITS, _OBJECTIVE], ids=["by rows", "by traits", "by cuts"])
def test_it_is_used(installed: Path, tmp_path: Path, program: str) -> None:
    """The result is the true optimum under its constraint, for every preset; what declares traits is solved by them."""
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", program],
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
