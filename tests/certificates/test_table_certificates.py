"""Certificates over every split of a table: numbers, categories, missing values, ties."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.selection import daily

import accel_oct_checker as checker
from accel_oct import OptimalTreeClassifier
from accel_oct.cli.app import run
from accel_oct.constraints import MinLeafWeight
from accel_oct.encoding import AutoEncoder
from accel_oct.errors import InvalidInputError

pytestmark = pytest.mark.filterwarnings("ignore")


def table(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray, np.ndarray | None]:
    """A random table with few or many values per column, categories and missing values; classes; weights."""
    n = int(rng.integers(4, 30))
    columns: dict[str, np.ndarray] = {}
    for place in range(int(rng.integers(1, 4))):
        kind = int(rng.integers(4))
        if kind == 0:
            columns[f"c{place}"] = rng.choice(["north", "south, east", '"west"'], n)
            continue
        values = rng.normal(size=n).round(2) if kind == 1 else rng.integers(0, 2 + 4 * kind, n).astype(float)
        if rng.random() < 0.4:
            values[rng.random(n) < 0.2] = np.nan
        columns[f"c{place}"] = values
    weights = (None, rng.integers(1, 5, n).astype(float), rng.random(n) + 0.01)[int(rng.integers(3))]
    return pd.DataFrame(columns), rng.integers(0, int(rng.integers(2, 4)), n), weights


@pytest.mark.parametrize("number", daily(range(200), 20, 40))
def test_certificates_of_tables(number: int, tmp_path: Path) -> None:
    """Certificates are accepted, with NumPy and without; lemmas that claim one sample more are refused."""
    rng = np.random.default_rng(number)
    X, y, weights = table(rng)
    depth, penalty = [(1, 0.01), (2, 0.01), (3, 0.02), (3, 1 / len(y)), (None, 0.2)][number % 5]
    model = OptimalTreeClassifier(max_depth=depth, leaf_penalty=penalty).fit(X, y, sample_weight=weights)
    proof, data = tmp_path / "proof.json", tmp_path / "data.csv"
    model.certificate(proof, X, y, weights, table=data)
    for fast in (True, False):
        assert "proven" in checker.check(str(proof), str(data), fast=fast)
    content = json.loads(proof.read_text())
    step = checker.Fraction(content["problem"]["leaf_price"]).denominator
    before = content["lemmas"][-1]["value"]
    for share in (0.0, 0.7):
        for lemma in content["lemmas"]:
            lemma["value"] += step * bool(rng.random() < share)
        content["lemmas"][-1]["value"] = before + step
        proof.write_text(json.dumps(content))
        with pytest.raises(checker.Refused):
            checker.check(str(proof), str(data))


@pytest.mark.parametrize("number", daily(range(100), 15, 30))
def test_counting_finds_the_optimum_among_many_thresholds(number: int, tmp_path: Path) -> None:
    """Up to depth two over many thresholds the least cost is accepted, and one unit more refused, by both counts."""
    rng = np.random.default_rng(number)
    X, y = rng.normal(size=(50, 2)).round(1 + number % 2), rng.integers(0, 2 + number % 2, 50)
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=(0.001, 0.02, 0.05)[number % 3]).fit(X, y)
    proof, data = tmp_path / "proof.json", tmp_path / "data.csv"
    model.certificate(proof, X, y, table=data)
    content = json.loads(proof.read_text())
    assert [lemma["by"] for lemma in content["lemmas"]] == ["count"]
    for fast in (True, False):
        proof.write_text(json.dumps(content))
        assert "proven" in checker.check(str(proof), str(data), fast=fast)
        more = content | {"lemmas": [content["lemmas"][0] | {"value": content["claim"]["cost"] + 1}]}
        proof.write_text(json.dumps(more))
        with pytest.raises(checker.Refused, match="proven to cost"):
            checker.check(str(proof), str(data), fast=fast)


def test_the_file_of_the_user_is_the_table(tmp_path: Path) -> None:
    """A certificate is about the values: other notations of the numbers, and other columns, change nothing."""
    X = pd.DataFrame({"a": [1.0, 2.0, 3.5, 4.0], "b": ["u", "v", "u", "v"]})
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01).fit(X, [0, 1, 1, 0])
    model.certificate(tmp_path / "proof.json", X, [0, 1, 1, 0])
    data = tmp_path / "own.csv"
    data.write_text("target,id,b,a\n0,7,u,1e0\n1,8,v, 2\n1.0,9,u,3.50\n0,10,v,4\n")
    assert "proven" in checker.check(str(tmp_path / "proof.json"), str(data))
    data.write_text(data.read_text().replace("3.50", "3.51"))
    with pytest.raises(checker.Refused, match="fingerprint"):
        checker.check(str(tmp_path / "proof.json"), str(data))


@pytest.mark.parametrize("name", ["", " ", " a", "a\rb", "a\nb", 'a"b', "a,b", "\ufeffa", "\x7f", "\u2028"])
def test_names_of_any_kind(name: str, tmp_path: Path) -> None:
    """Names of columns may be empty, or hold line ends, quotes and white space."""
    X = pd.DataFrame({name: [1.0, 2.0, 3.5, 4.0], "b": ["u\rw", "v", "u\rw", "v"]})
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01).fit(X, [0, 1, 1, 0])
    model.certificate(tmp_path / "proof.json", X, [0, 1, 1, 0], table=tmp_path / "data.csv")
    for fast in (True, False):
        assert "proven" in checker.check(str(tmp_path / "proof.json"), str(tmp_path / "data.csv"), fast=fast)


@pytest.mark.parametrize("texts", [["u", " u"], ["u\n", "u"], ["1", "01"], ["1", "1.0"], ["1e400", "2e400"]])
def test_texts_that_the_checker_reads_as_one(texts: list[str], tmp_path: Path) -> None:
    """No certificate is written for classes or categories that the format does not tell apart."""
    X, y = pd.DataFrame({"a": [1.0, 2.0, 3.5, 4.0]}), np.array(texts * 2, dtype=object)
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01).fit(X, y)
    with pytest.raises(InvalidInputError, match="a certificate needs classes that differ"):
        model.certificate(tmp_path / "proof.json", X, y)
    assert not (tmp_path / "proof.json").exists()
    X = pd.DataFrame({"c": pd.Series(texts * 2, dtype=object)})
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01).fit(X, [0, 1, 0, 1])
    if "1" in texts or "1e400" in texts:  # categories are compared as texts alone
        model.certificate(tmp_path / "proof.json", X, [0, 1, 0, 1], table=tmp_path / "data.csv")
        assert "proven" in checker.check(str(tmp_path / "proof.json"), str(tmp_path / "data.csv"))
    else:
        with pytest.raises(InvalidInputError, match="categories that differ"):
            model.certificate(tmp_path / "proof.json", X, [0, 1, 0, 1])


def test_a_column_of_one_group(tmp_path: Path) -> None:
    """A list of groups may have one entry: all rows have the rank 0."""
    X = pd.DataFrame({"c": ["u", "v", "u", "v"]})
    model = OptimalTreeClassifier(max_depth=1, leaf_penalty=0.6).fit(X, [0, 1, 0, 1])
    model.certificate(tmp_path / "proof.json", X, [0, 1, 0, 1], table=tmp_path / "data.csv")
    content = json.loads((tmp_path / "proof.json").read_text())
    assert content["data"]["columns"] == [["c", "groups", [["u"], ["v"]]]] and content["claim"]["tree"] == [[0]]
    content["data"]["columns"][0][2] = [["u", "v"]]
    (tmp_path / "proof.json").write_text(json.dumps(content))
    for fast in (True, False):
        assert "proven" in checker.check(str(tmp_path / "proof.json"), str(tmp_path / "data.csv"), fast=fast)


def test_chosen_splits(tmp_path: Path) -> None:
    """Where the classifier chose splits, the certificate is about its binary features."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01, encoder=AutoEncoder(2)).fit(X, y)
    model.certificate(tmp_path / "proof.json", X, y, table=tmp_path / "data.csv")
    assert "proven" in checker.check(str(tmp_path / "proof.json"), str(tmp_path / "data.csv"))


def test_what_cannot_be_certified(tmp_path: Path) -> None:
    """A least leaf weight over every split, and weights of zero, are refused in a sentence."""
    X, y = np.arange(8.0)[:, None], [0, 1, 0, 0, 1, 1, 0, 1]
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01, constraints=[MinLeafWeight(samples=2)]).fit(X, y)
    with pytest.raises(InvalidInputError, match="every split"):
        model.certificate(tmp_path / "proof.json", X, y)
    old = OptimalTreeClassifier(max_depth=1, leaf_penalty=0.01).fit(X, y)
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01, close_to=old, within=0.1).fit(X, y)
    with pytest.raises(InvalidInputError, match="close_to"):
        model.certificate(tmp_path / "proof.json", X, y)
    weights = [1.0] * 7 + [0.0]
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01).fit(X, y, sample_weight=weights)
    with pytest.raises(InvalidInputError, match="positive weights"):
        model.certificate(tmp_path / "proof.json", X, y, weights)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`fit --certificate`, `certify` and `check --proof` write and check the same proof."""
    data, model = tmp_path / "data.csv", tmp_path / "model.json"
    rows = ["a,b,class", *(f"{value},{'uv'[value % 2]},{'yes' if value % 3 else 'no'}" for value in range(30))]
    data.write_text("\n".join(rows))
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    assert run(["fit", str(data), "-t", "class", "-d", "2", "-o", str(model), "--certificate", str(first)]) == 0
    table = tmp_path / "table.csv"
    assert run(["certify", str(model), str(data), "-o", str(second), "--table", str(table)]) == 0
    for proof in (first, second):
        for rows in (table, data):
            assert run(["check", str(proof), str(rows), "--proof"]) == 0
    assert "proven" in capsys.readouterr().out
    table.write_text(table.read_text().replace("29,", "31,"))
    assert run(["check", str(first), str(table), "--proof"]) == 4
    assert run(["check", str(model), str(table), "--proof"]) == 2
