"""Who may import whom: solvers stay behind backends, and each layer knows only the layers below it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest
from helpers.imports_support import Import, comments, cycles, import_graph, imports, is_within, knot, modules

import accel_oct.mip

SOLVER_PACKAGES = {"highspy", "gurobipy", "pyscipopt", "pyomo", "coptpy", "cplex", "xpress"}
BACKENDS = "accel_oct_backends"

_BASE = {"errors", "support"}
_PROBLEM = _BASE | {"data", "tree"}
_MODEL = _PROBLEM | {"mip", "formulation"}
_SOLVING = _MODEL | {
    *(
        "exact",
        "constraints",
        "certificates",
        "cuts",
        "heuristics",
        "objectives",
        "pieces",
        "pricing",
        "solving",
        "cluster",
    )
}

#: Layer: the layers that its modules may import besides their own. "" is `accel_oct` itself, what users import.
MAY_IMPORT = {
    "_version": set(),
    "errors": set(),
    "support": {"errors"},
    "native": {"errors"},
    "mip": _BASE,
    "data": _BASE | {"native"},
    "tree": _BASE | {"data"},
    "encoding": _BASE | {"data"},
    "pieces": _BASE | {"data", "encoding", "io"},
    "exact": _PROBLEM | {"native"},
    "cluster": _PROBLEM | {"_version", "exact"},
    "formulation": _PROBLEM | {"mip", "exact"},
    "pricing": _PROBLEM | {"exact"},
    "constraints": _MODEL | {"exact"},
    "objectives": _MODEL | {"cuts"},
    "certificates": _PROBLEM | {"exact", "constraints", "pricing"},
    "cuts": _MODEL | {"exact"},
    "heuristics": _MODEL | {"exact"},
    "solving": _SOLVING - {"solving"},
    "export": _PROBLEM | {"_version", "encoding", "mip", "objectives", "solving"},
    "reasons": _BASE | {"data", "encoding", "export", "tree"},
    "live": _BASE | {"mip", "solving"},
    "plotting": _BASE | {"export", "solving"},
    "report": _BASE
    | {"_version", "data", "encoding", "export", "certificates", "plotting", "reasons", "solving", "tree"},
    "estimators": _PROBLEM
    | {"mip", "encoding", "io", "pieces", "constraints", "objectives", "solving", "live", "export"}
    | {"exact", "reasons", "report", "certificates"},
    "io": _BASE | {"encoding"},
    "cli": _SOLVING | {"_version", "encoding", "io", "live", "export", "plotting", "reasons", "report", "estimators"},
    "__main__": {"cli"},
    "demo": {"encoding", "solving"},
    "": {"_version", "data", "io", "mip", "constraints", "solving", "estimators", "pieces"},
}

#: Packages that functions may import when they are called: optional, or slow to load and often not needed.
LATE_PACKAGES = {"dask", "distributed", "matplotlib", "onnx", "pandas", "pyarrow", "rich", "scipy", "sklearn"}


def layer_of(module: str) -> str:
    """``mip`` of ``accel_oct.mip.rows``, "" of ``accel_oct``."""
    return module.split(".")[1] if "." in module else ""


def offences(source: str, module: str, is_package: bool = False) -> list[str]:
    """The imports of a module that break the rules of its layer; imports for type checkers count."""
    check = _library_offences if is_within(module, "accel_oct") else _backend_offences
    return [
        f"{module}:{statement.lines[0]} imports {name}"
        for statement in imports(source, module, is_package)
        for name in check(module, statement)
    ]


def _library_offences(module: str, statement: Import) -> Iterator[str]:
    """Solvers, backends, and layers that the table does not allow."""
    layers = {f"accel_oct.{layer}" for layer in MAY_IMPORT if layer}
    allowed = {layer_of(module), *MAY_IMPORT.get(layer_of(module), ())}
    for name in sorted(statement.targets(layers) or {statement.module}):  # `from accel_oct import cuts` asks for cuts
        ours = is_within(name, "accel_oct")
        if name.split(".")[0] in {*SOLVER_PACKAGES, BACKENDS} or (ours and layer_of(name) not in allowed):
            yield name


def _backend_offences(module: str, statement: Import) -> Iterator[str]:
    """Of the library, anything but what the package of the MIP layer exports."""
    if is_within(statement.module, "accel_oct"):
        exported = {"accel_oct.mip", *(f"accel_oct.mip.{name}" for name in accel_oct.mip.__all__)}
        yield from (name for name in statement.candidates if name not in exported)


def sources() -> Iterator[tuple[str, str, bool]]:
    for module, path in modules():
        yield module, path.read_text(encoding="utf-8"), path.name == "__init__.py"


# ---------------------------------------------------------------- layers


def test_layers_import_downwards_only() -> None:
    """No module of the library imports a solver, a backend or a layer above its own."""
    found, seen = [], set()
    for module, source, is_package in sources():
        seen.add(module)
        found += offences(source, module, is_package)
    assert not found, "\n".join(found)
    assert {"accel_oct.mip.cutloop", "accel_oct.tree", "accel_oct_backends.highs"} <= seen, "the check saw too little"


def test_every_layer_is_in_the_table() -> None:
    """A new room of the library has to say what it may know; the table itself has an order from bottom to top."""
    rooms = {layer_of(module) for module, _ in modules() if is_within(module, "accel_oct")}
    assert rooms <= set(MAY_IMPORT)
    assert set().union(*MAY_IMPORT.values()) <= set(MAY_IMPORT)
    order = list(TopologicalSorter(MAY_IMPORT).static_order())  # raises CycleError
    assert order.index("mip") < order.index("cuts") < order.index("solving") < order.index("cli")


@pytest.mark.parametrize("layer", [layer for layer in MAY_IMPORT if layer])
def test_each_layer_is_guarded(layer: str) -> None:
    """In every layer, a made-up import of any layer that is not in its line of the table is reported; others pass."""
    module = f"accel_oct.{layer}.made_up"
    for other in MAY_IMPORT:
        allowed = other == layer or other in MAY_IMPORT[layer]
        name = f"accel_oct.{other}".rstrip(".")
        for source in (f"import {name}", f"from {name} import thing", f"def f():\n    from {name}.deep import thing"):
            if other or "deep" not in source:
                assert bool(offences(source, module)) is not allowed, f"{module}: {source}"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("accel_oct.solving.solve", "import highspy"),
        ("accel_oct.solving.solve", "def f():\n    import gurobipy as gp"),
        ("accel_oct.solving.solve", "from pyscipopt import Model"),
        ("accel_oct.solving.solve", "if True:\n    from pyomo.contrib import solver"),
        ("accel_oct.solving.solve", "from accel_oct_backends.mock import MockBackend"),
        ("accel_oct.solving.solve", "import importlib\nimportlib.import_module('highspy')"),
        ("accel_oct.mip.rows", "from accel_oct import cuts"),
        ("accel_oct.mip.rows", "from accel_oct import cuts, errors"),
        ("accel_oct.mip.rows", "from .. import formulation"),
        ("accel_oct.mip.rows", "from ..data.dataset import BinaryDataset"),
        ("accel_oct.mip.rows", "if TYPE_CHECKING:\n    from accel_oct.tree import DecisionTree"),
        ("accel_oct.cuts.benders", "from accel_oct import solve"),
        ("accel_oct_backends.highs", "from accel_oct.errors import AccelOctError"),
        ("accel_oct_backends.highs", "import accel_oct"),
        ("accel_oct_backends.highs", "from accel_oct.mip.relaxation import CutPool"),
        ("accel_oct_backends.highs", "from accel_oct.mip import relaxation"),
        ("accel_oct_backends.highs", "import accel_oct.mip.rows as rows"),
        ("accel_oct_backends.highs", "def f():\n    from accel_oct.mip.conformance.suite import knapsack"),
    ],
)
def test_the_check_finds_an_offence(module: str, source: str) -> None:
    """Made-up offenders, one per way of importing, are reported."""
    assert offences(source, module) != []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("accel_oct.mip.rows", "import numpy as np\nfrom accel_oct.mip.errors import ModelError"),
        ("accel_oct.mip.errors", "from accel_oct.errors import AccelOctError"),
        ("accel_oct.cuts.benders", "from accel_oct import errors"),
        ("accel_oct.formulation.master", "from accel_oct.mip import Rows\nfrom accel_oct.tree import Topology"),
        ("accel_oct_backends.highs", "import highspy\nfrom accel_oct.mip import Backend"),
        ("accel_oct.solving.solve", "from highspy_like import x"),
    ],
)
def test_the_check_allows_what_is_allowed(module: str, source: str) -> None:
    """Imports downwards, and names that only look like a solver's, pass."""
    assert offences(source, module) == []


def test_relative_imports_of_a_package_are_resolved() -> None:
    """In an ``__init__`` one dot means the package itself."""
    (found,) = imports("from . import rows", "accel_oct.mip", is_package=True)
    assert list(found.candidates) == ["accel_oct.mip", "accel_oct.mip.rows"]


# ---------------------------------------------------------------- cycles


def test_no_module_imports_itself_in_the_end() -> None:
    """The graph of imports, late ones included, has no cycle."""
    texts = {module: source for module, source, _ in sources()}
    graph = import_graph(texts, [module for module, _, is_package in sources() if is_package])
    assert graph["accel_oct.mip.rows"] and graph["accel_oct_backends.highs"], "the check saw too little"
    report = []
    for cycle in cycles(graph):
        steps = [f"{a}:{graph[a][b]} imports {b}" for a, b in pairwise(cycle)]
        tied = ", ".join(sorted(knot(graph, cycle[0])))
        report.append("\n  ".join([f"{len(cycle) - 1} imports in a circle, in a knot of {tied}", *steps]))
    assert not report, "\n".join(report)


def test_a_cycle_is_found_and_told() -> None:
    """Of a made-up graph: the shortest cycle of each knot, late imports included, type imports left out."""
    made_up = {
        "p": "from p.a import x",
        "p.a": "from p import b",
        "p.b": "def f():\n    import p.c",
        "p.c": "from p.a import x\nfrom p.d import y",
        "p.d": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.c import z",
        "p.e": "from . import e",
        "q": "import numpy\nfrom p import a",
    }
    graph = import_graph(made_up, ["p"])
    assert cycles(graph) == [["p.a", "p.b", "p.c", "p.a"], ["p.e", "p.e"]]
    assert knot(graph, "p.b") == {"p.a", "p.b", "p.c"} and not knot(graph, "q")
    assert graph["p.b"] == {"p.c": 2}
    made_up["p.b"] = "if TYPE_CHECKING:\n    import p.c"
    del made_up["p.e"]
    assert cycles(import_graph(made_up, ["p"])) == []


# ---------------------------------------------------------------- late imports


def late_imports_without_reason(source: str, module: str, is_package: bool = False) -> list[str]:
    """Imports inside functions: not of a package that may be late, and no comment beside or right above says why."""
    said, lines = comments(source), source.splitlines()
    above = {line + 1: said[line] for line in said if lines[line - 1].lstrip().startswith("#")}
    return [
        f"{module}:{found.lines[0]} imports {found.module} late"
        for found in imports(source, module, is_package)
        if found.late
        and found.module.split(".")[0] not in LATE_PACKAGES
        and not any(len(said.get(line, "").split()) >= 2 for line in found.lines)
        and len(above.get(found.lines[0], "").split()) < 2
    ]


def test_late_imports_have_a_reason() -> None:
    """An import inside a function is of an optional or costly package, or a comment beside or above it says why."""
    found = []
    for module, source, is_package in sources():
        if is_within(module, "accel_oct"):
            found += late_imports_without_reason(source, module, is_package)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "offends"),
    [
        ("import json", False),
        ("def f():\n    import pandas", False),
        ("def f():\n    from sklearn.tree import plot_tree", False),
        ("def f():\n    import json", True),
        ("def f():\n    from accel_oct.exact import levels", True),
        ("def f():\n    from accel_oct.exact import levels  # noqa: F401", True),
        ("def f():\n    from accel_oct.exact import levels  # loaded only where it is used", False),
        ("def f():\n    # Loaded only where it is used.\n    from accel_oct.exact import levels", False),
        ("def f():\n    # Loaded only where it is used.\n\n    from accel_oct.exact import levels", True),
        ("def f():\n    x = 1  # that is one\n    from accel_oct.exact import levels", True),
        ("def f():\n    from accel_oct.exact import levels  # noqa: F401 # registers what follows", False),
        ("class A:\n    async def f(self):\n        if True:\n            from . import levels", True),
    ],
)
def test_the_check_of_late_imports(source: str, offends: bool) -> None:
    """Made-up sources; a mark for a linter is no reason."""
    assert bool(late_imports_without_reason(source, "accel_oct.exact.made_up")) is offends


# ---------------------------------------------------------------- quick starts

COMMANDS = "accel_oct.cli.commands"
LIGHT = ("accel_oct._version", "accel_oct.errors", "accel_oct.cli")


def slow_imports(source: str, module: str, is_package: bool = False) -> list[str]:
    """What a module loads that the command line must not load before a command is called."""
    return [
        f"{module}:{found.lines[0]} imports {found.module}"
        for found in imports(source, module, is_package)
        if not found.for_types
        and found.module.split(".")[0] not in {*sys.stdlib_module_names, "typer"}
        and (is_within(found.module, COMMANDS) or not any(is_within(found.module, light) for light in LIGHT))
    ]


def test_the_command_line_loads_its_commands_when_they_are_called() -> None:
    """Outside of the modules of the commands, the command line imports typer, the standard library and itself.

    So there is one place where something is loaded late, instead of imports inside of functions.
    """
    checked, found = [], []
    for module, source, is_package in sources():
        if is_within(module, "accel_oct.cli") and not is_within(module, COMMANDS):
            checked.append(module)
            found += slow_imports(source, module, is_package)
    assert not found, "\n".join(found)
    assert {"accel_oct.cli", "accel_oct.cli.app", "accel_oct.cli.options"} <= set(checked)


@pytest.mark.parametrize(
    ("source", "offends"),
    [
        ("import json, typer", False),
        ("from accel_oct.errors import shown", False),
        ("from accel_oct.cli.options import Group", False),
        ("if TYPE_CHECKING:\n    import numpy", False),
        ("import numpy", True),
        ("def f():\n    import rich", True),
        ("from accel_oct import OptimalTreeClassifier", True),
        ("from accel_oct.cli.commands import fit", True),
        ("from accel_oct.cli.commands.fit import run", True),
        ("from accel_oct.support.files import replacing", True),
    ],
)
def test_the_check_of_slow_imports(source: str, offends: bool) -> None:
    """Made-up sources."""
    assert bool(slow_imports(source, "accel_oct.cli.made_up")) is offends


# ---------------------------------------------------------------- private names


def private_uses(source: str) -> list[str]:
    """Names that begin with one underscore: attributes of anything but `self` and `cls`, and imported names."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            names = [] if owner in ("self", "cls") else [node.attr]
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        found += [name for name in names if name.startswith("_") and not name.startswith("__")]
    return found


def test_the_command_line_uses_public_names_only() -> None:
    """What the command line does, a script can do with the same names."""
    found = [
        f"{module}: {name}"
        for module, source, _ in sources()
        if is_within(module, "accel_oct.cli")
        for name in private_uses(source)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("model.fit(X)", []),
        ("self._stream.write(text)", []),
        ("vars(model).__len__()", []),
        ("model._objective(1)", ["_objective"]),
        ("self.model._tree()", ["_tree"]),
        ("from accel_oct.tree import _leaf, Tree", ["_leaf"]),
        ("from accel_oct._version import __version__", []),
    ],
)
def test_the_check_of_private_names(source: str, names: list[str]) -> None:
    """Made-up sources."""
    assert private_uses(source) == names


# ---------------------------------------------------------------- names of newer Pythons

#: Names of the standard library that Python 3.10 does not have. ruff knows the syntax of 3.10, and mypy reads NumPy's
#: types as 3.11; without this an import that fails on the oldest Python is found there only.
NEWER = {
    "asyncio": {"Runner", "TaskGroup", "timeout"},
    "contextlib": {"chdir"},
    "datetime": {"UTC"},
    "enum": {"EnumCheck", "FlagBoundary", "ReprEnum", "StrEnum", "member", "nonmember", "verify"},
    "hashlib": {"file_digest"},
    "itertools": {"batched"},
    "math": {"cbrt", "exp2", "fma", "sumprod"},
    "operator": {"call"},
    "typing": {
        *(
            "LiteralString",
            "Never",
            "NoDefault",
            "NotRequired",
            "ReadOnly",
            "Required",
            "Self",
            "TypeAliasType",
            "TypeIs",
        ),
        *("TypeVarTuple", "Unpack", "assert_never", "assert_type", "dataclass_transform", "override", "reveal_type"),
    },
    "warnings": {"deprecated"},
}
NEWER_MODULES = {"tomllib", "wsgiref.types"}
ROOT = Path(__file__).parents[2]


def newer_names(source: str) -> list[str]:
    """Imported names and attributes that Python 3.10 lacks; code for type checkers or newer Pythons does not count."""
    tree = ast.parse(source)
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        and ("TYPE_CHECKING" in ast.unparse(node.test) or "version_info" in ast.unparse(node.test))
        for statement in node.body
        for inner in ast.walk(statement)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.ImportFrom):
            found += [
                f"{node.module}.{alias.name}" for alias in node.names if alias.name in NEWER.get(node.module or "", ())
            ]
            found += [node.module] if node.module in NEWER_MODULES else []
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name in NEWER_MODULES]
        elif isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).split("[")[0] for base in node.bases}
            found += [f"generic {base}" for base in ("NamedTuple", "TypedDict") if {base, "Generic"} <= bases]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found += [f"{node.value.id}.{node.attr}"] if node.attr in NEWER.get(node.value.id, ()) else []
    return found


def test_nothing_needs_a_newer_python_than_the_oldest() -> None:
    """In all packages, the checker of certificates included."""
    checker = ROOT / "accel_oct_checker.py"
    texts = [(module, source) for module, source, _ in sources()] + [
        (checker.stem, checker.read_text(encoding="utf-8"))
    ]
    found = [f"{module}: {name}" for module, source in texts for name in newer_names(source)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from typing import Any, Self", ["typing.Self"]),
        ("if TYPE_CHECKING:\n    from typing import Self", []),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    from typing import Self", ["typing.Self"]),
        ("import sys\nif sys.version_info >= (3, 11):\n    import tomllib\nelse:\n    import tomli as tomllib", []),
        ("import tomllib", ["tomllib"]),
        ("import datetime\nnow = datetime.datetime.now(datetime.UTC)", ["datetime.UTC"]),
        ("import math\nmath.cbrt(8)", ["math.cbrt"]),
        ("class Pair(NamedTuple, Generic[T]):\n    first: T", ["generic NamedTuple"]),
        ("class Pair(NamedTuple):\n    first: int", []),
    ],
)
def test_the_check_of_newer_names(source: str, names: list[str]) -> None:
    """Made-up sources."""
    assert newer_names(source) == names
