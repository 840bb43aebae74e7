"""Verification of results without the solver: each row alone, rows against each other, claimed optima proven again."""

from __future__ import annotations

from accel_oct_bench.verify.certifying import Certified, certified
from accel_oct_bench.verify.checks import TOLERANCE, Checked, Finding, checked, compared
from accel_oct_bench.verify.proving import Proofs, proven_again

__all__ = ["TOLERANCE", "Certified", "Checked", "Finding", "Proofs", "certified", "checked", "compared", "proven_again"]
