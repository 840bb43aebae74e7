"""Near-optimal trees: all that are almost as good as the best one (also called a Rashomon set).

`finding` has the public function, the other modules its result. `Setting` says what predictions earn;
`NearOptimalSearch` of `accel_oct.exact` lists the first trees and counts all.
"""

from accel_oct.near_optimal.finding import NearOptimalProgress, near_optimal
from accel_oct.near_optimal.importance import ImportanceRow, ImportanceTable
from accel_oct.near_optimal.trees import NearOptimalTree, NearOptimalTrees, PredictionGroup

__all__ = [
    "ImportanceRow",
    "ImportanceTable",
    "NearOptimalProgress",
    "NearOptimalTree",
    "NearOptimalTrees",
    "PredictionGroup",
    "near_optimal",
]
