"""Where pieces are worked on: in this process, in some threads of it, or by the workers of a dask cluster.

Whatever order pieces come back in, each is added once, and the sum is the same. On a cluster a piece whose worker is
lost is done again by another one; until its result has arrived here nothing of it counts.
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
from accel_oct.support.progress import ProgressEvent, Sink

__all__ = ["Engine"]

_RETRIES = 3
"""How often a piece is begun again when reading it fails, or the worker that had it is lost."""

_AHEAD = 2
"""Pieces per thread of a cluster that are under way: results that wait to be fetched take memory."""


@dataclass(frozen=True)
class _Refused:
    """An error of ours on a worker, carried as a value: it would come again, so nobody should try again."""

    error: AccelOctError


Work = Callable[[int, Any], Any]


class Engine:
    """Runs a pass over all pieces of a source.

    Parameters
    ----------
    client : distributed.Client or None
        None: the one that the user has made current, if any.
    n_jobs : int
        Without a client, so many pieces at a time.
    progress : callable (ProgressEvent) or None
    """

    def __init__(self, client: Any, n_jobs: int, progress: Sink | None) -> None:
        if client is not None and not (hasattr(client, "submit") and hasattr(client, "scheduler_info")):
            raise InvalidInputError(f"client must be a Client of dask.distributed or None, got {shown(client)}")
        if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs < 1:
            raise InvalidInputError(f"n_jobs must be a whole number of at least 1, got {shown(n_jobs)}")
        self.client = _current_client() if client is None else client
        self.n_jobs, self.progress = n_jobs, progress

    def run(self, step: str, source: Source, work: Callable[[], Work], take: Callable[[Any], int]) -> None:
        """Work on every piece.

        Parameters
        ----------
        step : str
            For `progress`.
        source : Source
        work : callable
            Gives what to do with the pieces that are begun next: ``work()(place, piece)``.
        take : callable
            Is handed each result once, in this thread; says how many rows there are so far.
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
    """As dask's own collections do: a client that was made in this process is the one to use."""
    if "distributed" not in sys.modules:
        return None
    from distributed import Client

    try:
        return Client.current()
    except ValueError:
        return None


def _locally(work: Work, place: int, piece: Any) -> Any:
    if isinstance(piece, DelayedPiece):
        # For dask a partition is a task like any other; without a cluster it is made here and now.
        import dask

        try:
            parts = dask.compute(*piece.parts, scheduler="synchronous")
        except AccelOctError:
            raise
        except Exception as error:  # whatever the user's own graph raises
            raise InvalidInputError(f"{piece.name} cannot be computed: {_said(error)}") from error
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


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split()):.200}"


# ---------------------------------------------------------------- dask


def _attempt(work: Work, place: int, piece: Any, *parts: Any) -> Any:
    """What a worker does."""
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
            except Exception as error:  # after all retries: of reading, of the user's graph, or the workers died of it
                raise InvalidInputError(f"{name} could not be read by the cluster: {_said(error)}") from error
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
