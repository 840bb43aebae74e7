"""Tables, figures and tests from rows of results."""

from __future__ import annotations

from accel_oct_bench.reports.building import FORMATS, SHIFT, Report, build, write

__all__ = ["FORMATS", "SHIFT", "Report", "build", "write"]
