"""Near-optimal trees: all that are almost as good as the best one (also called a Rashomon set).

`finding` has the public function. It makes a `CountingProblem` in whole numbers; `NearOptimalSearch` lists the first
trees and counts all, by `tree_listing` and `tree_counting` of `accel_oct.exact`, for any gains of predictions.
`Setting` says what these are for accuracy.
"""

from accel_oct.near_optimal.finding import NearOptimalProgress, near_optimal
from accel_oct.near_optimal.importance import ImportanceRow, ImportanceTable
from accel_oct.near_optimal.search import Found, ListedTree, NearOptimalSearch
from accel_oct.near_optimal.trees import NearOptimalTree, NearOptimalTrees, PredictionGroup

__all__ = [
    "Found",
    "ImportanceRow",
    "ImportanceTable",
    "ListedTree",
    "NearOptimalProgress",
    "NearOptimalSearch",
    "NearOptimalTree",
    "NearOptimalTrees",
    "PredictionGroup",
    "near_optimal",
]
