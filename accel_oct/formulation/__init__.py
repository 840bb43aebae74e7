"""The BendOCT master problem on the MIP layer, and the components of its solve."""

from accel_oct.formulation.components import (
    Component,
    ComponentFactory,
    ComponentStatistics,
    Response,
    Site,
    TreeHandler,
    TreePoint,
)
from accel_oct.formulation.incumbent import Incumbent, Rule, broken_rules
from accel_oct.formulation.master import Claims, Master, Predictions
from accel_oct.formulation.paths import TreePath, integral_paths

__all__ = [
    "Claims",
    "Component",
    "ComponentFactory",
    "ComponentStatistics",
    "Incumbent",
    "Master",
    "Predictions",
    "Response",
    "Rule",
    "Site",
    "TreeHandler",
    "TreePath",
    "TreePoint",
    "broken_rules",
    "integral_paths",
]
