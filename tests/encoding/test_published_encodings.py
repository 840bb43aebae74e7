"""The paper's binary files, rebuilt from the raw ones column for column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.estimator_support import published_data

from accel_oct.encoding import OneHotCategoryEncoder, QuantileBucketEncoder, QuantileThresholdEncoder

#: raw file, first and one-past-last feature column, header
NUMERIC = {
    "iris": ("iris.data", 0, 4, None),
    "wine": ("wine.data", 1, 14, None),
    "wdbc": ("wdbc.data", 2, 32, None),
    "banknote": ("banknote.txt", 0, 4, None),
    "transfusion": ("transfusion.data", 0, 4, 0),
    "sonar": ("sonar.all-data", 0, 60, None),
    "spambase": ("spambase.data", 0, 57, None),
}
#: The published bucket files keep a column of ones where all quantiles but the largest coincide; ours leaves it out.
CONSTANT_COLUMNS = {("spambase", "QB"): 38}


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize("scheme", ["QT", "QB"])
def test_numeric_files(name: str, scheme: str) -> None:
    """QT-5 and QB-5: the same columns in the same order, constant ones excepted."""
    folder = published_data()
    file, first, last, header = NUMERIC[name]
    X = pd.read_csv(folder / "raw" / file, header=header).iloc[:, first:last].to_numpy(dtype=float)
    published = pd.read_csv(folder / f"{name}_{scheme}_5_enc.csv").drop(columns="target").to_numpy()
    varying = published.min(axis=0) < published.max(axis=0)
    assert np.count_nonzero(~varying) == CONSTANT_COLUMNS.get((name, scheme), 0)
    encoder = {"QT": QuantileThresholdEncoder, "QB": QuantileBucketEncoder}[scheme](5)
    np.testing.assert_array_equal(encoder.fit_transform(X), published[:, varying])


@pytest.mark.parametrize(
    ("name", "file", "target"), [("kr-vs-kp", "kr-vs-kp.data", 36), ("tic-tac-toe", "tic-tac-toe.data", 9)]
)
def test_categorical_files(name: str, file: str, target: int) -> None:
    """One-hot, with one column for two categories."""
    folder = published_data()
    X = pd.read_csv(folder / "raw" / f"{name}.data", header=None).drop(columns=target)
    published = pd.read_csv(folder / f"{name}_enc.csv").drop(columns="target").to_numpy()
    np.testing.assert_array_equal(OneHotCategoryEncoder().fit_transform(X), published)
