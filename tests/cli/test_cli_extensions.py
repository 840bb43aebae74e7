"""Commands that other packages add to ``accel-oct``, found by their entry points."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel_oct.cli import main
from accel_oct.cli.app import COMMAND_GROUP


@pytest.fixture
def extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three commands of an installed distribution: a good one, one that cannot be imported, one with a taken name."""
    info = tmp_path / "extras-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extras\nVersion: 1.0\nSummary: More to do.\n")
    entries = "echo = echo_extra:run\nlost = no_such_module:run\nfit = echo_extra:run\n"
    (info / "entry_points.txt").write_text(f"[{COMMAND_GROUP}]\n{entries}")
    (tmp_path / "echo_extra.py").write_text(
        "from accel_oct.errors import InvalidInputError\n"
        "def run(arguments):\n"
        "    if arguments == ['wrong']:\n"
        "        raise InvalidInputError('that is wrong')\n"
        "    print(*arguments)\n"
        "    return len(arguments)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("extension")
def test_a_command_gets_all_arguments_and_gives_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Options, names of other commands and --help are handed on as they are."""
    assert main(["echo", "fit", "--help", "-x"]) == 3
    assert capsys.readouterr().out == "fit --help -x\n"


@pytest.mark.usefixtures("extension")
def test_the_help_has_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    """The summary of the package stands beside the command; nothing is imported for it."""
    assert main(["--help"]) == 0
    assert "More to do." in capsys.readouterr().out


@pytest.mark.usefixtures("extension")
def test_errors_are_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    """Both of the command and of its import."""
    for arguments, message in ((["echo", "wrong"], "that is wrong"), (["lost"], "'lost' cannot be loaded")):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1


@pytest.mark.usefixtures("extension")
def test_own_commands_are_not_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    """`fit` is ours, whatever is installed."""
    assert main(["fit", "--help"]) == 0
    assert "--target" in capsys.readouterr().out


def test_bench_says_what_to_install(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where accel-oct-bench is not installed, the command is not in the help, and asking for it is a sentence."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    assert main(["bench", "run", "quick"]) == 2
    error = capsys.readouterr().err
    assert "pip install accel-oct-bench" in error and error.count("\n") == 1
    assert main(["--help"]) == 0 and "bench" not in capsys.readouterr().out
