"""The classifier inside other people's tools."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.estimator_support import mixed_frame
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import OneHotCategoryEncoder, QuantileThresholdEncoder


@pytest.fixture(scope="module")
def mixed() -> tuple[pd.DataFrame, np.ndarray]:
    frame, y = mixed_frame(120)
    return frame[["age", "income", "smoker", "region"]], y


def test_cross_validation_and_grid_search(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    """cross_val_score, and GridSearchCV over our parameters with joblib's processes."""
    X, y = mixed
    model = OptimalTreeClassifier(max_depth=2)
    assert cross_val_score(model, X, y, cv=3).min() > 0.7
    search = GridSearchCV(model, {"leaf_penalty": [0.3, 0.01], "max_depth": [1, 2]}, cv=2, n_jobs=2).fit(X, y)
    assert search.best_params_["leaf_penalty"] == 0.01


def test_calibration_and_permutation_importance(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    """Both take the frame as it is."""
    X, y = mixed
    model = OptimalTreeClassifier(max_depth=2)
    calibrated = CalibratedClassifierCV(model, cv=2).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    found = permutation_importance(clone(model).fit(X, y), X, y, n_repeats=2, random_state=0).importances_mean
    assert found[:3].max() > found[3]


def test_pipeline_and_column_transformer_with_pandas_output(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    """Encoders outside, the classifier with encoder=None, names all the way through."""
    X, y = mixed
    parts = ColumnTransformer(
        [
            ("numbers", QuantileThresholdEncoder(5, missing="category"), ["age", "income"]),
            ("region", OneHotCategoryEncoder(), ["region"]),
        ],
        verbose_feature_names_out=False,
    )
    with config_context(transform_output="pandas"):
        pipeline = make_pipeline(parts, OptimalTreeClassifier(max_depth=2, encoder=None)).fit(X, y)
        assert pipeline.score(X, y) > 0.7
        direct = OptimalTreeClassifier(max_depth=2).fit(X, y)
        assert direct.predict(X).shape == y.shape
    assert " >= " in pipeline[-1].to_text() or " is missing" in pipeline[-1].to_text()
