"""Problems whose only tree, or whose obviously best one, is a leaf."""

from __future__ import annotations

from accel_oct.solving.result import Status
from accel_oct.solving.search import Search


class SingleLeaf:
    """Depth zero, or one class and nothing that could ask for more than a leaf. All leaves were offered already."""

    name = "a single leaf"

    def applies(self, search: Search) -> bool:
        problem = search.problem
        return problem.max_depth == 0 or (problem.dataset.n_classes == 1 and not problem.constraints)

    def run(self, search: Search) -> Status | None:
        search.tighten(search.incumbent.value)
        return None
