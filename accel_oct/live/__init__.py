"""The live view of a solve: a panel on a terminal or in a notebook, lines elsewhere."""

from accel_oct.live.watch import Watch, watched, watching
from accel_oct.support.progress import ProgressEvent, joined_sinks

__all__ = ["ProgressEvent", "Watch", "joined_sinks", "watched", "watching"]
