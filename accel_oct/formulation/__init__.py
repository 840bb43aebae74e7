"""The BendOCT master problem, written purely against the MIP layer."""

from accel_oct.formulation.component import Component, Incumbent, Response, TreePoint
from accel_oct.formulation.handler import ComponentStatistics, TreeHandler
from accel_oct.formulation.master import Master

__all__ = ["Component", "ComponentStatistics", "Incumbent", "Master", "Response", "TreeHandler", "TreePoint"]
