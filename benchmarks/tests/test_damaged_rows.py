"""Files of rows that were damaged, cut off or made to exhaust memory: one sentence of ours, never another error."""

from __future__ import annotations

import base64
import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_support import a_row, a_task

from accel_oct.errors import InvalidInputError
from accel_oct_bench.data import Registry
from accel_oct_bench.results import all_rows, read_lines
from accel_oct_bench.rows import packed_labels, unpacked_labels
from accel_oct_bench.verify.checks import check_one


def two_rows() -> bytes:
    return (a_row(predictions=packed_labels([0, 1])).to_json() + "\n").encode() * 2


def damaged(content: bytes, rng: random.Random) -> bytes:
    """A copy that is cut off, lacks a part, or has bytes changed."""
    place = rng.randrange(len(content))
    way = rng.randrange(3)
    if way < 2:
        return content[:place] + content[place + rng.randrange(1, 20) :] * way
    changed = bytearray(content)
    changed[place] = rng.choice((0, 0xFF, rng.randrange(256), ord('"'), ord("9")))
    return bytes(changed)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_damaged_rows_are_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    """What is read from a damaged copy is either a value or our own error, which names the file in one line."""
    content = gzip.compress(two_rows(), mtime=0) if name.endswith(".gz") else two_rows()
    path, rng, refused = tmp_path / name, random.Random(name), 0
    for _ in range(150):
        path.write_bytes(damaged(content, rng))
        try:
            all_rows([path])
        except InvalidInputError as error:
            refused += 1
            assert name in str(error)
            assert "\n" not in str(error) and len(str(error)) < 700
    assert refused > 10


def peak_of(work: Callable[[], Any]) -> int:
    """Most bytes that Python held while working."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_predictions_are_unpacked_up_to_the_samples() -> None:
    """As many labels as there are samples, and no more; what follows them is a fault of the row."""
    labels = [0, 1, 1, 0]
    assert unpacked_labels(packed_labels(labels), 4).tolist() == labels
    for amount in (0, 3, 5):
        with pytest.raises(InvalidInputError, match=f"predictions .* {amount}"):
            unpacked_labels(packed_labels(labels), amount)
    cut = base64.b64encode(zlib.compress(bytes(1000))[:-6]).decode()
    for bad in (cut, "no base64", base64.b64encode(b"nothing").decode(), packed_labels(labels) + "AAAA"):
        with pytest.raises(InvalidInputError, match="predictions"):
            unpacked_labels(bad, 1000)


def test_a_bomb_in_predictions_is_not_unpacked() -> None:
    """300 MB of zeros in 0.4 MB of text: a finding of `bench verify`, within a few megabytes."""
    packer = zlib.compressobj()
    bomb = b"".join([packer.compress(bytes(10**6)) for _ in range(150)]) + packer.flush()
    row = replace(a_row(objective=0.5, bound=0.5), predictions=base64.b64encode(bomb).decode())
    data = Registry().load(a_task().instance.data)
    found: list[Any] = []
    assert peak_of(lambda: found.append(check_one(row, data))) < 5_000_000
    assert "predictions" in [finding.kind for finding in found[0].findings]


def test_gzipped_rows_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both all rows and one row; the lines before are not kept in memory as text."""
    monkeypatch.setattr("accel_oct_bench.results._MOST_BYTES", 2_000_000)
    monkeypatch.setattr("accel_oct_bench.results._MOST_ROW_BYTES", 100_000)
    row = two_rows()
    (tmp_path / "long.jsonl.gz").write_bytes(gzip.compress(row + b" " * 10**6))
    (tmp_path / "many.jsonl.gz").write_bytes(gzip.compress(row * (3_000_000 // len(row))))
    for name, said in (("long", "line 3"), ("many", "2000000 bytes")):
        with pytest.raises(InvalidInputError, match=rf"{name}\.jsonl\.gz.*{said}"):
            all_rows([tmp_path / f"{name}.jsonl.gz"])
    (tmp_path / "rows.jsonl").write_bytes(row)
    (tmp_path / "good.jsonl.gz").write_bytes(gzip.compress(row))
    assert all_rows([tmp_path / "good.jsonl.gz"])[0].rows == tuple(read_lines(tmp_path / "rows.jsonl")[0])
