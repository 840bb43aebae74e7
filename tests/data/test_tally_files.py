"""Tallies in files: what was saved comes back, and a file that was tampered with is refused in one sentence."""

from __future__ import annotations

import json
import os
import zipfile
from io import BytesIO

import numpy as np
import pandas as pd
import pytest

from accel_oct import gather
from accel_oct.data import Tally
from accel_oct.errors import InvalidInputError

RNG = np.random.default_rng(0)
X = RNG.random((60, 5)) < 0.5
LABELS = {
    "str": np.array(["no", "yes"]),
    "int": np.array([-3, 2**62]),
    "large int": np.array([1, 2**64 - 1], dtype=np.uint64),
    "bool": np.array([False, True]),
    "float": np.array([0.1, 1e300]),
}


def made(**options):
    return Tally.of(X, RNG.integers(0, 2, 60), depth=3, **options)


@pytest.mark.parametrize("kind", LABELS)
def test_what_was_saved_comes_back(kind, tmp_path):
    """Counts, labels of every type with it, names, units: all of it, and the same bytes when saved again."""
    labels = LABELS[kind]
    tally = Tally.of(
        X,
        labels[RNG.integers(0, 2, 60)],
        depth=3,
        sensitive_features=labels[RNG.integers(0, 2, 60)],
        sample_weight=RNG.random(60) + 0.5,
        feature_names=["ä", "b ", "c", "d", "\u2028"],
        encoding="some",
    )
    tally.save(tmp_path / "a")
    back = Tally.load(tmp_path / "a")
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(tally.counts, back.counts, strict=True))
    assert back.classes.dtype.kind == labels.dtype.kind and back.classes.tolist() == labels.tolist()
    assert back.group_labels.tolist() == labels.tolist()
    for name in ("depth", "unit", "n_rows", "feature_names", "encoding", "group_name"):
        assert getattr(back, name) == getattr(tally, name)
    assert (tally + back).n_rows == 120
    back.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_no_groups_and_no_rows(tmp_path):
    """The tally of an empty piece is a file like others, and has no groups after it was read."""
    Tally.of(np.zeros((0, 3)), [], depth=2, classes=[0, 1]).save(tmp_path / "a")
    back = Tally.load(tmp_path / "a")
    assert back.n_rows == 0 and back.group_labels.tolist() == [None] and back.total == 0


def test_labels_that_cannot_be_saved(tmp_path):
    """Times are labels, but not in a file; nothing is left behind."""
    times = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")
    with pytest.raises(InvalidInputError, match=r"classes are datetime64\[D\] cannot be saved"):
        Tally.of(X, times[RNG.integers(0, 2, 60)], depth=1).save(tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    """A disk that fills up in the middle leaves what was there."""
    made().save(tmp_path / "a")
    before = (tmp_path / "a").read_bytes()
    real = zipfile.ZipFile.writestr

    def fails(self, member, *rest, **options):
        if member.filename == "counts_2.npy":
            raise OSError(28, "No space left on device")
        real(self, member, *rest, **options)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fails)
    with pytest.raises(OSError, match="No space left"):
        made().save(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == before and len(list(tmp_path.iterdir())) == 1


# ---------------------------------------------------------------- hostile files


def members_of(path):
    with zipfile.ZipFile(path) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def write(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name, content)


def array(values):
    file = BytesIO()
    np.save(file, values, allow_pickle=True)
    return file.getvalue()


def in_schema(**changes):
    def change(members):
        members["schema.json"] = json.dumps(json.loads(members["schema.json"]) | changes).encode()

    return change


def in_counts(size, change):
    def apply(members):
        values = np.load(BytesIO(members[f"counts_{size}.npy"])).astype(np.int64)
        change(values)
        members[f"counts_{size}.npy"] = array(values)

    return apply


def put(name, content):
    return lambda members: members.__setitem__(name, content)


def add_to(place, amount):
    def change(values):
        values[place] += amount

    return change


HOSTILE = {
    "no schema": (lambda members: members.pop("schema.json"), "no schema"),
    "another format": (in_schema(format="other"), "it is not a tally"),
    "a later version": (in_schema(version=2), "version 2, but this release reads version 1"),
    "not JSON": (put("schema.json", b"{"), "not JSON"),
    "deep JSON": (put("schema.json", b"[" * 100_000), "not JSON"),
    "a list": (put("schema.json", b"[]"), "it is not a tally"),
    "depth a bool": (in_schema(depth=True), "its depth is True"),
    "depth huge": (in_schema(depth=10**9), "its depth is 1000000000"),
    "depth another": (in_schema(depth=2), "sets of up to 2 columns and nothing else"),
    "negative rows": (in_schema(n_rows=-1), "its n_rows is -1"),
    "unit": (in_schema(unit=10**6), "its unit is 1000000"),
    "unit that overflows": (in_schema(unit=1000), "its unit is 1000"),
    "encoding": (in_schema(encoding=[]), "its encoding is"),
    "sources": (in_schema(sources=["a"]), "a source for every feature"),
    "columns": (in_schema(columns=[1]), "a source for every feature"),
    "names twice": (in_schema(feature_names=list("aabcd")), "not distinct strings"),
    "more names": (in_schema(feature_names=list("abcdef")), "not an array of 2 x 6 counts"),
    "too many names": (in_schema(feature_names=[f"x{j}" for j in range(3000)]), "bytes, more than the"),
    "labels of two types": (in_schema(classes={"type": "int", "values": [0, "a"]}), "labels of one type"),
    "labels of a strange type": (in_schema(classes={"type": "object", "values": [0]}), "labels of one type"),
    "labels too large": (in_schema(classes={"type": "int", "values": [0, 10**30]}), "classes are too large"),
    "labels of a list of types": (in_schema(classes={"type": ["int"], "values": [0]}), "labels of one type"),
    "labels not sorted": (in_schema(classes={"type": "int", "values": [1, 0]}), "sorted and distinct"),
    "not a number": (in_schema(classes={"type": "float", "values": [0.0, float("nan")]}), "labels of one type"),
    "a member more": (put("counts_9.npy", b""), "and nothing else"),
    "a member with a path": (put("../../evil", b""), "and nothing else"),
    "no array": (put("counts_1.npy", b"x" * 100), "is not an array"),
    "another shape": (put("counts_1.npy", array(np.zeros((5, 2), np.uint8))), "not an array of 2 x 5 counts"),
    "huge shape": (put("counts_1.npy", array(np.zeros(10**6, np.uint8))), "which do not fit the 2 x 5 counts"),
    "floats": (put("counts_1.npy", array(np.zeros((2, 5)))), "not an array of 2 x 5 counts"),
    "objects": (put("counts_1.npy", array(np.array([[None] * 5] * 2))), "counts_1.npy"),
    "negative": (in_counts(2, lambda values: values.__imul__(-1)), "negative or too large"),
    "too large": (in_counts(0, lambda values: values.__imul__(2**57)), "negative or too large"),
    "more than a part": (in_counts(3, add_to((0, 0), 50)), "more samples have a set of columns than a part"),
    "fewer than must": (in_counts(2, lambda values: values.fill(0)), "contradict each other"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files(case, tmp_path):
    """Whatever was changed, it is one error that names the file and what is wrong."""
    made().save(tmp_path / "a")
    members = members_of(tmp_path / "a")
    change, said = HOSTILE[case]
    change(members)
    write(tmp_path / "b", members)
    with pytest.raises(InvalidInputError, match=f"cannot read the tally .*b: .*{said}") as caught:
        Tally.load(tmp_path / "b")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rare", [0, 1])
def test_more_samples_than_a_part_has(rare, tmp_path):
    """Two columns together are no more frequent than the rarer of them, whichever that is."""
    X = np.ones((6, 2))
    X[:5, rare] = 0
    Tally.of(X, [0, 1] * 3, depth=2).save(tmp_path / "a")
    members = members_of(tmp_path / "a")
    in_counts(2, add_to((0, 0), 1))(members)
    write(tmp_path / "b", members)
    with pytest.raises(InvalidInputError, match="more samples have a set of columns than a part of it"):
        Tally.load(tmp_path / "b")


def test_fewer_samples_than_must_have(tmp_path):
    """Two columns that all samples have are had by all samples together."""
    Tally.of(np.ones((6, 2)), [0, 1] * 3, depth=2).save(tmp_path / "a")
    members = members_of(tmp_path / "a")
    in_counts(2, add_to((0, 0), -1))(members)
    write(tmp_path / "b", members)
    with pytest.raises(InvalidInputError, match="fewer samples have two columns than must have"):
        Tally.load(tmp_path / "b")


def test_truncated_files(tmp_path):
    """Cut anywhere, or with a bit changed in what is packed, a file is refused."""
    tally, refused = made(), 0
    tally.save(tmp_path / "a")
    content = (tmp_path / "a").read_bytes()
    for length in range(0, len(content), 97):
        (tmp_path / "b").write_bytes(content[:length])
        with pytest.raises(InvalidInputError, match="damaged or not a tally"):
            Tally.load(tmp_path / "b")
    for place in range(60, len(content) // 2, 41):
        (tmp_path / "b").write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        try:
            back = Tally.load(tmp_path / "b")
        except InvalidInputError as error:
            assert "cannot read the tally" in str(error)
            refused += 1
        else:  # the date of a member, say, which nobody reads
            assert all(np.array_equal(one, two) for one, two in zip(back.counts, tally.counts, strict=True))
    assert refused > 5


def test_a_zip_bomb_is_not_unpacked(tmp_path):
    """A member that unpacks to more than it claims is read no further than that; a large schema not at all."""
    made().save(tmp_path / "a")
    members = members_of(tmp_path / "a")
    bomb = members | {"counts_1.npy": members["counts_1.npy"] + bytes(2**25)}
    write(tmp_path / "b", bomb)
    with pytest.raises(InvalidInputError, match="which do not fit the 2 x 5 counts"):
        Tally.load(tmp_path / "b")
    claimed = len(members["counts_1.npy"])
    lying = (
        (tmp_path / "b")
        .read_bytes()
        .replace((len(bomb["counts_1.npy"])).to_bytes(4, "little"), claimed.to_bytes(4, "little"))
    )
    (tmp_path / "c").write_bytes(lying)
    with pytest.raises(InvalidInputError, match="cannot read the tally"):
        Tally.load(tmp_path / "c")
    write(tmp_path / "d", members | {"schema.json": bytes(2**26 + 1)})
    with pytest.raises(InvalidInputError, match="its schema is too large"):
        Tally.load(tmp_path / "d")


def test_limits_and_other_files(tmp_path):
    """A limit on memory counts; a folder, a pipe and a missing file are refused."""
    made().save(tmp_path / "a")
    with pytest.raises(InvalidInputError, match="would take 416 bytes, more than the 415 that are allowed"):
        Tally.load(tmp_path / "a", max_bytes=415)
    assert Tally.load(tmp_path / "a", max_bytes=416).depth == 3
    os.mkfifo(tmp_path / "pipe")
    for name, said in [
        ("", "[^(]: it is not a regular file$"),
        ("pipe", "not a regular file"),
        ("none", "No such file"),
    ]:
        with pytest.raises(InvalidInputError, match=said):
            Tally.load(tmp_path / name)


def test_several_groups_of_pieces(tmp_path):
    """Groups of two columns are in the order of their labels, so that such tallies add up and come back from a file."""
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, 2, 40) for name in ("a", "b", "y")}
    table = pd.DataFrame(columns | {"s": rng.integers(8, 12, 40), "t": rng.choice(["u", "v"], 40)})

    def tallied(rows):
        options = {
            "sensitive_features": ["s", "t"],
            "features": ["a", "b"],
            "encoder": None,
            "depth": 2,
            "keep": "counts",
        }
        return gather([rows], "y", **options).data

    whole = tallied(table)
    assert whole.group_labels.tolist() == sorted(whole.group_labels.tolist())
    for place, label in enumerate(whole.group_labels.tolist()):
        number, letter = label.split(", ")
        mine = table[(table["s"] == int(number)) & (table["t"] == letter)]
        assert whole.counts[1][place :: whole.n_groups].sum(axis=0).tolist() == mine[["a", "b"]].sum().tolist()
    parts = tallied(table[table["s"] > 9]) + tallied(table[table["s"] <= 9])
    assert parts.group_labels.tolist() == whole.group_labels.tolist()
    assert all(np.array_equal(one, two) for one, two in zip(parts.counts, whole.counts, strict=True))
    whole.save(tmp_path / "a")
    back = Tally.load(tmp_path / "a")
    assert back.group_labels.tolist() == whole.group_labels.tolist()
    assert back.sources == back.columns == ("a", "b") == whole.sources
