"""Selection of penalty, depth and smallest leaf by cross-validation, with one path of penalties per fold."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from accel_oct.constraints import Constraint, bind_all
from accel_oct.data.encoded_table import EncodedTable
from accel_oct.data.labels import as_labels
from accel_oct.data.weights import as_weights
from accel_oct.encoding.tables import Table, is_indexable
from accel_oct.errors import InvalidInputError, NoTreeError, as_invalid_input
from accel_oct.estimators.base import TreeClassifier
from accel_oct.estimators.by_name import given_data
from accel_oct.estimators.classifier import OptimalTreeClassifier
from accel_oct.estimators.every_split import allows_any_depth
from accel_oct.estimators.folds import FoldReporter, Task, solve_folds
from accel_oct.estimators.in_pieces import in_memory_only
from accel_oct.estimators.rules import check_splittable, checked_leaf, checked_penalties
from accel_oct.estimators.ties import checked_ties
from accel_oct.estimators.training import Attached, attached
from accel_oct.live import watched
from accel_oct.mip import Solver, as_solver, candidate_backends
from accel_oct.pieces.detection import is_in_pieces
from accel_oct.reasons.stability import Stability
from accel_oct.solving.config import Config, as_config
from accel_oct.support.arguments import checked_depth
from accel_oct.support.progress import Sink, announce
from accel_oct.support.stopping import Clock
from accel_oct.tree.probabilities import DEFAULT_SMOOTHING

#: From a penalty that allows few leaves to one that has little effect, halved at each step.
DEFAULT_PENALTIES = tuple(0.1 / 2**k for k in range(9))


_RULES = ("smooth", "best", "one_standard_error")

_AUTO_DEPTHS = (2, 3)
"""Depths of `max_depth="auto"`, besides no limit; chosen by `accel_oct_bench.studies.accuracy`."""

_AUTO_FOLD_SECONDS, _AUTO_FIT_SECONDS = 2.0, 10.0
"""Seconds of a path of penalties in a fold, and of the fit on all data, without a limit on depth and time."""

_FOLDS_SHARE = 0.75
"""Part of the time limit for the folds; the fit on all data has the rest, and what the folds leave."""


class Shape(NamedTuple):
    """A candidate apart from its penalty."""

    max_depth: int | None
    min_samples_leaf: Any


class OptimalTreeClassifierCV(TreeClassifier):
    """Optimal tree classifier that selects leaf penalty, depth and smallest leaf by cross-validation.

    Each fold is solved once per depth and smallest leaf: one path has the optimal trees of all penalties. If `solver`
    (apart from threads and seed) or `config` is not the default, or a constraint or the objective couples subtrees,
    each fold is solved once per candidate.

    Parameters
    ----------
    max_depth : int, None, sequence of these, or "auto"
        One depth, or the candidates; None means no limit, see `OptimalTreeClassifier`. "auto" means 2, 3 and no limit,
        where the problem allows the last. Without `time_limit`, searches of "auto" that have no depth limit end after
        2 s per path of penalties and 10 s for all data, with the best tree so far.
    leaf_penalties : sequence of float or None
        Candidates; None means nine values from 0.1 on, each half of the previous one.
    min_samples_leaf : int, float, or sequence of these
        One value as in `OptimalTreeClassifier`, or the candidates.
    cv : int, splitter or iterable
        Cross-validation as in scikit-learn; an int means stratified folds.
    rule : {"smooth", "best", "one_standard_error"}
        Select the best mean score; "smooth" averages it with those of the next penalties above and below (a quarter
        each) first, which makes the choice less random. "one_standard_error" selects the smallest tree within one
        standard error of the best mean score. Of equal scores the smallest tree is selected.
    scoring : str, callable or None
        Score on held-out rows, as in scikit-learn. None means the training objective: accuracy, `objective`, or
        accuracy weighted by `class_weight`.
    n_jobs : int or None
        Number of folds that are solved in parallel, each with the threads of `solver`; as in scikit-learn.
    time_limit : float or None
        Limit in seconds for all folds and the fit on all data. Three quarters are for the folds, in equal parts; time
        that a search does not need goes to the next ones.
    solver, config, components, encoder, missing, class_weight, objective, constraints, max_leaf_nodes, \
max_features_used, monotonic_cst, exclude, interaction_cst, smoothing, calibrate, ties, progress, verbose
        As in `OptimalTreeClassifier`, for the folds and for the fit on all data. `progress` also receives events with
        the number of folds that are done. `calibrate` applies to the fit on all data.

    Notes
    -----
    Ctrl-C during the folds raises KeyboardInterrupt and does not change the classifier: the selection needs all folds.
    During the fit on all data, the best tree so far is kept, as in `OptimalTreeClassifier`: ``status_`` is
    "interrupted" unless the proof was complete.

    Attributes
    ----------
    leaf_penalty_, max_depth_, min_samples_leaf_
        Selected parameters.
    cv_results_ : dict of arrays
        For each candidate: max_depth, min_samples_leaf, leaf_penalty, mean_test_score, std_test_score, mean_n_leaves,
        split_test_scores (candidates x folds).
    curve_ : float array (n_points, 3)
        Mean number of leaves, mean score and its standard error for each penalty at the selected depth and smallest
        leaf, by increasing number of leaves. `accel_oct.plotting.plot_path` plots it.
    best_estimator_ : OptimalTreeClassifier
        Classifier fitted on all data. Its fitted attributes are also attributes of this estimator.
    """

    def __init__(
        self,
        max_depth: Any = "auto",
        leaf_penalties: Sequence[float] | None = None,
        *,
        cv: Any = 5,
        rule: str = "smooth",
        scoring: Any = None,
        n_jobs: int | None = None,
        solver: Solver | str = "highs",
        config: Config | str = "default",
        components: Sequence[Any] | None = None,
        time_limit: float | None = None,
        encoder: Any = "auto",
        missing: str = "category",
        class_weight: Any = None,
        objective: Any = None,
        constraints: Sequence[Constraint] | None = None,
        min_samples_leaf: Any = 1,
        max_leaf_nodes: int | None = None,
        max_features_used: int | None = None,
        monotonic_cst: Any = None,
        exclude: Any = None,
        interaction_cst: Any = None,
        smoothing: float = DEFAULT_SMOOTHING,
        calibrate: Any = None,
        ties: str = "purity",
        progress: Sink | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.leaf_penalties = leaf_penalties
        self.cv = cv
        self.rule = rule
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.solver = solver
        self.config = config
        self.components = components
        self.time_limit = time_limit
        self.encoder = encoder
        self.missing = missing
        self.class_weight = class_weight
        self.objective = objective
        self.constraints = constraints
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.max_features_used = max_features_used
        self.monotonic_cst = monotonic_cst
        self.exclude = exclude
        self.interaction_cst = interaction_cst
        self.smoothing = smoothing
        self.calibrate = calibrate
        self.ties = ties
        self.progress = progress
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None, costs: Any = None
    ) -> OptimalTreeClassifierCV:
        """Select the parameters by cross-validation, then fit on all data.

        Parameters
        ----------
        X : data frame or array-like (n_samples, n_features)
        y : array-like (n_samples,)
        sample_weight : array-like (n_samples,), optional
            Used in training and in the score on held-out rows.
        sensitive_features, costs
            As in `OptimalTreeClassifier.fit`; split with the rows.
        """
        if self.rule not in _RULES:
            raise InvalidInputError(f"rule must be one of {', '.join(map(repr, _RULES))}, got {self.rule!r}")
        named = given_data(X, y, sample_weight, sensitive_features)
        X, y, given = named.X, named.y, (named.sample_weight, named.sensitive_features, costs)
        with watched(self.progress, verbose=self.verbose, time_limit=self.time_limit) as progress:
            best, chosen = self._chosen(X, y, given, progress)
        best._warn_of_result()
        self._take_over(best, chosen)
        return self

    def to_json(self, path: Any = None) -> str:
        """Return `best_estimator_` as JSON text, written to a file if `path` is given."""
        text: str = self.best_estimator_.to_json(path)
        return text

    def stability(self, X: Any, y: Any, **options: Any) -> Stability:
        """Return the stability of `best_estimator_`: its splits in trees of bootstrap samples.

        Parameters
        ----------
        X, y, options
            As in `OptimalTreeClassifier.stability`.
        """
        check_is_fitted(self, "best_estimator_")
        found: Stability = self.best_estimator_.stability(X, y, **options)
        return found

    # ---------------------------------------------------------------- cross-validation

    def _chosen(
        self, X: Any, y: Any, given: tuple[Any, Any, Any], progress: Sink | None
    ) -> tuple[OptimalTreeClassifier, dict[str, Any]]:
        """Return the classifier fitted on all data, and the attributes that describe the selection."""
        clock = Clock(time.perf_counter(), self.time_limit)
        shapes, penalties = self._shapes(), self._penalties()
        self._check_solver_arguments()
        # All data checks are here. An earlier fit remains unchanged until the end.
        if isinstance(X, EncodedTable) or is_in_pieces(X, y):
            raise in_memory_only("cross-validation")
        announce(progress, "encoding")
        first = self._classifier(shapes[0]._replace(max_depth=shapes[0].max_depth or 1), penalties[0])
        data = first._prepare(first._source(X, y, given))
        check_splittable(bind_all(first._all_constraints(data), data.dataset), data.score)
        if self._is_auto and allows_any_depth(first, data) and (min(penalties) > 0 or self.max_leaf_nodes is not None):
            shapes += [shape._replace(max_depth=None) for shape in shapes if shape.max_depth == _AUTO_DEPTHS[0]]
        n_rows = data.dataset.n_samples
        weights = None if given[0] is None else as_weights(given[0], n_rows)
        scores, leaves, failures = self._cross_validate(
            X, data.dataset.y, y, weights, attached(*given[1:], n_rows), shapes, penalties, clock, progress
        )
        if np.isnan(scores.mean(axis=2)).all():
            raise _no_tree(failures)
        chosen = self._summary(scores, leaves, shapes, penalties)
        shape = Shape(chosen["max_depth_"], chosen["min_samples_leaf_"])
        best = self._classifier(shape, chosen["leaf_penalty_"], self.progress)
        best.time_limit = _AUTO_FIT_SECONDS if self._is_cut_off(shape) else clock.left
        best._fit(X, y, given, progress)
        best.time_limit = self.time_limit
        return best, chosen

    def _cross_validate(
        self,
        X: Any,
        codes: Any,
        y: Any,
        weights: Any,
        given: Attached,
        shapes: list[Shape],
        penalties: list[float],
        clock: Clock,
        progress: Sink | None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], frozenset[str]]:
        """Return scores and leaves, each (shapes, penalties, folds), and the statuses of solves without a tree."""
        X = X if is_indexable(X) else Table.read(X)
        rows = np.zeros((len(codes), 1))
        with as_invalid_input("cv"):
            folds = list(check_cv(self.cv, codes, classifier=True).split(rows, codes))
        if not folds:
            raise InvalidInputError("cv yields no split")
        y = np.asarray(as_labels(y)).reshape(-1)
        tasks = [
            Task(
                self._classifier(shape, 0.0),
                X,
                y,
                weights,
                given,
                train,
                test,
                penalties,
                self.scoring,
                _AUTO_FOLD_SECONDS if self._is_cut_off(shape) else None,
            )
            for shape in shapes
            for train, test in folds
        ]
        limit = clock.share(1 / _FOLDS_SHARE)
        outcomes = solve_folds(tasks, self.n_jobs, limit, FoldReporter(progress, len(tasks)))
        scores = np.array([outcome.scores for outcome in outcomes])
        shaped = scores.reshape(len(shapes), len(folds), len(penalties), 2).transpose(0, 2, 1, 3)
        return shaped[..., 0], shaped[..., 1], frozenset().union(*(outcome.failures for outcome in outcomes))

    def _summary(self, scores: Any, leaves: Any, shapes: list[Shape], penalties: list[float]) -> dict[str, Any]:
        """Return the attributes that describe the selection."""
        n_folds = scores.shape[2]
        mean, std = scores.mean(axis=2), scores.std(axis=2)
        error = scores.std(axis=2, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros_like(mean)
        results = {
            "max_depth": np.repeat(_column([shape.max_depth for shape in shapes]), len(penalties)),
            "min_samples_leaf": np.repeat(_column([shape.min_samples_leaf for shape in shapes]), len(penalties)),
            "leaf_penalty": np.tile(penalties, len(shapes)),
            "mean_test_score": mean.ravel(),
            "std_test_score": std.ravel(),
            "mean_n_leaves": leaves.mean(axis=2).ravel(),
            "split_test_scores": scores.reshape(-1, n_folds),
        }
        judged = _smoothed(mean) if self.rule == "smooth" else mean
        top = np.unravel_index(int(np.nanargmax(judged)), mean.shape)
        enough = judged[top] - (error[top] if self.rule == "one_standard_error" else 1e-12)
        # Simplest first: fewest leaves on average, then smallest depth, largest penalty, and largest smallest leaf.
        size = leaves.mean(axis=2)
        good = [
            (size[s, p], _order(shapes[s].max_depth), -penalties[p], -s, s, p)
            for s, p in np.argwhere(judged >= enough).tolist()
        ]
        *_, s, p = min(good)
        points = np.column_stack([size[s], mean[s], error[s]])
        return {
            "max_depth_": shapes[s].max_depth,
            "min_samples_leaf_": shapes[s].min_samples_leaf,
            "leaf_penalty_": penalties[p],
            "cv_results_": results,
            "curve_": points[np.argsort(points[:, 0], kind="stable")],
        }

    def _take_over(self, best: OptimalTreeClassifier, chosen: dict[str, Any]) -> None:
        """Set all fitted attributes at once."""
        fitted = {name: value for name, value in vars(best).items() if name.endswith("_") and not name.startswith("_")}
        if "feature_names_in_" not in fitted and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        for name, value in {**fitted, **chosen, "best_estimator_": best}.items():
            setattr(self, name, value)

    def _classifier(self, shape: Shape, leaf_penalty: float, progress: Sink | None = None) -> OptimalTreeClassifier:
        own = (
            "encoder",
            "progress",
            "max_depth",
            "min_samples_leaf",
            "leaf_penalty",
            "close_to",
            "within",
            "agreement",
        )
        shared = [name for name in OptimalTreeClassifier._get_param_names() if name not in own]
        encoder = self.encoder if self.encoder is None or isinstance(self.encoder, str) else clone(self.encoder)
        return OptimalTreeClassifier(
            shape.max_depth,
            leaf_penalty,
            min_samples_leaf=shape.min_samples_leaf,
            encoder=encoder,
            progress=progress,
            **{name: getattr(self, name) for name in shared},
        )

    @property
    def _is_auto(self) -> bool:
        return isinstance(self.max_depth, str) and self.max_depth == "auto"

    def _is_cut_off(self, shape: Shape) -> bool:
        """Return whether a search without a depth limit has a time limit of its own: the user gave neither."""
        return self._is_auto and shape.max_depth is None and self.time_limit is None

    def _shapes(self) -> list[Shape]:
        """Return the candidates, by increasing depth and smallest leaf; those without a depth limit only if given."""
        given = _AUTO_DEPTHS if self._is_auto else _values(self.max_depth, "max_depth")
        depths = {None if depth is None else checked_depth(depth) for depth in given}
        leaves = {checked_leaf(value) for value in _values(self.min_samples_leaf, "min_samples_leaf")}
        return [Shape(depth, least) for depth in sorted(depths, key=_order) for least in sorted(leaves)]

    def _penalties(self) -> list[float]:
        if self.leaf_penalties is None:
            return list(DEFAULT_PENALTIES)
        return sorted(set(checked_penalties(self.leaf_penalties)), reverse=True)

    def _check_solver_arguments(self) -> None:
        """Validate solver arguments before the first fold is solved."""
        as_config(self.config)
        checked_ties(self.ties)
        solver = as_solver(self.solver)
        candidate_backends(solver.backend)
        solver.solve_options(self.time_limit)


def _values(given: Any, name: str) -> list[Any]:
    """Return the candidates of a parameter that takes one value or several."""
    values = list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else [given]
    if not values:
        raise InvalidInputError(f"{name} must be one value or a list of candidates, got {given!r}")
    return values


def _smoothed(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores (shapes, penalties), each averaged with its neighbours; an end counts as its own neighbour."""
    padded = np.pad(scores, ((0, 0), (1, 1)), mode="edge")
    low, high = padded[:, :-2], padded[:, 2:]
    # A penalty without a score does not count as a neighbour, and is not selected.
    low, high = np.where(np.isnan(low), scores, low), np.where(np.isnan(high), scores, high)
    smooth: NDArray[np.float64] = 0.25 * low + 0.5 * scores + 0.25 * high
    return smooth


def _column(values: list[Any]) -> NDArray[Any]:
    """Return values of a parameter as an array; counts stay integers beside shares or None."""
    whole = all(isinstance(value, int) for value in values)
    return np.array(values, dtype=None if whole else object)


def _order(depth: int | None) -> float:
    """Return the sort key of a depth; no limit comes last."""
    return math.inf if depth is None else depth


def _no_tree(failures: frozenset[str]) -> NoTreeError:
    """Return the error if every depth and penalty lacks a tree in some fold; `failures` are the solve statuses."""
    where = "on the training rows of every fold, whatever the penalty"
    stopped = sorted(failures - {"infeasible"})
    if stopped:
        words = (
            f"no tree that satisfies the constraints was found {where}: some solves ended with status {stopped[0]!r}"
        )
        return NoTreeError(words, stopped[0])
    return NoTreeError(f"no tree over the splits that were searched satisfies the constraints {where}")
