"""pytrees-rs: DL8.5 on binary columns and ConTree on numbers, each also as an anytime search by limited discrepancy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accel_oct_bench.peers.base import Answer, Look, Peer, Problem, nested_of_arrays

__all__ = ["PRICED", "PYTREES"]


def _dl85(problem: Problem) -> Any:
    from pytrees import DL85Classifier

    return DL85Classifier(max_depth=problem.depth_limit, max_time=problem.seconds)


def _dl85_lds(problem: Problem) -> Any:
    from pytrees.rules import DiscrepancyRule

    return _dl85(problem).set_params(discrepancy=DiscrepancyRule(), heuristic="information_gain")


def _contree(problem: Problem) -> Any:
    from pytrees import ConTreeClassifier

    return ConTreeClassifier(max_depth=problem.depth_limit, max_time=problem.seconds)


def _contree_lds(problem: Problem) -> Any:
    return _contree(problem).set_params(use_lds=True)


def _dl85_priced(problem: Problem) -> Any:
    """Put the price of a leaf into the error function of leaves."""
    price = problem.leaf_penalty * problem.n_samples

    def error(counts: Any) -> tuple[float, int]:
        best = int(np.argmax(counts))
        return float(sum(counts) - counts[best] + price), best

    return _dl85(problem).set_params(error_function=error)


def _fitting(model_of: Callable[[Problem], Any]) -> Callable[[Problem], Look]:
    def fit(problem: Problem) -> Look:
        table = problem.X.astype(np.float64)
        model = model_of(problem)
        model.fit(table, problem.y)

        def look() -> Answer:
            late = model.status_ == "time_limit"
            if model.tree_ is None:
                return Answer(timed_out=late)
            tree = nested_of_arrays(model.tree_, lambda leaf: int(model.classes_[model.tree_.value[leaf]]))
            finished = model.status_ == "optimal"
            bound = 1.0 - float(model.train_error_) / problem.n_samples if finished else None
            return Answer(tree, np.asarray(model.predict(table)), finished, late, bound)

        return look

    return fit


_NO_PENALTY = (
    "It has no penalty: it minimises errors at this depth, and its tree is priced as it is. Its proof is a proof of "
    "ours only where the penalty is 0."
)


def _peer(name: str, model_of: Callable[[Problem], Any], meaning: str, numbers: bool, prices: bool = False) -> Peer:
    return Peer(name, "pytrees-rs", ("pytrees",), _fitting(model_of), meaning, numbers=numbers, prices=prices)


PYTREES = (
    _peer("pytrees-dl85", _dl85, f"DL8.5 in Rust. {_NO_PENALTY}", numbers=False),
    _peer(
        "pytrees-dl85-lds",
        _dl85_lds,
        f"DL8.5 by limited discrepancy, features ordered by information gain. {_NO_PENALTY}",
        numbers=False,
    ),
    _peer("pytrees-contree", _contree, f"ConTree in Rust. {_NO_PENALTY}", numbers=True),
    _peer("pytrees-contree-lds", _contree_lds, f"ConTree by limited discrepancy. {_NO_PENALTY}", numbers=True),
)
#: Not in suites: many of its claims are wrong, see `accel_oct_bench.studies.peer_claims`.
PRICED = _peer(
    "pytrees-dl85-priced",
    _dl85_priced,
    "DL8.5 with errors plus the penalty as its error function of leaves.",
    numbers=False,
    prices=True,
)
