"""The leaf penalty (and the depth) by cross-validation, one path of penalties per fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from accel_oct.config import Config
from accel_oct.data.labels import as_weights
from accel_oct.encoding.base import check_table
from accel_oct.errors import InvalidInputError
from accel_oct.estimator import OptimalTreeClassifier, n_threads
from accel_oct.frontier import solve_path
from accel_oct.result import Progress, Result
from accel_oct.tree_classifier import TreeClassifier

__all__ = ["OptimalTreeClassifierCV"]

#: Halved from a penalty that leaves a few leaves to one that hardly matters.
DEFAULT_PENALTIES = tuple(0.1 / 2**k for k in range(9))


class OptimalTreeClassifierCV(TreeClassifier):
    """An optimal tree whose leaf penalty, and optionally depth, is chosen by cross-validation.

    Every fold is solved once per depth: `accel_oct.solve_path` gives the optimal trees of all penalties together.

    Parameters
    ----------
    max_depth : int or sequence of int
        One depth, or several to choose from.
    leaf_penalties : sequence of float or None
        To choose from; None takes 0.1, 0.05, 0.025 and so on, nine in all.
    cv : int, splitter or iterable
        As everywhere in scikit-learn; an int stratifies.
    rule : {"best", "one_standard_error"}
        Take the best mean accuracy, or the simplest tree within one standard error of it.
    backend, preset, time_limit, gap, encoder, missing, class_weight, random_state, config, progress
        As in `OptimalTreeClassifier`; the time limit holds for each solve.
    n_jobs : int or None
        Folds that are solved at the same time.

    Attributes
    ----------
    leaf_penalty_, max_depth_
        What was chosen.
    cv_results_ : dict of arrays
        Per candidate: max_depth, leaf_penalty, mean_test_score, std_test_score, mean_n_leaves, split_test_scores
        (candidates x folds).
    curve_ : float array (n_points, 3)
        Accuracy against leaves: mean number of leaves, mean accuracy, its standard error, for the chosen depth; from
        the smallest tree on. `accel_oct.plotting.plot_path` draws it.
    best_estimator_ : OptimalTreeClassifier
        Fitted on all data; its fitted attributes are here as well.
    """

    def __init__(
        self,
        max_depth: Any = 3,
        leaf_penalties: Sequence[float] | None = None,
        *,
        cv: Any = 5,
        rule: str = "best",
        backend: str = "highs",
        preset: str = "default",
        time_limit: float | None = None,
        gap: float = 0.0,
        encoder: Any = "auto",
        missing: str = "category",
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        config: Config | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.leaf_penalties = leaf_penalties
        self.cv = cv
        self.rule = rule
        self.backend = backend
        self.preset = preset
        self.time_limit = time_limit
        self.gap = gap
        self.encoder = encoder
        self.missing = missing
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.config = config
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OptimalTreeClassifierCV:
        """Choose by cross-validation, then fit on all data.

        Parameters
        ----------
        X : data frame or array-like (n_samples, n_features)
        y : array-like (n_samples,)
        sample_weight : array-like (n_samples,), optional
            Used in training and in the accuracy on the held-out fold.

        Returns
        -------
        self
        """
        if self.rule not in ("best", "one_standard_error"):
            raise InvalidInputError(f"rule must be 'best' or 'one_standard_error', got {self.rule!r}")
        depths, penalties = self._depths(), self._penalties()
        data = self._prepare(X, y, sample_weight)  # every complaint about the data comes from here
        weights = None if sample_weight is None else as_weights(sample_weight, len(data.codes))
        scores, leaves = self._cross_validate(X, data.codes, y, weights, depths, penalties)
        self._summarise(scores, leaves, depths, penalties)
        best = self._classifier(self.max_depth_, self.leaf_penalty_).fit(X, y, sample_weight)
        self.best_estimator_ = best
        for name, value in vars(best).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)
        return self

    def to_json(self, path: Any = None) -> str:
        """The tree fitted on all data, as an `OptimalTreeClassifier` with the chosen penalty and depth."""
        return self.best_estimator_.to_json(path)

    # ---------------------------------------------------------------- cross-validation

    def _cross_validate(
        self, X: Any, codes: Any, y: Any, weights: Any, depths: list[int], penalties: list[float]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Accuracy and leaves, each (depths, penalties, folds)."""
        X = X if hasattr(X, "shape") else check_table(self, X, reset=False)
        rows = np.zeros((len(codes), 1))
        folds = list(check_cv(self.cv, codes, classifier=True).split(rows, codes))
        if not folds:
            raise InvalidInputError("cv yields no split")
        y = np.asarray(y).reshape(-1)
        found = Parallel(n_jobs=self.n_jobs)(
            delayed(_fold)(self._classifier(depth, 0.0), X, y, weights, train, test, penalties)
            for depth in depths
            for train, test in folds
        )
        shaped = np.array(found).reshape(len(depths), len(folds), len(penalties), 2).transpose(0, 2, 1, 3)
        return shaped[..., 0], shaped[..., 1]

    def _summarise(self, scores: Any, leaves: Any, depths: list[int], penalties: list[float]) -> None:
        n_folds = scores.shape[2]
        mean, std = scores.mean(axis=2), scores.std(axis=2)
        error = scores.std(axis=2, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros_like(mean)
        self.cv_results_ = {
            "max_depth": np.repeat(depths, len(penalties)),
            "leaf_penalty": np.tile(penalties, len(depths)),
            "mean_test_score": mean.ravel(),
            "std_test_score": std.ravel(),
            "mean_n_leaves": leaves.mean(axis=2).ravel(),
            "split_test_scores": scores.reshape(-1, n_folds),
        }
        top = np.unravel_index(int(mean.argmax()), mean.shape)
        enough = mean[top] - (error[top] if self.rule == "one_standard_error" else 1e-12)
        # Simplest first: few leaves on average, then shallow, then a large penalty.
        size = leaves.mean(axis=2)
        good = [(size[d, p], depths[d], -penalties[p], d, p) for d, p in np.argwhere(mean >= enough).tolist()]
        *_, d, p = min(good)
        self.max_depth_, self.leaf_penalty_ = depths[d], penalties[p]
        points = np.column_stack([size[d], mean[d], error[d]])
        self.curve_ = points[np.argsort(points[:, 0], kind="stable")]

    def _classifier(self, max_depth: int, leaf_penalty: float) -> OptimalTreeClassifier:
        shared = ("backend", "preset", "time_limit", "gap", "missing", "class_weight", "random_state", "config")
        encoder = self.encoder if self.encoder is None or isinstance(self.encoder, str) else clone(self.encoder)
        return OptimalTreeClassifier(
            max_depth,
            leaf_penalty,
            encoder=encoder,
            progress=self.progress,
            **{name: getattr(self, name) for name in shared},
        )

    def _depths(self) -> list[int]:
        depths = list(self.max_depth) if isinstance(self.max_depth, Sequence | np.ndarray) else [self.max_depth]
        if not depths or any(isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 0 for d in depths):
            raise InvalidInputError(f"max_depth must be one or more whole numbers >= 0, got {self.max_depth!r}")
        return sorted({int(depth) for depth in depths})

    def _penalties(self) -> list[float]:
        if self.leaf_penalties is None:
            return list(DEFAULT_PENALTIES)
        penalties = sorted({float(penalty) for penalty in self.leaf_penalties}, reverse=True)
        if not penalties or not all(np.isfinite(p) and p >= 0 for p in penalties):
            raise InvalidInputError(f"leaf_penalties must be finite and not negative, got {self.leaf_penalties!r}")
        return penalties


def _fold(
    model: OptimalTreeClassifier, X: Any, y: Any, weights: Any, train: Any, test: Any, penalties: list[float]
) -> list[tuple[float, float]]:
    """Accuracy on the held-out rows and number of leaves, per penalty."""
    data = model._prepare(_rows(X, train), y[train], None if weights is None else weights[train])
    held_out = _rows(X, test)
    test_weights = None if weights is None or not weights[test].any() else weights[test]
    outcome = []
    for result in _path(model, data, penalties):
        model._adopt(result, data)
        accuracy = accuracy_score(y[test], model.predict(held_out), sample_weight=test_weights)
        outcome.append((float(accuracy), float(model.get_n_leaves())))
    return outcome


def _path(model: OptimalTreeClassifier, data: Any, penalties: list[float]) -> list[Result]:
    return list(
        solve_path(
            data.X,
            data.codes,
            max_depth=model.max_depth,
            leaf_penalties=penalties,
            sample_weight=data.weights,
            time_limit=model.time_limit,
            threads=n_threads(model.n_jobs),
        )
    )


def _rows(X: Any, chosen: NDArray[Any]) -> Any:
    return X.rows(chosen) if hasattr(X, "rows") else _safe_indexing(X, chosen)
