"""`accel-oct bench verify --prove` writes and checks certificates of claimed optima."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench_support import LIMITED, real_rows, solved, written

from accel_oct.tree import DecisionTree
from accel_oct_bench.command import main
from accel_oct_bench.data import Registry
from accel_oct_bench.rows import Row, packed_labels
from accel_oct_bench.verify import Certified, certified, checked
from accel_oct_bench.verify.certifying import judged


def of_rows(*rows: Row, time_limit: float = 60.0) -> Certified:
    return certified(checked(rows, Registry()), Registry(), time_limit)


def with_tree(row: Row, tree: DecisionTree) -> Row:
    """The row with another tree, figures that fit it, and the claim kept."""
    data, it = Registry().load(row.instance.data), row.instance
    codes = np.unique(data.y, return_inverse=True)[1].reshape(-1)
    value = float((tree.predict(data.X) == codes).mean()) - it.leaf_penalty * tree.n_leaves
    return replace(row, tree=tree.to_dict(), objective=value, bound=value, gap=0.0, n_leaves=tree.n_leaves)


def test_claims_of_optima_are_proven(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every claim has a certificate that is accepted; a row without a proof is no claim."""
    rows = [*real_rows()[:-1], solved("gen-monk1", 4, 0.002), replace(solved("gen-monk1", 2, 0.01), status="finished")]
    assert main(["verify", str(written(rows, tmp_path)), "--prove"]) == 0
    said = capsys.readouterr()
    assert "17 of 17 claims of optimality proven by certificates\n" in said.out
    assert "proving gen-monk1, depth 2" in said.err


def test_equal_claims_are_proven_once() -> None:
    """The same tree for the same instance by another method counts, and is not certified again."""
    row, told = solved("gen-monk1", 3, 0.002), list[str]()
    found = certified(checked([row, replace(row, suite="other")], Registry()), Registry(), 60.0, told.append)
    assert (found.proven, found.claims, len(told)) == (2, 2, 1)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_a_wrong_claim_is_refused(depth: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tree that is worse than the optimum, with figures that fit it, is a contradiction with exit code 4."""
    row = solved("gen-monk2", depth, 0.0)
    wrong = with_tree(row, DecisionTree.from_nested(1, max_depth=depth))
    assert wrong.objective is not None and row.objective is not None and wrong.objective < row.objective
    assert not checked([wrong], Registry())[0].findings
    found = of_rows(row, wrong)
    assert (found.proven, found.refused, [finding.kind for finding in found.findings]) == (1, 1, ["certificate"])
    assert main(["verify", str(written([wrong], tmp_path)), "--prove"]) == 4
    assert "certificate is not accepted: refused" in capsys.readouterr().out


def test_what_is_not_decided_is_counted() -> None:
    """Without time, without a tree, with a row that is wrong in itself, and with data that are not here."""
    row = solved("gen-monk1", 3, 0.002)
    assert of_rows(row, time_limit=0.0).out_of_time == 1
    predicted = DecisionTree.from_dict(row.tree or {}).predict(Registry().load("gen-monk1").X)
    for other, reason in [
        (replace(row, objective=0.9, bound=0.9), "contradicted"),
        (replace(row, instance=replace(row.instance, data="nowhere")), "could not be recomputed"),
        (replace(row, tree=None, predictions=packed_labels(predicted.tolist())), "no tree"),
    ]:
        found = of_rows(other)
        assert found.uncertified.total() == found.claims == 1 and reason in str(found)
    assert of_rows(replace(row, status="time_limit")).claims == 0
    constrained = of_rows(solved("gen-monk2", 3, 0.001, LIMITED))  # certified, or the reason is counted
    assert constrained.claims == 1 and constrained.refused == constrained.out_of_time == 0


def test_the_checker_decides(tmp_path: Path) -> None:
    """A file that is malformed is not accepted; a checker without time decides nothing."""
    (tmp_path / "proof.json").write_text("{}")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    answer, said = judged(tmp_path / "proof.json", tmp_path / "table.csv", 60.0)
    assert answer == "refused" and "malformed" in said
