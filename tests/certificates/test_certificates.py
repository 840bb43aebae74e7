"""Certificates: those of proven optima are accepted, and no edited one proves a wrong claim."""

from __future__ import annotations

import copy
import csv
import json
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.certificate_support import REFUSALS, Written
from helpers.fuzz_instances import draw
from helpers.selection import daily
from oracles.dynamic_programme import optimal_value

import accel_oct
import accel_oct_checker as checker
from accel_oct.constraints import Linear, MinLeafWeight, Recall
from accel_oct.errors import InvalidInputError, StoppedError


def solved(number: int, **options: Any) -> accel_oct.Result:
    """The result of an instance."""
    _, instance = draw(number)
    return accel_oct.solve(
        instance.X,
        instance.y,
        max_depth=instance.max_depth,
        leaf_penalty=instance.leaf_penalty,
        sample_weight=instance.sample_weight,
        **options,
    )


@pytest.mark.parametrize("number", daily(range(300), 30, 60))
def test_certificates_of_optima_are_accepted(number: int, tmp_path: Path) -> None:
    """The certificate of every optimum is accepted, with NumPy and without; its cost is that of an oracle."""
    written, instance = Written(tmp_path, solved(number)), draw(number)[1]
    for fast in (True, False):
        assert "proven" in written.check(fast=fast)
    price = checker.Fraction(written.content["problem"]["leaf_price"])
    bits = written.content["data"]["weight_bits"]
    total = round(np.ldexp(instance.dataset.weights.sum(), instance.dataset.grid_bits if bits else 0))
    value = total - written.content["claim"]["cost"] / price.denominator
    found = optimal_value(instance.dataset, instance.max_depth, instance.leaf_price)
    assert value == pytest.approx(np.ldexp(found, instance.dataset.grid_bits if bits else 0), rel=1e-9, abs=1e-6)


def test_weights_must_not_be_rounded_away(tmp_path: Path) -> None:
    """A certificate that reads its weights on a coarse grid is about other data."""
    result = accel_oct.solve(
        [[0], [0], [0], [1], [0]], [1, 1, 1, 0, 0], max_depth=1, leaf_penalty=0.0, sample_weight=[0.4, 0.4, 0.4, 0.4, 1]
    )
    written = Written(tmp_path, result)
    assert "rounded" in written.check()
    edited = copy.deepcopy(written.content)
    edited["data"]["weight_bits"] = 0
    with pytest.raises(checker.Malformed, match="weight_bits"):
        written.check(edited)


@pytest.mark.parametrize("number", [315, 421, *daily(range(200), 10, 30)])
def test_rows_without_weight_are_no_part_of_any_set(number: int, tmp_path: Path) -> None:
    """Certificates of data with rows of weight zero are accepted at depth 4 and 5: no split is about these rows."""
    rng = np.random.default_rng(number)
    X, y, weights = rng.integers(0, 2, (14, 6)), rng.integers(0, 2, 14), rng.choice([0, 0, 1, 2, 3], 14)
    weights[:2], y[:2] = 1, [0, 1]
    result = accel_oct.solve(X, y, max_depth=4 + number % 2, leaf_penalty=0.01, sample_weight=weights)
    written = Written(tmp_path, result)
    for fast in (True, False):
        assert "on the 14 rows" in written.check(fast=fast)


@pytest.mark.parametrize("number", daily(range(200), 20, 40))
def test_certificates_under_a_least_leaf_weight(number: int, tmp_path: Path) -> None:
    """With a least leaf weight certificates are accepted, or refused to be written for weights that are not whole."""
    weights = draw(number)[1].sample_weight
    amount = 1.0 + number % 3
    result = solved(number, constraints=[MinLeafWeight(amount=amount)])
    if result.status == "infeasible":
        with pytest.raises(InvalidInputError, match="infeasible"):
            result.certificate(tmp_path / "proof.json")
    elif weights is not None and (weights != np.floor(weights)).any():
        with pytest.raises(InvalidInputError, match="whole numbers"):
            result.certificate(tmp_path / "proof.json")
    else:
        written = Written(tmp_path, result)
        for fast in (True, False):
            assert "at least" in written.check(fast=fast)


@pytest.mark.parametrize("number", daily(range(2000), 30, 100))
def test_no_edit_of_lemmas_proves_one_sample_more(number: int, tmp_path: Path) -> None:
    """Lemmas that claim more, alone or together with those that they use, are refused."""
    written, rng = Written(tmp_path, solved(number)), np.random.default_rng(number)
    step = checker.Fraction(written.content["problem"]["leaf_price"]).denominator
    for share in (0.0, 0.5, 1.0):
        content = deepcopy(written.content)
        lemmas = content["lemmas"]
        for lemma in lemmas:
            if rng.random() < share:
                lemma["value"] += step * int(rng.integers(1, 3))
                lemma["level"] = 2
        lemmas[-1]["value"] = written.content["lemmas"][-1]["value"] + step
        with pytest.raises(checker.Refused):
            written.check(content, fast=bool(number % 2))


def edits(content: Any, rng: np.random.Generator) -> Any:
    """Edit a certificate at random, in one of many ways."""
    lemmas = content["lemmas"]
    lemma = lemmas[int(rng.integers(len(lemmas)))]
    nodes = content["claim"]["tree"]
    node = nodes[int(rng.integers(len(nodes)))]
    kind = int(rng.integers(14))
    if kind == 0:
        content["claim"]["cost"] += int(rng.choice([-1, 1]))
    elif kind == 1:
        lemma["value"] += int(rng.choice([-1000, -1, 1, 1000]))
    elif kind == 2:
        lemmas.remove(lemma)
    elif kind == 3 and lemma["path"]:
        lemma["path"][-1][2] ^= 1
    elif kind == 4:
        lemma["path"] = [*lemma["path"], [0, 1, int(rng.integers(2))]]
    elif kind == 5:
        lemma["uses"] = [int(rng.integers(-1, len(lemmas) + 1))]
    elif kind == 6:
        lemma["height"] = int(rng.integers(5))
    elif kind == 7:
        content["data"]["sha256"] = content["data"]["sha256"][::-1]
    elif kind == 8:
        node[-1] = int(rng.integers(-1, 4))
    elif kind == 9:
        node[0] = int(rng.integers(-1, 8))
    elif kind == 10:
        content["data"]["columns"].pop()
    elif kind == 11:
        lemma["by"] = str(rng.choice(["count", "split", "deeper", "trust"]))
    elif kind == 12:
        content["lemmas"] = lemmas[: len(lemmas) // 2]
    else:
        nodes.append([0])
    return content


@pytest.mark.parametrize("number", daily(range(500), 40, 80))
def test_edited_certificates_prove_nothing_wrong(number: int, tmp_path: Path) -> None:
    """After a random edit a certificate is refused, or still claims the optimum for the same data."""
    written, rng = Written(tmp_path, solved(number)), np.random.default_rng(number)
    content = edits(deepcopy(written.content), rng)
    try:
        written.check(content)
    except REFUSALS:
        return
    assert content["claim"]["cost"] == written.content["claim"]["cost"]
    assert content["data"] == written.content["data"]


ODD = (None, True, -1, 0, 1, 7, 10**30, "", "x", "1/0", [], [[]], [0, 1, 1], {}, {"a": 1})


def replaced(content: Any, rng: np.random.Generator) -> Any:
    """Replace a random part of a certificate by a value of another kind."""
    if isinstance(content, dict | list) and content and rng.random() < 0.8:
        keys = list(content) if isinstance(content, dict) else range(len(content))
        key = keys[int(rng.integers(len(keys)))]
        content[key] = replaced(content[key], rng)
        return content
    return ODD[int(rng.integers(len(ODD)))]


@pytest.mark.parametrize("number", daily(range(500), 25, 50))
def test_odd_files_end_in_a_sentence(number: int, tmp_path: Path) -> None:
    """Whatever stands in a certificate, it is accepted with the same claim, refused, or malformed."""
    written, rng = Written(tmp_path, solved(number)), np.random.default_rng(number)
    for _ in range(20):
        content = replaced(deepcopy(written.content), rng)
        try:
            written.check(content)
        except REFUSALS:
            continue
        if content is None:
            continue
        # Of a smaller depth the same tree may be the best one, too; more bits make a leaf cheaper.
        bits = content["data"]["weight_bits"] - written.content["data"]["weight_bits"]
        assert {**content["data"], "weight_bits": 0} == {**written.content["data"], "weight_bits": 0}
        assert content["claim"] == written.content["claim"]
        if bits:
            instance, price = draw(number)[1], checker.Fraction(content["problem"]["leaf_price"])
            dataset, steps = instance.dataset, 2 ** content["data"]["weight_bits"]
            best = optimal_value(dataset, content["problem"]["depth"], float(price / steps)) * steps
            total = float(dataset.weights.sum()) * steps
            assert content["claim"]["cost"] == pytest.approx((total - best) * price.denominator, abs=1e-6)


@pytest.mark.parametrize("number", range(10))
def test_a_worse_tree_is_refused(number: int, tmp_path: Path) -> None:
    """A tree that is not optimal is refused, although its cost is stated correctly."""
    written = Written(tmp_path, solved(number))
    content, table = written.content, list(csv.reader(written.table.open()))
    names, target = table[0], content["data"]["target"]
    weights = [1 if content["data"]["weight"] is None else None] * len(table[1:])
    if weights[0] is None:
        return
    leaf_price = checker.Fraction(content["problem"]["leaf_price"])
    label = content["data"]["classes"].index(table[1][names.index(target)])
    wrong = sum(row[names.index(target)] != content["data"]["classes"][label] for row in table[1:])
    cost = leaf_price.denominator * wrong + leaf_price.numerator
    if cost == content["claim"]["cost"]:
        return
    content["claim"] = {"tree": [[label]], "cost": cost}
    with pytest.raises(checker.Refused, match="last lemma"):
        written.check(content)
    content["lemmas"][-1]["value"] = cost
    with pytest.raises(checker.Refused, match="does not hold"):
        written.check(content)


@pytest.mark.parametrize("fast", [True, False])
def test_a_split_is_compared_with_a_leaf(fast: bool, tmp_path: Path) -> None:
    """Where every split costs more than a leaf, the rule about splits still knows the leaf."""
    X = np.random.default_rng(0).integers(0, 2, (20, 4))
    result = accel_oct.solve(X, [0] * 17 + [1] * 3, max_depth=3, leaf_penalty=0.4)
    written = Written(tmp_path, result)
    cost = written.content["claim"]["cost"]
    lemma = {"path": [], "height": 3, "value": cost, "by": "split"}
    assert "proven" in written.check(written.content | {"lemmas": [lemma]}, fast=fast)
    with pytest.raises(checker.Refused, match="a leaf costs less"):
        written.check(written.content | {"lemmas": [lemma | {"value": cost + 1}]}, fast=fast)


def test_lemmas_about_shallower_trees_prove_nothing(tmp_path: Path) -> None:
    """What a leaf costs bounds neither deeper trees nor, used in a split, the sides of deeper trees."""
    X = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 2)
    written = Written(tmp_path, accel_oct.solve(X, X[:, 0] ^ X[:, 1], max_depth=3, leaf_penalty=0.01))
    step = checker.Fraction(written.content["problem"]["leaf_price"])
    leaf = 8 * step.denominator + step.numerator
    content = written.content | {"claim": {"tree": [[0]], "cost": leaf}}
    lemma = {"path": [], "height": 0, "value": leaf, "by": "count"}
    with pytest.raises(checker.Refused, match="last lemma"):
        written.check(content | {"lemmas": [lemma]})
    sides = [
        {"path": [[column, 1, side]], "height": 0, "value": 4 * step.denominator + step.numerator, "by": "count"}
        for column in range(3)
        for side in (0, 1)
    ]
    split = {"path": [], "height": 3, "value": leaf, "by": "split", "level": 0, "uses": list(range(6))}
    with pytest.raises(checker.Malformed, match="less height"):
        written.check(content | {"lemmas": [*sides, split]})


def test_other_data_are_refused(tmp_path: Path) -> None:
    """A changed cell, a missing row and an unknown class are refused; the order of columns does not matter."""
    written = Written(tmp_path, solved(0))
    rows = list(csv.reader(written.table.open()))

    def check(changed: list[list[str]]) -> str:
        written.table.write_text("\n".join(",".join(row) for row in changed))
        return written.check()

    assert "proven" in check([row[::-1] for row in rows])
    flipped = [rows[0], ["1" if rows[1][0] == "0" else "0", *rows[1][1:]], *rows[2:]]
    for changed in (flipped, rows[:-1], [*rows[:-1], [*rows[-1][:-1], "no class"]]):
        with pytest.raises(checker.Refused):
            check(changed)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": "accel-oct certificate", "version": 2}', "[" * 100_000, '{"a": 1, "a": 2}', "1e5"],
)
def test_malformed_files(text: str, tmp_path: Path) -> None:
    """What is no certificate is malformed, also where it is nested deeply."""
    proof = tmp_path / "proof.json"
    proof.write_text(text)
    with pytest.raises(checker.Malformed):
        checker.check(str(proof), str(proof))


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("rule", [{"by": "count"}, {"by": "split"}])
def test_leaves_that_are_not_allowed_cost_more_than_any_number(
    fast: bool, rule: dict[str, str], tmp_path: Path
) -> None:
    """A set that is lighter than the least leaf weight has no tree of any cost, with NumPy and without."""
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 0, 1, 1])
    result = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.125, constraints=[MinLeafWeight(amount=3)])
    written = Written(tmp_path, result)
    for value in (1 << 60, 3 << 61, 1 << 199):
        for path, holds in (([[0, 1, 0]], True), ([], False)):
            content = deepcopy(written.content)
            content["lemmas"].insert(0, {"path": path, "height": 2, "value": value, **rule})
            for lemma in content["lemmas"][1:]:
                lemma["uses"] = [use + 1 for use in lemma.get("uses", [])]
            if holds:
                assert written.check(content, fast=fast)
            else:
                with pytest.raises(checker.Refused, match="lemma 0"):
                    written.check(content, fast=fast)


def test_null_is_no_argument_and_no_list(tmp_path: Path) -> None:
    """Keys and arguments that may not be null are malformed if they are."""
    written = Written(tmp_path, solved(3))
    content = deepcopy(written.content)
    content["data"]["columns"][0].append(None)
    with pytest.raises(checker.Malformed, match="cannot be null"):
        written.check(content)
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 0, 1, 1])
    limited = Written(
        tmp_path, accel_oct.solve(X, y, max_depth=1, leaf_penalty=0.01, constraints=[Recall(1, at_least=0.5)])
    )
    content = deepcopy(limited.content)
    content["closings"][0]["lemmas"] = None
    with pytest.raises(checker.Malformed, match="lemmas"):
        limited.check(content)


def test_limits_and_exit_codes(tmp_path: Path) -> None:
    """The program ends with 0, 1, 2 or 3, with one sentence; it needs nothing but its own file."""
    written = Written(tmp_path, solved(3))
    program = tmp_path / "checker.py"
    program.write_text(Path(checker.__file__).read_text())

    def run(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-I", str(program), str(written.proof), str(written.table), *arguments]
        found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        return found.returncode, found.stdout

    code, said = run()
    assert code == 0 and said.startswith("proven") and said.count("\n") == 1
    assert run("--plain") == (code, said)
    assert run("--seconds", "0")[0] == 3
    content = deepcopy(written.content)
    content["claim"]["cost"] += 1
    written.proof.write_text(json.dumps(content))
    assert run()[0] == 1
    written.proof.write_text("{")
    assert run()[0] == 2


def test_what_cannot_be_certified(tmp_path: Path) -> None:
    """Problems without a certificate are refused in a sentence; so is a proof that takes too long."""
    X, y = np.eye(4, dtype=int), [0, 1, 0, 1]
    path = tmp_path / "proof.json"
    with pytest.raises(InvalidInputError, match="few leaves"):
        rule = Linear(leaves=1.0, upper=2.0, name="few leaves")
        accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, constraints=[rule]).certificate(path)
    with pytest.raises(InvalidInputError, match="balanced"):
        accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, objective="balanced_accuracy").certificate(path)
    result = accel_oct.solve(X, y, max_depth=4, leaf_penalty=0.01)
    with pytest.raises(StoppedError, match="time_limit"):
        result.certificate(path, time_limit=0)
    assert not path.exists()


def test_packed_certificates(tmp_path: Path) -> None:
    """A path that ends in .gz gives a packed file, which is checked like a plain one."""
    about = solved(1).certificate(tmp_path / "proof.json.gz", table=tmp_path / "table.csv")
    assert about.path.read_bytes()[:2] == b"\x1f\x8b" and about.size == about.path.stat().st_size
    assert "proven" in checker.check(str(about.path), str(tmp_path / "table.csv"))
    with pytest.raises(checker.LimitReached):
        checker.check(str(about.path), str(tmp_path / "table.csv"), size=100)
