"""The default classifier on scikit-learn's tables, beside CART.

    python -m accel_oct_bench.studies.raw_tables [--depths 2 3 4] [--time-limit 60]

CART is the best of three criteria and all prunings, by our objective on the training data: accuracy minus the penalty
per leaf. Times are CPU seconds. `studies.every_split` compares with other exact methods.
"""

from __future__ import annotations

import warnings
from functools import partial
from itertools import product

from accel_oct import OptimalTreeClassifier
from accel_oct_bench.measurement import timed
from accel_oct_bench.studies.common import MarkdownTable, best_cart, bundled_tables, parser_of

PENALTIES = (0.01, 0.001)


def main() -> None:
    parser = parser_of(__doc__, data_dir=False)
    parser.add_argument("--depths", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--time-limit", type=float, default=60.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    table = MarkdownTable("table", "depth", "penalty", "objective", "gap", "all splits", "seconds", "best CART")
    cases = proven = exact = worse = exceeded = 0
    for name, X, y in bundled_tables():
        for depth, penalty in product(options.depths, PENALTIES):
            unfitted = OptimalTreeClassifier(depth, penalty, time_limit=options.time_limit)
            model, spent = timed(partial(unfitted.fit, X, y))
            cart = best_cart(X, y, depth, penalty)
            cases, proven, exact = cases + 1, proven + (model.status_ == "optimal"), exact + model.exact_
            worse += model.objective_ < cart - 1e-9
            exceeded += cart > model.bound_ + 1e-9
            figures = f"{model.objective_:.4f}", f"{model.gap_:.4f}", "yes" if model.exact_ else "no"
            table.row(name, depth, penalty, *figures, f"{spent.cpu:.2f}", f"{cart:.4f}")
    print(
        f"\n{cases} cases: {exact} over all splits, {proven} proven, {worse} below CART, {exceeded} bounds below CART."
    )


if __name__ == "__main__":
    main()
