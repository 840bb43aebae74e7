"""Constraints and objectives as text: what is understood, what is refused, and that nothing is ever executed."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_oct import constraints, objectives
from accel_oct.errors import InvalidInputError
from accel_oct.solving.parsing import CONSTRAINTS, OBJECTIVES, Call, constraint, objective


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        (
            "statistical_parity(sex, at_most=0.02)",
            constraints.StatisticalParity,
            {"group": "sex", "at_most": 0.02, "positive": None},
        ),
        ("StatisticalParity('sex', at_most=0.02)", constraints.StatisticalParity, {"group": "sex"}),
        (" recall( high, at_least = .9 ) ", constraints.Recall, {"positive": "high", "at_least": 0.9}),
        ("recall(true, at_least=1)", constraints.Recall, {"positive": True, "at_least": 1}),
        ("recall(-1, at_least=1)", constraints.Recall, {"positive": -1}),
        ("max_leaves(5)", constraints.MaxLeaves, {"n": 5}),
        ("forbidden_features([age, 'net income'])", constraints.ForbiddenFeatures, {"features": ["age", "net income"]}),
        ("forbidden_pairs([(a, b)], on=tree)", constraints.ForbiddenPairs, {"pairs": [("a", "b")], "on": "tree"}),
        (
            "feature_costs({age: 1, 'x y': 2.5}, at_most=3)",
            constraints.FeatureCosts,
            {"prices": {"age": 1, "x y": 2.5}},
        ),
        ("positive_budget(20, count=True)", constraints.PositiveBudget, {"at_most": 20, "count": True}),
        ("conditional_parity(sex, at_most=0, given=job)", constraints.ConditionalParity, {"given": "job"}),
    ],
)
def test_constraints_are_understood(text: str, kind: type[Any], fields: dict[str, Any]) -> None:
    """Names in either spelling; bare words are text, numbers and lists are what they are."""
    made, said = constraint(text)
    assert type(made) is kind
    assert {name: getattr(made, name) for name in fields} == fields
    again, same = constraint(said)
    assert same == said and vars(again) == vars(made)


def test_objectives_are_understood() -> None:
    """A name alone stays a name, which a model file can keep."""
    assert objective("f1") == ("f1", "f1") == objective("F1()")
    assert objective("balanced_accuracy")[0] == "balanced_accuracy"
    assert objective("f_beta(beta=2, positive=bad)") == (objectives.FBeta(2, "bad"), "f_beta(beta=2, positive='bad')")
    costs, _ = objective("cost_matrix({(bad, good): 5, (good, bad): 1})")
    assert costs.costs == {("bad", "good"): 5, ("good", "bad"): 1}
    assert objective("cost_matrix([[0, 1], [5, 0]])")[0].costs == [[0, 1], [5, 0]]
    assert objective("robust(radius={age: 2})") == (objectives.Robust(radius={"age": 2}), "robust(radius={'age': 2})")
    made, said = objective({"kind": "f_beta", "beta": 2})
    assert made == objectives.FBeta(2) and said == "f_beta(beta=2)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("statistical_party(sex, at_most=0.1)", "no constraint 'statistical_party'; did you mean 'statistical_parity'"),
        ("Statisticalparity(sex, at_most=0.1)", "did you mean 'StatisticalParity'"),
        ("roc(0.5)", "no constraint 'roc'; known are statistical_parity, "),
        ("statistical_parity(sex, atmost=0.1)", "statistical_parity has no argument 'atmost'; did you mean 'at_most'?"),
        ("max_leaves(limit=3)", "max_leaves has no argument 'limit'; it takes n"),
        ("max_leaves()", "max_leaves: missing a required argument: 'n'"),
        ("max_leaves(1, 2)", "max_leaves: too many positional arguments"),
        ("max_leaves(3, n=3)", "max_leaves: multiple values for argument 'n'"),
        ("max_leaves(3.5)", "MaxLeaves: n must be a whole number"),
        ("statistical_parity(sex)", "StatisticalParity: at_most must be given"),
        ("recall(high, at_least=1.5)", "at_least must be a share"),
        ("recall(high, at_least=1/2)", "recall: at_least: '1 / 2' is no number"),
        ("recall(very-high, at_least=1)", "'very - high' is no number, word, text in quotes"),
        ("recall(high at_least=1)", "is not of the form name(argument=value)"),
        ("statistical_parity(marital status)", 'more than one word needs quotes, as in "marital status"'),
        ("statistical_parity(sex=male)", "no argument 'sex'; it takes group, at_most, positive; a name that is more"),
        ("max_leaves(3", "is not of the form"),
        ("", "is not of the form"),
        ("a.b(3)", "is not of the form"),
        ("max_leaves(**{'n': 3})", "** is not possible here"),
        ("feature_costs({[1]: 2}, at_most=1)", "cannot be the key of a mapping"),
        ("feature_costs({**{}}, at_most=1)", "is no number"),
        ({"at_most": 1}, "has no kind"),
        ({"kind": "recal", "at_least": 1}, "did you mean 'recall'"),
        (7, "must be text"),
        ("x" * 20_000, "must be text"),
        ("(" * 3000, "is not of the form"),
        ("max_leaves(n=3, n=4)", "has the argument 'n' twice"),
        ("recall(at_least=" + "-" * 1500 + "1)", "is nested too deeply"),
        ("recall(at_least=" + "+".join("1" * 500) + ")", "is nested too deeply"),
        ("recall({((1, [2]),): 1}, at_least=1)", "cannot be the key of a mapping"),
        ("recall(at_least=1" + "0" * 400 + ")", "a number is too large"),
    ],
)
def test_what_is_wrong_is_named(text: Any, message: str) -> None:
    """The constraint, the argument, and what is near."""
    with pytest.raises(InvalidInputError) as caught:
        constraint(text)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch PATH')",
        "recall(__import__('os').system('touch PATH'), at_least=1)",
        "recall(at_least=open('PATH', 'w'))",
        'recall(f\'{open("PATH", "w")}\', at_least=1)',
        "recall([open('PATH', 'w') for _ in [1]], at_least=1)",
        "recall((lambda: open('PATH', 'w'))(), at_least=1)",
        "recall(x := open('PATH', 'w'), at_least=1)",
    ],
)
def test_nothing_is_executed(text: str, tmp_path: Any) -> None:
    """Calls, comprehensions, format strings and assignments are refused unread."""
    path = tmp_path / "made"
    with pytest.raises(InvalidInputError):
        constraint(text.replace("PATH", str(path)))
    assert not path.exists()


@given(st.text(max_size=60) | st.from_regex(r"recall\([a-z0-9, =\[\]\(\)\{\}:'.+*-]{0,30}\)", fullmatch=True))
def test_any_text_is_a_constraint_or_an_error_of_ours(text: str) -> None:
    """Whatever is written."""
    try:
        constraint(text)
    except InvalidInputError:
        return


def test_all_of_the_library_can_be_said() -> None:
    """Every public constraint and objective has a name here, but those that hold functions or a number per row."""
    for module, known, unsaid in (
        (constraints, CONSTRAINTS, {constraints.TreeRule, constraints.PredictionRule}),
        (objectives, OBJECTIVES, {objectives.InstanceCosts, objectives.Fixed}),
    ):
        public = [getattr(module, name) for name in module.__all__]
        kinds = {kind for kind in public if inspect.isclass(kind) and hasattr(kind, "bind")}
        kinds -= {constraints.Constraint, objectives.Objective}
        assert kinds - unsaid == set(known.values())


def test_calls_become_text_and_back() -> None:
    """What a model file keeps means the same."""
    call = Call("feature_costs", (), {"prices": {"a b": 1}, "at_most": 2.0})
    assert call.text == "feature_costs(prices={'a b': 1}, at_most=2.0)"
    assert Call.parsed(call.text, "constraint", CONSTRAINTS) == Call("feature_costs", [], dict(call.keywords))
