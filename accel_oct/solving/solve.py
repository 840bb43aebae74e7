"""From a table to a proven tree."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from accel_oct.data import BinaryDataset
from accel_oct.mip import SolveOptions
from accel_oct.solving.config import Config
from accel_oct.solving.result import Progress, Result
from accel_oct.solving.search import TreeSearch
from accel_oct.support.arguments import checked_depth, checked_solver_options


def solve(
    X: Any,
    y: Any,
    *,
    max_depth: int,
    leaf_penalty: float,
    sample_weight: Any = None,
    backend: str = "highs",
    preset: str = "default",
    time_limit: float | None = None,
    threads: int = 1,
    seed: int = 0,
    gap: float = 0.0,
    node_limit: int | None = None,
    solver_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    config: Config | None = None,
) -> Result:
    """Find the classification tree with the best penalised accuracy, and prove it.

    Maximises ``(weight classified correctly) / (total weight) - leaf_penalty * (number of leaves)`` over all trees of
    depth at most `max_depth` that branch on the columns of X.

    Parameters
    ----------
    X : array-like or data frame, shape (n_samples, n_features)
        Binary. `OptimalTreeClassifier` takes raw columns.
    y : array-like, shape (n_samples,)
        Class labels of any sortable type.
    max_depth : int
        0 gives a single leaf.
    leaf_penalty : float
        Accuracy that a further leaf must bring.
    sample_weight : array-like, shape (n_samples,), optional
    backend : str
        "highs", "gurobi", "scip", "pyomo:NAME" or any other registered backend; "auto" takes gurobi where its licence
        suffices, else scip where it is installed, else highs.
    preset : {"default", "paper", "baseline"}
        Which techniques are used; ignored when `config` is given.
    time_limit : float, optional
        Seconds; the best tree so far and a valid bound are returned when it is reached.
    threads : int
        At most as many as there are cores: more are cut down to that, with a line in the log.
    seed : int
    gap : float
        Relative gap at which to stop; 0 asks for a proof.
    node_limit : int, optional
        Branch-and-bound nodes of the solver, where it has to run.
    solver_options : mapping, optional
        Handed to the solver under its own names, such as ``{"mip_heuristic_effort": 0.2}`` for HiGHS, where it has to
        run. A limit among them ends the solve with status "stopped".
    progress : callable (HistoryRow), optional
        Called when the objective or the bound changes, from the thread that solves.
    config : Config, optional
        All switches.

    Returns
    -------
    Result

    Raises
    ------
    InvalidInputError
        Naming the argument that cannot be used.
    BackendUnavailableError
        When the backend's solver is not installed or not licensed.
    """
    began = time.perf_counter()
    dataset = BinaryDataset.from_arrays(X, y, sample_weight)
    config = config if config is not None else Config.preset(preset)
    return TreeSearch(
        dataset,
        max_depth=checked_depth(max_depth),
        leaf_penalty=leaf_penalty,
        config=config,
        backend=backend,
        options=SolveOptions(
            time_limit=time_limit,
            gap=gap,
            threads=threads,
            seed=seed,
            node_limit=node_limit,
            native=checked_solver_options(solver_options),
        ),
        progress=progress,
        began=began,
    ).run()
