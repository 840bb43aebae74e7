"""Who may import whom: solvers stay behind backends, and each layer knows only the layers below it."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import accel_oct_backends
import pytest

import accel_oct

SOLVER_PACKAGES = {"highspy", "gurobipy", "pyscipopt", "pyomo"}
BACKENDS = "accel_oct_backends"

#: Layer: what its modules may not import. Every module of accel_oct is also held to `SOLVER_PACKAGES` and `BACKENDS`.
FORBIDDEN = {
    "accel_oct.mip": {f"accel_oct.{name}" for name in ("tree", "data", "subtree", "formulation", "cuts", "heuristics")},
    "accel_oct.tree": {"accel_oct.mip"},
    "accel_oct.data": {"accel_oct.mip"},
    "accel_oct.subtree": {"accel_oct.mip"},
}


def imported_modules(source: str, module: str, is_package: bool = False) -> Iterator[str]:
    """Every module that a source may import, at any depth of nesting; ``from a import b`` gives a and a.b."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".") if is_package else module.split(".")[:-1]
                base = ".".join([*parents[: len(parents) - node.level + 1], *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in {"__import__", "import_module", "importlib.import_module"}
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def is_exported(imported: str, package: str) -> bool:
    """Whether it is the package itself or a name in it, and not one of its modules."""
    if imported == package:
        return True
    parent, _, name = imported.rpartition(".")
    return parent == package and name in importlib.import_module(package).__all__


def offences(source: str, module: str, is_package: bool = False) -> list[str]:
    """The imports of a module that break the rules of its layer."""
    found = []
    for imported in imported_modules(source, module, is_package):
        if is_within(module, "accel_oct"):
            banned = SOLVER_PACKAGES | {BACKENDS}
            for layer, above in FORBIDDEN.items():
                banned = banned | above if is_within(module, layer) else banned
            bad = any(is_within(imported, name) for name in banned)
        else:  # a backend: of the library, only the MIP layer, and of that only what the package exports
            bad = is_within(imported, "accel_oct") and not is_exported(imported, "accel_oct.mip")
        if bad:
            found.append(f"{module} imports {imported}")
    return found


def modules() -> Iterator[tuple[str, Path]]:
    for package in (accel_oct, accel_oct_backends):
        root = Path(str(package.__file__)).parent
        for path in sorted(root.rglob("*.py")):
            parts = [package.__name__, *path.relative_to(root).with_suffix("").parts]
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def test_layers_import_downwards_only() -> None:
    """No module of the library imports a solver, a backend or a layer above its own."""
    found, seen = [], set()
    for module, path in modules():
        seen.add(module)
        found += offences(path.read_text(encoding="utf-8"), module, path.name == "__init__.py")
    assert not found, "\n".join(found)
    assert {"accel_oct.mip.cutloop", "accel_oct.tree", "accel_oct_backends.highs"} <= seen, "the check saw too little"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("accel_oct.solve", "import highspy"),
        ("accel_oct.solve", "def f():\n    import gurobipy as gp"),
        ("accel_oct.solve", "from pyscipopt import Model"),
        ("accel_oct.solve", "if True:\n    from pyomo.contrib import solver"),
        ("accel_oct.solve", "from accel_oct_backends.mock import MockBackend"),
        ("accel_oct.solve", "import importlib\nimportlib.import_module('highspy')"),
        ("accel_oct.mip.rows", "from accel_oct.tree import DecisionTree"),
        ("accel_oct.mip.rows", "from accel_oct import cuts"),
        ("accel_oct.mip.rows", "from .. import formulation"),
        ("accel_oct.mip.rows", "from ..data.dataset import BinaryDataset"),
        ("accel_oct.subtree.d2s", "from accel_oct.mip import Rows"),
        ("accel_oct.tree.topology", "import accel_oct.mip.rows"),
        ("accel_oct.data.labels", "from ..mip import Rows"),
        ("accel_oct_backends.highs", "from accel_oct.errors import AccelOctError"),
        ("accel_oct_backends.highs", "import accel_oct"),
        ("accel_oct_backends.highs", "from accel_oct.mip.pool import CutPool"),
        ("accel_oct_backends.highs", "from accel_oct.mip import pool"),
        ("accel_oct_backends.highs", "import accel_oct.mip.rows as rows"),
        ("accel_oct_backends.highs", "def f():\n    from accel_oct.mip.conformance.suite import knapsack"),
    ],
)
def test_the_check_finds_an_offence(module: str, source: str) -> None:
    """Made-up offenders, one per rule and per way of importing, are reported."""
    assert offences(source, module) != []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("accel_oct.mip.rows", "import numpy as np\nfrom accel_oct.mip.errors import ModelError"),
        ("accel_oct.mip.errors", "from accel_oct.errors import AccelOctError"),
        ("accel_oct.formulation.master", "from accel_oct.mip import Rows\nfrom accel_oct.tree import Topology"),
        ("accel_oct_backends.highs", "import highspy\nfrom accel_oct.mip import Backend"),
        ("accel_oct.solve", "from highspy_like import x"),
    ],
)
def test_the_check_allows_what_is_allowed(module: str, source: str) -> None:
    """Imports downwards, and names that only look like a solver's, pass."""
    assert offences(source, module) == []


def test_relative_imports_of_a_package_are_resolved() -> None:
    """In an ``__init__`` one dot means the package itself."""
    assert list(imported_modules("from . import rows", "accel_oct.mip", is_package=True)) == [
        "accel_oct.mip",
        "accel_oct.mip.rows",
    ]
