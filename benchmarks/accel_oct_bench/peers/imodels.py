"""FastSmallTreeClassifier (imodels): optimal trees without a depth limit, on numbers."""

from __future__ import annotations

import warnings

import numpy as np

from accel_oct_bench.peers.base import Answer, Look, Peer, Problem, nested_of_arrays

__all__ = ["IMODELS"]


def _fit(problem: Problem) -> Look:
    from imodels import FastSmallTreeClassifier

    table = problem.X.astype(np.float64)
    model = FastSmallTreeClassifier(regularization=problem.leaf_penalty, time_limit=problem.time_limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns when the time was up
        model.fit(table, problem.y)

    def look() -> Answer:
        fitted = model.estimator_.tree_
        tree = nested_of_arrays(fitted, lambda leaf: int(model.classes_[int(np.argmax(fitted.value[leaf, 0]))]))
        finished = bool(model.optimal_)
        return Answer(tree, np.asarray(model.predict(table)), finished, not finished, 1.0 - float(model.lowerbound_))

    return look


IMODELS = Peer(
    "imodels",
    "imodels numba six",
    ("imodels", "numba"),
    _fit,
    "FastSmallTreeClassifier. regularization is per leaf, as ours. It has no depth limit: where its tree is deeper "
    "than the limit the row is an error, elsewhere its proof is one of ours too. It thresholds columns of numbers at "
    "every value. One thread; its first fit on a machine compiles for half a minute.",
    numbers=True,
    limits_depth=False,
)
