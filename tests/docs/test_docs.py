"""The documentation is whole, without Sphinx: `make docs` builds the site, these tests say early what it would miss."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import GenericAlias, ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"
#: Made by the build.
BUILT = {"_build", "auto_examples", "generated"}
#: README.md is the index of the repository, index.md that of the site.
PAGES = sorted(path.relative_to(DOCS) for path in DOCS.rglob("*.md") if not BUILT & {*path.relative_to(DOCS).parts})
PACKAGES = [
    "accel_oct",
    *(f"accel_oct.{name}" for name in ("constraints", "data", "encoding", "export", "formulation", "io", "mip")),
    *(
        f"accel_oct.{name}"
        for name in ("live", "reasons", "solving.near_optimal", "objectives", "plotting", "report", "exact", "tree")
    ),
]


def prose(page: Path) -> str:
    """A page without its code, where brackets are no links and # is no heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.sub(r"^(`{3,}).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)


def entries(page: Path) -> Iterator[Path]:
    """The pages that the toctrees of a page list; those made by the build are left out."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            titled = re.fullmatch(r".*<(\S+)>", line)
            name = titled[1] if titled else line.strip()
            if not name or name.startswith(":"):
                continue
            listed = Path((DOCS / page).parent, name + ".md").resolve().relative_to(DOCS.resolve())
            if listed.parts[0] not in BUILT:
                yield listed


def anchors(page: Path) -> set[str]:
    """The places of a page that links may lead to, as GitHub and the site name them."""
    headings = re.findall(r"^#+ +(.*)$", prose(page), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


def test_every_page_is_in_a_toctree() -> None:
    """From index.md each page is reached once: nothing is lost, and nothing stands in two places of the sidebar."""
    reached, waiting = [Path("index.md")], [Path("index.md")]
    while waiting:
        listed = list(entries(waiting.pop()))
        reached += listed
        waiting += listed
    assert sorted(reached) == [page for page in PAGES if page != Path("README.md")]


def test_readers_of_the_repository_find_every_page() -> None:
    """docs/README.md links to all pages that read well without the site."""
    linked = {str(Path(target)) for target in re.findall(r"\]\(([^)#:]+\.md)", prose(Path("README.md")))}
    site_only = {"README.md", "index.md", "guides/index.md", "project.md", "contributing.md", "changelog.md"}
    assert {str(page) for page in PAGES if page.parts[0] != "api"} - site_only <= linked


@pytest.mark.parametrize("page", [Path("../README.md"), Path("../CONTRIBUTING.md"), *PAGES], ids=str)
def test_links_lead_to_places_that_are_there(page: Path) -> None:
    """Files, and headings within them."""
    for path, place in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", prose(page)):
        target = (DOCS / page).parent / path if path else DOCS / page
        assert target.exists(), f"{page} links to {path}"
        if place:
            assert place in anchors(target.resolve().relative_to(DOCS.resolve())), f"{page} links to {path}#{place}"


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_described_and_in_the_reference(package: str) -> None:
    """Every function and class has a docstring of its own, and every name stands in docs/api."""
    module = importlib.import_module(package)
    reference = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md"))
    for name in module.__all__:
        if name == "__version__":
            continue
        assert re.search(rf"\b{name}\b", reference), f"{package}.{name} is not in the reference"
        described = getattr(module, name)
        # Python 3.10 takes an alias such as ``Callable[[int], str]`` for a class.
        is_class = inspect.isclass(described) and not isinstance(described, GenericAlias)
        if is_class or inspect.isfunction(described):
            text = described.__doc__ or ""
            # A dataclass without a docstring gets its signature for one.
            assert text and not text.startswith(f"{name}("), f"{package}.{name} has no docstring"


def site_checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_site", DOCS / "check_site.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_check_of_the_site_finds_what_is_wrong(tmp_path: Path) -> None:
    """A missing page, a missing place, and a script from the network; links to other sites are nobody's business."""
    (tmp_path / "b.html").write_text('<h1 id="here">B</h1>')
    page = tmp_path / "a.html"
    page.write_text(
        '<a href="b.html#here">fine</a> <a href="https://example.org">fine</a> <img src="data:image/png;base64,AA">'
        '<a href="c.html">x</a> <a href="b.html#there">x</a> <script src="https://example.org/x.js"></script>'
    )
    assert site_checker().problems(page) == [
        "leads to c.html, which is not there",
        "leads to b.html#there, which has no such place",
        "loads https://example.org/x.js",
    ]
