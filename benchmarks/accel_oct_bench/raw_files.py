"""Encodings from raw files, by our own encoders: the paper's where the folder has none, and other numbers of quantiles.

Each column of numbers becomes thresholds (QT) or buckets (QB) at quantiles, each column of categories one-hot, in the
order of the columns. Rows with a missing value are left out, as the paper did. The files are those of the UCI Machine
Learning Repository under the names of `RAW_FILES`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError
from accel_oct.support.files import read_text
from accel_oct_bench.instances import EncodedData

__all__ = ["RAW_FILES", "RawFiles", "encoded_raw", "encoded_table", "raw_scheme"]

_MOST_BYTES = 1 << 30
_MISSING = ("?", "")


@dataclass(frozen=True)
class RawFiles:
    """Where a data set lies under ``raw/``, and what its columns are.

    Attributes
    ----------
    files : tuple of str
        One after the other.
    target : int
        The column of the classes.
    dropped : tuple of int
        Columns that are neither: names of rows, dates, copies.
    categories : tuple of int, or None
        Which columns are categories, counted in the file; None: all of them.
    separator : str or None
        None: white space.
    header : bool
        Whether the first line of each file names the columns.
    """

    files: tuple[str, ...]
    target: int
    dropped: tuple[int, ...] = ()
    categories: tuple[int, ...] | None = None
    separator: str | None = ","
    header: bool = False

    @property
    def numeric(self) -> bool:
        """Whether there are columns of numbers, hence encodings QB and QT."""
        return self.categories is not None

    def is_in(self, folder: Path) -> bool:
        return all((folder / "raw" / file).is_file() for file in self.files)

    def read(self, folder: Path) -> NDArray[np.str_]:
        """The cells of all complete rows."""
        rows: list[list[str]] = []
        for file in self.files:
            path = folder / "raw" / file
            lines = read_text(path, _MOST_BYTES, "raw file").lstrip("\ufeff").splitlines()
            for number, line in enumerate(lines[self.header :], start=1 + self.header):
                cells = [cell.strip().strip('"') for cell in line.split(self.separator)]
                if cells in ([], [""]):
                    continue
                if rows and len(cells) != len(rows[0]):
                    raise InvalidInputError(
                        f"raw file {path} line {number} has {len(cells)} cells, and the first has {len(rows[0])}"
                    )
                rows.append(cells)
        if not rows:
            raise InvalidInputError(f"raw file {folder / 'raw' / self.files[0]} has no rows")
        table = np.array(rows)
        if max(self.target, *self.dropped, 0) >= table.shape[1]:
            raise InvalidInputError(f"raw file {folder / 'raw' / self.files[0]} has too few columns: {table.shape[1]}")
        complete: NDArray[np.str_] = table[~np.isin(table, _MISSING).any(axis=1)]
        return complete


def raw_scheme(name: str) -> tuple[str, tuple[str, int] | None]:
    """``iris_QT_5`` as iris and (QT, 5); without a scheme None."""
    found = re.fullmatch(r"(.+)_(QT|QB)_(\d{1,4})", name)
    return (found[1], (found[2], int(found[3]))) if found else (name, None)


def encoded_raw(name: str, folder: Path) -> EncodedData | None:
    """An encoding of raw files; None where the folder does not have them, or the name does not fit them."""
    table, scheme = raw_scheme(name)
    raw = RAW_FILES.get(table)
    if raw is None or not raw.is_in(folder) or raw.numeric is not (scheme is not None):
        return None
    cells = raw.read(folder)
    features = [j for j in range(cells.shape[1]) if j != raw.target and j not in raw.dropped]
    numbers = [place for place, j in enumerate(features) if raw.categories is not None and j not in raw.categories]
    try:
        X = encoded_table(cells[:, features], numbers, scheme or ("QT", 5))
    except ValueError as error:
        raise InvalidInputError(f"raw file {folder / 'raw' / raw.files[0]}: {error}") from None
    return EncodedData(name, X, cells[:, raw.target])


def encoded_table(table: Any, numbers: Iterable[int], scheme: tuple[str, int]) -> NDArray[np.bool_]:
    """Columns of numbers at quantiles, all others one-hot, in their order."""
    # They load scikit-learn, and most data need none of them.
    from accel_oct.encoding import OneHotCategoryEncoder, QuantileBucketEncoder, QuantileThresholdEncoder

    kind, quantiles = scheme
    if quantiles < 2:
        raise InvalidInputError(f"the scheme {kind}_{quantiles} must have at least 2 quantiles")
    numeric, parts = set(numbers), []
    for place in range(table.shape[1]):
        column = table[:, [place]]
        if place in numeric:
            encoder: Any = (QuantileThresholdEncoder if kind == "QT" else QuantileBucketEncoder)(quantiles)
            column = column.astype(np.float64)
        else:
            encoder, column = OneHotCategoryEncoder(), column.astype(object)
        if len(np.unique(column)) > 1:
            parts.append(np.asarray(encoder.fit_transform(column)).astype(bool))
    return np.hstack(parts)


#: All that the paper uses and whose raw files are laid out as UCI has them.
RAW_FILES = {
    "soybean-small": RawFiles(("soybean-small.data",), 35),
    "monk1": RawFiles(("monk1.csv",), 6, separator=";", header=True),
    "monk2": RawFiles(("monk2.csv",), 6, separator=";", header=True),
    "monk3": RawFiles(("monk3.csv",), 6, separator=";", header=True),
    "hayes-roth": RawFiles(("hayes-roth.data",), 5, dropped=(0,)),
    "house-votes-84": RawFiles(("house-votes-84.data",), 0),
    "breast-cancer": RawFiles(("breast-cancer.data",), 0),
    "balance-scale": RawFiles(("balance-scale.data",), 0),
    "tic-tac-toe": RawFiles(("tic-tac-toe.data",), 9),
    "car_evaluation": RawFiles(("car_evaluation.csv",), 6, separator=";", header=True),
    "kr-vs-kp": RawFiles(("kr-vs-kp.data",), 36),
    "iris": RawFiles(("iris.data",), 4, categories=()),
    "wine": RawFiles(("wine.data",), 0, categories=()),
    "parkinsons": RawFiles(("parkinsons.data",), 17, dropped=(0,), categories=(), header=True),
    "sonar": RawFiles(("sonar.all-data",), 60, categories=()),
    "wdbc": RawFiles(("wdbc.data",), 1, dropped=(0,), categories=()),
    "transfusion": RawFiles(("transfusion.data",), 4, categories=(), header=True),
    "banknote": RawFiles(("banknote.txt",), 4, categories=()),
    "ozone-one": RawFiles(("ozone-one.data",), 73, dropped=(0,), categories=()),
    "segmentation": RawFiles(("segmentation.data", "segmentation.test"), 0, categories=()),
    "spambase": RawFiles(("spambase.data",), 57, categories=()),
    "hepatitis": RawFiles(("hepatitis.data",), 0, categories=(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 19)),
    "fertility": RawFiles(("fertility.txt",), 9, categories=(0, 2, 3, 4, 5, 7)),
    "ionosphere": RawFiles(("ionosphere.data",), 34, categories=(0,)),
    "ILPD": RawFiles(("ILPD.csv",), 10, categories=(1,)),
    "ann-thyroid": RawFiles(
        ("ann-thyroid.train", "ann-thyroid.test"), 21, categories=tuple(range(1, 16)), separator=None
    ),
}
