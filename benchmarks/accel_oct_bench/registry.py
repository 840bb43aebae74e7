"""Data sets by name: generated, bundled with scikit-learn, or in a folder.

| name | what it is | needs a folder |
| --- | --- | --- |
| ``gen-...`` | made by a rule, see `accel_oct_bench.generated` | no |
| ``sklearn-NAME_QT_5`` | a table of scikit-learn; ``QT_5``: thresholds at 5-quantiles, ``QB_5``: buckets | no |
| ``NAME`` | ``NAME_enc.csv``, else made from the raw files in ``raw/`` by our encoders | yes |
| ``fairness/NAME`` | ``fairness/NAME.csv``, whose first column is a protected group | yes |
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.support.files import as_path
from accel_oct_bench.generated import GENERATED, generated
from accel_oct_bench.instances import DATA_VARIABLE, EncodedData, encoded_files, read_encoded
from accel_oct_bench.raw_files import RAW_FILES, encoded_raw, encoded_table, raw_scheme

__all__ = ["SKLEARN_TABLES", "Registry", "fingerprint"]

#: What scikit-learn brings: the function in `sklearn.datasets` that loads it.
SKLEARN_TABLES = {
    "iris": "load_iris",
    "wine": "load_wine",
    "breast-cancer": "load_breast_cancer",
    "digits": "load_digits",
}
_SKLEARN, _FAIRNESS = "sklearn-", "fairness/"


class Registry:
    """Finds data sets.

    Parameters
    ----------
    folder : path or None
        With files ``NAME_enc.csv``, and perhaps ``raw/`` and ``fairness/``. None: what needs no folder is there.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = None if folder is None else as_path(folder, "data_dir")
        if self.folder is not None and not self.folder.is_dir():
            raise InvalidInputError(f"the data folder {self.folder} does not exist")

    def load(self, name: str) -> EncodedData:
        """The data set of that name.

        Raises
        ------
        InvalidInputError
            When there is none, with close matches; when its file cannot be read, with the line.
        """
        if not isinstance(name, str):
            raise InvalidInputError(f"data must be the name of a data set, got {shown(name)}")
        made = generated(name) or self._from_sklearn(name) or self._from_folder(name)
        if made is None:
            raise InvalidInputError(self._unknown(name))
        return made

    def has(self, name: str) -> bool:
        """Whether `load` would find something."""
        return name in self.encoded or name in self.made_from_raw or name in self.grouped or not self._is_foldered(name)

    @cached_property
    def encoded(self) -> dict[str, Path]:
        """The files ``NAME_enc.csv`` by name, smallest file first."""
        if self.folder is None or ((self.folder / "raw").is_dir() and not any(self.folder.glob("*_enc.csv"))):
            return {}
        return dict(sorted(encoded_files(self.folder).items(), key=lambda item: (item[1].stat().st_size, item[0])))

    @cached_property
    def made_from_raw(self) -> tuple[str, ...]:
        """Names of encodings that the folder has no file of, but raw files: at five quantiles, as in the paper."""
        if self.folder is None:
            return ()
        names: list[str] = []
        for name, raw in RAW_FILES.items():
            if raw.is_in(self.folder):
                names += [f"{name}_QB_5", f"{name}_QT_5"] if raw.numeric else [name]
        return tuple(name for name in names if name not in self.encoded)

    @cached_property
    def grouped(self) -> dict[str, Path]:
        """The files with a protected group, by name."""
        if self.folder is None:
            return {}
        return {f"{_FAIRNESS}{path.stem}": path for path in sorted((self.folder / "fairness").glob("*.csv"))}

    def names(self) -> tuple[str, ...]:
        """All names, of families an example each."""
        bundled = [f"{_SKLEARN}{name}_{scheme}_5" for name in SKLEARN_TABLES for scheme in ("QB", "QT")]
        return (*GENERATED, *bundled, *self.encoded, *self.made_from_raw, *self.grouped)

    def _is_foldered(self, name: str) -> bool:
        return not name.startswith(("gen-", _SKLEARN))

    def _from_sklearn(self, name: str) -> EncodedData | None:
        table, scheme = raw_scheme(name.removeprefix(_SKLEARN))
        if not name.startswith(_SKLEARN) or table not in SKLEARN_TABLES or scheme is None:
            return None
        from sklearn import datasets

        X, y = getattr(datasets, SKLEARN_TABLES[table])(return_X_y=True)
        return EncodedData(name, encoded_table(X, range(X.shape[1]), scheme), y)

    def _from_folder(self, name: str) -> EncodedData | None:
        if self.folder is None:
            return None
        if name in self.encoded:
            return read_encoded(name, self.encoded[name])
        if name in self.grouped:
            return read_encoded(name, self.grouped[name], with_group=True)
        return encoded_raw(name, self.folder)

    def _unknown(self, name: str) -> str:
        said = did_you_mean(name, self.names())
        if self.folder is None and self._is_foldered(name):
            return f"there is no data set {shown(name)} without a data folder: give one, or set {DATA_VARIABLE}{said}"
        return f"there is no data set {shown(name)}{f' in {self.folder}' if self.folder else ''}{said}"


def fingerprint(data: EncodedData) -> str:
    """The first 32 hexadecimal digits of a SHA-256 of the rows, labels and groups, in their order."""
    found = hashlib.sha256(f"accel_oct bench data 1 {data.X.shape}".encode())
    found.update(np.packbits(data.X).tobytes())
    for values in (data.y, data.group):
        texts: list[Any] = [] if values is None else values.tolist()
        found.update(b"\0" + "\n".join(map(str, texts)).encode())
    return found.hexdigest()[:32]
