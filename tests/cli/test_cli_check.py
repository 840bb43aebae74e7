"""`check`: a model is proven, holds on a file, satisfies its constraints there; each of these can fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_oct import OptimalTreeClassifier, read_table
from accel_oct.cli import main
from accel_oct.constraints import StatisticalParity

RULE = "statistical_parity(sex, at_most=0.15)"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes that depend on age and on a group."""
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("check") / "data.csv"
    rows = ["age,sex,w,class"]
    for _ in range(90):
        age, sex = int(rng.integers(18, 80)), rng.choice(["f", "m"])
        rows.append(f"{age},{sex},{rng.integers(1, 4)},{'yes' if age + 25 * (sex == 'm') > 60 else 'no'}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def fair(data: Path) -> Path:
    """A model under a constraint, with weights and an objective of its own."""
    path = data.with_name("fair.json")
    options = [
        "--constraint",
        RULE,
        "--sample-weight",
        "w",
        "--objective",
        "balanced_accuracy",
        "--min-samples-leaf",
        "4",
    ]
    assert main(["fit", str(data), "-t", "class", "-d", "2", "-q", "-o", str(path), *options]) == 0
    return path


def check(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["check", *map(str, arguments), "--json"])
    told = json.loads(capsys.readouterr().out)
    return code, told


def changed(model: Path, path: Path, change: Any) -> Path:
    """A copy of a model file with something else in it."""
    document = json.loads(model.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_model_holds_on_its_training_data(data: Path, fair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0; objective and constraints are measured anew and are what the solve said."""
    code, told = check(capsys, fair, data)
    assert code == 0 == told["exit_code"]
    assert told["training_data"] is True and told["rows"] == 90
    assert told["objective"] == pytest.approx(told["stored_objective"], abs=1e-12)
    assert [each["holds"] for each in told["findings"]] == [True] * 4
    assert [each["what"].split()[0] for each in told["findings"]] == [
        "proof",
        "objective",
        "StatisticalParity",
        "leaves",
    ]
    assert "proven optimal over" in told["findings"][0]["detail"]
    model = OptimalTreeClassifier.from_json(fair)
    assert told["findings"][2]["detail"] == f"value {model.constraints_[0].value:.6g}"
    assert main(["check", str(fair), str(data)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("90 rows of the training data") and all(": holds: " in line for line in lines[1:])


def test_training_data_are_known_in_other_formats(data: Path, fair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns in another order and a further one do not matter; another value does."""
    pytest.importorskip("pyarrow", reason="needs the extra `files`")
    import pyarrow.csv
    import pyarrow.parquet

    table = pyarrow.csv.read_csv(data).select(["class", "w", "sex", "age"])
    again, other = data.with_name("again.parquet"), data.with_name("other.csv")
    pyarrow.parquet.write_table(table.append_column("more", table["age"]), again)
    code, told = check(capsys, fair, again)
    assert code == 0 and told["training_data"] is True
    text = data.read_text(encoding="utf-8").splitlines()
    other.write_text("\n".join([*text[:-1], text[-1].replace(text[-1].split(",")[0], "17")]) + "\n", encoding="utf-8")
    _, told = check(capsys, fair, other)
    assert told["training_data"] is False


def test_other_data_need_not_have_the_same_objective(
    data: Path, fair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But constraints must hold there: on the rows of one group and class they do not."""
    rows = data.read_text(encoding="utf-8").splitlines()
    half = tmp_path / "half.csv"
    half.write_text("\n".join([rows[0], *rows[1::2]]) + "\n", encoding="utf-8")
    model = OptimalTreeClassifier.from_json(fair)
    X = read_table(half, like=model)
    predicted = model.predict(X)
    sex, w = np.array([row.split(",")[1:3] for row in rows[1::2]]).T
    weights = w.astype(float)
    rates = [weights[(sex == s) & (predicted == "yes")].sum() / weights[sex == s].sum() for s in "fm"]
    code, told = check(capsys, fair, half)
    parity = told["findings"][2]
    assert told["training_data"] is False and told["findings"][1]["holds"] is True
    assert parity["detail"] == f"value {abs(rates[0] - rates[1]):.6g}"
    assert parity["holds"] is bool(abs(rates[0] - rates[1]) <= 0.15)
    assert code == (0 if parity["holds"] else 4)
    code, told = check(capsys, fair, half, "--constraint", "statistical_parity(sex, at_most=0)")
    assert code == 4 and told["findings"][2]["holds"] is False
    women = tmp_path / "women.csv"
    women.write_text("\n".join([rows[0], *(row for row in rows if ",f," in row)]) + "\n", encoding="utf-8")
    code, told = check(capsys, fair, women)
    assert code == 4 and told["findings"][2]["holds"] is None and "two distinct values" in told["findings"][2]["detail"]


def test_a_tree_that_was_changed_is_noticed(
    data: Path, fair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file claims an objective that the tree does not have: exit code 4, whatever else holds."""

    def swap(document: dict[str, Any]) -> None:
        labels = document["tree"]["label"]
        document["tree"]["label"] = [1 - label if label >= 0 else label for label in labels]

    code, told = check(capsys, changed(fair, tmp_path / "swapped.json", swap), data)
    assert code == 4 and told["findings"][1]["holds"] is False


def test_a_model_that_is_not_proven(data: Path, fair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 3 where everything else holds."""

    def doubt(document: dict[str, Any]) -> None:
        document["result"]["status"] = "time_limit"
        document["result"]["bound"] += 0.1

    path = changed(fair, tmp_path / "doubtful.json", doubt)
    code, told = check(capsys, path, data)
    assert code == 3 and told["findings"][0]["holds"] is False
    code, _ = check(capsys, path, data, "--constraint", "statistical_parity(sex, at_most=0)")
    assert code == 4


def test_a_model_from_python_says_less(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its file knows neither the target nor the columns of its constraints: both have to be said."""
    X, y = read_table(data, target="class")
    path = tmp_path / "python.json"
    OptimalTreeClassifier(2, constraints=[StatisticalParity("sex", at_most=0.3)]).fit(X, y).to_json(path)
    assert main(["check", str(path), str(data)]) == 2
    assert "--target" in capsys.readouterr().err
    code, told = check(capsys, path, data, "--target", "class")
    assert code == 4 and told["training_data"] is None
    assert told["findings"][-1]["holds"] is None and "--constraint" in told["findings"][-1]["detail"]
    code, told = check(capsys, path, data, "--target", "class", "--constraint", "statistical_parity(sex, at_most=0.3)")
    assert code == 0 and told["findings"][-1]["holds"] is True


def test_labels_that_the_model_has_never_seen(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are mistakes, with weights of classes too; a score that is undefined there is not checked."""
    path, other = tmp_path / "model.json", tmp_path / "other.csv"
    other.write_text("age,sex,w,class\n20,f,1,maybe\n70,m,1,yes\n", encoding="utf-8")
    fit = ["fit", str(data), "-t", "class", "-d", "1", "-q", "-o", str(path)]
    for weights in (["--class-weight", "yes=2"], ["--class-weight", "balanced"], []):
        assert main([*fit, *weights]) == 0
        code, told = check(capsys, path, other)
        assert code == 0 and told["rows"] == 2 and told["accuracy"] in (0.0, 0.5)
        assert check(capsys, path, data)[0] == 0
    assert main([*fit, "--objective", "f1(yes)"]) == 0
    other.write_text("age,sex,w,class\n20,f,1,no\n", encoding="utf-8")
    code, told = check(capsys, path, other)
    assert code == 4 and told["objective"] is None and "undefined" in told["findings"][1]["detail"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda training: training.update(constraints=[7]), "training.constraints must be a list of texts"),
        (lambda training: training.update(constraints={}), "training.constraints must be a list of texts"),
        (lambda training: training.update(fingerprint=7), "training.fingerprint must be text"),
    ],
)
def test_what_cannot_be_read_of_the_training_is_an_error(
    data: Path, fair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Any, said: str
) -> None:
    """Left aside, a constraint would hold without having been looked at."""
    other = changed(fair, tmp_path / "other.json", lambda document: change(document["training"]))
    code, told = check(capsys, other, data)
    assert code == 2 and said in told["error"]["message"]


def test_constraints_that_the_training_does_not_name_are_not_checked(
    data: Path, fair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And that is told, by the exit code too."""
    other = changed(fair, tmp_path / "other.json", lambda document: document["training"].pop("constraints"))
    code, told = check(capsys, other, data)
    assert code == 4 and told["findings"][-1]["holds"] is None
    assert "use --constraint" in told["findings"][-1]["detail"]
