"""The binding of the native kernels: arguments are checked, all CPU levels give the same, errors say what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from accel_oct import native
from accel_oct.errors import MissingKernelsError
from accel_oct.native import library, records

ALL_KINDS = """
import numpy as np
from accel_oct import Tally, frontier, near_optimal, solve
from accel_oct.constraints import MinLeafWeight, StatisticalParity
rng = np.random.default_rng(0)
X = rng.random((300, 21)) < 0.4
for n_classes in (2, 3):
    y = np.where(rng.random(300) < 0.3, rng.integers(0, n_classes, 300), (X[:, 0] & X[:, 1]) + 0)
    for weights in (None, rng.integers(1, 2000, 300), rng.random(300)):
        print(frontier(X, y, sample_weight=weights, max_depth=4).scores.tolist())
        rules = [MinLeafWeight(share=0.1)]
        print(frontier(X, y, sample_weight=weights, max_depth=3, constraints=rules).scores.tolist())
    print(solve(Tally.of(X, y, depth=3), max_depth=3, leaf_penalty=0.01).objective)
    print(near_optimal(X[:, :6], y, max_depth=3, leaf_penalty=0.01, within=0.01, limit=3).count)
    limit = [StatisticalParity(X[:, 5] * 1, at_most=0.05, positive=1)]
    print(solve(X[:, :5], y, max_depth=2, leaf_penalty=0.01, constraints=limit).objective)
"""


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=False
    )


def test_every_level_of_the_machine_gives_the_same() -> None:
    """Bit by bit, for all types of counters: vectors of other widths add up in the same order."""
    told = {}
    for name in library.level_names():
        done = run(ALL_KINDS, ACCEL_OCT_CPU=name)
        assert done.returncode == 0, done.stderr
        told[name] = done.stdout
    assert len(set(told.values())) == 1, told


def test_a_level_that_there_is_not() -> None:
    """The error names the variable, and what there is."""
    done = run("from accel_oct.native.library import kernels; kernels()", ACCEL_OCT_CPU="z80")
    assert "MissingKernelsError: ACCEL_OCT_CPU=z80: no such kernels; there are " in done.stderr
    assert library.level_names()[0] in done.stderr


def test_without_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says how to get them."""
    monkeypatch.setattr(library, "_FOLDER", tmp_path)
    with pytest.raises(MissingKernelsError, match="install a wheel for this platform, or build it"):
        library.level_names()


def test_kernels_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that was built from other sources is not called."""
    monkeypatch.setattr(library, "INTERFACE", library.INTERFACE + 1)
    with pytest.raises(MissingKernelsError, match="belong to another version"):
        library.level_names()


def test_arrays_that_are_read_may_have_any_order() -> None:
    """A strided or transposed array is copied; the result is that of the copy."""
    rng = np.random.default_rng(0)
    both = rng.integers(0, 9, (3, 6, 6))
    both += both.transpose(0, 2, 1)
    totals = both.sum(axis=(1, 2))
    expected = native.two_sides(both, totals, 1, True, -(10**9))
    wide = np.repeat(totals, 2)
    for array in (np.asfortranarray(both), both.repeat(2, axis=2)[:, :, ::2]):
        assert not array.flags.c_contiguous
        assert np.array_equal(native.two_sides(array, wide[::2], 1, True, -(10**9)), expected)


def test_arrays_that_are_written_to_must_be_as_they_are_needed() -> None:
    """A copy would be written to in their place, so strided and read-only ones are refused; and other dtypes always."""
    strided, fixed = np.zeros(8, np.int64)[::2], np.zeros(4, np.int64)
    fixed.flags.writeable = False
    for array in (strided, fixed):
        with pytest.raises(ValueError, match="found: the kernels"):
            records.written("found", array, np.int64, 1)
    for check in (records.view, records.read, records.written):
        for wrong in (np.zeros(4), np.zeros(4, np.dtype(np.int64).newbyteorder()), [0, 1]):
            with pytest.raises(TypeError, match="found: the kernels take"):
                check("found", wrong, np.int64, 1)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="2 axes"):
            check("found", np.zeros(4, np.int64), np.int64, 2)


def test_indices_beyond_an_array_are_refused() -> None:
    """What a kernel would follow without looking is looked at before."""
    both, totals = np.zeros((2, 3, 3), np.int64), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="shapes differ"):
        native.two_sides(both, totals[:1], 0, True, -1)
    words, masks = np.zeros((2, 1), np.uint64), np.zeros((1, 1), np.uint64)
    for label, plane in ((2, 0), (-1, 0), (0, 63)):
        with pytest.raises(ValueError, match="out of range"):
            native.pair_gains(words, masks, np.array([label]), np.array([plane]), 2)
    rows = np.zeros((2, 64), np.uint8)
    channel, numbers = np.zeros(2, np.int32), np.zeros((2, 64))
    entries = native.Entries(rows, channel, channel, np.zeros(2, np.uint8), numbers)
    table = np.zeros((1, 1, 8, 8))
    room = native.Words.of(2, 64, 8)
    for members in (np.array([2]), np.array([-1])):
        with pytest.raises(ValueError, match="members out of range"):
            native.level_two(members, entries, room, table, 0)
    with pytest.raises(ValueError, match="lanes beyond"):
        native.level_two(np.array([0]), entries, room, table, 64)
    with pytest.raises(ValueError, match="0 and 1"):
        native.Entries(rows + 2, channel, channel, np.zeros(2, np.uint8), numbers)
