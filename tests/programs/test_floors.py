"""Versions in pyproject.toml: every dependency has a floor, linters have one version."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import accel_oct
from programs import floors

PROJECT = floors.tomllib.loads(floors.PYPROJECT.read_text(encoding="utf-8"))["project"]


def project(*dependencies: str, **extras: list[str]) -> dict[str, Any]:
    return {"name": "accel-oct", "dependencies": list(dependencies), "optional-dependencies": extras}


def test_every_dependency_has_a_floor() -> None:
    """So `make test-floors` leaves none of them at its newest version."""
    found = floors.floors(PROJECT)
    solvers = {"highspy", "gurobipy", "pyscipopt", "pyomo", "coptpy", "cplex", "xpress"}
    assert {"numpy", "scikit-learn", "pandas", "pytest", *solvers} <= set(found)


def test_what_a_floor_is() -> None:
    """The version behind >= or ==; ceilings, extras of our own and other Pythons' packages do not count."""
    listed = project(
        "numpy>=1.24.1", "scipy>=1.10,<2", "tomli>=2; python_version < '3'", test=["Accel_OCT[plot]", "ruff==0.1"]
    )
    assert floors.floors(listed) == {"numpy": Version("1.24.1"), "scipy": Version("1.10"), "ruff": Version("0.1")}
    assert floors.floors(project(docs=["sphinx"], lint=["ruff"])) == {}, "extras that no test needs"


@pytest.mark.parametrize("text", ["numpy", "numpy<3", "numpy>1.24", "numpy>=1.24,==1.25", "numpy==1.*"])
def test_no_floor_is_an_error(text: str) -> None:
    """It would be tested at its newest version, and nobody would notice."""
    with pytest.raises(ValueError, match="needs one floor"):
        floors.floors(project(text))


def test_two_floors_are_an_error() -> None:
    """Pip would take the higher one."""
    with pytest.raises(ValueError, match="numpy has two floors"):
        floors.floors(project("numpy>=1.24", plot=["numpy>=1.25"]))


def test_deviations_are_told() -> None:
    """A package at another version, and one that is missing; at the floor there is nothing to say."""
    installed = floors.metadata.version("numpy")
    assert list(floors.deviations({"numpy": Version(installed)})) == []
    wanted = {"numpy": Version("0.1"), "no-such-package-at-all": Version("1")}
    assert list(floors.deviations(wanted)) == [
        f"numpy is {installed}, not 0.1",
        "no-such-package-at-all 1 is not installed",
    ]


def test_linters_have_one_version() -> None:
    """What a linter says changes with its version; hooks call what pyproject.toml pins."""
    extras = PROJECT["optional-dependencies"]
    pins = {item.name: str(item.specifier) for item in map(Requirement, [*extras["lint"], *extras["dev"]])}
    assert all(pins[name].startswith("==") for name in ("ruff", "mypy", "pre-commit"))
    hooks = floors.PYPROJECT.with_name(".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert f'minimum_pre_commit_version: "{pins["pre-commit"][2:]}"' in hooks
    assert "repo: local" in hooks and hooks.count("- repo:") == 1


def test_the_citation_names_this_version() -> None:
    """CITATION.cff cannot read the version from where it is kept."""
    citation = floors.PYPROJECT.with_name("CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {accel_oct.__version__}\n" in citation
