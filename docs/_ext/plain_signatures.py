"""Short names of arrays stay short in signatures, where autodoc writes `TypeAliasForwardRef('FloatArray') | None`."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx


def plain(app: Sphinx, what: str, name: str, obj: Any, options: Any, *texts: str | None) -> tuple[str | None, ...]:
    """Signature and what is returned."""
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in texts)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-signature", plain)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
