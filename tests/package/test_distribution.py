"""What the distribution of accel-oct holds, as hatchling selects it: nothing is built."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def files_of(target: str) -> set[str]:
    """Paths in the distribution, those of compiled libraries left out."""
    if target == "wheel":
        from hatchling.builders.wheel import WheelBuilder as Builder
    else:
        from hatchling.builders.sdist import SdistBuilder as Builder
    return {entry.distribution_path for entry in Builder(str(ROOT)).recurse_included_files()}


@pytest.mark.parametrize("target", ["wheel", "sdist"])
def test_it_holds_the_library_and_no_benchmarks(target: str) -> None:
    """The harness, its suites, its tests and its results are in accel-oct-bench alone."""
    names = files_of(target)
    assert "accel_oct/solving/solve.py" in names
    assert not [name for name in names if "bench" in name and not name.startswith("docs/")]


def test_the_wheel_holds_packages_only() -> None:
    """The packages and the checker of certificates; no tests, no documentation, no C++ source."""
    names = files_of("wheel")
    assert {name.split("/")[0] for name in names} == {"accel_oct", "accel_oct_backends", "accel_oct_checker.py"}
    assert not [name for name in names if "native/source" in name]
