"""What a solve does, for people who watch: a panel on a terminal or in a notebook, lines elsewhere."""

from accel_oct.live.watch import Watch, joined, watched, watching
from accel_oct.solving.activity import Activity, Watcher

__all__ = ["Activity", "Watch", "Watcher", "joined", "watched", "watching"]
