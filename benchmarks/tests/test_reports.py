"""Reports say what the rows say: solved, times, gaps, means, profiles, tests; and the files that are written."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from bench_support import real_rows, solved, written

from accel_oct.errors import InvalidInputError
from accel_oct_bench.command import main
from accel_oct_bench.reports.comparison import (
    Comparison,
    comparisons,
    family,
    labels,
    paired_test,
    performance_profile,
    shifted_geometric_mean,
)
from accel_oct_bench.reports.report import build, fill, write
from accel_oct_bench.reports.tables import (
    Cell,
    Table,
    data_table,
    failure_table,
    html_table,
    latex_table,
    markdown_table,
    number,
    summary_table,
)
from accel_oct_bench.results import all_rows, one_per_run
from accel_oct_bench.rows import Method, Row, run_key

pytest.importorskip("matplotlib", reason="the extra accel-oct[plot] is not installed").use("Agg")


def made_up(
    data: str, method: str, seconds: float, status: str = "optimal", gap: float | None = 0.0, **more: object
) -> Row:
    """A row with these figures; the instance is that of a data set of this name, the limit 10 s."""
    base = solved("gen-monk1", 2, 0.04)
    instance = replace(base.instance, data=data, fingerprint=data)
    how = Method(**{"name": method, "time_limit": 10.0, **more})  # type: ignore[arg-type]
    return replace(
        base, key=run_key(instance, how), instance=instance, method=how, wall_seconds=seconds, status=status, gap=gap
    )


def pairs(n: int, ratio: float, spread: float = 0.05, seed: int = 0) -> list[Row]:
    """`n` data sets on which b takes about `ratio` times as long as a."""
    rng = np.random.default_rng(seed)
    rows = []
    for place in range(n):
        base = float(rng.uniform(0.5, 2.0))
        rows += [
            made_up(f"d{place}", "a", base),
            made_up(f"d{place}", "b", base * ratio * np.exp(rng.normal(0, spread))),
        ]
    return rows


def only(rows: list[Row]) -> Comparison:
    (comparison,) = comparisons(rows)
    return comparison


# ---------------------------------------------------------------- what is compared


def test_methods_are_compared_on_the_same_instances_only() -> None:
    """A method that ran on a part of the instances is in a comparison of that part."""
    rows = [*pairs(4, 1.0), made_up("d0", "c", 1.0), made_up("d1", "c", 1.0)]
    wide, narrow = sorted(comparisons(rows), key=lambda one: -len(one.instances))
    assert (wide.methods, len(wide.instances)) == (("a", "b"), 4)
    assert (narrow.methods, len(narrow.instances)) == (("a", "b", "c"), 2)


def test_an_unfinished_suite_does_not_repeat_itself() -> None:
    """With one row missing there is one comparison, of the instances that all ran; not another with one method less."""
    rows = [made_up(f"d{place}", name, 1.0) for place in range(20) for name in "abc"][:-1]
    comparison = only(rows)
    assert comparison.methods == ("a", "b", "c") and len(comparison.instances) == 19


def test_ablations_become_two_panels_per_backend() -> None:
    """Techniques alone, and one left out, for each backend by itself."""
    names = ("none", "EC", "SP", "all", "all but EC", "all but SP")
    rows = [made_up("d", name, 1.0, backend=backend) for name in names for backend in ("scip", "gurobi")]
    found = {one.title: one.methods for one in comparisons(rows)}
    assert found["test on scip, in isolation"] == ("none", "EC", "SP", "all")
    assert found["test on gurobi, one left out"] == ("none", "all", "all but EC", "all but SP")
    assert len(found) == 4


def test_labels_say_what_differs() -> None:
    """One name on two backends is two methods; a single one keeps its name."""
    rows = [made_up("d", "x", 1.0, backend=name) for name in ("scip", "highs")] + [made_up("d", "y", 1.0)]
    assert sorted(labels(rows).values()) == ["x (highs)", "x (scip)", "y"]
    assert [family(name) for name in ("iris_QB_5", "iris_QT_5", "monk1")] == ["iris", "iris", "monk1"]


def test_unsolved_runs_count_at_the_limit() -> None:
    """A crash after a second counts as ten, CART's second as a second; a claim of infeasibility is a proof."""
    rows = [
        made_up("d", "a", 1.0, "crashed", None),
        made_up("d", "b", 1.0, "finished", None),
        made_up("d", "c", 1.0, "infeasible", None),
        made_up("d", "e", 10.3, "time_limit", 0.25),
    ]
    comparison = only(rows)
    assert [comparison.seconds(name)[0] for name in "abce"] == [10.0, 1.0, 1.0, 10.3]
    assert [bool(comparison.solved(name)[0]) for name in "abce"] == [False, False, True, False]
    assert [comparison.gaps(name)[0] for name in "abce"] == [np.inf, np.inf, 0.0, 0.25]
    assert [comparison.claims(name) for name in "abce"] == [True, False, True, True]


# ---------------------------------------------------------------- statistics


def test_shifted_geometric_mean_by_hand() -> None:
    """exp(mean(log(t + s))) - s of 0.9 and 99.9 with shift 0.1 is sqrt(1 * 100) - 0.1."""
    assert shifted_geometric_mean(np.array([0.9, 99.9]), 0.1) == pytest.approx(9.9)


def test_profile_by_hand() -> None:
    """Of three instances: a is fastest on two; b within a factor of 4 on two and unsolved on one."""
    times = {"d0": (1.0, 2.0), "d1": (1.0, 10.0), "d2": (4.0, 1.0)}
    rows = [made_up(data, "a", first) for data, (first, _) in times.items()]
    rows += [
        made_up(data, "b", second, *(("time_limit", 0.1) if second == 10.0 else ()))
        for data, (_, second) in times.items()
    ]
    comparison = only(rows)
    factors, shares = performance_profile(comparison, "a")
    assert factors.tolist() == [1.0, 1.0, 4.0] and shares.tolist() == pytest.approx([1 / 3, 2 / 3, 1.0])
    factors, shares = performance_profile(comparison, "b")
    assert factors.tolist() == [1.0, 2.0] and shares.tolist() == pytest.approx([1 / 3, 2 / 3])


def test_a_difference_is_told_from_noise() -> None:
    """Twice as long on 12 data sets exceeds the noise; a factor that goes up and down does not."""
    real = paired_test(only(pairs(12, 2.0)), "a", "b", 0.1)
    assert real.exceeds_noise and real.by_data and 0.45 < real.low < real.ratio < real.high < 0.55
    assert "by more than the noise" in str(real) and "times faster than b" in str(real)
    noise = paired_test(only(pairs(12, 1.0, spread=0.5, seed=1)), "a", "b", 0.1)
    assert not noise.exceeds_noise and "does not exceed the noise" in str(noise)
    back = paired_test(only(pairs(12, 2.0)), "b", "a", 0.1)
    assert back.ratio == pytest.approx(1 / real.ratio) and "times slower than a" in str(back)


def test_many_instances_of_one_data_set_are_not_many_observations() -> None:
    """Six data sets, one of which has a hundred instances in favour of b: six units, and no claim."""
    rows = pairs(5, 1.0, spread=0.3, seed=2)
    for place in range(100):
        for method, seconds in (("a", 2.0), ("b", 1.0)):
            row = made_up("big", method, seconds)
            instance = replace(row.instance, leaf_penalty=place / 1000)
            rows.append(replace(row, instance=instance, key=run_key(instance, row.method)))
    test = paired_test(only(rows), "a", "b", 0.1)
    assert test.units == 6 and test.pairs == 105 and not test.exceeds_noise


def test_time_outs_in_pairs_are_counted() -> None:
    """One time-out counts at the limit, two say nothing; where nothing is solved nothing is said."""
    rows = pairs(8, 2.0)
    lost = [made_up("e0", "a", 1.0), made_up("e0", "b", 10.0, "time_limit", 0.2)]
    both = [made_up("e1", name, 10.0, "time_limit", 0.2) for name in "ab"]
    test = paired_test(only(rows + lost + both), "a", "b", 0.1)
    assert (test.pairs, test.censored, test.dropped) == (9, 1, 1)
    assert test.at_least and "at least" in test.verdict
    won = [made_up("e2", "a", 10.0, "time_limit", 0.2), made_up("e2", "b", 1.0)]
    assert not paired_test(only(rows + lost + won), "a", "b", 0.1).at_least
    nothing = paired_test(only(both), "a", "b", 0.1)
    assert nothing.pairs == 0 and not nothing.exceeds_noise and "nothing can be said" in str(nothing)
    same = paired_test(only([made_up(f"d{k}", name, 1.0) for k in range(8) for name in "ab"]), "a", "b", 0.1)
    assert same.p_value == 1.0 and not same.exceeds_noise


# ---------------------------------------------------------------- tables


def test_the_papers_table_and_its_bold() -> None:
    """Most solved first, then the time, then the gap; means of the solved and of the unsolved, encodings together."""
    rows = []
    for encoding in ("iris_QB_5", "iris_QT_5"):
        rows += [made_up(encoding, "slow", 3.0), made_up(encoding, "fast", 1.0 if "QB" in encoding else 2.0)]
    rows += [made_up("wine", "slow", 9.0), made_up("wine", "fast", 10.0, "time_limit", 0.5)]
    rows += [made_up("zoo", "slow", 10.0, "time_limit", 0.2), made_up("zoo", "fast", 10.0, "time_limit", 0.1)]
    table = data_table(only(rows))
    texts = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    bold = {row[0].text: [cell.bold for cell in row[2:]] for row in table.rows}
    assert texts["iris"] == ["2", "2", "3", "-", "2", "1.5", "-"] and bold["iris"] == [False] * 3 + [True] * 3
    assert texts["wine"] == ["1", "1", "9", "-", "0", "-", "50"] and bold["wine"] == [True] * 3 + [False] * 3
    assert texts["zoo"] == ["1", "0", "-", "20", "0", "-", "10"] and bold["zoo"] == [False] * 3 + [True] * 3
    assert texts["all"][0] == "4" and texts["all"][1] == "3" and texts["all"][4] == "2"


def test_the_summary_counts_best_trees_and_failures() -> None:
    """A crash is a failure; the best tree is counted where the objective is the largest."""
    rows = [made_up("d", "a", 1.0), replace(made_up("d", "b", 1.0, "crashed", None), objective=None, error="it died")]
    table = summary_table(only(rows), 0.1)
    assert [[cell.text for cell in row[-2:]] for row in table.rows] == [["1", "0"], ["0", "1"]]
    failures = failure_table(rows)
    assert failures is not None and [cell.text for cell in failures.rows[0]] == ["b", "crashed", "it died", "1"]
    assert failure_table(rows[:1]) is None


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (np.inf, "-"), (0.0, "0"), (0.01234, "0.0123"), (12345.6, "12346")]
)
def test_numbers(value: float | None, text: str) -> None:
    """Three figures."""
    assert number(value) == text


def test_names_of_results_are_text_in_a_report(tmp_path: Path) -> None:
    """Methods, suites and machines come from files: no tag of theirs is one, and no line of theirs ends a comment."""
    name = "<script>1</script>\n\\input{x}"
    rows = [
        replace(row, suite=name, method=replace(row.method, name=name), machine={"cpu": name, "more": [{}]})
        for row in real_rows()[:2]
    ]
    write(build(rows, [name]), tmp_path)
    texts = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert "<script>" not in texts["report.html"] + texts["report.md"]
    assert not any(line.startswith("\\input") for line in texts["tables.tex"].splitlines())


def test_text_is_escaped() -> None:
    """What a data set or an error may hold does no harm in any format."""
    table = Table("t_1 & more", ["a_b", "n"], [[Cell("<b>|x|*", True), Cell("50%")]], "100% <i>")
    assert r"**&lt;b>\|x\|\***" in markdown_table(table)
    assert "&lt;b&gt;|x|*" in html_table(table) and "<i>" not in html_table(table)
    header = Table("t", ["<i>|x", "\\\\|"], [[Cell("\\\\|"), Cell("1")]])
    assert markdown_table(header).splitlines()[0] == r"| &lt;i>\|x | \\\\\| |"
    assert r"a\_b" in latex_table(table) and r"50\%" in latex_table(table) and r"\textbf{" in latex_table(table)


# ---------------------------------------------------------------- files


class _Checked(HTMLParser):
    """Tags that are opened and closed, and addresses of the network."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "path", "use", "br"):
            self.open.append(tag)
        self.loads += [
            str(value) for name, value in attrs if name in ("src", "href") and not str(value).startswith("#")
        ]

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "use"):
            assert self.open.pop() == tag


def test_all_files_of_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page is whole and loads nothing, pictures are XML, LaTeX is balanced, Markdown shows the pictures."""
    folder = written(list(real_rows()), tmp_path / "results")
    assert main(["report", str(folder), "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "default 8/8; frontier 8/8" in said and "report.html" in said
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    parser = _Checked()
    parser.feed(page)
    assert parser.open == [] and parser.loads == []
    assert "prefers-color-scheme: dark" in page and 'name="viewport"' in page and "<script" not in page
    assert page.index('class="scroll"') < page.index("<svg") < page.index("Per data set")
    for picture in (tmp_path / "out").glob("*.svg"):
        ET.parse(picture)
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert shown and all((tmp_path / "out" / name).is_file() for name in shown)
    tex = (tmp_path / "out" / "tables.tex").read_text(encoding="utf-8")
    assert tex.count(r"\begin{") == tex.count(r"\end{") > 0


def test_reports_are_the_same_twice(tmp_path: Path) -> None:
    """The same rows give the same bytes."""
    reports = [write(build(real_rows(), ["x"]), tmp_path / name, ["html", "svg"]) for name in "ab"]
    assert [path.read_bytes() for path in reports[0]] == [path.read_bytes() for path in reports[1]]


def test_what_a_report_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No rows, another format, another clock, a shift of zero: a sentence each."""
    with pytest.raises(InvalidInputError, match="no rows"):
        build([], ["nothing"])
    with pytest.raises(InvalidInputError, match="shift"):
        build(real_rows(), ["x"], shift=0.0)
    folder = str(written(list(real_rows()[:2]), tmp_path))
    for wrong, word in ((["--format", "pdf"], "format"), (["--clock", "sun"], "clock")):
        assert main(["report", folder, "-o", str(tmp_path / "out"), *wrong]) == 2
        assert word in capsys.readouterr().err
    assert main(["report", str(tmp_path / "nowhere")]) == 2


def test_compressed_rows_and_failures_that_were_run_again(tmp_path: Path) -> None:
    """A .jsonl.gz is read; of two rows of one run the one that is no failure counts."""
    good = real_rows()[0]
    bad = replace(good, status="crashed", objective=None, bound=None, gap=None, tree=None)
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress("".join(row.to_json() + "\n" for row in (bad, good, bad)).encode()))
    sources = all_rows([path])
    assert len(sources[0].rows) == 3 and one_per_run(sources) == (good,)
    (tmp_path / "broken.jsonl.gz").write_bytes(b"no")
    with pytest.raises(InvalidInputError, match=r"broken\.jsonl\.gz"):
        all_rows([tmp_path / "broken.jsonl.gz"])


def test_pages_are_filled_from_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The block is replaced and names its file, the rest stays; details are a page; then all is up to date."""
    (tmp_path / "docs").mkdir()
    written(list(real_rows()), tmp_path / "results")
    page = tmp_path / "docs" / "page.md"
    block = "<!-- bench: results=../results details=generated/all.md -->\nstale text\n<!-- /bench -->"
    page.write_text(f"# Mine\n\n{block}\n\nThe end.\n", encoding="utf-8")
    assert main(["docs", str(page), "--check"]) == 4 and "stale text" in page.read_text(encoding="utf-8")
    assert main(["docs", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Mine\n\n<!-- bench:") and text.endswith("<!-- /bench -->\n\nThe end.\n")
    assert "stale text" not in text and "from results" in text and "| default | 8/8 |" in text.replace("**", "")
    detail = (tmp_path / "docs" / "generated" / "all.md").read_text(encoding="utf-8")
    assert "every instance" in detail and "(../page.md)" in detail
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (page.parent / target).is_file()
    assert main(["docs", str(page), "--check"]) == 0 and fill(page) == []
    page.write_text("nothing", encoding="utf-8")
    assert main(["docs", str(page)]) == 2 and "has no block" in capsys.readouterr().err
