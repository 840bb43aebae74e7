"""What importing the package and asking for help load: modules are counted, not seconds."""

from __future__ import annotations

import ast
import inspect
import json
import pickle
import subprocess
import sys

import pytest

import accel_oct

HEAVY = {"numpy", "scipy", "sklearn", "joblib", "narwhals", "highspy", "pandas", "matplotlib"}
#: With room for other versions of Python and typer: 64 and 156 when this was written. Some versions of typer load
#: pydantic where an option is read, hence the third: 274.
MOST = {"import": 110, "help": 220, "options": 340}


def modules_after(script: str) -> set[str]:
    """Names in `sys.modules` of a process that has run a script."""
    told = "\nimport json, sys\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script + told], capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_nothing_heavy() -> None:
    """Neither NumPy nor any other dependency, and no part of the library but its version."""
    loaded = modules_after("import accel_oct")
    assert not {name.split(".")[0] for name in loaded} & {*HEAVY, "typer", "rich"}
    assert {name for name in loaded if name.startswith("accel_oct")} == {"accel_oct", "accel_oct._version"}
    assert len(loaded) < MOST["import"]


def test_the_classifier_loads_little_of_scikit_learn() -> None:
    """Its base classes; trees, ensembles, metrics and pipelines are loaded by those who use them."""
    loaded = modules_after("from accel_oct import OptimalTreeClassifier")
    parts = ("ensemble", "linear_model", "metrics", "model_selection", "neighbors", "pipeline", "preprocessing", "tree")
    assert not loaded & {f"sklearn.{part}" for part in parts}
    assert not loaded & {"matplotlib", "highspy", "dask", "rich", "pyomo"}


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["--version"], ["ift"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    """Help, the version and a mistyped command need typer; rich is for terminals, and commands are not loaded."""
    loaded = modules_after(f"from accel_oct.cli import main\nmain({arguments!r})")
    assert not {name.split(".")[0] for name in loaded} & {*HEAVY, "rich"}
    assert not [name for name in loaded if name.startswith("accel_oct.cli.commands")]
    assert len(loaded) < MOST["help" if arguments == ["--help"] else "options"]


def test_public_names_are_those_that_type_checkers_see() -> None:
    """`_HOMES` and the imports under TYPE_CHECKING say the same, and `__all__` has all of them."""
    seen = {}
    for node in ast.walk(ast.parse(inspect.getsource(accel_oct))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom)
                seen |= {alias.name: statement.module for alias in statement.names}
    assert seen == accel_oct._HOMES
    assert {*seen, "__version__"} == set(accel_oct.__all__)
    assert accel_oct.__all__ == sorted(accel_oct.__all__)


def test_public_names_can_be_asked_for_in_every_way() -> None:
    """By attribute, by `from`, by star, and in `dir`; what is not there is an AttributeError as everywhere."""
    scope: dict[str, object] = {}
    exec("from accel_oct import *", scope)
    for name in accel_oct.__all__:
        assert getattr(accel_oct, name) is scope[name]
        assert name in dir(accel_oct)
    assert accel_oct.constraints.Recall and accel_oct.plotting.plot_tree
    with pytest.raises(AttributeError, match="no attribute 'solv'"):
        accel_oct.solv  # noqa: B018
    assert not hasattr(accel_oct, "__wrapped__")


def test_public_classes_can_be_pickled() -> None:
    """By reference to where they are defined."""
    for name in accel_oct.__all__:
        value = getattr(accel_oct, name)
        assert pickle.loads(pickle.dumps(value)) is value or value == accel_oct.__version__
