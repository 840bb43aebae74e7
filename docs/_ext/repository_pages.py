"""Pages that lie outside of docs/ are shown by a page inside, and links to them lead there."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

#: From a file at the top of the repository to the page that includes it.
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def redirect(app: Sphinx, docname: str, source: list[str]) -> None:
    """`](../CONTRIBUTING.md` becomes `](contributing.md`, and so on, from whatever depth."""
    up = "../" * docname.count("/")

    def page(match: re.Match[str]) -> str:
        return f"](/{PAGES[match['name']]}"

    names = "|".join(map(re.escape, PAGES))
    source[0] = re.sub(rf"\]\({re.escape(up)}\.\./(?P<name>{names})", page, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", redirect)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
