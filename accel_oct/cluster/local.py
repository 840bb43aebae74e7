"""A dask cluster on this machine that no other machine can reach."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["local_client"]

_LOOPBACK = "127.0.0.1"


@contextmanager
def local_client(n_workers: int) -> Iterator[Any]:
    """Start workers of one thread each, yield a client of theirs, and end them.

    Every socket listens on the loopback interface only, and there is no dashboard. The scheduler has an HTTP server
    without one too; its port is a free one, as that of any other socket.
    """
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            host=_LOOPBACK,
            dashboard_address=f"{_LOOPBACK}:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.ERROR,  # workers that are closed in the middle of a job would warn of it
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
