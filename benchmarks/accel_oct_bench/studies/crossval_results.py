"""Splits, what is measured of a prediction, and a file of results that an interrupted run carries on with."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

#: What tells one row of results from another; `rows` is 0 in cross-validation, else how many rows were trained on.
KEY = ("data", "rows", "depth", "folds", "constraint", "limit", "method", "repeat", "fold")
FIGURES = (
    "train_accuracy",
    "test_accuracy",
    "train_gap",
    "test_gap",
    "train_difference",
    "test_difference",
    "test_noise",
)
FIELDS = (*KEY, "n_train", "n_test", *FIGURES, "seconds", "leaves", "status")


# ---------------------------------------------------------------- splits


def splits(y: Any, group: Any, folds: int, repeat: int, rows: int = 0) -> Iterator[tuple[int, Any, Any]]:
    """Number, training rows and test rows, with the same share of every class of every group in each.

    With `rows`, as many are drawn to train on, `folds` times, and all others are tested on. Splits depend on
    `repeat` and not on how many repeats there are, so that a longer run carries on with a shorter one.
    """
    strata = np.unique(np.column_stack([np.asarray(y), np.asarray(group)]), axis=0, return_inverse=True)[1].ravel()
    maker: Any = StratifiedKFold(folds, shuffle=True, random_state=repeat)
    if rows:
        maker = StratifiedShuffleSplit(folds, train_size=rows, test_size=len(strata) - rows, random_state=repeat)
    for fold, (train, test) in enumerate(maker.split(np.zeros(len(strata)), strata)):
        yield fold, train, test


# ---------------------------------------------------------------- measures


@dataclass(frozen=True)
class Rates:
    """The share predicted positive in each group, and the variance of each share as one of a sample."""

    values: Any
    variances: Any

    @property
    def gap(self) -> float:
        """The largest difference between two groups."""
        return float(np.ptp(self.values)) if len(self.values) else 0.0

    @property
    def difference(self) -> float:
        """Signed: of the last group to the first."""
        return float(self.values[-1] - self.values[0]) if len(self.values) else 0.0

    @property
    def noise(self) -> float:
        """The standard error of the difference that comes from the sample it is measured on."""
        return float(np.sqrt(self.variances[-1] + self.variances[0])) if len(self.values) > 1 else 0.0


def rates(positive: Any, group: Any, chosen: Any) -> Rates:
    """Of the probabilities of a positive prediction, among the chosen samples; a group without any is left out."""
    positive, group = np.asarray(positive, dtype=float), np.asarray(group)
    parts = [positive[chosen & (group == value)] for value in np.unique(group[chosen])]
    return Rates(np.array([part.mean() for part in parts]), np.array([part.var() / len(part) for part in parts]))


def accuracy(positive: Any, y: Any) -> float:
    """The expected share of correct predictions; `y` is 0 or 1."""
    positive = np.asarray(positive, dtype=float)
    return float(np.where(np.asarray(y) == 1, positive, 1 - positive).mean())


# ---------------------------------------------------------------- the file


class Results:
    """Rows in a CSV file, each written as soon as it is known.

    A last line that was cut off is dropped, and its fit is done again. Two rows with the same key, or columns
    that are not ours, are an error: the file is then not the work of this program alone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: dict[tuple[str, ...], dict[str, str]] = {}
        header = ",".join(FIELDS) + "\n"
        if path.exists() and not header.encode().startswith(path.read_bytes()):
            self._read()
        else:
            path.write_text(header, encoding="utf-8", newline="")

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return tuple(map(str, key)) in self.rows

    def add(self, row: dict[str, Any]) -> None:
        """Append one row, in one write."""
        written = {name: _shown(row.get(name, "")) for name in FIELDS}
        key = tuple(written[name] for name in KEY)
        if key in self.rows:
            raise ValueError(f"{self._path}: there is a row for {key} already")
        if any(sign in value for value in written.values() for sign in ',"\n\r'):
            raise ValueError("a value with a comma, a quote or the end of a line would need quoting")
        with self._path.open("a", encoding="utf-8", newline="") as file:
            file.write(",".join(written.values()) + "\n")
        self.rows[key] = written

    def _read(self) -> None:
        data = self._path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        lines = list(csv.reader(whole.decode("utf-8").splitlines()))
        if not lines or tuple(lines[0]) != FIELDS or any(len(line) != len(FIELDS) for line in lines):
            raise ValueError(f"{self._path} is no file of results of this program")
        for line in lines[1:]:
            row = dict(zip(FIELDS, line, strict=True))
            key = tuple(row[name] for name in KEY)
            if key in self.rows:
                raise ValueError(f"{self._path}: two rows for {key}")
            self.rows[key] = row
        if whole != data:
            with self._path.open("r+b") as file:
                file.truncate(len(whole))


def _shown(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)
