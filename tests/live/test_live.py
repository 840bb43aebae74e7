"""How a solve is shown: lines, a panel on a terminal, a notebook."""

from __future__ import annotations

import copy
import importlib.util
import io
import json
import logging
import math
import pickle
import re
import subprocess
import sys
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.progress_support import Events

import accel_oct
from accel_oct import OptimalTreeClassifier, OptimalTreeClassifierCV
from accel_oct.errors import InvalidInputError
from accel_oct.live import ProgressEvent, Watch, joined_sinks, watching
from accel_oct.live.display import LineDisplay, LinePolicy, Moment
from accel_oct.live.watch import Drawing

SUMMARY = re.compile(r" +\d+\.\d s  end  objective 0\.\d{6}  bound 0\.\d{6}  gap \d+\.\d\d%")


def small_data(n_features: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    X = rng.integers(0, 2, (60, n_features))
    return X, np.where(rng.random(60) < 0.2, rng.integers(0, 2, 60), X[:, 0] ^ X[:, 1])


# ---------------------------------------------------------------- lines


def lines_by_time(policy: LinePolicy, moments: dict[float, Moment], end: float) -> list[float]:
    """When lines are written, by a clock that ticks as the thread that draws does; a moment holds until the next."""
    now, seen, written = 0.0, Moment(), []
    while now <= end:
        for at in [at for at in moments if at <= now]:
            seen = moments.pop(at)
        shown = replace(seen, seconds=now)
        if policy.is_due(shown):
            written.append(round(now, 1))
        now += 0.2
    return written


@pytest.mark.parametrize("verbose", [1, 2, 7])
def test_the_first_line_comes_within_two_seconds_of_nothing(verbose: int) -> None:
    """Whatever takes the time, told or not; and then a line now and then although nothing changes."""
    written = lines_by_time(LinePolicy(verbose), {}, 31.0)
    assert written[0] <= 2.0
    pauses = np.diff(written)
    assert len(written) >= 3 and pauses.max() <= 10.4
    assert pauses.min() >= (9.9 if verbose == 1 else 4.9)


def test_lines_follow_changes_once_in_a_second() -> None:
    """Fifty changes in five seconds are six lines at most; one change later shows at once; figures are no change."""
    changes = {0.1 * k: Moment(objective=0.01 * k, bound=1.0) for k in range(1, 50)}
    figures = {5.5: Moment(objective=0.49, bound=1.0, figures={"nodes": 7}), 9.0: Moment(objective=0.5, bound=1.0)}
    written = lines_by_time(LinePolicy(), {**changes, **figures}, 10.0)
    assert np.diff(written).min() >= 0.9 and written[:5] == pytest.approx([1.0, 2.0, 3.0, 4.0, 5.0], abs=0.3)
    assert len(written) == 6 and written[-1] == pytest.approx(9.0, abs=0.3)


@pytest.mark.parametrize(
    ("moment", "line"),
    [
        (Moment(1.25, phase="encoding"), "     1.2 s  encoding"),
        (
            Moment(2.0, "prices", "", {"slack": 0.25, "roots open": (2, 1200)}, 0.5, 0.75, "fold 2 of 5"),
            "     2.0 s  fold 2 of 5, prices  objective 0.500000  bound 0.750000  gap 50.00%  "
            "slack 0.25, roots open 2 of 1,200",
        ),
        (Moment(3.0, bound=0.9), "     3.0 s  starting  objective -  bound 0.900000  gap -"),
        (
            Moment(3.0, objective=0.5, bound=0.5 + 1e-9),
            "     3.0 s  starting  objective 0.500000  bound 0.500000  gap below 0.01%",
        ),
        (Moment(3.0, objective=0.0, bound=0.5), "     3.0 s  starting  objective 0.000000  bound 0.500000  gap -"),
    ],
)
def test_a_line_says_what_is_known_and_no_more(moment: Moment, line: str) -> None:
    """A dash for what is not known; a gap that is open is never called zero."""
    assert moment.line == line


def test_the_last_line_has_the_values_of_the_result() -> None:
    """In a file, where a line is never taken back; before it there are whole lines only."""
    stream = io.StringIO()
    with watching(stream) as progress:
        result = accel_oct.solve(*small_data(), max_depth=2, leaf_penalty=0.01, progress=progress)
    *before, last = stream.getvalue().splitlines()
    assert SUMMARY.fullmatch(last) and f"objective {result.objective:.6f}  bound {result.bound:.6f}" in last
    assert "\x1b" not in stream.getvalue() and all(re.match(r" +\d+\.\d s  \w", line) for line in before)


def test_what_is_over_at_once_leaves_one_line() -> None:
    """Nothing is written before the first second is over."""
    stream = io.StringIO()
    drawing = Drawing(Watch(clock=lambda: 0.0), lambda: LineDisplay(stream))
    drawing.start()
    drawing.end()
    assert stream.getvalue() == "     0.0 s  end\n"


@pytest.mark.parametrize("arguments", [{"quiet": True}, {"verbose": 0}])
def test_quiet_draws_nothing(arguments: dict[str, Any]) -> None:
    """No line and no thread, but something to hand to `progress`."""
    stream, before = io.StringIO(), threading.active_count()
    with watching(stream, **arguments) as progress:
        assert threading.active_count() == before
        accel_oct.solve(*small_data(), max_depth=1, leaf_penalty=0.01, progress=progress)
    assert stream.getvalue() == "" and math.isfinite(progress.moment.objective)


def test_a_pipe_that_nobody_reads_does_not_end_a_solve() -> None:
    """What goes wrong with drawing is no reason to lose a tree."""

    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    with watching(Broken()) as progress:
        result = accel_oct.solve(*small_data(), max_depth=2, leaf_penalty=0.01, progress=progress)
    assert result.status == "optimal"


def test_the_last_line_is_written_when_the_block_raises() -> None:
    """And the error comes out."""
    stream = io.StringIO()
    with pytest.raises(ZeroDivisionError), watching(stream):
        raise ZeroDivisionError
    assert re.fullmatch(r" +0\.\d s  end\n", stream.getvalue())


def test_an_interrupt_while_the_view_ends_comes_after_its_last_line() -> None:
    """Ctrl-C in the very moment of the end."""
    stream = io.StringIO()
    drawing = Drawing(Watch(), lambda: LineDisplay(stream))
    drawing.start()
    join, calls = drawing._thread.join, []

    def interrupted(timeout: float | None = None) -> None:
        calls.append(timeout)
        if len(calls) == 1:
            raise KeyboardInterrupt
        join(timeout)

    drawing._thread.join = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        drawing.end()
    assert calls == [None, 1.0] and stream.getvalue().count("end") == 1


# ---------------------------------------------------------------- what is noted


def test_a_watch_keeps_the_last_event_by_its_own_clock() -> None:
    """The time is that since the view began; `say` forgets what another solve has reached."""
    now = [100.0]
    watch = Watch(30.0, clock=lambda: now[0])
    watch(ProgressEvent(0.5, objective=0.7, bound=0.9, changed=True))
    now[0] = 104.0
    watch(ProgressEvent(1.0, "prices", "root by root", {"outcomes": 3}, 0.7, 0.8, "fold 1 of 2"))
    expected = Moment(4.0, "prices", "root by root", {"outcomes": 3}, 0.7, 0.8, "fold 1 of 2", limit=30.0)
    assert watch.moment == expected
    watch.say("reading", "table.csv")
    assert watch.moment == Moment(4.0, "reading", "table.csv", limit=30.0)


@pytest.mark.parametrize("limit", [None, math.inf, 0.0, -1.0, "soon"])
def test_a_limit_that_cannot_be_shown_is_not(limit: Any) -> None:
    """What is wrong with it is for the solve to say."""
    assert Watch(limit).moment.limit is None


def test_a_watch_survives_what_scikit_learn_does_with_parameters() -> None:
    """A clone tells the same view; a stored classifier has none."""
    watch = Watch()
    assert copy.deepcopy(watch) is watch
    assert isinstance(pickle.loads(pickle.dumps(watch)), Watch)


def test_several_sinks_get_every_event_in_turn() -> None:
    """Any of them may ask for the end, and all hear of the event."""
    events, watch = Events(), Watch()
    both = joined_sinks(None, lambda event: True, events, watch)
    event = ProgressEvent(0.0, "prices", objective=0.5, bound=0.55)
    assert both is not None and both(event) is True and events == [event] and watch.moment.bound == 0.55
    assert joined_sinks(None, watch) is watch and joined_sinks(None, None) is None


# ---------------------------------------------------------------- classifiers


def test_verbose_shows_and_is_silent_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, with the user's own callable told as well."""
    X, y = small_data()
    events = Events()
    OptimalTreeClassifier(2).fit(X, y)
    assert capsys.readouterr() == ("", "")
    model = OptimalTreeClassifier(2, verbose=1, progress=events).fit(X, y)
    out, err = capsys.readouterr()
    assert out == "" and SUMMARY.fullmatch(err.splitlines()[-1]) and events.rows == model.result_.history
    model.near_optimal(X, y, within=0.01)
    assert re.fullmatch(r" +\d+\.\d s  end  listed \d+, counted \d+", capsys.readouterr().err.splitlines()[-1])


@pytest.mark.parametrize("verbose", [-1, "1", None, 1.5])
def test_a_bad_level_is_refused(verbose: Any) -> None:
    """In a sentence that names the argument."""
    for model in (OptimalTreeClassifier(1, verbose=verbose), OptimalTreeClassifierCV(1, verbose=verbose, cv=2)):
        with pytest.raises(InvalidInputError, match="verbose must be 0, 1 or 2"):
            model.fit(*small_data())


def test_verbose_is_stored() -> None:
    """In JSON."""
    model = OptimalTreeClassifier(1, verbose=np.int64(2)).set_params(verbose=0).fit(*small_data())
    text = model.set_params(verbose=True).to_json()
    assert OptimalTreeClassifier.from_json(text).verbose == 1
    document = json.loads(text)
    document["parameters"]["verbose"] = "loud"
    with pytest.raises(InvalidInputError, match="verbose"):
        OptimalTreeClassifier.from_json(json.dumps(document))


class Kept(Events):
    """Stays the same when scikit-learn clones."""

    def __deepcopy__(self, memo: Any) -> Kept:
        return self


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_folds_are_told_as_they_are_done(n_jobs: int | None) -> None:
    """A sink gets events of three folds, none of their rows, and then of the fit on all data as of any other."""
    recorder = Kept()
    model = OptimalTreeClassifierCV(2, [0.1, 0.01], cv=3, progress=recorder, n_jobs=n_jobs).fit(*small_data())
    done = [each.figures["folds done"] for each in recorder if each.phase == "cross-validation"]
    assert done == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert recorder.rows == model.result_.history
    parts = {each.part for each in recorder}
    assert parts == ({"", "fold 1 of 3", "fold 2 of 3", "fold 3 of 3"} if n_jobs is None else {""})
    folds = [each for each in recorder if each.part or each.phase == "cross-validation"]
    assert all((each.objective, each.bound) == (-math.inf, math.inf) for each in folds)
    assert model.best_estimator_.progress is recorder


# ---------------------------------------------------------------- what is loaded


@pytest.mark.slow
def test_nothing_to_draw_with_is_loaded_before_something_is_drawn() -> None:
    """Importing the library and a silent fit leave our modules that need rich or IPython alone."""
    code = (
        "import sys, numpy as np, accel_oct, accel_oct.live\n"
        "accel_oct.OptimalTreeClassifier(1).fit(np.eye(4), [0, 1, 0, 1])\n"
        "print([name for name in ('panel', 'notebook') if f'accel_oct.live.{name}' in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


# ---------------------------------------------------------------- logging


def test_rows_and_activities_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Without a callable: changes as INFO, one line for each row of the history, what is done as DEBUG."""
    with caplog.at_level(logging.DEBUG, "accel_oct"):
        result = accel_oct.solve(*small_data(), max_depth=2, leaf_penalty=0.01)
    own = [record for record in caplog.records if record.name == "accel_oct"]
    rows = [record.getMessage() for record in own if record.levelno == logging.INFO]
    assert len(rows) == len(result.history)
    for text, row in zip(rows, result.history, strict=True):
        assert text.endswith(f"objective {row.objective:.6g}, bound {row.bound:.6g}")
    steps = [record.getMessage() for record in own if record.levelno == logging.DEBUG]
    assert any("warm start" in text for text in steps) and any("subtree bounds" in text for text in steps)


def test_rows_of_inner_solves_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Of a ratio, only its own rows."""
    with caplog.at_level(logging.INFO, "accel_oct"):
        result = accel_oct.solve(*small_data(), max_depth=2, leaf_penalty=0.01, objective="f1")
    assert len([record for record in caplog.records if record.name == "accel_oct"]) == len(result.history)


# ---------------------------------------------------------------- notebooks

NOTEBOOK = """
import numpy as np
from accel_oct import OptimalTreeClassifier
X = np.random.default_rng(0).integers(0, 2, (60, 5))
OptimalTreeClassifier(2, verbose=1).fit(X, X[:, 0] ^ X[:, 1]);
"""


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("nbclient") is None or importlib.util.find_spec("ipykernel") is None,
    reason="nbclient or ipykernel is not installed: the view in notebooks is not tried",
)
def test_a_cell_shows_one_display_that_changes() -> None:
    """In a real kernel: a panel first, in the end one line, as HTML and as text."""
    import nbformat
    from nbclient import NotebookClient

    shown: list[dict[str, str]] = []

    class Client(NotebookClient):  # type: ignore[misc]
        def process_message(self, message: Any, cell: Any, index: int) -> Any:
            if message["msg_type"] in ("display_data", "update_display_data"):
                shown.append(message["content"]["data"])
            return super().process_message(message, cell, index)

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK)])
    Client(notebook, timeout=120, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert SUMMARY.fullmatch(output["data"]["text/plain"].rstrip("\n")) and "<pre" in output["data"]["text/html"]
    assert len(shown) >= 2 and "accel_oct" in shown[0]["text/html"]
