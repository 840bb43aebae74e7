"""PRAXIS (tree-praxis): sets of near-optimal trees; here a single optimal one is asked for, by its exact setting."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel_oct_bench.peers.base import Answer, Look, Peer, Problem, nested_of_paths

__all__ = ["PRAXIS", "fitted_praxis", "is_whole"]


def fitted_praxis(X: Any, y: Any, max_depth: int, leaf_penalty: float, most_loss: int | None = None) -> Any:
    """Return a fitted model of one tree, or of all that lose at most `most_loss` samples, penalties included.

    The setting in which its documentation calls tree and set exact: a proxy that looks ahead `max_depth` - 1 levels,
    and subproblems told apart by their rows and not by a hash.
    """
    from praxis import PRAXIS as Praxis

    model = Praxis()
    model.fit(
        X.astype(np.uint8),
        y,
        lambda_reg=leaf_penalty,
        depth_budget=max_depth,
        lookahead_k=max(max_depth - 1, 0),
        root_budget=most_loss,
        key_mode="exact",
        proxy_only=most_loss is None,
    )
    return model


def is_whole(price: float) -> bool:
    """Return whether a price in samples is a whole number: PRAXIS rounds it to one."""
    return abs(price - round(price)) < 1e-9


def _fit(problem: Problem) -> Look:
    model = fitted_praxis(problem.X, problem.y, problem.depth_limit, problem.leaf_penalty)

    def look() -> Answer:
        tree = nested_of_paths(*model.get_tree_paths(0))
        predicted = np.asarray(model.get_predictions(0, problem.X.astype(np.uint8)))
        whole = is_whole(problem.leaf_penalty * problem.n_samples)
        return Answer(tree, predicted, finished=whole)

    return look


PRAXIS = Peer(
    "praxis",
    "tree-praxis",
    ("praxis",),
    _fit,
    "It enumerates near-optimal trees; here it returns one tree (proxy_only), in the setting that its documentation "
    "calls optimal (lookahead_k one below the depth). Penalty per leaf, rounded to a whole number of samples: its "
    "proof counts where it is one, elsewhere the row says that it finished. No time limit: it is ended from outside.",
)
