"""Data in pieces: read one after the other or by a cluster, encoded, and added up to what a solve needs."""

from accel_oct.pieces.engines import PiecesProgress
from accel_oct.pieces.gathering import Gathered, gather

__all__ = ["Gathered", "PiecesProgress", "gather"]
