"""Base class of the estimators whose `fit` finds one optimal tree."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from accel_oct.data.encoded_table import EncodedTable
from accel_oct.encoding.base import BinaryEncoder, PassthroughEncoder
from accel_oct.estimators.base import TreeModel
from accel_oct.estimators.every_split import FeatureSearch, TableSearch, table_bound
from accel_oct.estimators.refining import Refinement
from accel_oct.estimators.ties import among_equals
from accel_oct.estimators.training import CheckedRows, Solved, TrainingData
from accel_oct.mip import as_solver
from accel_oct.solving.config import is_default_config
from accel_oct.solving.problem import PROOF_TOLERANCE
from accel_oct.solving.result import Result
from accel_oct.solving.solve import solve
from accel_oct.support.arguments import time_left
from accel_oct.support.progress import Sink, announce
from accel_oct.support.stopping import Clock, kept_interrupts

_LEAST_FOR_BOUND, _SHARE_FOR_BOUND, _MOST_FOR_BOUND = 0.5, 0.5, 10.0
"""Time for the bound over every split: least seconds, share of the solve time, most seconds."""


class OptimalTreeModel(TreeModel):
    """An estimator whose `fit` finds one optimal tree: over every split of the table, or over chosen splits."""

    config: Any
    components: Any
    progress: Any
    ties: str = "first"

    def _search(
        self,
        source: CheckedRows | EncodedTable,
        began: float,
        progress: Sink | None,
        finish: Callable[[Callable[[], bool]], None] | None = None,
    ) -> None:
        """Find the optimal tree and store it; the time limit began at `began`, a reading of `time.perf_counter`.

        Once the tree is stored, `finish` is called with a function that returns whether Ctrl-C was pressed.
        """
        search: TableSearch | FeatureSearch | None = TableSearch.of(self, source)
        if search is None:
            data = self._prepare(source)
            search = FeatureSearch.of(self, data) if self.max_depth is None else None
        with kept_interrupts() as stopped:  # once there is a tree, Ctrl-C does not discard it
            if search is not None:
                solved = search.solve(self.leaf_penalty, Clock(began, self.time_limit), progress)
            else:
                solved = self._solve_refining(source, data, began, stopped.is_set, progress, bounded=True)
                solved = among_equals(self, solved, Clock(began, self.time_limit))
            self._adopt(solved.result, solved.data)
            if finish is not None:
                finish(stopped.is_set)

    def _with_table_bound(
        self,
        solved: Solved,
        checked: CheckedRows,
        began: float,
        is_stopped: Callable[[], bool],
        progress: Sink | None,
    ) -> Solved:
        """Add the upper bound over every split of the table to a solve over chosen splits."""
        encoder, result = solved.encoder, solved.result
        chosen = isinstance(encoder, BinaryEncoder) and not isinstance(encoder, PassthroughEncoder)
        known = result.status in ("optimal", "infeasible", "gap_limit")
        if not chosen or encoder.exact_ or not known or not is_default_config(self.config):
            return solved
        spent = time.perf_counter() - began
        seconds = min(_MOST_FOR_BOUND, max(_LEAST_FOR_BOUND, spent * _SHARE_FOR_BOUND))
        left = time_left(self.time_limit, began)
        announce(progress, "bound over every split")
        limit = seconds if left is None else min(seconds, left)
        bound = table_bound(self, checked, result.objective, limit, is_stopped)
        if bound is None:
            return solved
        # Rewards and costs may be in small units: the tolerance is relative to the objective below 1.
        tolerance = PROOF_TOLERANCE * min(1.0, abs(result.objective))
        if result.status == "optimal" and bound <= result.objective + tolerance:
            bound = result.objective
        return solved._replace(result=replace(result, stats={**result.stats, "table_bound": bound}))

    def _solve_refining(
        self,
        source: CheckedRows | EncodedTable,
        data: TrainingData,
        began: float,
        is_stopped: Callable[[], bool],
        progress: Sink | None,
        bounded: bool = False,
    ) -> Solved:
        """Solve; if no tree over the chosen splits satisfies the constraints, solve over finer splits.

        With `bounded` and rows in memory, also compute the upper bound over every split of the table, which may prove
        that finer splits do not help.
        """
        checked = source if bounded and isinstance(source, CheckedRows) else None
        found = Solved(self.encoder_, data, self._solve(data, time_left(self.time_limit, began), progress))
        if checked is not None:
            found = self._with_table_bound(found, checked, began, is_stopped, progress)
        if found.result.status == "infeasible" and not self._holds_for_table(found.result):
            left = time_left(self.time_limit, began)
            found = Refinement(self, source, left, is_stopped, progress).run(found)
            self.encoder_ = found.encoder
            if checked is not None and found.result.found is not None:
                found = self._with_table_bound(found, checked, began, is_stopped, progress)
        return found

    def _solve(self, data: TrainingData, time_limit: float | None, progress: Sink | None = None) -> Result:
        return solve(
            data.solved,
            max_depth=self.max_depth,
            leaf_penalty=self.leaf_penalty,
            constraints=self._all_constraints(data),
            objective=data.stated,
            solver=self.solver,
            config=self.config,
            components=self.components,
            time_limit=time_limit,
            progress=self.progress if progress is None else progress,
            start=data.starts,
        )

    @property
    def _is_proven(self) -> bool:
        """Whether the gap is at most the one that was asked for."""
        return bool(self.status_ == "optimal" or self.gap_ <= as_solver(self.solver).gap)

    def _warn_unproven(self, stacklevel: int) -> None:
        """Warn that the tree is not proven optimal."""
        warnings.warn(
            f"the tree is not proven optimal ({self.status_}): its objective is {self.objective_:.6g} and the bound "
            f"{self.bound_:.6g}, a gap of {self.gap_:.2%}. Raise time_limit or leaf_penalty, or lower max_depth",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
