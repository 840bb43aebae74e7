"""The BendOCT master problem, written purely against the MIP layer."""

from accel_oct.formulation.component import Component, ComponentFactory, Response, TreePoint
from accel_oct.formulation.handler import ComponentStatistics, TreeHandler
from accel_oct.formulation.incumbent import Incumbent, Rule, broken_rules
from accel_oct.formulation.master import Master
from accel_oct.formulation.paths import Path, integral_paths
from accel_oct.formulation.predictions import Claims, Predictions
from accel_oct.formulation.site import Site

__all__ = [
    "Claims",
    "Component",
    "ComponentFactory",
    "ComponentStatistics",
    "Incumbent",
    "Master",
    "Path",
    "Predictions",
    "Response",
    "Rule",
    "Site",
    "TreeHandler",
    "TreePoint",
    "broken_rules",
    "integral_paths",
]
