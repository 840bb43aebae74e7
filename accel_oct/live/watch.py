"""The watch: from the events of a solve to what is drawn of them.

The sink that a solve gets only keeps the last event. One thread draws, from a timer: so the time goes on while no event
comes, a solve never waits for a terminal, and Ctrl-C, which Python hands to the main thread alone, does not meet a line
that is half drawn.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from accel_oct.errors import InvalidInputError, shown
from accel_oct.live.display import Display, LineDisplay, Moment
from accel_oct.support.arguments import as_whole
from accel_oct.support.progress import ProgressEvent, Sink, joined_sinks

logger = logging.getLogger(__name__)

_TICK = 0.2
"""Seconds between two drawings."""

_PATIENCE = 1.0
"""Most seconds for the last line after Ctrl-C: a terminal may be stopped by Ctrl-S."""


class Watch:
    """A `progress` callable that keeps the last event, for a display; see `watching`.

    Parameters
    ----------
    time_limit : float, optional
        Seconds, to be shown beside the time that has passed.
    clock : callable, optional
        Reads the time.
    """

    def __init__(self, time_limit: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._limit = time_limit if _is_seconds(time_limit) else None
        self._event = ProgressEvent()

    def __call__(self, event: ProgressEvent) -> None:
        """Keep an event."""
        self._event = event

    def say(self, phase: str, step: str = "") -> None:
        """Report work outside a solve: ``watch.say("reading", "heart.csv")``. What was known before is forgotten."""
        self(ProgressEvent(phase=phase, step=step))

    @property
    def moment(self) -> Moment:
        """The last event, at the time that has passed since the view began."""
        return Moment(**{**vars(self._event), "seconds": self._clock() - self._began}, limit=self._limit)

    def __deepcopy__(self, memo: Any) -> Watch:
        return self  # scikit-learn copies parameters when it clones, and no view would show the copy

    def __reduce__(self) -> Any:
        return Watch, ()  # a stored classifier has no view


@contextmanager
def watching(
    stream: TextIO | None = None, *, time_limit: float | None = None, quiet: bool = False, verbose: int = 1
) -> Iterator[Watch]:
    """Show the progress of solves while the block runs.

    Parameters
    ----------
    stream : text stream, optional
        Where to draw; standard error by default, or the output of the cell in a notebook. A terminal shows a panel,
        which is removed at the end; other streams get lines. The last line says what was reached.
    time_limit : float, optional
        Seconds that the block may take, for display only.
    quiet : bool
        Draw nothing.
    verbose : int
        0 draws nothing; 1 the panel or lines on changes; 2 shows all figures, and keeps lines above the panel.

    Yields
    ------
    Watch
        For ``progress=`` of `accel_oct.solve`, `frontier`, `solve_path`, `near_optimal` and the classifiers. Its
        method ``say(phase, step)`` reports work around them.

    Examples
    --------
    >>> import accel_oct
    >>> from accel_oct.live import watching
    >>> with watching(time_limit=60) as progress:  # doctest: +SKIP
    ...     result = accel_oct.solve(X, y, max_depth=4, leaf_penalty=0.01, time_limit=60, progress=progress)
    """
    verbose = checked_verbose(verbose)
    watch = Watch(time_limit)
    if quiet or verbose == 0:
        yield watch
        return
    drawing = Drawing(watch, lambda: _view(stream, verbose))
    try:
        drawing.start()
        yield watch
    finally:
        drawing.end()


def checked_verbose(verbose: Any) -> int:
    """Return a level of detail, or raise InvalidInputError."""
    level = int(verbose) if isinstance(verbose, bool) else as_whole(verbose)
    if level is None or level < 0:
        raise InvalidInputError(f"verbose must be 0, 1 or 2, got {shown(verbose)}")
    return level


def _is_seconds(limit: Any) -> bool:
    """Return whether a limit can be shown. Invalid limits are rejected by the solve."""
    return isinstance(limit, int | float) and 0 < limit < math.inf


class Drawing:
    """The thread that draws.

    Parameters
    ----------
    view : callable
        Makes the view, on the thread.
    """

    def __init__(self, watch: Watch, view: Callable[[], Display]) -> None:
        self._watch, self._view = watch, view
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._draw, name="accel_oct-live", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Write the last line; Ctrl-C in the meantime is raised afterwards."""
        pressed: KeyboardInterrupt | None = None
        patience = None
        while True:
            try:
                self._done.set()
                if self._thread.ident is not None:  # it was started
                    self._thread.join(patience)
                break
            except KeyboardInterrupt as interrupt:
                pressed, patience = interrupt, _PATIENCE
        if pressed is not None:
            raise pressed

    def _draw(self) -> None:
        try:
            view = self._view()
            try:
                view.draw(self._watch.moment)
                while not self._done.wait(_TICK):
                    view.draw(self._watch.moment)
            finally:
                view.end(self._watch.moment)
        except Exception as error:  # such as a closed pipe, which must not end the solve
            logger.debug("nothing more is drawn: %s: %s", type(error).__name__, error)


@contextmanager
def watched(progress: Sink | None, *, verbose: int, time_limit: float | None = None) -> Iterator[Sink | None]:
    """Join `progress` and a view, for callers that have both as arguments; see `watching`."""
    if checked_verbose(verbose) == 0:
        yield progress
        return
    with watching(time_limit=time_limit, verbose=verbose) as watch:
        yield joined_sinks(progress, watch)


def _view(stream: TextIO | None, verbose: int) -> Display:
    """Return the display for a stream. rich is loaded only where it draws."""
    if stream is None and _in_notebook():
        # Loads rich and IPython.
        from accel_oct.live.notebook import NotebookPanel

        return NotebookPanel(verbose)
    stream = sys.stderr if stream is None else stream
    if stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
        # Loads rich.
        from accel_oct.live.panel import TerminalPanel

        return TerminalPanel(stream, verbose)
    return LineDisplay(stream, verbose)


def _in_notebook() -> bool:
    """Return whether a Jupyter kernel runs this process, without loading IPython."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
