"""What a tree must satisfy besides being good: the protocol, and the constraints that come with the library."""

from accel_oct.constraints.leaves import MaxLeaves
from accel_oct.constraints.protocol import BoundConstraint, Constraint, bind_all

__all__ = ["BoundConstraint", "Constraint", "MaxLeaves", "bind_all"]
