"""From what a solve tells to what is drawn of it.

The callables that a solve is given only note what they are told. One thread draws, from a timer: so the time goes on
while nothing is told, a solve never waits for a terminal, and Ctrl-C, which Python hands to the main thread alone, does
not meet a line that is half drawn.
"""

from __future__ import annotations

import logging
import math
import operator
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TextIO

from accel_oct.errors import InvalidInputError, shown
from accel_oct.live.display import Display, LineDisplay, Moment
from accel_oct.solving.activity import Activity, activity_listener
from accel_oct.solving.result import HistoryRow

logger = logging.getLogger(__name__)

_TICK = 0.2
"""Seconds between two looks at what was told."""

_PATIENCE = 1.0
"""Seconds that the last line may take once Ctrl-C was pressed: a terminal may be stopped by Ctrl-S."""


class Watch:
    """A `progress` callable that notes what it is told, for a view; see `watching`.

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
        self._known = Moment(limit=time_limit if _is_seconds(time_limit) else None)
        self._noting = threading.Lock()

    def __call__(self, row: HistoryRow) -> None:
        """Note a row of the history."""
        self._note(objective=row.objective, bound=row.bound)

    def on_activity(self, activity: Activity) -> None:
        """Note what is being done."""
        self._note(
            phase=activity.phase,
            part=activity.part,
            doing=activity.doing,
            figures=activity.figures,
            objective=activity.objective,
            bound=activity.bound,
        )

    def say(self, phase: str, doing: str = "") -> None:
        """Tell of work outside a solve: ``watch.say("reading", "heart.csv")``. What was known before is forgotten."""
        self.on_activity(Activity(0.0, phase, doing))

    @property
    def moment(self) -> Moment:
        """What is known now."""
        with self._noting:
            return replace(self._known, seconds=self._clock() - self._began)

    def _note(self, **known: Any) -> None:
        with self._noting:
            self._known = replace(self._known, **known)

    def __deepcopy__(self, memo: Any) -> Watch:
        return self  # scikit-learn copies parameters when it clones, and a copy would be watched by nobody

    def __reduce__(self) -> Any:
        return Watch, ()  # a stored classifier has no view


@contextmanager
def watching(
    stream: TextIO | None = None, *, time_limit: float | None = None, quiet: bool = False, verbose: int = 1
) -> Iterator[Watch]:
    """Show how solves go while the block runs.

    Parameters
    ----------
    stream : text stream, optional
        Where to draw; standard error by default, or the output of the cell in a notebook. On a terminal there is a
        panel that is gone at the end, elsewhere there are lines; the last line says what was reached.
    time_limit : float, optional
        Seconds that the block may take, to be shown beside those that have passed; it ends nothing.
    quiet : bool
        Draw nothing.
    verbose : int
        0 draws nothing; 1 the panel or lines on changes; 2 shows all figures, and keeps lines above the panel.

    Yields
    ------
    Watch
        For ``progress=`` of `accel_oct.solve`, `frontier`, `solve_path`, `near_optimal` and the classifiers. Its
        method ``say(phase, doing)`` tells of work around them.

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
    """A level of detail."""
    try:
        level = operator.index(verbose)
    except TypeError:
        level = -1
    if level < 0:
        raise InvalidInputError(f"verbose must be 0, 1 or 2, got {shown(verbose)}")
    return level


def _is_seconds(limit: Any) -> bool:
    """Whether a limit can be shown; what is wrong with it is for those to say who obey it."""
    return isinstance(limit, int | float) and 0 < limit < math.inf


class Drawing:
    """The thread that draws.

    Parameters
    ----------
    watch : Watch
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
        """Have the last line written; Ctrl-C meanwhile is raised afterwards."""
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
        except Exception as error:  # such as a pipe that nobody reads any more: no reason to lose the solve
            logger.debug("nothing more is drawn: %s: %s", type(error).__name__, error)


@contextmanager
def watched(progress: Any, *, verbose: int, time_limit: float | None = None) -> Iterator[Any]:
    """`progress` and a view together, for whoever has both as arguments; see `watching`."""
    if checked_verbose(verbose) == 0:
        yield progress
        return
    with watching(time_limit=time_limit, verbose=verbose) as watch:
        yield joined(progress, watch)


def joined(*callables: Any) -> Any:
    """One `progress` callable for several, of which some may be None; None if all are."""
    told = [each for each in callables if each is not None]
    return told[0] if len(told) == 1 else _Joined(told) if told else None


class _Joined:
    def __init__(self, told: list[Any]) -> None:
        self._told = told
        self._listeners = [found for found in map(activity_listener, told) if found is not None]

    def __call__(self, row: HistoryRow) -> None:
        for each in self._told:
            each(row)

    def on_activity(self, activity: Activity) -> None:
        for listener in self._listeners:
            listener(activity)


def _view(stream: TextIO | None, verbose: int) -> Display:
    """What fits the stream. rich is loaded where something is drawn with it, and not before."""
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
    """Whether a Jupyter kernel runs this process; IPython is not loaded for the question."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
