"""Choose the smoothing of leaf probabilities on rows that had no part in choosing the tree."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from accel_oct.encoding.tables import is_indexable
from accel_oct.errors import NoTreeError, as_invalid_input
from accel_oct.estimators.held_out import rows_of
from accel_oct.estimators.in_pieces import in_memory_only
from accel_oct.estimators.training import CheckedRows
from accel_oct.support.arrays import FloatArray, IntArray
from accel_oct.support.progress import Reporter, Sink
from accel_oct.support.stopping import Clock
from accel_oct.tree.fitted_tree import FittedTree
from accel_oct.tree.probabilities import node_probabilities

CANDIDATES: tuple[float, ...] = tuple(np.geomspace(0.1, 1000.0, 41).tolist())
"""Amounts of smoothing that are compared."""


@dataclass(frozen=True)
class HeldOut:
    """A tree of a fold, and the held-out rows: leaf, index of the class among those of the fold, weight."""

    tree: FittedTree
    leaves: IntArray
    codes: IntArray
    weights: FloatArray

    def loss(self, smoothing: float) -> float:
        """Return the sum of the log-loss of the rows."""
        shares = node_probabilities(self.tree, smoothing)[self.leaves, self.codes]
        return float(-(self.weights * np.log(np.maximum(shares, np.finfo(np.float64).tiny))).sum())


@dataclass(frozen=True, eq=False)
class CalibrationFolds:
    """The folds of ``calibrate=``.

    Attributes
    ----------
    splits : list of pairs of int arrays
        Rows of training and held-out rows.
    """

    X: Any
    y: NDArray[Any]
    source: CheckedRows
    splits: list[tuple[NDArray[Any], NDArray[Any]]]

    @classmethod
    def of(cls, model: Any, source: Any) -> CalibrationFolds:
        """Check `calibrate`, and split the rows."""
        # Imported here to keep the import of the package fast.
        from sklearn.model_selection import check_cv

        if not isinstance(source, CheckedRows):
            raise in_memory_only("calibrate=")
        with as_invalid_input("calibrate"):
            folds = check_cv(model.calibrate, source.codes, classifier=True)
            splits = list(folds.split(np.zeros((len(source.codes), 1)), source.codes))
        X = source.X if is_indexable(source.X) else source.table
        return cls(X, np.asarray(source.classes)[source.codes], source, splits)

    def smoothing(self, model: Any, progress: Sink | None, is_stopped: Callable[[], bool]) -> float:
        """Return the candidate with the least log-loss of the held-out rows, by the trees of the folds.

        If a fold has no tree or classifies no held-out row, the others decide; without any, or if stopped, the
        parameter `smoothing` is returned with a warning.
        """
        clock, found = Clock(time.perf_counter(), None), []
        reporter = Reporter(progress, lambda: clock.seconds)
        for number, (train, test) in enumerate(self.splits):
            part = self._held_out(model, train, test, reporter.part(f"calibration fold {number + 1}"))
            if is_stopped():
                break
            found += [] if part is None else [part]
        if is_stopped() or not found:
            why = "it was stopped" if is_stopped() else "no fold has a tree that satisfies the constraints"
            warnings.warn(
                f"calibrate: {why}; probabilities use smoothing={model.smoothing_:g}", UserWarning, stacklevel=4
            )
            return float(model.smoothing_)
        losses = [sum(part.loss(candidate) for part in found) for candidate in CANDIDATES]
        return CANDIDATES[int(np.argmin(losses))]

    def _held_out(self, model: Any, train: NDArray[Any], test: NDArray[Any], progress: Sink) -> HeldOut | None:
        """Fit the tree of a fold; None if it has none, or if no held-out row counts."""
        rows, weights = self.source, self.source.weights
        fold = clone(model).set_params(calibrate=None, verbose=0)
        own = weights[train] if rows.weighted else None
        try:
            fold._fit(rows_of(self.X, train), self.y[train], (own, rows.attached.of_rows(train), None), progress)
        except NoTreeError:
            return None
        known = fold.classes_.tolist()
        place = {label: code for code, label in enumerate(known)}
        codes = np.array([place.get(label, -1) for label in self.y[test].tolist()], dtype=np.int64)
        factors = model.tree_.class_factors
        amounts = weights[test] if factors is None else weights[test] * factors[rows.codes[test]]
        counted = (codes >= 0) & (amounts > 0)
        if not counted.any():
            return None
        leaves = fold.apply(rows_of(self.X, test[counted]))
        return HeldOut(fold.tree_, leaves, codes[counted], np.asarray(amounts[counted]))
