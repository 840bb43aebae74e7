"""Sinks for the events of a computation."""

from __future__ import annotations

from accel_oct.solving.result import HistoryRow
from accel_oct.support.progress import ProgressEvent


class Events(list[ProgressEvent]):
    """Keeps all events."""

    def __call__(self, event: ProgressEvent) -> None:
        self.append(event)

    @property
    def rows(self) -> tuple[HistoryRow, ...]:
        """Those with a new objective or bound."""
        return tuple(row_of(event) for event in self if event.changed)


class Rows(list[HistoryRow]):
    """Keeps the rows of the history."""

    def __call__(self, event: ProgressEvent) -> None:
        if event.changed:
            self.append(row_of(event))


def row_of(event: ProgressEvent) -> HistoryRow:
    return HistoryRow(event.seconds, event.objective, event.bound)
