"""What is wrong with the built site: links that lead nowhere, and what pages would fetch from the network.

python docs/check_site.py docs/_build/html
"""

from __future__ import annotations

import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What a browser loads by itself; links that a reader may follow are none of these.
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """The places of a page, where it leads to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[tuple[str, str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is not None and name in ("id", "name"):
                self.places.add(value)
            if value is not None and name in ("href", "src"):
                self.links.append((tag, name, value))


@cache
def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def problems(page: Path) -> list[str]:
    """One sentence for each."""
    found = []
    for tag, name, target in read(page).links:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            if (tag, name) in LOADED and parts.scheme != "data":
                found.append(f"loads {target}")
            continue
        path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if not path.exists():
            found.append(f"leads to {target}, which is not there")
        elif parts.fragment and path.suffix == ".html" and unquote(parts.fragment) not in read(path).places:
            found.append(f"leads to {target}, which has no such place")
    return found


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    pages = sorted(path for path in root.rglob("*.html") if path.relative_to(root).parts[0] != "_static")
    wrong = [f"{page.relative_to(root)} {problem}" for page in pages for problem in problems(page)]
    for sheet in root.rglob("*.css"):
        wrong += [f"{sheet.name} loads {url}" for url in re.findall(r"url\(['\"]?(https?:[^)]*)\)", sheet.read_text())]
    print("\n".join(wrong) if wrong else f"{len(pages)} pages, no dead link, nothing from the network")
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
