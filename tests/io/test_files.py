"""Files are replaced as a whole or not at all, and read up to a limit; CSV labels keep what they say."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_oct import OptimalTreeClassifier
from accel_oct.cli import main
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError, shown
from accel_oct.io import read_table
from accel_oct.solving.config import Config
from accel_oct.support.files import read_text, replacing


def a_model() -> OptimalTreeClassifier:
    return OptimalTreeClassifier(max_depth=1).fit(np.arange(20.0)[:, None], [0, 1] * 10)


class FullDisk(OSError):
    """What a write or a sync raises when nothing is left."""


# ---------------------------------------------------------------- writing


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_save_leaves_the_old_model(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up while saving: the old file is whole, and nothing is left beside it."""
    path = tmp_path / "model.json"
    model = a_model()
    old = model.to_json(path)

    def fail(*arguments: Any) -> None:
        raise FullDisk(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(FullDisk):
        model.set_params(time_limit=77.0).to_json(path)
    monkeypatch.undo()
    assert path.read_text(encoding="utf-8") == old
    assert [each.name for each in tmp_path.iterdir()] == ["model.json"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full, which only Linux has")
def test_a_device_is_written_in_place() -> None:
    """No file can be put beside a device; its own error comes out."""
    with pytest.raises(OSError, match="No space left"):
        a_model().to_json("/dev/full")


def test_a_block_that_fails_replaces_nothing(tmp_path: Path) -> None:
    """Neither an error nor Ctrl-C in the middle of writing leaves a trace."""
    path = tmp_path / "file"
    path.write_text("old", encoding="utf-8")
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error), replacing(path) as file:
            file.write("new")
            raise error
        assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_replacing_keeps_permissions_and_links(tmp_path: Path) -> None:
    """The mode of the old file, the mode of any new file where there is none, and a link stays a link."""
    path, link, fresh, plain = (tmp_path / name for name in ("file", "link", "fresh", "plain"))
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    link.symlink_to(path)
    with replacing(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert path.read_text(encoding="utf-8") == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with replacing(fresh, binary=True) as file:
        file.write(b"\0")
    plain.touch()
    assert fresh.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("path", ["a\0b", 3, b"bytes", None, "\ud800"])
def test_paths_that_are_none(path: Any) -> None:
    """NUL, other types and half characters: our error, when reading and when writing."""
    with pytest.raises(InvalidInputError, match="path"):
        read_text(path, 10, "path")
    if path is not None:
        with pytest.raises(InvalidInputError, match="path"):
            a_model().to_json(path)
        with pytest.raises(InvalidInputError):
            OptimalTreeClassifier.from_json(path)


def test_every_output_of_the_command_line_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models, predictions, pictures and rules: each old file survives a full disk, and the exit code is 2."""
    data, model = tmp_path / "data.csv", tmp_path / "model.json"
    data.write_text("a,class\n" + "1,x\n2,y\n" * 10, encoding="utf-8")
    fit = ["fit", str(data), "--target", "class", "--max-depth", "1", "--quiet", "-o"]
    assert main([*fit, str(model)]) == 0
    commands = [
        fit,
        ["predict", str(model), str(data), "-o"],
        ["show", str(model), "--format", "python", "-o"],
        ["show", str(model), "--format", "png", "-o"],
        ["path", str(data), "--target", "class", "--max-depth", "1", "-o"],
        ["encode", str(data), "--target", "class", "-o"],
    ]

    def fail(*arguments: Any) -> None:
        raise FullDisk(28, "No space left on device")

    for command in commands:
        old = tmp_path / "old"
        old.write_text("old", encoding="utf-8")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            assert main([*command, str(old)]) == 2
        assert old.read_text(encoding="utf-8") == "old"
        assert main([*command, str(old)]) == 0
        assert old.read_bytes() != b"old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data.csv", "model.json", "old"]


# ---------------------------------------------------------------- reading


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    """A device without end, a pipe that nobody writes to, a folder."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for source in (Path("/dev/zero"), pipe, tmp_path):
        with pytest.raises(InvalidInputError, match="not a regular file"):
            OptimalTreeClassifier.from_json(source)
        with pytest.raises(InvalidInputError, match="not a regular file"):
            Config.from_toml(source)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs a file that hides its size, as in /proc")
def test_a_size_that_lies_is_found_out() -> None:
    """Files of /proc say that they are empty; no more than the limit is read all the same."""
    assert os.stat("/proc/self/maps").st_size == 0
    with pytest.raises(InvalidInputError, match="at least 101 bytes"):
        read_text("/proc/self/maps", 100, "file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('preset = ["default"]', "unknown preset"),
        ("preset = {a = 1}", "unknown preset"),
        ("polishing = " + "[" * 20_000 + "]" * 20_000, "deep"),
        ("polishing" + ".a" * 2_000 + " = 1", "polishing|nested too deeply"),  # Python 3.10 reads no key so deep
        ("preset" + ".a" * 2_000 + " = 1", "preset"),
        ("cache_memory_limit = " + "9" * 5000, "TOML"),
        ("cache_memory_limit = 0x" + "f" * 5000, "cache_memory_limit.*huge"),
        ("cache_memory_limit = 9223372036854775808", "cache_memory_limit"),
        ("cache_memory_limit = inf", "cache_memory_limit"),
        ("[equivalent_points]\nmax_split_size = 1.0", "max_split_size"),
        ("[equivalent_points]\nmax_split_size = true", "max_split_size"),
        ("[equivalent_points]\nlinking = [['basic']]", "linking"),
    ],
)
def test_hostile_toml(text: str, message: str, tmp_path: Path) -> None:
    """Lists for a preset, nesting without end, numbers without end: an error of ours that is short."""
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInputError, match=message) as caught:
        Config.from_toml(path)
    assert len(str(caught.value)) < 500


def test_shown_is_short_whatever_it_shows() -> None:
    """Deep, long and huge values, and objects that cannot be shown."""

    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (deep, "x" * 10**6, [10**5000], 10**5000, Silent(), {i: i for i in range(10**4)}):
        assert len(shown(value)) <= 80
    while deep:
        deep = deep[0]


# ---------------------------------------------------------------- labels


def labels_of(texts: list[str], tmp_path: Path) -> list[Any]:
    path = tmp_path / "labels.csv"
    path.write_text("a,class\n" + "".join(f"1,{text}\n" for text in texts), encoding="utf-8")
    labels: list[Any] = read_table(path, target="class")[1].tolist()
    return labels


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["1", "2"], [1, 2]),
        (["1.0", "2.0"], [1, 2]),
        (["1e3", "-7"], [1000, -7]),
        (["9007199254740992", "9007199254740993"], [9007199254740992, 9007199254740993]),
        (["18446744073709551615", "0"], [18446744073709551615, 0]),
        (["18446744073709551615", "-1"], ["18446744073709551615", "-1"]),
        (["18446744073709551616", "18446744073709551617"], ["18446744073709551616", "18446744073709551617"]),
        (["inf", "1e300"], ["inf", "1e300"]),
        (["inf", "-inf", "Infinity"], ["inf", "-inf", "Infinity"]),
        (["1e400", "1e500"], ["1e400", "1e500"]),
        (["1e99999999999999999999", "1"], ["1e99999999999999999999", "1"]),
        (["7", "007"], ["7", "007"]),
        (["1_0", "10"], ["1_0", "10"]),
        (["True", "false", "TRUE"], [True, False, True]),
        (["yes", "1"], ["yes", "1"]),
    ],
)
def test_labels_that_differ_stay_different(texts: list[str], labels: list[Any], tmp_path: Path) -> None:
    """Whole numbers where that loses nothing, else the text as it stands."""
    found = labels_of(texts, tmp_path)
    assert found == labels
    assert [type(label) for label in found] == [type(label) for label in labels]


def test_labels_that_are_measurements_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0.5 and 1.5 name no classes, and a missing label has no class: one sentence, exit code 2."""
    for texts, message in ((["0.5", "1.5"], "continuous"), (["1", "?"], "y has a missing"), (["0.5", "inf"], "y has")):
        labels_of(texts * 5, tmp_path)
        assert main(["fit", str(tmp_path / "labels.csv"), "--target", "class", "--quiet", "--na-values", "?"]) == 2
        assert message in capsys.readouterr().err


def test_large_labels_survive_fit_and_file(tmp_path: Path) -> None:
    """Labels one apart beyond 2**53 and 2**63 are two classes from CSV to predictions, through JSON."""
    for first, second in ((2**53, 2**53 + 1), (2**64 - 2, 2**64 - 1), (2**70, 2**70 + 1)):
        data, model, out = (tmp_path / name for name in ("data.csv", "model.json", "out.csv"))
        rows = [f"{k},{first if k < 10 else second}\n" for k in range(20)]
        data.write_text("a,class\n" + "".join(rows), encoding="utf-8")
        assert main(["fit", str(data), "--target", "class", "--max-depth", "1", "--quiet", "-o", str(model)]) == 0
        assert main(["predict", str(model), str(data), "-o", str(out)]) == 0
        assert out.read_text(encoding="utf-8").split()[1:] == [str(first)] * 10 + [str(second)] * 10


@pytest.mark.parametrize("labels", [[2**63, 2**63 + 1, -1], [2**53, 2**53 + 1, 1.0]])
def test_whole_labels_that_floats_would_merge_are_refused(labels: list[Any]) -> None:
    """NumPy makes floats of them without a word; also in an array of objects, and for the classifier."""
    X = np.eye(3)
    for y in (labels, np.array(labels, dtype=object)):
        with pytest.raises(InvalidInputError, match="too large"):
            BinaryDataset.from_arrays(X, y)
    with pytest.raises(InvalidInputError, match="too large"):
        OptimalTreeClassifier().fit(X, labels)


def test_labels_that_end_in_nul_are_refused() -> None:
    """NumPy cuts the NUL off, and two classes would be one."""
    with pytest.raises(InvalidInputError, match="NUL"):
        BinaryDataset.from_arrays(np.eye(2), np.array(["a", "a\0"], dtype=object))


def test_separators_and_paths_that_are_none(tmp_path: Path) -> None:
    """Whatever the csv module thinks of a separator, the error is ours."""
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    for separator in ("", ",,", "\n"):
        try:
            read_table(path, delimiter=separator)
        except InvalidInputError:
            continue
        assert separator == "\n"  # some versions of Python take it
    with pytest.raises(InvalidInputError, match="NUL"):
        read_table("a\0b")
