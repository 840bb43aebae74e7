"""What a group of options is, and what holds where nothing was said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

__all__ = ["DEFAULTS", "Group"]

#: What an option is where neither the command line nor a run file says it. Options that are not here may stay unsaid.
DEFAULTS: dict[str, Any] = {
    "header": True,
    "decimal": ".",
    "text_encoding": "utf-8",
    "max_depth": "3",
    "encoder": "auto",
    "missing": "category",
    "backend": "highs",
    "gap": 0.0,
    "seed": 0,
    "threads": 1,
    "min_samples_leaf": "1",
    "rule": "best",
}


@dataclass(frozen=True)
class Group:
    """Options that belong together; `SECTION` is their place in a run file, if they have one."""

    SECTION: ClassVar[str | None] = None
    #: Where a key of the run file is called otherwise than the field; "" where there is none.
    KEYS: ClassVar[dict[str, str]] = {}
