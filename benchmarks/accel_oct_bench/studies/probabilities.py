"""Log-loss, Brier score and accuracy of leaf probabilities on held-out rows, beside CART and CalibratedClassifierCV.

    python -m accel_oct_bench.studies.probabilities --data-dir FOLDER [--depth 3] [--penalty 0.01] > table.md

Stratified five-fold cross-validation on the raw tables. All trees have the same depth limit; CART is pruned with the
same penalty (`ccp_alpha`). CalibratedClassifierCV has five folds and averages five trees; with ``ensemble=False``
it is one tree with a calibration map. Every second table, in the order of names, chooses the default amount of
smoothing (the sweep); the others had no part in it. Log-loss is in nats, with
probabilities of at least 1e-15; the Brier score is summed over all classes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from accel_oct import OptimalTreeClassifier
from accel_oct.tree.probabilities import node_probabilities
from accel_oct_bench.studies.common import MarkdownTable, parser_of, raw_sets

FOLDS = 5
SWEEP = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)
_LEAST = 1e-15


class Figures(NamedTuple):
    """Means over the held-out rows."""

    accuracy: float
    log_loss: float
    brier: float


def figures(classes: Any, shares: Any, predicted: Any, y: Any) -> Figures:
    """Return the figures; a class that the model does not know has probability 0."""
    place = {label: k for k, label in enumerate(classes.tolist())}
    codes = np.array([place.get(label, -1) for label in y.tolist()])
    own = np.where(codes >= 0, shares[np.arange(len(y)), np.maximum(codes, 0)], 0.0)
    brier = (shares**2).sum(axis=1) - 2 * own + 1
    return Figures(float(np.mean(predicted == y)), float(-np.log(np.maximum(own, _LEAST)).mean()), float(brier.mean()))


def methods(depth: int, penalty: float, seconds: float) -> dict[str, Callable[[Any, Any, Any, Any], Any]]:
    """Return functions that fit a model to (table, floats, classes) and return its figures on held-out rows."""

    def cart(plain: Any, y: Any) -> Any:
        return DecisionTreeClassifier(max_depth=depth, ccp_alpha=penalty, random_state=0)

    def calibrated(method: str, ensemble: bool) -> Callable[[Any, Any, Any, Any], Any]:
        def fit(X: Any, plain: Any, y: Any, smoothed: Any) -> Any:
            return CalibratedClassifierCV(cart(plain, y), method=method, cv=FOLDS, ensemble=ensemble).fit(plain, y)

        return fit

    return {
        "ours, shares": lambda X, plain, y, smoothed: smoothed(0.0),
        "ours, default": lambda X, plain, y, smoothed: smoothed(None),
        "ours, calibrate=5": lambda X, plain, y, smoothed: OptimalTreeClassifier(
            depth, penalty, calibrate=5, time_limit=seconds
        ).fit(X, y),
        "CART": lambda X, plain, y, smoothed: cart(plain, y).fit(plain, y),
        "CART, sigmoid, one tree": calibrated("sigmoid", False),
        "CART, isotonic, one tree": calibrated("isotonic", False),
        "CART, sigmoid, five trees": calibrated("sigmoid", True),
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--penalty", type=float, default=0.01)
    parser.add_argument("--time-limit", type=float, default=10.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    named = methods(options.depth, options.penalty, options.time_limit)
    found: dict[str, dict[str, Figures]] = {}
    sweep: dict[str, list[float]] = {}
    for name, X, plain, y in raw_sets(options.data_dir):
        parts: dict[str, list[Figures]] = {method: [] for method in named}
        losses = []
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(plain, y):
            model = OptimalTreeClassifier(options.depth, options.penalty, time_limit=options.time_limit)
            model.fit(X.rows(train), y[train])

            def smoothed(amount: float | None, model: Any = model) -> Any:
                model.smoothing_ = model.smoothing if amount is None else amount
                return model

            leaves = model.apply(X.rows(test))
            for amount in SWEEP:
                shares = node_probabilities(model.tree_, amount)[leaves]
                losses.append(figures(model.classes_, shares, y[test], y[test]).log_loss)
            for method, fit in named.items():
                fitted = fit(X.rows(train), plain[train], y[train], smoothed)
                rows = X.rows(test) if method.startswith("ours") else plain[test]
                parts[method].append(
                    figures(fitted.classes_, fitted.predict_proba(rows), fitted.predict(rows), y[test])
                )
        found[name] = {method: Figures(*np.mean(rows, axis=0).tolist()) for method, rows in parts.items()}
        sweep[name] = np.mean(np.reshape(losses, (FOLDS, len(SWEEP))), axis=0).tolist()
        print(name, file=sys.stderr, flush=True)
    names = list(found)
    print(
        f"Depth {options.depth}, leaf penalty {options.penalty:g}, {FOLDS} folds.\n\nLog-loss by amount of smoothing:\n"
    )
    table = MarkdownTable("tables", *(f"m = {amount:g}" for amount in SWEEP))
    for title, chosen in (("for choosing", names[::2]), ("others", names[1::2])):
        table.row(f"{title} ({len(chosen)})", *(f"{v:.4f}" for v in np.mean([sweep[n] for n in chosen], axis=0)))
    for title, chosen in (("Tables without a part in the choice", names[1::2]), ("All tables", names)):
        print(f"\n{title}: {', '.join(chosen)}\n")
        table = MarkdownTable("method", "accuracy", "log-loss", "Brier score")
        for method in named:
            table.row(method, *(f"{v:.4f}" for v in np.mean([found[name][method] for name in chosen], axis=0)))
    print("\nLog-loss by table\n")
    table = MarkdownTable("method", *names)
    for method in named:
        table.row(method, *(f"{found[name][method].log_loss:.3f}" for name in names))


if __name__ == "__main__":
    main()
