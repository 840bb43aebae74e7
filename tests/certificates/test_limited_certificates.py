"""Certificates under limits on predictions and leaves: accepted for optima, and no edited one proves a wrong claim."""

from __future__ import annotations

import json
from copy import deepcopy
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.certificate_support import REFUSALS, Written, limited_case
from helpers.selection import daily
from oracles.certified import Problem, as_nodes

import accel_oct
import accel_oct_checker as checker
from accel_oct import OptimalTreeClassifier
from accel_oct.cli.app import run
from accel_oct.constraints import MaxFeatures, MaxLeaves, MinLeafWeight, Recall, StatisticalParity
from accel_oct.errors import InvalidInputError


def written(number: int, folder: Path) -> Written | None:
    """Write the certificate of an instance; None without an optimum, or where it is refused."""
    result = limited_case(number).solved()
    if result.status != "optimal":
        with pytest.raises(InvalidInputError, match="only an optimal result"):
            result.certificate(folder / "proof.json")
        return None
    try:
        return Written(folder, result)
    except InvalidInputError as error:  # one instance of 3000
        assert number == 1118 and "beyond all floats" in str(error)
        return None


@pytest.mark.parametrize("number", daily(range(3000), 50, 150))
def test_certificates_under_limits_are_accepted(number: int, tmp_path: Path) -> None:
    """Certificates are accepted, with NumPy and without, and their cost is the least of all trees within the limits."""
    found = written(number, tmp_path)
    if found is not None:
        said = {found.check(fast=fast) for fast in (True, False)}
        assert len(said) == 1 and "proven" in said.pop()
        assert Problem(found.content, found.table).least() == found.content["claim"]["cost"]


@pytest.mark.parametrize("number", daily(range(3000), 50, 150))
def test_no_prices_prove_a_worse_tree(number: int, tmp_path: Path) -> None:
    """Whatever the multipliers, a tree that is not the best within the limits is refused."""
    found, rng = written(number, tmp_path), np.random.default_rng(number)
    if found is None:
        return
    content, problem = found.content, Problem(found.content, found.table)
    least = content["claim"]["cost"]
    worse = sorted({cost: nested for cost, nested, kept in problem.trees() if kept and cost > least}.items())
    for cost, nested in worse[:2] + worse[-1:]:
        edited = deepcopy(content)
        edited["claim"] = {"tree": as_nodes(nested), "cost": cost}
        for closing in edited.get("closings", []):
            if rng.random() < 0.7:
                closing["multipliers"] = [str(rng.integers(0, 9)) for _ in closing["multipliers"]]
        for lemma in edited.get("lemmas", []):
            lemma["value"] = cost
        with pytest.raises(checker.Refused):
            found.check(edited, fast=bool(rng.random() < 0.5))


def edits(content: Any, rng: np.random.Generator) -> None:
    """Edit a certificate under limits at random, in one of many ways."""
    limits, closings = content["problem"].get("limits", []), content.get("closings", [])
    if not limits:
        content["claim"]["cost"] += 1
        return
    place = int(rng.integers(len(limits)))
    closing = closings[int(rng.integers(len(closings)))] if closings else {"multipliers": ["0"] * len(limits)}
    limit = limits[place]
    term = limit["terms"][int(rng.integers(len(limit["terms"])))] if limit["terms"] else {}
    kind = int(rng.integers(15))
    if kind == 0:
        limits.pop(place)
        for each in closings:
            each["multipliers"].pop(place)
    elif kind == 1:
        closing["multipliers"][place] = str(rng.choice(["0", "1", "1/3", "17", "-1"]))
    elif kind == 2:
        closing["roots"] = [int(each) for each in rng.permutation(4)[:2]]
    elif kind == 3 and closings:
        closings.remove(closing)
    elif kind == 4:
        limit["at_most"] = str(checker.Fraction(limit["at_most"]) + checker.Fraction(int(rng.integers(-3, 4)), 10))
    elif kind == 5 and term:
        term["predicted"] = [int(rng.integers(len(content["data"]["classes"])))]
    elif kind == 6 and term:
        term["times"] = str(checker.Fraction(term["times"]) * int(rng.choice([-1, 0, 2])))
    elif kind == 7 and term:
        term["rows"], term["per"] = term["per"], term["rows"]
    elif kind == 8 and term and term["rows"]:
        term["rows"].pop()
    elif kind == 9 and term and term["rows"]:
        term["rows"][0][0] = str(rng.choice(["target", "x0", "group", "given"]))
    elif kind == 10 and term and term["per"]:
        term["per"][0][1] = [str(int(rng.integers(3)))]
    elif kind == 11:
        limit["leaves"] = str(rng.choice(["0", "1", "1/2"]))
    elif kind == 12:
        content["problem"]["depth"] += int(rng.choice([-1, 1]))
    elif kind == 13:
        content["problem"]["least_leaf_weight"] = int(rng.integers(3))
    else:
        node = content["claim"]["tree"][int(rng.integers(len(content["claim"]["tree"])))]
        node[int(rng.integers(len(node)))] += int(rng.choice([-1, 1]))


@pytest.mark.parametrize("number", daily(range(4000), 80, 200))
def test_edited_limits_prove_nothing_wrong(number: int, tmp_path: Path) -> None:
    """After random edits a certificate is refused, or its claim is true as it then stands."""
    found, rng = written(number, tmp_path), np.random.default_rng(number)
    if found is None:
        return
    content = deepcopy(found.content)
    for _ in range(int(rng.integers(1, 3))):
        edits(content, rng)
    try:
        found.check(content)
    except REFUSALS:
        return
    assert content["data"] == found.content["data"]
    assert Problem(content, found.table).least() == content["claim"]["cost"]


def test_a_root_without_closing_is_refused(tmp_path: Path) -> None:
    """Every column that splits the rows needs a closing; closings of other columns prove nothing about it."""
    rng = np.random.default_rng(5)
    X, y, group = rng.integers(0, 2, (30, 4)), rng.integers(0, 2, 30), rng.integers(0, 2, 30)
    rules = [StatisticalParity(group, 0.05), Recall(at_least=0.6)]
    found = Written(tmp_path, accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.0, constraints=rules))
    closing = found.content["closings"][0]
    each = [{"multipliers": closing["multipliers"], "roots": [column]} for column in range(4)]
    assert "proven by 4 closings" in found.check(found.content | {"closings": each})
    for column in range(4):
        with pytest.raises(checker.Refused, match=f"column {column} at the root"):
            found.check(found.content | {"closings": each[:column] + each[column + 1 :]})


def test_lemmas_of_a_closing(tmp_path: Path) -> None:
    """Lemmas at the prices of a closing are checked, and help to close sides; one that claims more is refused."""
    rng = np.random.default_rng(3)
    X, y, group = rng.integers(0, 2, (60, 5)), rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    result = accel_oct.solve(X, y, max_depth=4, leaf_penalty=0.01, constraints=[StatisticalParity(group, 0.05)])
    found = Written(tmp_path, result)
    content = found.content
    lemma = {"path": [[0, 1, 1]], "height": 3, "value": 0, "by": "split", "level": 2}
    content["closings"][0]["lemmas"] = [lemma]

    def refused(value: int) -> bool:
        lemma["value"] = value
        try:
            found.check(content)
        except checker.Refused as fault:
            assert "lemma 0" in str(fault)
            return True
        return False

    low, high = 0, 1 << 60
    assert not refused(low) and refused(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refused(middle) else (middle, high)
    assert low > 0 and not refused(low)


def test_the_limit_on_outcomes(tmp_path: Path) -> None:
    """Where prices leave more trees open than allowed, nothing is decided."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (40, 5))
    y, group = X[:, 0] ^ X[:, 1], np.where(rng.random(40) < 0.1, X[:, 2], X[:, 0] ^ X[:, 1])
    rules = [StatisticalParity(group, 0.01)]
    found = Written(tmp_path, accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.0, constraints=rules))
    content = found.content
    assert "proven" in found.check(content)
    for closing in content["closings"]:
        closing["multipliers"] = ["0"] * len(closing["multipliers"])
    with pytest.raises(checker.LimitReached, match="outcomes"):
        found.check(content, outcomes=10)


@pytest.mark.parametrize("fast", [True, False])
def test_a_budget_beyond_all_floats(fast: bool, tmp_path: Path) -> None:
    """A limit that no float holds leaves a budget that no float holds: all trees are compared, with NumPy too."""
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    rules = [Recall(1, at_least=0.5)]
    found = Written(tmp_path, accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, constraints=rules))
    content = found.content
    content["problem"]["limits"][0]["at_most"] = "9" * 400
    content["closings"] = [{"multipliers": ["1"]}]
    assert "proven" in found.check(content, fast=fast)
    content["claim"]["tree"] = [[0]]
    content["claim"]["cost"] = round(2 * Fraction(content["problem"]["leaf_price"]).denominator)
    content["claim"]["cost"] += Fraction(content["problem"]["leaf_price"]).numerator
    with pytest.raises(checker.Refused, match="satisfies the limits"):
        found.check(content, fast=fast)


def test_groups_are_columns_of_the_table(tmp_path: Path) -> None:
    """Groups are named in the certificate; a changed group, or a missing column, is refused."""
    X, y = np.array([[0], [0], [1], [1]] * 3), [0, 0, 1, 1] * 3
    rules = [StatisticalParity(["a", "b"] * 6, 0.1, positive=1)]
    found = Written(tmp_path, accel_oct.solve(X, y, max_depth=1, leaf_penalty=0.0, constraints=rules))
    said = found.check()
    assert "['group', ['a']]" in said and "at most 0.100000001" in said
    text = found.table.read_text()
    found.table.write_text(text.replace(",a,", ",b,", 1))
    with pytest.raises(checker.Refused, match="fingerprint"):
        found.check()
    found.table.write_text(text.replace("group", "crowd"))
    with pytest.raises(checker.Malformed, match="group"):
        found.check()


@pytest.mark.parametrize("leaves", [1, 2, 3, 5])
def test_a_leaf_limit_in_place_of_a_depth(leaves: int, tmp_path: Path) -> None:
    """Without a depth limit a limit on leaves bounds the height."""
    rng = np.random.default_rng(leaves)
    X, y = rng.integers(0, 2, (40, 3)), rng.integers(0, 2, 40)
    result = accel_oct.solve(X, y, max_depth=4, leaf_penalty=0.0, constraints=[MaxLeaves(leaves)])
    found = Written(tmp_path, result)
    assert "depth at most 4" in found.check()
    found.content["problem"]["depth"] = None
    assert "any depth" in found.check(found.content)
    assert Problem(found.content, found.table).least() == found.content["claim"]["cost"]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(("penalty", "rule"), [(0.0, MaxLeaves(4)), (0.49 / 12, Recall(1, at_least=0.1))])
def test_heights_without_a_depth_limit(penalty: float, rule: Any, fast: bool, tmp_path: Path) -> None:
    """The largest height follows exactly from a limit on leaves, and from prices: a chain of that height is found."""
    X = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    y = np.where(X[:, 0] == 1, 0, np.where(X[:, 1] == 1, 1, X[:, 2] ^ 1))
    X, y = np.vstack([X, X[-4:]]), np.append(y, y[-4:])
    result = accel_oct.solve(X, y, max_depth=3, leaf_penalty=penalty, constraints=[rule])
    found = Written(tmp_path, result)
    content, problem = found.content, Problem(found.content, found.table)
    content["problem"]["depth"] = None
    assert "any depth" in found.check(content, fast=fast)
    best = content["claim"]["cost"]
    cost, nested = min((each[:2] for each in problem.trees() if each[2] and each[0] > best), key=lambda each: each[0])
    content["claim"] = {"tree": as_nodes(nested), "cost": cost}
    for closing in content["closings"]:
        closing["multipliers"] = ["0"] * len(closing["multipliers"])
    with pytest.raises(checker.Refused):
        found.check(content, fast=fast)


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("deep", [0, 1])
def test_a_chain_of_height_four(deep: int, fast: bool, tmp_path: Path) -> None:
    """The only better tree is a chain whose deep side, zero or one, is as high as allowed: it is found."""
    X = np.array([[i >> 3 & 1, i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(16)])
    y = np.select([X[:, 0] == 0, X[:, 1] == 0, X[:, 2] == 0, X[:, 3] == 0], [0, 1, 0, 1], 0)
    X ^= 1 - deep
    rules = [Recall(1, at_least=0.1)]
    found = Written(tmp_path, accel_oct.solve(X, y, max_depth=4, leaf_penalty=0.49 / 16, constraints=rules))
    content = found.content
    assert content["claim"]["cost"] == 5 * 49 and "proven" in found.check(fast=fast)
    nested = (0, 0, (1, 1, 0)) if deep else (0, (1, 0, 1), 0)
    content["claim"] = {"tree": as_nodes(nested), "cost": 3 * 49 + 100}
    with pytest.raises(checker.Refused, match="satisfies the limits"):
        found.check(content, fast=fast)


# ---------------------------------------------------------------- few features


def few_features(number: int) -> tuple[accel_oct.Result, int]:
    """An instance under a limit on features, some with columns in groups, and its number of features."""
    rng = np.random.default_rng([31, number])
    n_rows, n_features = int(rng.integers(4, 16)), int(rng.integers(2, 6))
    X = rng.integers(0, 2, (n_rows, n_features))
    if rng.random() < 0.3:
        X[:, -1] = X[:, 0] ^ 1
    sources = rng.integers(0, 3, n_features) if rng.random() < 0.4 else None
    most = int(rng.integers(0, 4))
    rules: list[Any] = [MaxFeatures(most, sources)]
    if rng.random() < 0.3:
        rules.append(MinLeafWeight(amount=2.0))
    result = accel_oct.solve(
        X,
        (X[:, 0] ^ X[:, 1] ^ (rng.random(n_rows) < 0.2)) if rng.random() < 0.7 else rng.integers(0, 3, n_rows),
        max_depth=int(rng.integers(1, 5)),
        leaf_penalty=float(rng.choice([0.0, 0.01, 0.05])),
        sample_weight=rng.integers(1, 4, n_rows) if rng.random() < 0.4 else None,
        constraints=rules,
    )
    return result, most


def least_with_groups(found: Written) -> int:
    """The least cost of the trees over the columns of each set of groups, by every tree."""
    problem = found.content["problem"]
    groups, columns = problem["groups"], found.content["data"]["columns"]
    costs = []
    for chosen in combinations(range(len(groups)), problem["most_groups"]):
        own = [column for group in chosen for column in groups[group]]
        restricted = found.content | {
            "data": found.content["data"] | {"columns": [columns[column] for column in own]},
        }
        least = Problem(restricted, found.table).least()
        costs += [] if least is None else [least]
    return min(costs)


@pytest.mark.parametrize("number", daily(range(2000), 40, 100))
def test_certificates_of_few_features(number: int, tmp_path: Path) -> None:
    """Certificates are accepted, their cost is the least over every set of features, and one unit more is refused."""
    result, most = few_features(number)
    if result.status == "infeasible":
        return
    found = Written(tmp_path, result)
    for fast in (True, False):
        assert f"at most {min(most, len(found.content['problem']['groups']))} of" in found.check(fast=fast)
    assert least_with_groups(found) == found.content["claim"]["cost"]
    content = deepcopy(found.content)
    content["lemmas"][-1] |= {"value": content["claim"]["cost"] + 1, "by": "sets"}
    with pytest.raises(checker.Refused):
        found.check(content, fast=bool(number % 2))
    content["lemmas"][-1]["value"] -= 1
    assert "proven" in found.check(content)
    content["problem"]["most_groups"] -= 1
    try:
        found.check(content)
    except REFUSALS:
        return
    found.content = content
    assert least_with_groups(found) == content["claim"]["cost"]


@pytest.mark.parametrize("fast", [True, False])
def test_sets_of_features_with_a_chain(fast: bool, tmp_path: Path) -> None:
    """A better tree of four leaves in a chain is found, although neither depth two nor five leaves are better."""
    X = np.array([[a, b, c, 0] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    y = np.where(X[:, 0] == 1, 0, np.where(X[:, 1] == 1, 1, X[:, 2] ^ 1))
    X, y = np.vstack([X, X[-4:]]), np.append(y, y[-4:])
    X[::3, 3] = 1
    result = accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.49 / 12, constraints=[MaxFeatures(3)])
    found = Written(tmp_path, result)
    content, problem = found.content, Problem(found.content, found.table)
    lemma = {"path": [], "height": 3, "value": content["claim"]["cost"], "by": "sets"}
    assert result.tree.n_leaves == 4 and "proven" in found.check(content | {"lemmas": [lemma]}, fast=fast)
    cost, nested = min((each[:2] for each in problem.trees() if each[0] > lemma["value"]), key=lambda each: each[0])
    lemma["value"] = cost
    with pytest.raises(checker.Refused, match="cost less"):
        found.check(content | {"lemmas": [lemma], "claim": {"tree": as_nodes(nested), "cost": cost}}, fast=fast)


def test_a_tree_of_too_many_features_is_refused(tmp_path: Path) -> None:
    """A tree that uses more groups than allowed is refused; every column must be in one group."""
    X = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 3)
    y = X[:, 0] & (X[:, 1] | X[:, 2])
    few = Written(tmp_path, accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.0, constraints=[MaxFeatures(2)]))
    content, free = few.content, accel_oct.solve(X, y, max_depth=3, leaf_penalty=0.0)
    assert content["lemmas"] == [{"path": [], "height": 3, "value": content["claim"]["cost"], "by": "sets"}]
    (tmp_path / "free").mkdir()
    claim = Written(tmp_path / "free", free).content["claim"]
    with pytest.raises(checker.Refused, match="more than 2 groups"):
        few.check(content | {"claim": claim})
    for groups in ([[0], [1]], [[0, 1], [1, 2]], [[0], [1], [2], [3]], [[0], [1], 2]):
        with pytest.raises(checker.Malformed):
            few.check(content | {"problem": content["problem"] | {"groups": groups}})
    with pytest.raises(checker.Refused, match="cost less"):
        few.check(content | {"problem": content["problem"] | {"groups": [[0, 1], [2]]}})


def test_features_together_with_other_constraints_have_no_certificate(tmp_path: Path) -> None:
    """A limit on features together with one on rates is refused in a sentence; so are too many sets of features."""
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 2, (40, 4)), rng.integers(0, 2, 40)
    both = [MaxFeatures(2), Recall(at_least=0.5)]
    result = accel_oct.solve(X, y, max_depth=2, leaf_penalty=0.01, constraints=both)
    with pytest.raises(InvalidInputError, match="together with"):
        result.certificate(tmp_path / "proof.json")


# ---------------------------------------------------------------- classifiers and the command line


def people(n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    """A table with numbers and two columns of texts, and classes that depend on all three."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"sex": rng.choice(["m", "f"], n), "age": rng.integers(18, 70, n), "job": rng.choice(list("abc"), n)}
    )
    return X, np.where(rng.random(n) < 0.3, rng.integers(0, 2, n), (X.age > 40) ^ (X.sex == "m")).astype(int)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"constraints": [StatisticalParity("sex", 0.05, positive=1)]}, "[['sex', ['f']]]"),
        ({"constraints": [StatisticalParity("sex", 0.05, positive=1)], "exclude": ["sex"]}, "[['sex', ['f']]]"),
        ({"constraints": [Recall(1, at_least=0.9), MinLeafWeight(amount=3)]}, "at most -0.899999999"),
        ({"max_features_used": 1}, "of at most 1 of 3 groups"),
        ({"max_features_used": 2, "min_samples_leaf": 5}, "at least 5 units"),
    ],
)
def test_classifiers_under_limits(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    """The certificate of a classifier names columns of the user's table; those of a feature form a group."""
    X, y = people()
    model = OptimalTreeClassifier(max_depth=2, leaf_penalty=0.01, **options).fit(X, y)
    proof, table = tmp_path / "proof.json", tmp_path / "table.csv"
    model.certificate(proof, X, y, table=table, target="paid")
    for fast in (True, False):
        assert said in checker.check(str(proof), str(table), fast=fast)


def test_command_line_under_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`fit --certificate` and `check --proof` write and check a proof under constraints, within limits."""
    X, y = people()
    data, model = tmp_path / "data.csv", tmp_path / "model.json"
    X.assign(paid=y).to_csv(data, index=False)
    proof, table = tmp_path / "proof.json", tmp_path / "table.csv"
    given = ["-t", "paid", "-d", "2", "--constraint", "StatisticalParity(group='sex', at_most=0.05, positive=1)"]
    assert run(["fit", str(data), *given, "-o", str(model)]) == 0
    assert run(["certify", str(model), str(data), "-o", str(proof), "--table", str(table)]) == 0
    assert run(["check", str(proof), str(table), "--proof", "--time-limit", "60", "--memory", "100000"]) == 0
    assert "proven by 1 closings" in capsys.readouterr().out
    assert run(["check", str(proof), str(table), "--proof", "--time-limit", "0"]) == 3
    assert run(["check", str(proof), str(table), "--proof", "--time-limit", "-1"]) == 2
    assert run(["check", str(proof), str(table), "--proof", "--memory", "0"]) == 2
    assert run(["check", str(model), str(data), "--time-limit", "1"]) == 2


@pytest.mark.parametrize("number", daily(range(60), 6, 10))
def test_leaf_limits_over_every_split(number: int, tmp_path: Path) -> None:
    """A leaf limit takes the place of a depth, over numbers and texts; one leaf more is refused if it is better."""
    rng = np.random.default_rng(number)
    X, y = people(30)
    X["height"], y = rng.normal(size=30).round(1), np.where(rng.random(30) < 0.3, rng.integers(0, 2, 30), y)
    penalty, most = float(rng.choice([0.0, 0.01])), int(rng.integers(1, 4))
    few, more = (
        OptimalTreeClassifier(max_depth=None, max_leaf_nodes=leaves, leaf_penalty=penalty).fit(X, y)
        for leaves in (most, most + 1)
    )
    proof, table = tmp_path / "proof.json", tmp_path / "table.csv"
    few.certificate(proof, X, y, table=table)
    fast = bool(number % 2)
    assert f"leaves at most {most}" in checker.check(str(proof), str(table), fast=fast)
    content = json.loads(proof.read_text())
    content["problem"]["limits"][0]["at_most"] = str(most + 1)
    proof.write_text(json.dumps(content))
    if more.objective_ > few.objective_ + 1e-9:
        with pytest.raises(checker.Refused):
            checker.check(str(proof), str(table), fast=fast)
    else:
        assert "proven" in checker.check(str(proof), str(table), fast=fast)
