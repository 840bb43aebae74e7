"""Planted faults of bounds give wrong optima, and no certificate of a wrong optimum is accepted."""

from __future__ import annotations

import pytest

from programs.wrong_solvers import FAULTS, ROOT, Planted, line, tried

NAMES = [fault.name for fault in FAULTS]


def test_every_fault_can_be_planted() -> None:
    """The text that each fault replaces is in its file, and the replacement differs."""
    assert len(set(NAMES)) == len(NAMES) >= 15
    for fault in FAULTS:
        text = (ROOT / fault.file).read_text(encoding="utf-8")
        for old, new in fault.texts:
            assert old in text and old != new, fault.name


def test_without_a_fault_nothing_is_wrong() -> None:
    """The oracle agrees with the solver on instances of all depths and kinds, and all certificates are accepted."""
    for depths, every_split, count in (((2, 3, 4, 5), False, 20), ((3, 4), True, 10)):
        assert tried(None, count, depths, every_split) == {"right, accepted": count}


@pytest.mark.slow
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if not fault.is_native], ids=lambda fault: fault.name)
def test_certificates_of_wrong_optima_are_not_accepted(fault: Planted) -> None:
    """A fault in Python gives a wrong optimum on some instance, and each one is refused or has no certificate."""
    _, instances, wrong, refused, unwritten, accepted, *_ = line(fault.name, tried(fault, 200))
    assert instances == 200 and wrong and not accepted and wrong == refused + unwritten


@pytest.mark.long
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.is_native], ids=lambda fault: fault.name)
def test_faults_of_kernels_are_caught(fault: Planted) -> None:
    """The same for a fault that is compiled into the kernels."""
    _, instances, wrong, refused, unwritten, accepted, *_ = line(fault.name, tried(fault, 200))
    assert instances == 200 and wrong and not accepted and wrong == refused + unwritten
