"""What is measured: data sets in a folder, depths, leaf penalties; and synthetic data for growth."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.files import read_text

#: The 15 leaf penalties of the paper's experiments.
PAPER_PENALTIES = (
    0.08, 0.06, 0.04, 0.02, 0.01, 0.008, 0.006, 0.004, 0.002, 0.001, 0.0008, 0.0006, 0.0004, 0.0002, 0.0001,
)  # fmt: skip

DATA_VARIABLE = "ACCEL_OCT_DATA"
_SUFFIX = "_enc.csv"
_ZERO, _ONE = ["0", "0.0"], ["1", "1.0"]
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class EncodedData:
    """A binary table with a target.

    Attributes
    ----------
    group : array or None
        One value per row that is no feature, for constraints that compare groups.
    """

    name: str
    X: NDArray[np.bool_]
    y: NDArray[Any]
    group: NDArray[Any] | None = None


def data_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """The folder that was given, or the one that the environment variable ACCEL_OCT_DATA names."""
    chosen = given or os.environ.get(DATA_VARIABLE)
    if not chosen:
        raise InvalidInputError(f"no data folder: give --data-dir, or set the environment variable {DATA_VARIABLE}")
    folder = Path(chosen)
    if not folder.is_dir():
        raise InvalidInputError(f"the data folder {folder} does not exist")
    return folder


def encoded_data(folder: Path, names: list[str] | None = None) -> Iterator[EncodedData]:
    """Every ``NAME_enc.csv`` of a folder (0/1 columns, the last one the target), smallest file first."""
    paths = encoded_files(folder)
    unknown = sorted(set(names or []) - set(paths))
    if unknown:
        raise InvalidInputError(f"no data set {', '.join(unknown)} in {folder}; there are {', '.join(sorted(paths))}")
    for name, path in sorted(paths.items(), key=lambda item: item[1].stat().st_size):
        if names is None or name in names:
            yield read_encoded(name, path)


def encoded_files(folder: Path) -> dict[str, Path]:
    """The files ``NAME_enc.csv`` of a folder by name; none is an error."""
    paths = {path.name.removesuffix(_SUFFIX): path for path in folder.glob(f"*{_SUFFIX}")}
    if not paths:
        raise InvalidInputError(f"the data folder {folder} holds no file *{_SUFFIX}")
    return paths


def read_encoded(name: str, path: Path, *, with_group: bool = False) -> EncodedData:
    """A text file with a header, columns of 0 and 1, and the target last.

    Parameters
    ----------
    with_group : bool
        The first column is a protected group, and no feature.

    Raises
    ------
    InvalidInputError
        Naming the file and the line.
    """
    lines = read_text(path, _MOST_BYTES, "data file").splitlines()
    header, rows = (lines[0].split(",") if lines else []), [line.split(",") for line in lines[1:]]
    if len(header) < 2 + with_group or not rows:
        raise InvalidInputError(f"data file {path} must have a header, rows, columns of 0 and 1, and a target")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise InvalidInputError(
                f"data file {path} line {number} has {len(row)} cells, and the header has {len(header)}"
            )
    table = np.array(rows)
    ones = np.isin(table[:, :-1], _ONE)
    odd = ~ones & ~np.isin(table[:, :-1], _ZERO)
    if odd.any():
        row_place, column = (int(place[0]) for place in np.nonzero(odd))
        raise InvalidInputError(
            f"data file {path} line {row_place + 2}: column {shown(header[column])} must be 0 or 1, got "
            f"{shown(str(table[row_place, column]))}"
        )
    labels = _as_labels(table[:, -1])
    if with_group:
        return EncodedData(name, ones[:, 1:], labels, ones[:, 0].astype(np.int64))
    return EncodedData(name, ones, labels)


def _as_labels(cells: NDArray[np.str_]) -> NDArray[Any]:
    """Whole numbers where all are, so that the class 10 comes after 9; else the texts."""
    try:
        return cells.astype(np.int64)
    except (ValueError, OverflowError):
        return cells


def synthetic_data(n_samples: int, n_features: int, seed: int = 0, noise: float = 0.1) -> EncodedData:
    """Independent features of varied frequency, a hidden tree of depth three, and label noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features), dtype=np.float32) < rng.uniform(0.2, 0.8, n_features).astype(np.float32)
    a, b, c = (X[:, j] for j in rng.permutation(n_features)[:3])
    y = np.where(a, b, c) ^ (rng.random(n_samples) < noise)
    return EncodedData(f"synthetic {n_samples}x{n_features}", X, y.astype(np.int64))
