"""Suites: those that come with the library can be run, and files with mistakes say which."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_support import tiny_suite

from accel_oct.constraints import MaxFeatures, Recall
from accel_oct.errors import InvalidInputError
from accel_oct.solving.config import Config
from accel_oct_bench.data import Registry
from accel_oct_bench.solving import constraints_of
from accel_oct_bench.suite import Choice, load_suite, planned, suite_names, suite_of

GOOD = """
[[instances]]
data = ["gen-chain-3"]
max_depth = [1, 2]
leaf_penalty = [0.1]
[[methods]]
name = "one"
"""


@pytest.mark.parametrize("name", suite_names())
def test_suites_that_come_with_the_library(name: str) -> None:
    """Every file is read without an error, says what it is, and limits time and memory."""
    suite = load_suite(name)
    assert suite.description
    assert all(method.time_limit and method.memory_limit_mb for method in suite.methods)
    used = {method for grid in suite.grids for method in grid.methods}
    assert used == {method.name for method in suite.methods}


def test_there_is_a_suite_for_every_question() -> None:
    """The names that the documentation speaks of."""
    wanted = {"paper", "quick", "ablation", "eqp", "path-bound", "backends", "constraints", "peers", "growth"}
    assert wanted <= set(suite_names())


def test_the_papers_grid_has_1620_instances() -> None:
    """54 encodings of 33 data sets, two depths, 15 penalties."""
    (grid,) = load_suite("paper").grids
    assert (
        len(set(grid.data)) == 54
        and len({name.removesuffix("_QB_5").removesuffix("_QT_5") for name in grid.data}) == 33
    )
    assert len(grid.data) * len(grid.max_depth) * len(grid.leaf_penalty) == 1620


def test_the_ablation_has_the_papers_ten_variants() -> None:
    """None, each alone, all, and all but each, of the presets that have nothing of ours, on two solvers."""
    methods = load_suite("ablation").methods
    assert {method.backend for method in methods} == {"scip", "gurobi"}
    assert all(method.preset is not None and method.preset.startswith("bendoct") for method in methods)
    assert len({method.preset for method in methods}) == 10 and not any(method.config for method in methods)


def test_variants_are_distinct() -> None:
    """No two methods of a suite are the same switches under two names."""
    for name in ("eqp", "path-bound"):
        methods = load_suite(name).methods
        configs = [Config.from_mapping(method.config, Config.preset(method.preset or "")) for method in methods]
        assert len(set(configs)) == len(configs) == len({method.name for method in methods})


def test_quick_needs_no_folder() -> None:
    """All of its data are there."""
    plan = planned(load_suite("quick"), Registry())
    assert not plan.missing and len(plan.tasks) > 200
    assert len({task.key for task in plan.tasks}) == len(plan.tasks)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[[instances]]", "time_limits = 3\n[[instances]]"), "unknown key 'time_limits'; did you mean 'time_limit'"),
        (("max_depth", "depth"), "instances 1 has the unknown key 'depth'"),
        (("leaf_penalty", "leaf_penalties"), "did you mean 'leaf_penalty'"),
        (("name =", "presett = 1\nname ="), "methods has the unknown key 'presett'; did you mean 'preset'"),
        (('name = "one"', ""), "no key 'name'"),
        (("max_depth = [1, 2]", ""), "no key 'max_depth'"),
        (("[1, 2]", "[1, -2]"), "max_depth must be a whole number"),
        (("[0.1]", "[true]"), "leaf_penalty must be a number"),
        (("[0.1]", "[inf]"), "leaf_penalty must be a number"),
        (("[0.1]", f"[1{'0' * 400}]"), "leaf_penalty must be a number"),
        (('name = "one"', 'name = "one"\npreset = "papre"'), "no preset 'papre'; did you mean 'paper'"),
        (('name = "one"', 'name = "one"\nbackend = "higs"'), "no backend 'higs'; did you mean 'highs'"),
        (('name = "one"', 'name = "one"\nconfig = {polish = true}'), "has no key 'polish'"),
        (('name = "one"', 'name = "one"\ntime_limit = 0'), "time_limit must be positive"),
        (('name = "one"', 'name = "one"\nthreads = 0'), "threads must be a whole number >= 1"),
        (("[[methods]]", 'methods = ["two"]\n[[methods]]'), "no method 'two'"),
        (("[[methods]]", 'missing = "ignore"\n[[methods]]'), "missing must be 'error' or 'skip'"),
        (("[[methods]]", 'constraints = ["max_leaves(2)"]\n[[methods]]'), "list of lists"),
        (("[[methods]]", 'constraints = [["max_leafs(2)"]]\n[[methods]]'), "did you mean 'max_leaves'"),
        (('[[methods]]\nname = "one"\n', ""), r"must have tables \[\[methods\]\]"),
        (("[[instances]]", "[[instances"), "not valid TOML"),
    ],
)
def test_a_suite_with_a_mistake_says_which(change: tuple[str, str], said: str) -> None:
    """Unknown keys with what may have been meant, and values that make no sense."""
    assert GOOD.count(change[0]) == 1
    with pytest.raises(InvalidInputError, match=said):
        suite_of(GOOD.replace(*change), "mine")


def test_suites_are_found_by_name_or_path(tmp_path: Path) -> None:
    """A file of one's own by its path; a slip is answered with what may have been meant."""
    assert load_suite(tiny_suite(tmp_path)).name == "tiny"
    with pytest.raises(InvalidInputError, match="no suite 'quikc'; did you mean 'quick'"):
        load_suite("quikc")
    with pytest.raises(InvalidInputError, match=r"cannot read suite file .*nowhere.toml"):
        load_suite(tmp_path / "nowhere.toml")


def test_lists_become_methods() -> None:
    """One per backend, number of threads and seed."""
    text = GOOD + 'backend = ["highs", "scip"]\nthreads = [1, 2]\nseed = [0, 1, 2]\n'
    methods = suite_of(text, "mine").methods
    assert len(set(map(str, methods))) == 12 and {method.name for method in methods} == {"one"}


def test_a_choice_changes_what_is_run() -> None:
    """Depths, penalties, methods, presets, backends and limits of the command line take the place of the suite's."""
    suite, registry = load_suite("quick"), Registry()
    choice = Choice(
        data=["gen-chain-6"], depths=[1], penalties=[0.5, 0.1], presets=["bendoct", "frontier"], backends=["scip"],
        time_limit=3, threads=2,
    )  # fmt: skip
    tasks = planned(suite, registry, choice).tasks
    assert {(task.method.preset, task.method.backend) for task in tasks} == {("bendoct", "scip"), ("frontier", None)}
    assert {(task.instance.data, task.instance.max_depth) for task in tasks} == {("gen-chain-6", 1)}
    assert {(task.method.time_limit, task.method.threads) for task in tasks} == {(3.0, 2)} and len(tasks) == 4
    only = planned(suite, registry, Choice(methods=["paper"])).tasks
    assert {task.method.name for task in only} == {"paper"}
    for bad, said in [
        (Choice(data=["monk1"]), "no data set 'monk1'"),
        (Choice(methods=["papre"]), "no method 'papre'"),
    ]:
        with pytest.raises(InvalidInputError, match=said):
            planned(suite, registry, bad)
    for wrong in ({"depths": [-1]}, {"time_limit": 0.0}, {"presets": ["x"]}, {"backends": ["x"]}, {"threads": 0}):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            Choice(**wrong)  # type: ignore[arg-type]


def test_data_that_are_not_there(tmp_path: Path) -> None:
    """Left out and told where the suite allows it; an error where nothing is left, or the suite needs them."""
    (tmp_path / "monk1_enc.csv").write_text("x,target\n0,0\n1,1\n")
    plan = planned(load_suite("paper"), Registry(tmp_path))
    assert len(plan.missing) == 53 and len(plan.tasks) == 30
    with pytest.raises(
        InvalidInputError, match="nothing to run: 54 data sets are missing, and no data folder was given"
    ):
        planned(load_suite("paper"), Registry())
    with pytest.raises(InvalidInputError, match="data 'encoded': there are none"):
        planned(load_suite("deep"), Registry())
    with pytest.raises(InvalidInputError, match=r"holds no file \*_enc.csv"):
        (tmp_path / "empty").mkdir()
        planned(load_suite("paper"), Registry(tmp_path / "empty"))


def test_constraints_are_read_from_text() -> None:
    """As syntax, with the words of the library."""
    data = Registry().load("gen-chain-3")
    recall, features = constraints_of(["recall(1, at_least=0.9)", "max_features(2)"], data)
    assert isinstance(recall, Recall) and (recall.positive, recall.at_least) == (1, 0.9)
    assert isinstance(features, MaxFeatures)
    for text, said in [
        ("recall(1)(2)", "form name"),
        ("recal(1)", "did you mean 'recall'"),
        ("recall(1, at_last=0.9)", "at_last"),
        ("recall(1, at_least=2)", "share"),
        ("max_leaves(__import__('os'))", "max_leaves"),
        (3, "must be text"),
    ]:
        with pytest.raises(InvalidInputError, match=said):
            constraints_of([text], data)
    with pytest.raises(InvalidInputError, match=r"on data 'gen-chain-3'.*'two'"):
        constraints_of(["recall('two', at_least=0.5)"], data)
