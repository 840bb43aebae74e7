"""The list of planted faults: it fits the code, and verdicts mean what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from programs import mutants


def test_the_list_fits_the_code() -> None:
    """Every text to replace is there exactly once: the list moves with the code. At least forty, none twice."""
    listed = mutants.read_list("")
    assert not list(mutants.misplaced(listed))
    assert len(listed) == len({(mutant.file, mutant.old) for mutant in listed}) >= 40
    assert all(mutant.breaks and mutant.tests for mutant in listed)


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    """A text that is gone, that occurs twice, a file that is gone, and a fault that changes nothing."""
    (tmp_path / "code.py").write_text("a = 1\nb = 1\n")
    fault = mutants.Mutant("code.py", "a = 1", "a = 2", ("tests/test_a.py",), "a")
    assert not list(mutants.misplaced([fault], tmp_path))
    wrong = [replace(fault, old="c"), replace(fault, old="= 1"), replace(fault, file="gone.py")]
    assert len(list(mutants.misplaced([*wrong, replace(fault, new=fault.old)], tmp_path))) == 4
    fault.plant(tmp_path)
    assert (tmp_path / "code.py").read_text() == "a = 2\nb = 1\n"


@pytest.mark.parametrize(
    ("code", "verdict"), [(0, "SURVIVED"), (1, "caught"), (2, "BROKEN"), (4, "BROKEN"), (5, "BROKEN")]
)
def test_only_a_failing_test_is_a_catch(code: int, verdict: str) -> None:
    """Not an error while collecting, a name that no test has, or no test at all."""
    outcome = mutants.Outcome(code, 1.0, "FAILED tests/test_a.py::test_b - assert False\n1 failed, 3 passed in 0.1s")
    assert outcome.verdict.startswith(verdict) and outcome.reason == "test_b" and outcome.passed == 3
