"""The oldest versions that pyproject.toml claims, as constraints for pip; ``--check``: are these what is installed?

    python tests/programs/floors.py > constraints.txt && pip install --constraint constraints.txt --editable ".[test]"
    python tests/programs/floors.py --check

pyproject.toml is the only place where a floor is written; `make test-floors` runs all tests on what comes out here.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
#: Extras whose packages no test needs: they are not installed with the floors.
NOT_TESTED = {"coverage", "lint", "dev", "docs"}


def requirements(project: Mapping[str, Any]) -> Iterator[Requirement]:
    """What the test suite is installed with on this Python, our own extras left out."""
    lists = [project["dependencies"]]
    lists += [listed for extra, listed in project["optional-dependencies"].items() if extra not in NOT_TESTED]
    for requirement in (Requirement(text) for listed in lists for text in listed):
        ours = canonicalize_name(requirement.name) == canonicalize_name(project["name"])
        if not ours and (requirement.marker is None or requirement.marker.evaluate()):
            yield requirement


def floor(requirement: Requirement) -> Version:
    """The one version behind ``>=`` or ``==``."""
    lowest = [spec.version for spec in requirement.specifier if spec.operator in {">=", "=="}]
    if len(lowest) != 1 or not re.fullmatch(r"[0-9.]+", lowest[0]):
        raise ValueError(f"{requirement}: a dependency needs one floor, as in 'numpy>=1.24'")
    return Version(lowest[0])


def floors(project: Mapping[str, Any]) -> dict[str, Version]:
    """Package to oldest version; a package that is listed twice must have the same floor in both places."""
    found: dict[str, Version] = {}
    for requirement in requirements(project):
        name = canonicalize_name(requirement.name)
        if found.setdefault(name, floor(requirement)) != floor(requirement):
            raise ValueError(f"{name} has two floors: {found[name]} and {floor(requirement)}")
    return found


def deviations(wanted: Mapping[str, Version]) -> Iterator[str]:
    """Packages that are missing or not at their floor in the environment that runs this."""
    for name, version in wanted.items():
        try:
            installed = Version(metadata.version(name))
        except metadata.PackageNotFoundError:
            yield f"{name} {version} is not installed"
        else:
            if installed != version:
                yield f"{name} is {installed}, not {version}"


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with what is installed")
    arguments = parser.parse_args()
    wanted = floors(tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"])
    if not arguments.check:
        print("\n".join(f"{name}=={version}" for name, version in wanted.items()))
        return 0
    wrong = list(deviations(wanted))
    print("\n".join(wrong) or f"All {len(wanted)} packages are at their floors.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
