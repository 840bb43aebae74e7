"""`accel-oct policy`, and what the other commands do with the model that it writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from accel_oct import OptimalPolicyTree
from accel_oct.cli import main


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """A trial in which treatment 1 is better for ages above 50, with whole numbers as treatments."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 80, 120), "dose": rng.integers(1, 9, 120), "arm": np.arange(120) % 2})
    frame["result"] = frame["arm"] * np.where(frame["age"] > 50, 1.0, -1.0) + rng.normal(scale=0.1, size=120)
    frame.iloc[:90].to_csv(tmp_path / "trial.csv", index=False)
    frame.iloc[90:].to_csv(tmp_path / "later.csv", index=False)
    return tmp_path


def test_a_policy_from_a_file(trial: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The command fits what the estimator fits, values it on other rows, and writes it; predict and show read it."""
    monkeypatch.chdir(trial)
    given = ["policy", "trial.csv", "-t", "arm", "-y", "result", "-d", "1", "-q", "--treatment-cost", "1=0.1"]
    assert main([*given, "--test", "later.csv", "-o", "policy.json", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    frame, later = pd.read_csv("trial.csv"), pd.read_csv("later.csv")
    model = OptimalPolicyTree(1, treatment_costs={1: 0.1}).fit(frame, "arm", "result")
    assert document["objective"] == pytest.approx(model.objective_) and document["tree"] == model.to_text()
    assert document["value"] == pytest.approx(model.value(later, "arm", "result").estimate)
    assert document["assigned"] == [0, 1] and document["proven"]
    assert main(["predict", "policy.json", "later.csv"]) == 0
    lines = capsys.readouterr().out.split()
    assert lines == ["prediction", *map(str, model.predict(later[["age", "dose"]]))]
    assert main(["show", "policy.json"]) == 0
    assert "treatment 1  (mean reward" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["policy", "trial.csv", "-t", "arm", "-y", "resul"], "--outcome: "),
        (["policy", "trial.csv", "-t", "arms", "-y", "result"], "arms"),
        (["policy", "trial.csv", "-t", "arm", "-y", "result", "--class-weight", "balanced"], "is for classifiers"),
        (["policy", "trial.csv", "-t", "arm", "-y", "result", "--objective", "f1"], "is for classifiers"),
        (["policy", "trial.csv", "-t", "arm", "-y", "result", "--treatment-cost", "2=1"], "no treatment '2'"),
        (["policy", "trial.csv", "-t", "arm", "-y", "result", "-d", "1,2"], "takes several values only in"),
        (["predict", "stored.json", "later.csv", "--proba"], "--proba: the model is a policy tree"),
        (["check", "stored.json", "trial.csv"], "the model is a policy tree"),
        (["report", "stored.json", "trial.csv", "-o", "page.html"], "the model is a policy tree"),
        (["explain", "stored.json", "later.csv"], "the model is a policy tree"),
        (["policy", "trial.csv", "-t", "arm", "-y", "arm"], "--treatment and --outcome both name 'arm'"),
        (["certify", "stored.json", "trial.csv", "-o", "proof.json"], "the model is a policy tree"),
    ],
)
def test_what_a_policy_cannot_do(
    trial: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """Options and commands for classifiers, and names that do not exist, are errors with a sentence."""
    monkeypatch.chdir(trial)
    OptimalPolicyTree(1).fit_rewards(pd.DataFrame({"age": [1, 2], "dose": [0, 0]}), np.eye(2)).to_json("stored.json")
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
