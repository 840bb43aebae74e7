"""Reports in tests: their text and tags, and a browser (the chromium of the system, driven by playwright)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDE = {"width": 1400, "height": 900}
PHONE = {"width": 390, "height": 844}


class Outline(HTMLParser):
    """Checks that tags close in order; keeps tags, text, and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


@contextmanager
def started_browser() -> Iterator[Any]:
    """A headless browser, or a skip that says what is missing."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no chromium on the path: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        # Without a sandbox: it needs rights that containers lack, and the pages are our own.
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, path: Path, size: dict[str, int] = WIDE, **settings: Any) -> Iterator[Any]:
    """A page with the report; whatever it logs, asks the network for or throws is an error in the end."""
    touch = {"has_touch": True, "is_mobile": True} if size is PHONE else {}
    context = browser.new_context(viewport=size, **touch, **settings)
    page = context.new_page()
    heard: list[str] = []
    page.on("console", lambda message: heard.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (heard.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: request.url == path.as_uri() or heard.append(f"request: {request.url}"))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert not heard, heard
