"""A report in a real browser: pointer, fingers and keyboard, small screens, paper, light and dark, hostile names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.report_support import PHONE, WIDE, opened, started_browser

from accel_oct import OptimalTreeClassifier
from accel_oct.report import write_report

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "\"'><img src=x onerror=alert(3)>",
    "</title></style><svg onload=alert(4)>",
    "a very long name " * 12,
    "unbroken" * 30,
    "\u05d2\u05d9\u05dc \u05d4\u05de\u05d1\u05d5\u05d2\u05e8",
    "\u6e29\u5ea6 \U0001f321\ufe0f \u202egnp.exe",
    "{{ 7 * 7 }} ${7*7} &lt;b&gt; %s \\u003c",
]
CLASSES = [
    "</script><b>no</b>",
    "\u05dc\u05d0 \u05d9\u05d3\u05d5\u05e2",
    "a class with a name that is as long as a sentence, or longer",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as found:
        yield found


def binary_tree(columns: list[str], classes: list[str]) -> tuple[OptimalTreeClassifier, pd.DataFrame, np.ndarray]:
    """A tree of depth 3 that asks for seven columns."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (400, len(columns))), columns=columns)
    bits = X.to_numpy()
    first = bits[:, 0] * 2 + bits[np.arange(400), 1 + bits[:, 0]]
    y = np.array(classes)[(first + bits[np.arange(400), 3 + first]) % len(classes)]
    return OptimalTreeClassifier(3, 0.001, encoder=None).fit(X, y), X, y


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, X, y = binary_tree([f"question {k}" for k in range(9)], ["blue", "green", "red"])
    assert model.get_n_leaves() == 8
    return write_report(model, tmp_path_factory.mktemp("report") / "report.html", X, y, test=(X, y), near_optimal=0.001)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, X, y = binary_tree(HOSTILE, CLASSES)
    folder = tmp_path_factory.mktemp("hostile")
    return write_report(
        model, folder / "report.html", X, y, near_optimal=0.001, title="</title><script>alert(5)</script>"
    )


def scale(page: Any) -> float:
    """How much the picture is enlarged, from what is seen of it."""
    return float(page.evaluate("document.querySelector('.wide [data-node=\"0\"] .box').getBoundingClientRect().width"))


def until(page: Any, reached: Callable[[], bool]) -> None:
    """Wait for what the browser does in its own time; the page's policy forbids playwright's way of waiting."""
    for _ in range(100):
        if reached():
            return
        page.wait_for_timeout(20)
    raise AssertionError("it did not happen within two seconds")


def chosen(page: Any) -> str:
    return str(page.inner_text("#details h3"))


# ---------------------------------------------------------------- nodes


def test_pointing_at_a_node_tells_about_it(report: Path, browser: Any) -> None:
    """Samples, class mix and the rule from the root, while the pointer is there; a click makes it stay."""
    with opened(browser, report) as page:
        root = chosen(page)
        page.hover(".wide [data-node='2']")
        told = page.inner_text("#details")
        assert "samples" in told and "Classes of the training data" in told
        assert page.locator("#details ol li").count() == 2
        assert page.locator("#details tbody tr").count() >= 1
        page.mouse.move(5, 5)
        assert chosen(page) == root
        page.click(".wide [data-node='3']")
        page.mouse.move(5, 5)
        leaf = chosen(page)
        assert leaf.strip() in ("blue", "green", "red") and page.locator("#details ol li").count() == 3
        assert page.get_attribute(".wide [data-node='3']", "aria-selected") == "true"
        assert page.locator(".wide [aria-selected='true']").count() == 1


def test_the_tree_is_walked_by_keys(report: Path, browser: Any) -> None:
    """One stop for Tab; arrows lead to parent, child and neighbours; the focus is seen and brought into view."""
    with opened(browser, report) as page:
        page.focus("#layout")
        page.keyboard.press("Tab")
        at = "Number(document.activeElement.dataset.node)"
        assert page.evaluate(at) == 0
        for key, node in (
            ("ArrowDown", 1),
            ("ArrowRight", 8),
            ("ArrowLeft", 1),
            ("ArrowUp", 0),
            ("ArrowUp", 0),
            ("End", 14),
            ("ArrowDown", 14),
            ("Home", 0),
        ):
            page.keyboard.press(key)
            assert page.evaluate(at) == node, key
        before = scale(page)
        page.keyboard.press("+")
        until(page, lambda: scale(page) > 1.2 * before)
        for _ in range(6):
            page.keyboard.press("+")
        page.keyboard.press("End")
        page.wait_for_timeout(300)
        inside = """() => {
            const outer = document.querySelector(".wide").getBoundingClientRect();
            const box = document.activeElement.querySelector(".box").getBoundingClientRect();
            const width = Math.min(box.width, outer.width - 30), height = Math.min(box.height, outer.height - 30);
            return box.left + width <= outer.right && box.right - width >= outer.left
                && box.top + height <= outer.bottom && box.bottom - height >= outer.top;
        }"""
        assert page.evaluate(inside)
        page.keyboard.press("0")
        stroke = page.evaluate("getComputedStyle(document.activeElement.querySelector('.box')).strokeWidth")
        assert stroke == "3.5px"
        page.keyboard.press("Tab")
        assert page.evaluate("!document.activeElement.dataset.node")


def test_the_picture_zooms_and_moves(report: Path, browser: Any) -> None:
    """By wheel at the pointer, by buttons and by dragging, which chooses nothing; "Whole tree" shows all of it."""
    with opened(browser, report, reduced_motion="reduce") as page:
        start = scale(page)
        box = page.locator(".wide").bounding_box()
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        corner = page.locator(".wide [data-node='0'] .box").bounding_box()
        page.mouse.move(corner["x"], corner["y"])
        page.mouse.wheel(0, -400)
        until(page, lambda: scale(page) > 1.5 * start)
        enlarged = scale(page)
        after = page.locator(".wide [data-node='0'] .box").bounding_box()
        assert abs(after["x"] - corner["x"]) < 2 and abs(after["y"] - corner["y"]) < 2
        page.click("#zoom-out")
        assert scale(page) == pytest.approx(enlarged / 1.35, rel=0.01)
        page.click("#zoom-in")
        assert scale(page) == pytest.approx(enlarged, rel=0.01)
        root = page.locator(".wide [data-node='0'] .box").bounding_box()
        heading = chosen(page)
        page.mouse.move(*middle)
        page.mouse.down()
        page.mouse.move(middle[0] + 60, middle[1] + 40, steps=5)
        page.mouse.up()
        moved = page.locator(".wide [data-node='0'] .box").bounding_box()
        assert moved["x"] - root["x"] == pytest.approx(60, abs=2) and moved["y"] - root["y"] == pytest.approx(40, abs=2)
        page.mouse.move(5, 5)
        assert chosen(page) == heading
        page.click("#zoom-fit")
        assert page.evaluate(ALL_INSIDE)


ALL_INSIDE = """() => {
    const outer = document.querySelector(".wide").getBoundingClientRect();
    return [...document.querySelectorAll(".wide .box")].every(each => {
        const box = each.getBoundingClientRect();
        return box.left >= outer.left - 1 && box.right <= outer.right + 1 && box.top >= outer.top - 1
            && box.bottom <= outer.bottom + 1;
    });
}"""


def test_fingers_pinch_and_tap(report: Path, browser: Any) -> None:
    """On a phone the tall picture comes first, a tap tells about a node, and the wide one is pinched larger."""
    with opened(browser, report, PHONE) as page:
        assert page.locator(".tall").is_visible() and page.locator(".wide").is_hidden()
        assert "Tap a node" in page.inner_text("#details")
        page.tap(".tall [data-node='1']")
        assert "samples" in page.inner_text("#details")
        page.tap("#details .close")
        assert "Tap a node" in page.inner_text("#details")
        page.tap("#layout")
        assert page.locator(".wide").is_visible() and page.locator(".tall").is_hidden()
        page.locator(".wide").scroll_into_view_if_needed()
        box = page.locator(".wide").bounding_box()
        x, y, before = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, scale(page)
        session = page.context.new_cdp_session(page)
        for kind, apart in (("touchStart", 20), ("touchMove", 40), ("touchMove", 60), ("touchEnd", None)):
            points = [] if apart is None else [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        assert scale(page) == pytest.approx(3 * before, rel=0.1)


# ---------------------------------------------------------------- rows


def test_a_typed_row_shows_its_way(report: Path, browser: Any) -> None:
    """The path is marked in pictures and list, the leaf is chosen, and the answer is told to those who listen."""
    with opened(browser, report) as page:
        for field in page.locator("#row select").all():
            field.select_option("true")
        page.click("text=Show its path")
        assert page.locator(".wide .node.way").count() == page.locator(".tall .node.way").count() == 4
        assert page.locator(".wide .edges .way").count() == 3 and page.locator(".rules .way").count() == 4
        assert (
            page.get_attribute("#answer", "role") == "status"
            and page.locator("#answer ol").first.locator("li").count() == 3
        )
        assert page.inner_text("#answer .class").strip() == chosen(page).strip()
        assert page.get_attribute(".wide [data-node='14']", "aria-selected") == "true"
        page.click("text=Clear")
        assert not page.locator(".way").count()


# ---------------------------------------------------------------- all sizes, all names


@pytest.mark.parametrize("size", [WIDE, PHONE, {"width": 800, "height": 600}], ids=["wide", "phone", "tablet"])
def test_names_stay_names_and_nothing_overflows(hostile: Path, browser: Any, size: dict[str, int]) -> None:
    """No name becomes an element or runs; texts stay in their boxes, and the page is as wide as the window."""
    with opened(browser, hostile, size) as page:
        assert page.title() == "</title><script>alert(5)</script>"
        assert page.locator("body img, svg[onload], b").count() == 0
        assert page.evaluate("document.scripts.length") == 2
        labels = page.locator("#row label:not(.fixed)").all_inner_texts()
        assert set(labels) <= {" ".join(name.split()) for name in HOSTILE} and len(labels) == 7
        assert page.locator("#row label.fixed").all_inner_texts() == [" cannot change"] * 7
        for node in range(15):
            page.evaluate(
                f"document.querySelectorAll('[data-node=\"{node}\"]')[0].dispatchEvent(new MouseEvent('click'))"
            )
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        wrong = page.evaluate(
            """() => [...document.querySelectorAll(".tree")].filter(tree => tree.checkVisibility()).flatMap(tree =>
                [...tree.querySelectorAll(".node")].flatMap(node => {
                    const box = node.querySelector(".box").getBoundingClientRect();
                    return [...node.querySelectorAll(".title, .detail")].map(text => text.getBoundingClientRect())
                        .filter(text => text.left < box.left - 1 || text.right > box.right + 1
                            || text.top < box.top - 1 || text.bottom > box.bottom + 1);
                }))"""
        )
        assert not wrong
        for field in page.locator("#row select").all():
            field.select_option("true")
        page.click("text=Show its path")
        assert page.inner_text("#answer .class").strip("\u2068\u2069 ") in CLASSES


# ---------------------------------------------------------------- light, dark, paper

CONTRASTS = """() => {
    const light = colour => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(part => part / 255)
            .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = node => {
        for (let each = node; each; each = each.parentElement) {
            const colour = getComputedStyle(each).backgroundColor;
            if (!/, 0\\)$|^transparent$/.test(colour) && !/, 0\\.\\d+\\)$/.test(colour)) return colour;
        }
        return "rgb(255, 255, 255)";
    };
    const found = [];
    const read = "h1,h2,h3,p,a,button,dt,dd,th,td,label,summary,span,code,input,li,.node text";
    for (const node of document.querySelectorAll(read)) {
        if (!node.checkVisibility() || node.closest(".unseen") || !node.textContent.trim()) continue;
        const style = getComputedStyle(node);
        const svg = node.tagName === "text";
        const paper = svg ? getComputedStyle(node.parentElement.querySelector(".box")).fill : behind(node);
        const [a, b] = [light(svg ? style.fill : style.color), light(paper)];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) found.push([node.tagName, node.textContent.slice(0, 30), contrast]);
    }
    return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_by_day_and_by_night(report: Path, browser: Any, scheme: Any) -> None:
    """Contrasts of at least 4.5 to 1, as the reader's system prefers and after the button."""
    with opened(browser, report, color_scheme=scheme) as page:
        paper = "getComputedStyle(document.documentElement).backgroundColor"
        first = page.evaluate(paper)
        assert (first == "rgb(255, 255, 255)") is (scheme == "light")
        assert not page.evaluate(CONTRASTS)
        page.click("#theme")
        assert page.evaluate(paper) != first and not page.evaluate(CONTRASTS)


def test_paper_gets_the_whole_tree(report: Path, browser: Any) -> None:
    """However it was moved, and in the dark: white paper, all nodes on one page, no controls."""
    with opened(browser, report, color_scheme="dark") as page:
        page.click("#layout")
        page.click("#layout")
        page.click("#zoom-in")
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
        for part in (".controls", "#row", "#theme", "nav", "#details", ".tall"):
            assert page.locator(part).first.is_hidden(), part
        assert page.locator(".wide").is_visible() and page.evaluate(ALL_INSIDE)
        assert not page.evaluate(CONTRASTS)
        assert page.pdf(format="A4").startswith(b"%PDF")


def test_motion_can_be_switched_off(report: Path, browser: Any) -> None:
    """Where the reader prefers less motion nothing glides."""
    for motion, seconds in (("no-preference", "0.2s"), ("reduce", "0s")):
        with opened(browser, report, reduced_motion=motion) as page:
            page.click("#zoom-in")
            told = page.evaluate("getComputedStyle(document.querySelector('.wide .world')).transitionDuration")
            assert told == seconds


# ---------------------------------------------------------------- those who listen


def test_the_page_has_landmarks_and_names(report: Path, browser: Any) -> None:
    """One main and one first heading, headings without gaps, a name for every field, button, region and node."""
    with opened(browser, report) as page:
        for landmark in ("header", "nav", "main", "footer", "h1"):
            assert page.locator(landmark).count() == 1
        levels = [
            int(tag[1]) for tag in page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(e => e.tagName)")
        ]
        assert all(after <= before + 1 for before, after in pairwise(levels))
        nameless = page.evaluate(
            """[...document.querySelectorAll("button, select, input, [role=region], [role=treeitem], section, aside")]
                .filter(node => node.checkVisibility()).filter(node => !(node.getAttribute("aria-label")
                    || node.getAttribute("aria-labelledby") || node.labels?.length || node.textContent.trim()))
                .map(node => node.outerHTML.slice(0, 80))"""
        )
        assert not nameless
        assert page.locator(".wide[role=tree] [role=treeitem]").count() == 15
        tree = page.locator("main").aria_snapshot()
        assert "tree" in tree and 'treeitem "Leaf: ' in tree
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(node => node.id)")
        assert len(set(ids)) == len(ids)
        page.click("summary:has-text('as a list')")
        assert page.locator(".rules li").count() == 15 and page.locator(".rules strong").count() == 8


def test_without_a_script_all_is_there(report: Path, browser: Any) -> None:
    """The picture, the list and all figures; only what moves does not."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator(".wide").is_visible() and page.locator("#confusion-test").is_visible()
    page.click("summary:has-text('as a list')")
    assert page.locator(".rules").is_visible()
    context.close()
