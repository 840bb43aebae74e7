"""Ways of computing subtrees that small data would not take by themselves."""

from __future__ import annotations

import pytest

from accel_oct.exact import counts
from accel_oct.exact.levels import DeepLevels


def keep_no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with very many columns: no table of pairs is kept, so that root features are searched one by one."""
    monkeypatch.setattr(counts, "_STEP_BYTES", 1)
    monkeypatch.setattr(DeepLevels, "table_limit", staticmethod(lambda memory_limit, threads: 0))
