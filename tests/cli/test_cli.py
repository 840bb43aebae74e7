"""The command line: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_oct import OptimalTreeClassifier, Solver
from accel_oct.cli import app, main
from accel_oct.encoding import AllThresholdsEncoder
from accel_oct.errors import InvalidInputError
from accel_oct.io import read_table
from accel_oct.mip import backend_availability, backend_names


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CSV file with numbers, text, booleans and missing values."""
    rng = np.random.default_rng(2)
    path = tmp_path_factory.mktemp("cli") / "data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "region", "member", "class"])
        for _ in range(80):
            age, region = int(rng.integers(20, 80)), str(rng.choice(["north", "south", ""]))
            writer.writerow(
                [age if rng.random() > 0.1 else "", region, rng.random() < 0.5, "old" if age >= 50 else "young"]
            )
    return path


@pytest.fixture(scope="module")
def model(data: Path) -> Path:
    path = data.with_name("model.json")
    assert main(["fit", str(data), "--target", "class", "--max-depth", "2", "-o", str(path), "--quiet"]) == 0
    return path


def test_fit_prints_the_tree_and_shows_progress(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tree on standard output, progress on standard error only."""
    assert main(["fit", str(data), "--target", "class", "--max-depth", "1"]) == 0
    printed = capsys.readouterr()
    assert "if age >= " in printed.out
    assert "optimal" in printed.out
    assert "bound" in printed.err
    assert main(["fit", str(data), "--target", "class", "--cv", "2", "--quiet", "--leaf-penalty", "0.1,0.01"]) == 0
    printed = capsys.readouterr()
    assert "cross-validated" in printed.out
    assert printed.err == ""


def test_cross_validation_selects_depth_and_smallest_leaf(data: Path, tmp_path: Path) -> None:
    """`--max-depth auto` and several `--min-samples-leaf` reach the classifier, from the shell and from a run file."""
    path, run = tmp_path / "model.json", tmp_path / "run.toml"
    common = ["fit", str(data), "-t", "class", "-q", "-o", str(path), "--cv", "2", "--leaf-penalty", "0.1,0.01"]
    assert main([*common, "--max-depth", "auto", "--min-samples-leaf", "4,6"]) == 0
    assert OptimalTreeClassifier.from_json(path).min_samples_leaf in (4, 6)
    run.write_text('[tree]\nmax_depth = "auto"\nmin_samples_leaf = [5, 7]\nties = "support"\n', encoding="utf-8")
    assert main([*common, "--config", str(run)]) == 0
    model = OptimalTreeClassifier.from_json(path)
    assert model.min_samples_leaf in (5, 7)
    assert model.ties == "support"


def test_predict_takes_columns_by_name(data: Path, model: Path, tmp_path: Path) -> None:
    """In any order, with further columns; classes and probabilities as CSV."""
    rows = list(csv.reader(data.open(encoding="utf-8")))
    shuffled = tmp_path / "shuffled.csv"
    with shuffled.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([row[2], "more", row[1], row[0]] for row in rows)
    out = tmp_path / "out.csv"
    assert main(["predict", str(model), str(shuffled), "--proba", "-o", str(out)]) == 0
    written = list(csv.reader(out.open(encoding="utf-8")))
    assert written[0] == ["prediction", "probability of old", "probability of young"]
    expected = OptimalTreeClassifier.from_json(model).predict(read_table(data).select(["age", "region", "member"]))
    assert [row[0] for row in written[1:]] == expected.tolist()


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("text", "if age"),
        ("dot", "digraph"),
        ("svg", "<svg"),
        ("html", "<div"),
        ("python", "def predict(row)"),
        ("sql", "CASE WHEN"),
        ("pmml", "<TreeModel"),
        ("table", "class  probability"),
        ("table-csv", ",class,probability"),
        ("table-html", "<table"),
    ],
)
def test_show(model: Path, form: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every form on standard output."""
    assert main(["show", str(model), "--format", form]) == 0
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "start"),
    [("tree.onnx", b"\x08"), ("tree.pmml", b"<?xml"), ("tree.csv", b"age,"), ("tree.sql", b"CASE WHEN")],
)
def test_show_takes_the_format_of_the_ending(model: Path, tmp_path: Path, name: str, start: bytes) -> None:
    """ONNX, PMML, a decision table and SQL."""
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'accel-oct[onnx]'")
    assert main(["show", str(model), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes().startswith(start)


def test_show_has_options_of_formats(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The dialect of SQL, which other formats refuse; ONNX needs a file."""
    assert main(["show", str(model), "--format", "sql", "--dialect", "mysql"]) == 0
    assert "CASE WHEN `age`" in capsys.readouterr().out
    for arguments in (["--dialect", "mysql"], ["-f", "pmml", "--missing-text", "?"]):
        assert main(["show", str(model), *arguments]) == 2
        assert "belongs to --format" in capsys.readouterr().err
    assert main(["show", str(model), "-f", "onnx"]) == 2
    assert "--format onnx needs --output" in capsys.readouterr().err


def test_show_draws(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A picture needs a file, whose ending says which kind it is."""
    picture = tmp_path / "tree.png"
    assert main(["show", str(model), "-o", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["show", str(model), "--format", "png"]) == 2
    assert "--output" in capsys.readouterr().err


def test_path_and_encode(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CSV with a row per penalty; CSV with a binary column per condition."""
    assert main(["path", str(data), "--target", "class", "--leaf-penalty", "0.5", "--leaf-penalty", "0.01", "-d2"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["status"] for row in rows] == ["optimal", "optimal"]
    assert int(rows[0]["leaves"]) <= int(rows[1]["leaves"])
    for encoder in ("quantile-thresholds", "quantile-buckets", "all-thresholds", "tree-guided"):
        assert main(["encode", str(data), "--target", "class", "--encoder", encoder, "--quantiles", "4"]) == 0
        table = list(csv.DictReader(capsys.readouterr().out.splitlines()))
        assert {"region = south", "region is missing", "age is missing", "member", "class"} <= set(table[0])
        assert {value for row in table for key, value in row.items() if key != "class"} == {"0", "1"}


def test_backends_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """HiGHS is always ready; each solver behind Pyomo has its own line, with the reason if it cannot be used."""
    assert main(["backends"]) == 0
    printed = capsys.readouterr().out
    assert "highs        ready" in printed
    for name in backend_names():
        found = backend_availability(name)
        assert f"{name:12s} {'ready' if found else 'no'}" in printed and found.reason in printed


def test_errors_are_one_line_and_code_two(data: Path, model: Path, tmp_path: Path) -> None:
    """Run as a user does, without a traceback."""
    newer = tmp_path / "newer.json"
    newer.write_text(json.dumps({**json.loads(model.read_text(encoding="utf-8")), "schema": 99}), encoding="utf-8")
    command = [sys.executable, "-m", "accel_oct", "predict", str(newer), str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("accel-oct: error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "DATA", "--target", "nothing"], "no column 'nothing'"),
        (["fit", "DATA", "--target", "class", "--max-depth", "-1"], "max_depth"),
        (["fit", "DATA", "--target", "class", "--leaf-penalty", "-1"], "leaf_penalty"),
        (["fit", "DATA", "--target", "class", "--leaf-penalty", "0.1,0.2"], "--cv"),
        (["fit", "DATA", "--target", "class", "--max-depth", "2,3"], "--cv"),
        (["fit", "DATA", "--target", "class", "--min-samples-leaf", "1,5"], "--cv"),
        (["path", "DATA", "--target", "class", "--min-samples-leaf", "1,5"], "--cv"),
        (["fit", "DATA", "--target", "class", "--max-depth", "auto"], "--max-depth must be a number, got 'auto'"),
        (["fit", "DATA", "--target", "class", "--max-depth", "deep"], "--max-depth must be a number, got 'deep'"),
        (["fit", "DATA", "--target", "class", "--max-depth", "2.5"], "--max-depth must be a whole number"),
        (["fit", "DATA", "--target", "class", "--scoring", "f1"], "--cv"),
        (["fit", "DATA", "--target", "class", "--quantiles", "4"], "--encoder"),
        (["fit", "DATA", "--target", "class", "--class-weight", "ol=2"], "did you mean 'old'"),
        (["fit", "DATA", "--target", "class", "--class-weight", "old"], "LABEL=WEIGHT"),
        (["fit", "DATA", "--target", "class", "--sample-weight", "region"], "must hold numbers"),
        (["fit", "DATA", "--target", "class", "--sample-weight", "ago"], "did you mean 'age'"),
        (["fit", "DATA", "--target", "class", "--exclude", "ages"], "no column 'ages'"),
        (["fit", "DATA"], "no target was given"),
        (["fit", "--target", "class"], "no table was given"),
        (["fit", "DATA", "--target", "class", "--json", "-o", "-"], "both use standard output"),
        (["fit", "DATA", "--target", "class", "--max-dept", "3"], "--max-depth"),
        (["fti", "DATA"], "did you mean 'fit'"),
        (["near-optimal", "DATA", "--target", "class", "--pick", "2"], "--output"),
        (["near-optimal", "DATA", "--target", "class", "--pick", "0", "-o", "x"], "--pick must lie between"),
        (["config", "fast"], "unknown preset 'fast'"),
        (["predict", "-", "-"], "both be standard input"),
        (["fit", "DATA", "--target", "class", "--backend", "abacus"], "abacus"),
        (["fit", "DATA", "--target", "class", "--missing", "error"], "missing value"),
        (["fit", "DATA", "--target", "region"], "y has a missing"),
        (["predict", "MODEL", "MODEL"], "no column|fields|not a CSV file"),
        (["predict", "DATA", "DATA"], "cut off|damaged"),
        (["encode", "DATA", "--encoder", "tree-guided"], "requires y"),
    ],
)
def test_bad_arguments(
    arguments: list[str], message: str, data: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each with what is wrong."""
    given = [{"DATA": str(data), "MODEL": str(model)}.get(argument, argument) for argument in arguments]
    assert main(given) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert any(part.lower() in error.lower() for part in message.split("|"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "DATA", "--target", "class", "--cv", "1"], "n_splits"),
        (["fit", "DATA", "--target", "class", "--cv", "1000"], "n_splits"),
        (["fit", "DATA", "--target", "class", "--cv", "2", "--backend", "abacus"], "abacus"),
        (["fit", "DATA", "--target", "class", "--seed", "-1"], "seed"),
        (["fit", "DATA", "--target", "class", "--threads", "0"], "threads"),
        (["fit", "DATA", "--target", "class", "--encoder", "quantile-buckets", "--quantiles", "1"], "n_quantiles"),
        (["fit", "DATA", "--target", "class", "--time-limit", "nan"], "time_limit"),
        (["fit", "DATA", "--target", "class", "--separator", ",,"], "not a CSV file"),
        (["fit", "a\0b", "--target", "class"], "NUL"),
        (["fit", "DATA", "--target", "age"], "missing"),
        (["fit", "DATA", "--target", "class", "-o", "/nowhere/model.json"], "/nowhere"),
        (["predict", "/dev/zero", "DATA"], "not a regular file"),
        (["predict", "a\0b", "DATA"], "NUL"),
        (["path", "DATA", "--target", "class", "--leaf-penalty", "nan"], "leaf_penalties"),
    ],
)
def test_what_a_user_can_get_wrong_is_bad_input(
    arguments: list[str], message: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence and exit code 2, also where another library noticed first."""
    given = [str(data) if argument == "DATA" else argument for argument in arguments]
    assert main(given) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error


@pytest.mark.parametrize("error", [ValueError, TypeError, KeyError, ZeroDivisionError])
def test_our_own_bugs_are_not_called_bad_input(
    error: type[Exception],
    data: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 1, the traceback, and where to report it."""

    def broken(*arguments: object, **keywords: object) -> None:
        raise error("a bug of ours")

    monkeypatch.setattr("accel_oct.estimators.optimal.solve", broken)
    monkeypatch.setattr(OptimalTreeClassifier, "predict", broken)
    for arguments in (["fit", str(data), "--target", "class", "--quiet"], ["predict", str(model), str(data)]):
        assert main(arguments) == 1
        told = capsys.readouterr().err
        assert "Traceback" in told and "in broken" in told
        assert "this is a bug of accel_oct" in told.splitlines()[-1] and "report it" in told


def test_debug_shows_where_an_error_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    """Before or after the command; the exit code stays."""
    for arguments in (["--debug", "fit", "absent.csv", "-t", "y"], ["fit", "absent.csv", "-t", "y", "--debug"]):
        assert main(arguments) == 2
        told = capsys.readouterr().err
        assert "Traceback" in told and "read_table" in told
        assert told.splitlines()[-1].startswith("accel-oct: error: cannot read absent.csv")


def test_formulas_are_escaped_on_request(tmp_path: Path) -> None:
    """Text that a spreadsheet would run gets an apostrophe, with the option only; numbers are left alone."""
    labels = ["=1+1", "+1a", "-1a", "@SUM(A1)", "\ttab", "plain"]
    X = np.repeat(np.arange(float(len(labels))), 5)[:, None]
    table, out = tmp_path / "new.csv", tmp_path / "out.csv"
    table.write_text("x0\n" + "".join(f"{x}\n" for x in np.arange(len(labels))), encoding="utf-8")
    for y in (np.repeat(labels, 5), np.repeat(np.arange(-3, 3), 5)):
        fitted = OptimalTreeClassifier(3, 0.0, encoder=AllThresholdsEncoder()).fit(X, y)
        fitted.to_json(tmp_path / "model.json")
        expected = fitted.predict(np.arange(float(len(labels)))[:, None]).tolist()
        for escape in (False, True):
            command = ["predict", str(tmp_path / "model.json"), str(table), "-o", str(out)]
            assert main([*command, "--escape-formulas"] if escape else command) == 0
            written = [row[0] for row in csv.reader(out.open(encoding="utf-8"))][1:]
            dangerous = escape and y.dtype.kind == "U"
            assert written == [f"'{v}" if dangerous and v[0] in "=+-@\t" else str(v) for v in expected]


def test_warnings_for_developers_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A file that Ctrl-C left open while a package was loaded is nothing to tell a user."""
    with app._warnings_as_lines():
        for category in (ResourceWarning, DeprecationWarning, UserWarning):
            warnings.warn(f"a {category.__name__}", category, stacklevel=1)
    assert capsys.readouterr().err == "accel-oct: warning: a UserWarning\n"


def test_a_time_limit_warns_in_one_line(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not proven is a warning, a tree, and exit code 3."""
    arguments = ["fit", str(data), "--target", "class", "--time-limit", "0", "--preset", "baseline", "--quiet"]
    assert main([*arguments, "--leaf-penalty", "0.0001", "--max-depth", "4"]) == 3
    assert "accel-oct: warning: the tree is not proven optimal" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "empty"), ("a,b\n1\n", "line 2: 1 fields"), ("a,a\n1,2\n", "alike")],
)
def test_broken_csv_files(text: str, message: str, tmp_path: Path) -> None:
    """With the row that does not fit."""
    path = tmp_path / "broken.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=message):
        read_table(path)


def test_fit_says_what_the_estimator_knows(data: Path, tmp_path: Path) -> None:
    """The same parameters at the shell and in Python give the same objective; all of them arrive."""
    path = tmp_path / "model.json"
    given = ["-d", "2", "--leaf-penalty", "0.02", "--class-weight", "old=2", "--class-weight", "young=1"]
    given += ["--min-samples-leaf", "0.1", "--max-leaf-nodes", "3", "--max-features-used", "1", "--exclude", "region"]
    given += [
        "--ties",
        "support",
        "--gap",
        "0.001",
        "--seed",
        "3",
        "--time-limit",
        "50",
        "--threads",
        "2",
        "--backend",
        "auto",
    ]
    assert main(["fit", str(data), "-t", "class", "-q", "-o", str(path), *given]) == 0
    found = OptimalTreeClassifier.from_json(path)
    X, y = read_table(data, target="class")
    wanted = OptimalTreeClassifier(
        2,
        0.02,
        class_weight={"old": 2.0, "young": 1.0},
        min_samples_leaf=0.1,
        max_leaf_nodes=3,
        max_features_used=1,
        exclude=["region"],
        ties="support",
        solver=Solver("auto", threads=2, seed=3, gap=0.001),
        time_limit=50.0,
    )
    skipped = {"constraints", "components", "progress", "encoder", "verbose"}
    for name, value in wanted.get_params(deep=False).items():
        assert name in skipped or getattr(found, name) == value, name
    assert found.encoder == "auto"
    assert found.objective_ == wanted.fit(X, y).objective_


def test_fit_weighs_rows(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A column of weights is no feature, and a row of weight two counts as two rows."""
    rows = data.read_text(encoding="utf-8").splitlines()
    weighted, repeated = tmp_path / "weighted.csv", tmp_path / "repeated.csv"
    weights = [1 + place % 3 for place in range(len(rows) - 1)]
    weighted.write_text("\n".join([f"w,{rows[0]}", *map("{},{}".format, weights, rows[1:])]), encoding="utf-8")
    repeated.write_text(
        "\n".join([rows[0], *(row for row, w in zip(rows[1:], weights, strict=True) for _ in range(w))]),
        encoding="utf-8",
    )
    told = []
    for path, more in ((weighted, ["--sample-weight", "w"]), (repeated, [])):
        assert main(["fit", str(path), "-t", "class", "-d", "2", "-q", "--json", *more]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0]["objective"] == pytest.approx(told[1]["objective"], abs=1e-12)
    assert told[0]["accuracy"] == pytest.approx(told[1]["accuracy"], abs=1e-12)
    assert "w" not in told[0]["columns_used"]


def test_fit_to_standard_output(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The model alone; the tree for people goes to standard error."""
    assert main(["fit", str(data), "-t", "class", "-d", "1", "-q", "-o", "-"]) == 0
    told = capsys.readouterr()
    assert OptimalTreeClassifier.from_json(told.out).status_ == "optimal"
    assert told.err.startswith("if age ")


def test_what_packages_print_is_no_result(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Solvers that print do not spoil a document: that goes to standard error."""
    before = OptimalTreeClassifier.fit

    def loud(self: OptimalTreeClassifier, *arguments: Any, **keywords: Any) -> Any:
        print("Welcome to the solver")
        return before(self, *arguments, **keywords)

    monkeypatch.setattr(OptimalTreeClassifier, "fit", loud)
    assert main(["fit", str(data), "-t", "class", "-d", "1", "-q", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["status"] == "optimal" and told.err == "Welcome to the solver\n"


def test_a_gap_that_was_asked_for_is_no_failure(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0 when the gap is reached, although nothing is proven optimal."""
    arguments = ["fit", str(data), "-t", "class", "-d", "2", "--gap", "10", "--preset", "baseline", "-q", "--json"]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["gap"] <= 10 and told["exit_code"] == 0


def test_near_optimal_trees_are_listed(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Best first, within the distance; one of them becomes a model that `check` knows."""
    command = ["near-optimal", str(data), "-t", "class", "-d", "2", "--within", "0.1", "--limit", "5", "-q"]
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    objectives = [tree["objective"] for tree in told["trees"]]
    assert len(objectives) == 5 and objectives == sorted(objectives, reverse=True)
    assert objectives[0] == told["optimum"] and objectives[-1] >= told["optimum"] - 0.1 - 1e-9
    picked = tmp_path / "picked.json"
    assert main([*command, "--pick", "3", "-o", str(picked)]) == 0
    model = OptimalTreeClassifier.from_json(picked)
    assert model.objective_ == pytest.approx(objectives[2]) and model.bound_ == pytest.approx(told["optimum"])
    assert main(["check", str(picked), str(data)]) in (0, 3)
    assert main([*command, "-o", str(tmp_path / "trees.csv")]) == 0
    rows = list(csv.DictReader((tmp_path / "trees.csv").open(encoding="utf-8")))
    assert [row["rank"] for row in rows] == ["1", "2", "3", "4", "5"]


def test_frontier_is_a_table(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row per number of leaves, never worse with more of them; constraints on leaves are kept."""
    assert main(["frontier", str(data), "-t", "class", "-d", "2", "-q"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["max_leaves"] for row in rows] == ["1", "2", "3", "4"]
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores) and {row["proven"] for row in rows} == {"True"}
    assert main(["frontier", str(data), "-t", "class", "-d", "2", "-q", "--constraint", "max_leaves(2)"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_report_is_written(data: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One page with the name of the target's classes, and with trees that are almost as good."""
    page = tmp_path / "report.html"
    more = ["--test", str(data), "--near-optimal", "0.01", "--title", "Who is old?"]
    assert main(["report", str(model), str(data), "-o", str(page), *more]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.lstrip().lower().startswith("<!doctype html>") and "Who is old?" in text and "young" in text
    assert capsys.readouterr().out == f"wrote {page}\n"
    assert main(["report", str(model), str(data)]) == 2
    assert "--output" in capsys.readouterr().err


def test_encode_without_a_target(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Quantiles need no classes; what needs them says so."""
    assert main(["encode", str(data)]) == 0
    assert "class = young" in capsys.readouterr().out.splitlines()[0]
    assert main(["encode", str(data), "--encoder", "auto"]) == 2
    assert "--target" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "wanted"),
    [("accel-oct f", {"fit", "frontier"}), ("accel-oct fit --max-l", {"--max-leaf-nodes"})],
)
def test_shells_complete(words: str, wanted: set[str]) -> None:
    """Commands and options, as bash asks for them."""
    script = "import sys\nfrom accel_oct.cli import main\nsys.exit(main())"
    asked = {"_ACCEL_OCT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **asked}, timeout=60
    )
    assert set(done.stdout.split()) == wanted


def test_the_package_is_a_command() -> None:
    """And nothing at all is help, with the exit code of a command line that cannot be used."""
    done = subprocess.run([sys.executable, "-m", "accel_oct"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and done.stdout.startswith("Usage: accel-oct [OPTIONS] COMMAND")
    assert "\x1b" not in done.stdout


def test_explain_prints_and_writes(data: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text, JSON and a table agree with `explain` of the model that was read."""
    found = OptimalTreeClassifier.from_json(model).explain(
        read_table(data, like=OptimalTreeClassifier.from_json(model)), fixed=["region"], direction={"age": 1}
    )
    arguments = [str(model), str(data), "--fixed", "region", "--direction", "age=up", "--quiet"]
    assert main(["explain", *arguments]) == 0
    assert capsys.readouterr().out.strip() == str(found)
    assert main(["explain", *arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["explanations"] == found.to_dicts()
    for name in ("out.csv", "out.parquet"):
        assert main(["explain", *arguments, "-o", str(tmp_path / name)]) == 0
        table = read_table(tmp_path / name)
        assert table.columns[table.names.index("prediction")].tolist() == [each.prediction for each in found]
    assert main(["explain", str(model), str(data), "--to", "old", "-q", "-o", str(tmp_path / "out.csv")]) == 0
    capsys.readouterr()
    for wrong, message in ((["--direction", "age=1"], "COLUMN=up"), (["--to", "x"], "--to must be a class")):
        assert main(["explain", str(model), str(data), *wrong]) == 2
        assert message in capsys.readouterr().err


def test_report_writes_a_card_and_refits(data: Path, model: Path, tmp_path: Path) -> None:
    """`--card` alone or beside a report; `--bootstrap` and `--groups` reach both; without a file it is an error."""
    card, page = tmp_path / "card.md", tmp_path / "report.html"
    assert main(["report", str(model), str(data), "--card", str(card), "-q"]) == 0
    assert "## Stability" not in card.read_text(encoding="utf-8")
    more = ["--bootstrap", "2", "--groups", "region", "--seed", "4", "-o", str(page), "-q"]
    assert main(["report", str(model), str(data), "--card", str(card), *more]) == 0
    assert "## Stability" in card.read_text(encoding="utf-8")
    assert "region = north" in page.read_text(encoding="utf-8")
    assert "stability-section" in page.read_text(encoding="utf-8")
    assert main(["report", str(model), str(data)]) == 2


def test_probabilities_of_the_command_line(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--smoothing` and `--calibrate` are parameters of the model; `predict --unweighted` leaves out class weights."""
    path = tmp_path / "model.json"
    fit = ["fit", str(data), "-t", "class", "-d", "1", "-q", "-o", str(path), "--class-weight", "old=3"]
    assert main([*fit, "--smoothing", "2"]) == 0
    stored = OptimalTreeClassifier.from_json(path)
    assert (stored.smoothing, stored.smoothing_, stored.calibrate) == (2.0, 2.0, None)
    X = read_table(data, like=stored)
    capsys.readouterr()
    for extra, weighted in (([], True), (["--unweighted"], False)):
        assert main(["predict", str(path), str(data), "--proba", "--json", "-q", *extra]) == 0
        shares = json.loads(capsys.readouterr().out)["probabilities"]
        np.testing.assert_allclose(shares, stored.predict_proba(X, class_weights=weighted))
    assert main([*fit, "--calibrate", "2"]) == 0
    assert OptimalTreeClassifier.from_json(path).calibrate == 2
