"""Near-optimal trees: all that are almost as good as the best one (also called a Rashomon set).

`finding` has the public function. It makes a `CountingProblem` in whole numbers, asks `SideValues` for best values,
lists the first trees (`TreeLister`) and counts all (`TreeCounter`); `NearOptimalSearch` does so for any gains of
predictions, `Setting` says what they are for accuracy.
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
