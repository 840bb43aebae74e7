"""Certificates in reports: what is stated about them, and which are refused."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.report_support import Outline

import accel_oct_checker as checker
from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.cli.app import run
from accel_oct.constraints import MinLeafWeight
from accel_oct.encoding import AutoEncoder
from accel_oct.errors import InvalidInputError
from accel_oct.report import html_report

Training = tuple[OptimalTreeClassifier, pd.DataFrame, np.ndarray]


def training(seed: int = 0, **parameters: Any) -> Training:
    """A classifier of depth 2, and its data."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.integers(0, 9, 60), "b": rng.choice(["u", "v", "w"], 60)})
    y = np.where((X.a > 4) ^ (X.b == "u") ^ (rng.random(60) < 0.1), "yes", "no")
    return OptimalTreeClassifier(**{"max_depth": 2, "leaf_penalty": 0.01} | parameters).fit(X, y), X, y


@pytest.fixture(scope="module")
def fitted() -> Training:
    return training()


def text_of(fitted: Training, path: Path, **options: Any) -> str:
    return Outline(html_report(*fitted, certificate=path, **options)).text


@pytest.mark.parametrize("name", ["proof.json", "my proof;.json.gz"])
@pytest.mark.parametrize("encoder", ["auto", AutoEncoder(2)])
def test_the_section_states_the_certificate(name: str, encoder: Any, tmp_path: Path) -> None:
    """Fingerprints of file and data, the claim in a sentence, and a command that checks it; without one, no section."""
    fitted = training(encoder=encoder)
    about = fitted[0].certificate(tmp_path / name, *fitted[1:], table=tmp_path / "data.csv", target="class")
    text = text_of(fitted, tmp_path / name)
    assert about.fingerprint == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    for part in (about.fingerprint, about.data_fingerprint, "Of all trees of depth at most 2 over", "'class'", name):
        assert part in text, part
    assert ("binary features" in text) == (encoder != "auto")
    assert f"accel_oct_checker.py {name if ' ' not in name else repr(name)} data.csv" in text
    assert "proven" in checker.check(str(tmp_path / name), str(tmp_path / "data.csv"))
    assert "accel_oct_checker" not in html_report(*fitted)


def test_constraints_weights_and_any_depth_are_stated(tmp_path: Path) -> None:
    """The sentence names constraints and trees of any depth; the column of weights is named."""
    rng = np.random.default_rng(0)
    X, y, weights = rng.integers(0, 2, (30, 4)), rng.integers(0, 2, 30), rng.integers(1, 4, 30)
    parameters = {"leaf_penalty": 0.05, "encoder": None}
    model = OptimalTreeClassifier(max_depth=2, constraints=[MinLeafWeight(amount=5.0)], **parameters)
    model.fit(X, y, sample_weight=weights).certificate(tmp_path / "proof.json", X, y, weights)
    text = Outline(html_report(model, X, y, sample_weight=weights, certificate=tmp_path / "proof.json")).text
    assert "that satisfy its constraints" in text and "the weights in 'weight'" in text
    model = OptimalTreeClassifier(max_depth=None, **parameters).fit(X, y)
    model.certificate(tmp_path / "proof.json", X, y)
    text = Outline(html_report(model, X, y, certificate=tmp_path / "proof.json")).text
    assert "Of all trees of any depth over 4 columns, none" in text


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"max_depth": 1}, "another problem: its depth limit is 1, and the model's is 2"),
        ({"max_depth": 3}, "another problem: its depth limit is 3"),
        ({"max_depth": None}, "another problem: its depth limit is None"),
        ({"leaf_penalty": 0.02}, "another problem: its leaf price"),
        ({"seed": 1}, "other data than those of this report"),
        ({"encoder": AutoEncoder(2)}, "other columns"),
    ],
)
def test_a_certificate_of_another_fit_is_refused(
    other: dict[str, Any], words: str, fitted: Training, tmp_path: Path
) -> None:
    """Another depth, leaf penalty, table or set of splits: a sentence that says which."""
    model, X, y = training(**other)
    model.certificate(tmp_path / "proof.json", X, y)
    with pytest.raises(InvalidInputError, match=words):
        html_report(*fitted, certificate=tmp_path / "proof.json")


def test_a_certificate_of_another_tree_is_refused(tmp_path: Path) -> None:
    """Of two optimal trees each has its own certificate; constraints make another problem."""
    X, y = np.array([[0, 0], [1, 1], [0, 0], [1, 1]]), np.array([0, 1, 0, 1])
    first = OptimalTreeClassifier(max_depth=1, leaf_penalty=0.01, encoder=None).fit(X, y)
    first.certificate(tmp_path / "proof.json", X, y)
    content = json.loads((tmp_path / "proof.json").read_text())
    content["claim"]["tree"][0][0] ^= 1
    (tmp_path / "proof.json").write_text(json.dumps(content))
    with pytest.raises(InvalidInputError, match="another tree"):
        html_report(first, X, y, certificate=tmp_path / "proof.json")
    second = OptimalTreeClassifier(
        max_depth=1, leaf_penalty=0.01, encoder=None, constraints=[MinLeafWeight(samples=2)]
    ).fit(X, y)
    second.certificate(tmp_path / "proof.json", X, y)
    with pytest.raises(InvalidInputError, match="least_leaf_weight is 2, and the model's is None"):
        html_report(first, X, y, certificate=tmp_path / "proof.json")


EDITS: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda found: found["claim"].update(cost=found["claim"]["cost"] - 1), "states the cost"),
    (lambda found: found["claim"].update(cost=True), "states the cost"),
    (lambda found: found["claim"].update(tree=None), "another tree"),
    (lambda found: found["problem"].update(depth=True), "depth limit is True"),
    (lambda found: found["problem"].pop("depth"), "depth limit is None"),
    (lambda found: found["problem"].update(leaf_price=0), "leaf_price must be a fraction"),
    (lambda found: found["problem"].update(least_leaf_weight=3), "least_leaf_weight is 3"),
    (lambda found: found["problem"].update(made_up=[[]]), "made_up"),
    (lambda found: found["data"].update(sha256="0" * 64), "fingerprint '000"),
    (lambda found: found["data"].update(target=3), "data must name"),
    (lambda found: found["data"].update(target="a"), "different names"),
    (lambda found: found["data"].update(weight={}), "data must name"),
    (lambda found: found["data"].update(weight="w"), "other weights"),
    (lambda found: found["data"].update(classes=["no", "maybe"]), "other classes"),
    (lambda found: found.update(data=[]), "data must be an object"),
    (lambda found: found.update(problem=None), "problem must be an object"),
    (lambda found: found.pop("claim"), "claim must be an object"),
    (lambda found: found.update(lemmas=[]), "no lemmas"),
    (lambda found: found.update(lemmas="none"), "no lemmas"),
    (lambda found: found.update(version=2), "version 1"),
    (lambda found: found.update(format="accel-oct model"), "no certificate"),
]


@pytest.mark.parametrize("place", range(len(EDITS)))
def test_an_edited_claim_is_refused(place: int, fitted: Training, tmp_path: Path) -> None:
    """A claim that differs from the model's in one entry, or has an entry of a wrong type: one sentence."""
    edit, words = EDITS[place]
    fitted[0].certificate(tmp_path / "proof.json", *fitted[1:])
    content = json.loads((tmp_path / "proof.json").read_text())
    edit(content)
    (tmp_path / "proof.json").write_text(json.dumps(content))
    with pytest.raises(InvalidInputError, match=words):
        html_report(*fitted, certificate=tmp_path / "proof.json")


def test_leaf_prices_need_not_be_in_lowest_terms(fitted: Training, tmp_path: Path) -> None:
    """An equal fraction is the same price."""
    fitted[0].certificate(tmp_path / "proof.json", *fitted[1:])
    content = json.loads((tmp_path / "proof.json").read_text())
    price = checker.Fraction(content["problem"]["leaf_price"])
    content["problem"] |= {"leaf_price": f"{2 * price.numerator}/{2 * price.denominator}", "least_leaf_weight": 0}
    (tmp_path / "proof.json").write_text(json.dumps(content))
    assert "Certificate" in text_of(fitted, tmp_path / "proof.json")


def hostile_files(folder: Path) -> dict[str, tuple[Path, str]]:
    """Files that are no certificates, with words of the sentence that refuses them."""
    found: dict[str, tuple[Path, str]] = {}

    def add(name: str, content: bytes, words: str) -> None:
        (folder / name).write_bytes(content)
        found[name] = folder / name, words

    add("empty", b"", "not JSON")
    add("binary", bytes(range(256)), "not JSON")
    add("deep", b"[" * 10**6, "not JSON|no certificate")
    add("long number", b'{"format":' + b"9" * 10**5 + b"}", "not JSON|no certificate")
    add("float", b'{"format": "accel-oct certificate", "version": 1.0}', "only integers")
    add("twice", b'{"format": 1, "format": "accel-oct certificate"}', "twice")
    add("list", b"[]", "no certificate")
    add("bomb.gz", gzip.compress(bytes(1 << 28)), "larger than the limit")
    add("cut.gz", gzip.compress(b"{}" * 99)[:-9], "cannot read")
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 30)
    found["huge"] = folder / "huge", "1073741824 bytes"
    os.mkfifo(folder / "pipe")
    found["pipe"] = folder / "pipe", "not a regular file"
    found["missing"] = folder / "missing", "No such file"
    found["folder"] = folder, "not a regular file"
    return found


def test_hostile_files_are_refused(fitted: Training, tmp_path: Path) -> None:
    """Each is refused in a sentence, of which none is a traceback; large files are not read."""
    for name, (path, words) in hostile_files(tmp_path).items():
        with pytest.raises(InvalidInputError, match=words):
            html_report(*fitted, certificate=path)
        assert name
    for wrong in (3, b"proof.json", "a\0b"):
        with pytest.raises(InvalidInputError, match="certificate must"):
            html_report(*fitted, certificate=wrong)  # type: ignore[arg-type]


def test_only_proven_classifiers_have_certificates(fitted: Training, tmp_path: Path) -> None:
    """A tree without a proof, and a cross-validated classifier, are refused in a sentence."""
    _, X, y = fitted
    fitted[0].certificate(tmp_path / "proof.json", X, y)
    many = OptimalTreeClassifierCV(max_depth=2, leaf_penalties=[0.01, 0.1], cv=2).fit(X, y)
    with pytest.raises(InvalidInputError, match="OptimalTreeClassifierCV"):
        many.report(tmp_path / "report.html", X, y, certificate=tmp_path / "proof.json")
    open_ = OptimalTreeClassifier.from_json(fitted[0].to_json())
    object.__setattr__(open_.result_, "status", "time_limit")
    open_.status_ = "time_limit"
    with pytest.raises(InvalidInputError, match="only an optimal tree"):
        open_.report(tmp_path / "report.html", X, y, certificate=tmp_path / "proof.json")


def test_command_line(fitted: Training, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`report --certificate` writes the section; a certificate of another model leaves no file, with exit code 2."""
    data, model, proof = tmp_path / "data.csv", tmp_path / "model.json", tmp_path / "proof.json"
    fitted[1].assign(**{"class": fitted[2]}).to_csv(data, index=False)
    given = ["fit", str(data), "-t", "class", "-o", str(model), "--certificate", str(proof), "-d"]
    page = tmp_path / "page.html"
    report = ["report", str(model), str(data), "--target", "class", "--certificate", str(proof), "-o", str(page)]
    assert run([*given, "2"]) == 0 and run(report) == 0
    assert hashlib.sha256(proof.read_bytes()).hexdigest() in page.read_text(encoding="utf-8")
    page.unlink()
    other = json.loads(proof.read_text())
    other["problem"]["depth"] = 7
    proof.write_text(json.dumps(other))
    assert run(report) == 2 and not page.exists()
    assert "its depth limit is 7" in capsys.readouterr().err
