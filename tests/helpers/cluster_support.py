"""Workers that answer in any order, in this process: what tests of deep frontiers share."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from accel_oct.cluster import table
from accel_oct.cluster.workers import Job, JobContext, JobResult, run_job
from accel_oct.data import BinaryDataset


class ShuffledWorkers:
    """So many jobs at once, done in random order; some answers come twice, as after a lost worker."""

    def __init__(self, task: JobContext, slots: int, seed: int) -> None:
        self._task, self._slots = task, slots
        self._random = random.Random(seed)
        self._waiting: list[Job] = []
        self.done: list[Job] = []

    def free(self) -> int:
        return self._slots - len(self._waiting)

    def submit(self, job: Job) -> None:
        assert job not in self._waiting and job not in self.done, "a job is given out once"
        self._waiting.append(job)

    def collect(self, seconds: float) -> list[tuple[Job, JobResult]]:
        assert self._waiting, "somebody waits for nothing"
        job = self._waiting.pop(self._random.randrange(len(self._waiting)))
        self.done.append(job)
        return [(job, run_job(self._task, job, self._task.version))]


def with_workers(monkeypatch: pytest.MonkeyPatch, slots: int, seed: int = 0) -> list[ShuffledWorkers]:
    """Put such workers in the place of a cluster; those that were used so far."""
    used: list[ShuffledWorkers] = []

    @contextmanager
    def workers_of(client: Any, task: JobContext) -> Iterator[ShuffledWorkers]:
        used.append(ShuffledWorkers(task, slots, seed + len(used)))
        yield used[-1]

    monkeypatch.setattr(table, "workers_of", workers_of)
    return used


def arrays(dataset: BinaryDataset) -> tuple[Any, Any, Any, int]:
    return dataset.X, dataset.y, dataset.weights, dataset.n_classes


def stop_after(steps: int) -> Callable[[], bool]:
    left = iter([False] * steps)
    return lambda: next(left, True)
