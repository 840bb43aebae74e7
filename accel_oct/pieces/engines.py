"""Execution of tasks on pieces: in this process, in threads, or by the workers of a dask cluster.

Each result is added once, and the sum does not depend on their order. On a cluster, a piece whose worker is lost is
repeated by another worker; only results that have arrived here count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Any

from accel_oct.errors import AccelOctError, InvalidInputError, shown
from accel_oct.pieces.sources import DelayedPiece, Source
from accel_oct.support.arguments import whole_number
from accel_oct.support.progress import ProgressEvent, Sink

_RETRIES = 3
"""Number of retries if reading a piece fails or its worker is lost."""

_AHEAD = 2
"""Submitted pieces per thread of a cluster; limits the memory of results that wait to be fetched."""


@dataclass(frozen=True)
class _Refused:
    """An InvalidInputError of a worker, returned as a value so that dask does not retry."""

    error: AccelOctError


Work = Callable[[int, Any], Any]


class Engine:
    """Runs a pass over all pieces of a source.

    Parameters
    ----------
    client : distributed.Client or None
        None means the current client, if any.
    n_jobs : int
        Number of pieces that are read in parallel without a client.
    progress : callable (ProgressEvent) or None
    """

    def __init__(self, client: Any, n_jobs: int, progress: Sink | None) -> None:
        if client is not None and not (hasattr(client, "submit") and hasattr(client, "scheduler_info")):
            raise InvalidInputError(f"client must be a Client of dask.distributed or None, got {shown(client)}")
        self.client = _current_client() if client is None else client
        self.n_jobs, self.progress = whole_number(n_jobs, "n_jobs", 1), progress

    def run(self, step: str, source: Source, work: Callable[[], Work], take: Callable[[Any], int]) -> None:
        """Run a task on every piece.

        Parameters
        ----------
        step : str
            Name of the step for `progress`.
        source : Source
        work : callable
            Returns the task for the next piece, which is called as ``work()(place, piece)``.
        take : callable
            Called once per result in this thread; returns the number of rows so far.
        """
        done = 0
        for result in self._results(source, work):
            if isinstance(result, _Refused):
                raise result.error
            rows = take(result)
            done += 1
            if self.progress is not None:
                pieces = done if source.n_pieces is None else (done, source.n_pieces)
                self.progress(ProgressEvent(phase="encoding", step=step, figures={"pieces": pieces, "rows": rows}))
        if done == 0:
            raise InvalidInputError("source has no pieces")

    def _results(self, source: Source, work: Callable[[], Work]) -> Iterator[Any]:
        numbered = enumerate(source.pieces())
        if self.client is not None and source.portable:
            return _on_cluster(self.client, numbered, work)
        if self.n_jobs > 1:
            return _in_threads(self.n_jobs, numbered, work)
        return (_locally(work(), place, piece) for place, piece in numbered)


def _current_client() -> Any:
    """Return the current client of this process, as dask collections do; None if there is none."""
    if "distributed" not in sys.modules:
        return None
    from distributed import Client

    try:
        return Client.current()
    except ValueError:
        return None


def _locally(work: Work, place: int, piece: Any) -> Any:
    if isinstance(piece, DelayedPiece):
        # Without a cluster, a dask partition is computed here.
        import dask

        try:
            parts = dask.compute(*piece.parts, scheduler="synchronous")
        except AccelOctError:
            raise
        except Exception as error:  # any error of the user's graph
            raise InvalidInputError(f"{piece.name} cannot be computed: {_error_text(error)}") from error
        piece = piece.with_parts(*parts)
    return work(place, piece)


def _in_threads(n_threads: int, numbered: Iterable[tuple[int, Any]], work: Callable[[], Work]) -> Iterator[Any]:
    pieces = iter(numbered)
    with ThreadPoolExecutor(n_threads) as pool:
        under_way: set[Future[Any]] = set()
        try:
            while True:
                for place, piece in islice(pieces, n_threads + 1 - len(under_way)):
                    under_way.add(pool.submit(_locally, work(), place, piece))
                if not under_way:
                    return
                ready, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in ready)
        finally:
            for future in under_way:
                future.cancel()


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split()):.200}"


# ---------------------------------------------------------------- dask


def _attempt(work: Work, place: int, piece: Any, *parts: Any) -> Any:
    """Run a task on a worker."""
    try:
        return work(place, piece.with_parts(*parts) if isinstance(piece, DelayedPiece) else piece)
    except AccelOctError as error:
        return _Refused(error)


def _on_cluster(client: Any, numbered: Iterable[tuple[int, Any]], work: Callable[[], Work]) -> Iterator[Any]:
    from distributed import as_completed

    pieces = iter(numbered)
    names: dict[Any, str] = {}
    ready = as_completed(loop=client.loop, raise_errors=False)

    def begin() -> None:
        room = _AHEAD * max(1, sum(client.nthreads().values())) - len(names)
        for place, piece in islice(pieces, max(0, room)):
            future = _submitted(client, work(), place, piece)
            names[future] = piece.name
            ready.add(future)

    try:
        begin()
        while names:
            future = next(ready)
            name = names[future]
            try:
                result = future.result()
            except Exception as error:  # after all retries: in reading or the user's graph, or lost workers
                raise InvalidInputError(f"{name} could not be read by the cluster: {_error_text(error)}") from error
            del names[future]
            future.release()
            begin()
            yield result
    finally:
        for future in names:
            future.cancel()


def _submitted(client: Any, work: Work, place: int, piece: Any) -> Any:
    if not isinstance(piece, DelayedPiece):
        return client.submit(_attempt, work, place, piece, retries=_RETRIES, pure=False)
    import dask

    bare = DelayedPiece(piece.name, (), piece.beside)
    return client.compute(dask.delayed(_attempt, pure=False)(work, place, bare, *piece.parts), retries=_RETRIES)
