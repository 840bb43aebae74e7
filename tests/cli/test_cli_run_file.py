"""Run files: every key does what the option does, options win, and what is unknown is an error."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_oct import Config, OptimalTreeClassifier
from accel_oct.cli import main
from accel_oct.cli.commands.settings import SECTIONS, RunSettings, keys_of, read_run
from accel_oct.cli.options import GROUPS, RunFile, TableOptions, TreeOptions
from accel_oct.errors import InvalidInputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table with two classes, a group and weights."""
    rng = np.random.default_rng(3)
    rows = ["age;sex;w;class"]
    for _ in range(60):
        age, sex = int(rng.integers(18, 80)), rng.choice(["f", "m"])
        rows.append(f"{age};{sex};{rng.integers(1, 3)};{'yes' if age + 10 * (sex == 'm') > 50 else 'no'}")
    (tmp_path / "data.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def fit(folder: Path, run: str, *arguments: str) -> tuple[int, Any]:
    """Fit by a run file; the exit code and the model."""
    (folder / "run.toml").write_text(run, encoding="utf-8")
    out = folder / "model.json"
    out.unlink(missing_ok=True)
    code = main(["fit", "--config", str(folder / "run.toml"), "-q", "-o", str(out), *arguments])
    return code, OptimalTreeClassifier.from_json(out) if out.exists() else None


WHOLE = """
[data]
path = "data.csv"
target = "class"
delimiter = ";"
sample_weight = "w"

[tree]
max_depth = 2
leaf_penalty = 0.02
min_samples_leaf = 3
exclude = []
class_weight = { yes = 2, no = 1 }

[encoder]
encoder = "quantile-thresholds"
quantiles = 6

[solver]
time_limit = 60
gap = 0.0
seed = 7
threads = 1

[constraints]
rules = [
    "statistical_parity(sex, at_most=0.4)",
    { kind = "max_leaves", n = 3 },
]

[config]
preset = "baseline"
polishing = true

[config.subtree_bounds]
enabled = true
"""


def test_a_whole_run(folder: Path) -> None:
    """Everything arrives where it belongs, and the table is found beside the file."""
    code, model = fit(folder, WHOLE)
    assert code == 0 and model.status_ == "optimal"
    assert (model.max_depth, model.leaf_penalty, model.min_samples_leaf) == (2, 0.02, 3)
    assert model.class_weight == {"yes": 2.0, "no": 1.0}
    assert (model.time_limit, model.solver.seed, model.solver.threads) == (60.0, 7, 1)
    assert model.config == Config.from_mapping(
        {"polishing": True, "subtree_bounds": {"enabled": True}}, Config.preset("baseline")
    )
    assert [report.name.split()[0] for report in model.constraints_] == ["StatisticalParity", "at", "leaves"]
    assert list(model.feature_names_in_) == ["age", "sex"]
    assert type(model.encoder_).__name__ == "TableEncoder"
    stored = json.loads((folder / "model.json").read_text(encoding="utf-8"))["training"]
    assert stored["constraints"] == ["statistical_parity('sex', at_most=0.4)", "max_leaves(n=3)"]
    assert (stored["target"], stored["sample_weight"], stored["rows"]) == ("class", "w", 60)


def test_options_win(folder: Path) -> None:
    """Of both, what the command line says; the constraints of the file are replaced together."""
    code, model = fit(
        folder, WHOLE, "--max-depth", "1", "--seed", "9", "--constraint", "max_leaves(2)", "--preset", "default"
    )
    assert code == 0
    assert (model.max_depth, model.solver.seed, model.leaf_penalty) == (1, 9, 0.02)
    assert [report.name for report in model.constraints_] == ["at most 2 leaves", "leaves of 3 samples or more"]
    assert model.config == Config.from_mapping(
        {"polishing": True, "subtree_bounds": {"enabled": True}}, Config.preset("default")
    )


def test_other_commands_take_run_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`path`, `frontier` and `near-optimal` read the same file, and leave aside what is not theirs."""
    run = WHOLE.replace('    "statistical_parity(sex, at_most=0.4)",\n', "")
    (folder / "run.toml").write_text(run, encoding="utf-8")
    for command in ("path", "frontier", "near-optimal"):
        assert main([command, "--config", str(folder / "run.toml"), "-q", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["command"] == command and told["exit_code"] == 0
    assert all(tree["leaves"] <= 3 for tree in told["trees"])


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("[dat]\n", "no section 'dat'; did you mean 'data'?"),
        ("[zzz]\n", "no section 'zzz'; known are data, tree"),
        ("[tree]\nmaxdepth = 3\n", "[tree] has no key 'maxdepth'; did you mean 'max_depth'?"),
        ("[tree]\nmax_depth = true\n", "[tree] max_depth must be text or a number, got True"),
        ("[tree]\nmax_leaf_nodes = 2.5\n", "[tree] max_leaf_nodes must be a whole number, got 2.5"),
        ("[tree]\nleaf_penalty = [[1]]\n", "[tree] leaf_penalty must be a list"),
        ("[solver]\ntime_limit = 'long'\n", "[solver] time_limit must be a number, got 'long'"),
        ("[data]\nheader = 1\n", "[data] header must be true or false, got 1"),
        ("[encoder]\nencoder = 'best'\n", "[encoder] encoder must be one of 'auto'"),
        ("[solver]\npreset = 'paper'\n", "[solver] has no key 'preset'"),
        ("tree = 3\n", "tree must be a table"),
        ("[config]\npolish = true\n", "config has no key 'polish'"),
        ("[config]\npolishing = 1\n", "config.polishing must be a bool"),
        ("[config]\npreset = 'best'\n", "unknown preset 'best'"),
        ("config = 1\n", "config must be a table of switches"),
        ("constraints = 'max_leaves(2)'\n", "constraints must be a list"),
        ("[constraints]\nrule = []\n", "constraints must be a list"),
        ("constraints = ['max_leafs(2)']\n", "did you mean 'max_leaves'"),
        ("objective = 'f_bet'\n", "no objective 'f_bet'; did you mean 'f_beta'"),
        ("[objective]\nbeta = 2\n", "has no kind"),
        ("[tree\n", "is not valid TOML"),
    ],
)
def test_what_is_wrong_in_a_file(run: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence that names the key, with what is near; exit code 2."""
    code, model = fit(folder, run, str(folder / "data.csv"), "--target", "class", "--delimiter", ";")
    error = capsys.readouterr().err
    assert code == 2 and model is None
    assert error.count("\n") == 1 and message in error


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """Named, and exit code 2."""
    assert main(["fit", "--config", "nowhere.toml"]) == 2
    assert "run file nowhere.toml: No such file" in capsys.readouterr().err


def test_every_key_fills_its_option(tmp_path: Path) -> None:
    """For every section, a value of the right type reaches the group; no field of a group is forgotten."""
    reached = set()
    for section in SECTIONS:
        for key, (group, name) in keys_of(section).items():
            for value in ("true", "3", "2.5", "'auto'", "'best'", "'category'", "'csv'", "'first'"):
                path = tmp_path / "run.toml"
                path.write_text(f"[{section}]\n{key} = {value}\n", encoding="utf-8")
                try:
                    settings = read_run(RunFile(str(path)))
                except InvalidInputError:
                    continue
                assert (
                    str(settings.values[group][name]).strip("['].0").endswith(value.strip("'").replace("true", "True"))
                )
                assert getattr(settings.filled(group()), name) == settings.values[group][name]
                reached.add((group, name))
                break
    everything = {(group, field.name) for group in GROUPS for field in fields(group)}
    assert everything - reached == {next((g, f.name) for g in GROUPS for f in fields(g) if f.name == "preset")}


def test_what_nobody_says_has_its_default() -> None:
    """And what was said stays."""
    filled = RunSettings().filled(TreeOptions(leaf_penalty=["0.1"]))
    assert (filled.max_depth, filled.leaf_penalty, filled.max_leaf_nodes) == ("3", ["0.1"], None)
    assert RunSettings().filled(TableOptions(header=False)).header is False


# ---------------------------------------------------------------- the page


def test_the_page_has_every_switch() -> None:
    """docs/configuration.md names every switch of `Config` with its type, default and meaning."""
    rows = dict(re.findall(r"^\| `config\.([a-z_.]+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    wanted = dict(switches(Config(), ""))
    assert set(rows) == set(wanted)
    for name, (kind, default) in wanted.items():
        cells = [cell.strip() for cell in rows[name].split(" | ")]
        assert cells[0] == kind, name
        assert cells[1] == f"`{json.dumps(default)}`", name
        assert cells[2] == f"`{json.dumps(_at(Config.preset('default'), name))}`", name
        assert len(cells[3].split()) >= 3, name


def test_the_page_has_every_key() -> None:
    """And every key of every section of a run file."""
    text = PAGE.read_text(encoding="utf-8")
    found = set(re.findall(r"^\| `(\w+)\.(\w+)` \|", text, re.MULTILINE))
    wanted = {(section, key) for section in SECTIONS for key in keys_of(section)}
    assert {pair for pair in found if pair[0] != "config"} == wanted
    assert "## `[objective]`" in text and "## `[constraints]`" in text


def test_the_example_of_the_page_is_a_run(folder: Path) -> None:
    """It fits, on a table with the columns that it names."""
    (example,) = re.findall(r"```toml\n(\[data\].*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    code, model = fit(folder, example, str(folder / "data.csv"), "--delimiter", ";")
    assert code == 0 and model.status_ == "optimal"
    name = model.constraints_[0].name
    assert name.startswith("StatisticalParity of class ") and "(sex)" in name


def test_config_prints_what_a_run_file_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """The TOML of every preset reads back as the preset."""
    for name in ("default", "baseline", "paper", "bendoct:all-ec"):
        assert main(["config", name]) == 0
        written = tomllib.loads(capsys.readouterr().out)["config"]
        assert Config.from_mapping(written) == Config.preset(name)
        assert main(["config", name, "--json"]) == 0
        assert Config.from_mapping(json.loads(capsys.readouterr().out)["config"]) == Config.preset(name)


def switches(config: Any, prefix: str) -> Any:
    for entry in fields(config):
        value = getattr(config, entry.name)
        if is_dataclass(value):
            yield from switches(value, f"{prefix}{entry.name}.")
        else:
            kind = {bool: "boolean", int: "whole number", str: "text"}[type(value)]
            yield f"{prefix}{entry.name}", (kind, value)


def _at(config: Any, name: str) -> Any:
    for part in name.split("."):
        config = getattr(config, part)
    return config
