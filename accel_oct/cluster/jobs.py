"""Pieces of work: what a worker is told, does and answers.

A job is a pure function of the data, so it does not matter which worker does it, or how often.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import ClusterError
from accel_oct.exact.profile_search import ProfileSolver
from accel_oct.exact.profiles import Profile
from accel_oct.exact.root_board import Start
from accel_oct.exact.samples import RowSamples

Floats = NDArray[np.float64]
Literal = tuple[int, int]
"""A feature of the original data and its value."""
Path = tuple[Literal, ...]


@dataclass(frozen=True)
class Job:
    """The samples that satisfy a path, and the depth of the trees on them.

    Attributes
    ----------
    path : tuple of (feature, value)
        From the root on, in features of the original data.
    depth : int
    whole : bool
        The whole profile; else what is known before root features are opened.
    """

    path: Path
    depth: int
    whole: bool


@dataclass(frozen=True)
class Found:
    """Lower and upper profile in table units, or what to begin with."""

    lower: Floats
    upper: Floats
    start: Start | None = None


@dataclass(frozen=True)
class Task:
    """What all jobs of a search share.

    Attributes
    ----------
    data : RowSamples
    memory_limit : int
    version : str
        Of this library; workers that have another one refuse.
    """

    data: RowSamples
    memory_limit: int
    version: str


def place_of(data: RowSamples, literal: Literal) -> tuple[int, int]:
    """Column and side of the reduced data."""
    column = int(np.flatnonzero(data.feature == literal[0])[0])
    return column, literal[1] ^ int(data.flipped[column])


def literal_of(data: RowSamples, column: int, side: int) -> Literal:
    """The reverse."""
    return int(data.feature[column]), side ^ int(data.flipped[column])


def run_job(task: Task, job: Job, version: str) -> Found:
    """What a worker does; `version` is its own."""
    if version != task.version:
        raise ClusterError(f"a worker has accel_oct {version}, not {task.version}: install the same everywhere")
    data = task.data
    for literal in job.path:
        data = data.at(place_of(data, literal))
    solver = ProfileSolver(memory_limit=task.memory_limit)
    if job.whole:
        found = solver.solve(data, job.depth)
        return Found(found.lower, found.upper)
    known = solver.begin(data, job.depth)
    if isinstance(known, Profile):
        return Found(known.lower, known.upper)
    return Found(known.start.lower, known.start.lower, known.start)
