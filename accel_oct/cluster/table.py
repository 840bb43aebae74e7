"""The table of a deep frontier, computed by several workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from accel_oct._version import __version__
from accel_oct.cluster.checkpoint import Checkpoint
from accel_oct.cluster.regions import SHORT, Region
from accel_oct.cluster.workers import Job, JobContext, Path, Workers, check_client, workers_of
from accel_oct.exact import FrontierTable
from accel_oct.exact.frontier import ProfileSolver
from accel_oct.exact.levels import Profile, Steps
from accel_oct.exact.samples import RowSamples
from accel_oct.support.arrays import FloatArray
from accel_oct.support.stopping import DEFAULT_MEMORY_LIMIT, Stopper

_TICK = 0.2
"""Most seconds between two questions whether to stop."""


def spread_table(
    data: RowSamples,
    max_depth: int,
    *,
    client: Any = None,
    checkpoint: Any = None,
    threads: int = 1,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    deadline: float | None = None,
    should_stop: Callable[[], bool] | None = None,
    progress: Callable[[float, FloatArray, FloatArray], None] | None = None,
    steps: Steps | None = None,
    short: float = SHORT,
) -> FrontierTable:
    """Compute `frontier_table` on the workers of a cluster, with a checkpoint file.

    The result, trees included, does not depend on the number of workers or the order of their answers, unless it is
    stopped; scores and bounds are valid in any case.

    Parameters
    ----------
    client : distributed.Client, str, int or None
        A client, the address of a scheduler, or a number of processes on this machine. None: this thread.
    checkpoint : path, optional
        Checkpoint file; read if it exists, written from time to time and at the end.
    short : float
        Estimated seconds up to which a job is not divided.

    Other parameters are those of `frontier_table`; `threads` are those of this process.

    Raises
    ------
    InvalidInputError
        For a client or a checkpoint that cannot be used.
    ClusterError
        When the cluster cannot go on; the checkpoint has been written.
    """
    began = time.monotonic()
    check_client(client)
    store = Checkpoint(checkpoint, data, max_depth)
    stopper, steps = Stopper(deadline, should_stop), steps or Steps()

    def report(profile: Profile) -> None:
        if progress is not None:
            scores = (FrontierTable.scores_of(part, data, max_depth) for part in (profile.lower, profile.upper))
            progress(time.monotonic() - began, *scores)

    known = ProfileSolver(stopper, threads, memory_limit).begin(data, max_depth, steps)
    if isinstance(known, Profile):
        return FrontierTable.of(known, data, max_depth, began)
    top = Region(lambda: data, max_depth, data.n_features, short=short, memory_limit=memory_limit)
    top.set_known(known)
    try:
        with workers_of(client, JobContext(data, memory_limit, __version__)) as workers:
            _work(top, workers, store, stopper, steps, report)
    finally:
        store.write()
    if not top.solved:
        top.settle()
    return FrontierTable.of(top.as_profile(), data, max_depth, began)


def _work(
    top: Region,
    workers: Workers,
    store: Checkpoint,
    stopper: Stopper,
    steps: Steps,
    report: Callable[[Profile], None],
) -> None:
    """Send jobs and take answers until nothing is left to do or it is time to stop."""
    busy: dict[Path, Job] = {}
    _send(top, workers, store, busy)
    while not top.solved:
        steps.roots = top.roots
        report(top.as_profile())
        while not (answers := workers.collect(_TICK)):
            if stopper():
                return
            if workers.free() > 0:  # some have joined
                _send(top, workers, store, busy)
        for job, found in answers:
            del busy[job.path]
            store.add(job, found)
            top.take(job.path, found)
        if stopper():
            return
        _send(top, workers, store, busy)


def _send(top: Region, workers: Workers, store: Checkpoint, busy: dict[Path, Job]) -> None:
    """Answer jobs from the checkpoint, and send others to workers that are free."""
    free = workers.free()
    while True:
        for job in top.jobs(busy):
            found = store.get(job)
            if found is not None:
                if not top.agrees(job.path, found):
                    raise store.refused("contradicts these data")
                top.take(job.path, found)
                break  # other jobs may be more useful now
            if free <= 0:
                return
            workers.submit(job)
            busy[job.path] = job
            free -= 1
        else:
            assert busy or top.solved or free <= 0, "roots are open and there is nothing to do"
            return
