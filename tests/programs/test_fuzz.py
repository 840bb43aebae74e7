"""The fuzz command: its oracle, that it finds what it looks for, and a short run of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.fuzz_instances import KINDS, draw
from oracles.dynamic_programme import optimal_score, optimal_value
from oracles.exact import exact_profile, exact_value, tree_value

import accel_oct
from accel_oct.solving.result import HistoryRow
from programs import fuzz

DEFAULT = fuzz.Way("default", "highs")


def test_the_oracles_agree() -> None:
    """Two dynamic programmes that share nothing, over all kinds: values, and scores by number of leaves."""
    for number in range(60):
        _, instance = draw(number, small=number % 2 == 1)
        dataset, depth = instance.dataset, instance.max_depth
        value = optimal_value(dataset, depth, instance.leaf_price) / dataset.total_weight
        assert exact_value(instance) == pytest.approx(value, abs=1e-9), number
        profile = exact_profile(instance)
        assert len(profile) == 2**depth
        for leaves in (1, 2, 3, len(profile)):
            score = optimal_score(dataset, depth, leaves) / dataset.total_weight
            assert profile[min(leaves, len(profile)) - 1] == pytest.approx(score, abs=1e-9), (number, leaves)


def test_instances_are_what_was_asked_for() -> None:
    """The same number is the same instance, and all kinds of weights, depths, classes and columns come up."""
    seen: Counter[Any] = Counter()
    for number in range(300):
        kind, instance = draw(number)
        assert repr(draw(number)[1]) == repr(instance) and kind == KINDS[number % len(KINDS)]
        seen.update([kind, fuzz.weight_kind(instance), instance.max_depth, f"{np.unique(instance.y).size} classes"])
        seen["free leaves"] += instance.leaf_penalty == 0.0
        columns = {column.tobytes() for column in instance.X.T}
        seen["same column twice"] += len(columns) < instance.X.shape[1]
        seen["complement"] += any((~column).tobytes() in columns for column in instance.X.T)
        seen["constant"] += any(column.all() or not column.any() for column in instance.X.T)
    wanted = [*KINDS, "unit", "integer", "real", 1, 2, 3, 4, "2 classes", "4 classes", "free leaves"]
    assert all(seen[name] > 10 for name in [*wanted, "same column twice", "complement", "constant"]), seen


def test_bounds_are_tight_on_chains() -> None:
    """On many of them a tree deeper than d, charged d + 3 leaves instead of d + 2, seems to be worth too little."""
    tight: Counter[tuple[str, int]] = Counter()
    for number in range(600):
        kind, instance = draw(number)
        depth, penalty = instance.max_depth, instance.leaf_penalty
        shallower = exact_value(replace(instance, max_depth=depth - 1))
        ceiling = exact_value(replace(instance, max_depth=instance.X.shape[1], leaf_penalty=0.0))
        tight[kind, depth] += exact_value(instance) > max(shallower, ceiling - (depth + 2) * penalty) + 1e-9
    assert all(tight["chain", depth] > 5 for depth in (2, 3, 4)), tight


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda result: {"objective": result.objective + 1e-6, "bound": result.objective + 1e-6}, "the optimum is"),
        (lambda result: {"bound": result.bound + 1e-6}, "bound"),
        (lambda result: {"status": "gap_limit"}, "status 'gap_limit'"),
        (lambda result: {"found": SimpleNamespace(feature=np.array([-1]), label=np.array([0]))}, "tree is worth"),
        (
            lambda result: {"history": (HistoryRow(0.0, 0.0, result.objective - 1e-6),)},
            "history says",
        ),
    ],
)
def test_a_wrong_answer_is_found(monkeypatch: pytest.MonkeyPatch, change: Any, message: str) -> None:
    """In the objective, the bound, the status, the tree or the history; with a script that shows it."""
    solve = accel_oct.solve

    def wrong(*arguments: Any, **options: Any) -> Any:
        result = solve(*arguments, **options)
        return replace(result, **change(result))

    monkeypatch.setattr(accel_oct, "solve", wrong)
    instance = next(instance for number in range(100) if len(set(exact_profile(instance := draw(number)[1]))) > 2)
    instance = replace(instance, leaf_penalty=0.0)
    assert any(message in problem for problem in fuzz.problems_of(DEFAULT, instance))
    script = fuzz.reproduction(DEFAULT, instance)
    assert message in script
    found: dict[str, Any] = {}
    exec(script, found)
    assert found["result"].backend == "highs"


def test_failures_are_made_smaller_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that is wrong from three samples on is shown with three; the run goes on and ends as a failure."""
    monkeypatch.setattr(fuzz.Way, "problems", lambda way, instance: iter(["three"] if len(instance.y) > 2 else []))
    counts, failures, following = fuzz.fuzz([DEFAULT], 7, 3)
    assert following == 10 and len(failures) == 3
    assert counts.table().splitlines()[-1].startswith("| default | highs | 3 | 0 | 0 | 3 |")
    assert counts.table().splitlines()[-1].endswith("| 0 | 3 |")
    for text in failures:
        found: dict[str, Any] = {}
        exec(text, found)
        assert len(found["y"]) == 3 and found["X"].shape == (3, 1) and found["w"] is None


def test_trees_are_valued_sample_by_sample() -> None:
    """Two leaves below one branch, by hand."""
    _, instance = draw(0)
    instance = replace(
        instance,
        X=np.array([[False], [True], [True]]),
        y=np.array([5, 7, 5]),
        sample_weight=np.array([1.0, 2.0, 1.0]),
        leaf_penalty=0.125,
        max_depth=1,
    )
    assert tree_value(instance, [0, -1, -1], [-1, 0, 1]) == 0.5 and exact_value(instance) == 0.5
    assert tree_value(instance, [-1, -1, -1], [1, -1, -1]) == 0.375


@pytest.mark.slow
def test_a_short_run() -> None:
    """The long runs in small: nothing wrong in any preset, on any backend that is here, or in the frontier."""
    runs = [(DEFAULT, 0, 300), (fuzz.Way("frontier"), 0, 60)]
    runs += [(way, 3 * number, 3) for number, way in enumerate(fuzz.all_ways())]
    for way, start, count in runs:
        counts, failures, _ = fuzz.fuzz([way], start, count)
        assert not failures, "\n".join(failures)
        assert sum(counts.tried.values()) == count
