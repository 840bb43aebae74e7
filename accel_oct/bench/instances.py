"""What is measured: data sets in a folder, depths, leaf penalties; and synthetic data for growth."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError

#: The 15 leaf penalties of the paper's experiments.
PAPER_PENALTIES = (
    0.08, 0.06, 0.04, 0.02, 0.01, 0.008, 0.006, 0.004, 0.002, 0.001, 0.0008, 0.0006, 0.0004, 0.0002, 0.0001,
)  # fmt: skip

DATA_VARIABLE = "ACCEL_OCT_DATA"
_SUFFIX = "_enc.csv"


@dataclass(frozen=True)
class EncodedData:
    """A binary table with a target."""

    name: str
    X: NDArray[np.bool_]
    y: NDArray[Any]


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
    paths = {path.name.removesuffix(_SUFFIX): path for path in folder.glob(f"*{_SUFFIX}")}
    if not paths:
        raise InvalidInputError(f"the data folder {folder} holds no file *{_SUFFIX}")
    unknown = sorted(set(names or []) - set(paths))
    if unknown:
        raise InvalidInputError(f"no data set {', '.join(unknown)} in {folder}; there are {', '.join(sorted(paths))}")
    for name, path in sorted(paths.items(), key=lambda item: item[1].stat().st_size):
        if names is None or name in names:
            table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=str)
            yield EncodedData(name, table[:, :-1].astype(float).astype(bool), table[:, -1])


def synthetic_data(n_samples: int, n_features: int, seed: int = 0, noise: float = 0.1) -> EncodedData:
    """Independent features of varied frequency, a hidden tree of depth three, and label noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features), dtype=np.float32) < rng.uniform(0.2, 0.8, n_features).astype(np.float32)
    a, b, c = (X[:, j] for j in rng.permutation(n_features)[:3])
    y = np.where(a, b, c) ^ (rng.random(n_samples) < noise)
    return EncodedData(f"synthetic {n_samples}x{n_features}", X, y.astype(np.int64))
