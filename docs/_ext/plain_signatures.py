"""Short names of arrays stay short where types are written.

autodoc replaces the names of `autodoc_type_aliases` by objects. It writes their names where they are the whole type,
and their `repr` in unions, in signatures as in the types of properties: ``TypeAliasForwardRef('FloatArray') | None``.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import TypeAliasForwardRef


def setup(app: Sphinx) -> dict[str, Any]:
    TypeAliasForwardRef.__repr__ = lambda self: self.name  # type: ignore[method-assign]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
