"""The panel on a terminal, as an emulator shows it."""

from __future__ import annotations

import io
import re
import time

import pytest
from rich.console import Console

from accel_oct.live import ProgressEvent, watching
from accel_oct.live.display import Moment
from accel_oct.live.panel import MomentPanel

pytest.importorskip("pty", reason="no pseudo-terminals on this system")
pytest.importorskip("pyte", reason="pyte, which stands for a terminal, is not installed")
from helpers.live_support import Terminal, terminal_stream

#: Says things from a script of its own; the panel stands for as long as `pause` waits for a line.
TALK = """
import sys
from accel_oct.live import ProgressEvent, watching
print("before")
with watching(time_limit=100, verbose={verbose}) as progress:
    for bound in (0.75, 0.625):
        figures = {{"roots open": (3, 40), "slack": 0.125}}
        progress(ProgressEvent(0.1, "prices", "root by root", figures, 0.5, bound))
    {inside}
print("after")
"""
END = r" +\d+\.\d s  end  objective 0\.500000  bound 0\.625000  gap 25\.00%"


def talk(inside: str = "input()", verbose: int = 1, columns: int = 90, lines: int = 24, **environment: str) -> Terminal:
    return Terminal(TALK.format(inside=inside, verbose=verbose), columns, lines, environment)


def is_drawn(text: str) -> bool:
    return "0.625000" in text


def test_the_panel_says_all_and_leaves_one_line() -> None:
    """Phase, time against its limit, objective, bound, gap, work; at the end not a trace, and a cursor."""
    terminal = talk()
    terminal.until(is_drawn)
    before, *panel = terminal.text.splitlines()
    assert before == "before" and len(panel) == 5
    assert re.fullmatch(r"│ prices +\d+\.\d s of 100 s ─+ │", panel[1])
    assert re.fullmatch(r"│ objective 0\.500000    bound 0\.625000    gap 25\.00% +│", panel[2])
    assert re.fullmatch(r"│ root by root, roots open 3 of 40, slack 0\.125 +│", panel[3])
    assert terminal.screen.cursor.hidden
    terminal.type(b"\n")
    assert terminal.end() == 0
    # The line that was typed has moved the cursor: see the next test for what a program alone leaves.
    assert "after" in terminal.text and not terminal.screen.cursor.hidden


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("columns", "lines", "verbose"), [(90, 24, 1), (90, 24, 2), (30, 24, 1), (12, 5, 1), (60, 4, 2), (2, 2, 1)]
)
def test_nothing_is_left_behind_in_windows_of_any_size(
    columns: int, lines: int, verbose: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was there before, one line (broken where the window is narrow), what comes after; no colour if so asked."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    with terminal_stream(columns, lines) as (stream, screen, written):
        stream.write("before\n")
        with watching(stream, time_limit=100, verbose=verbose) as progress:
            for bound in (0.75, 0.7, 0.625):
                progress(ProgressEvent(0.1, "prices", "", {"roots open": (3, 40)}, 0.5, bound))
                time.sleep(0.3)
        stream.write("after\n")
        stream.flush()
    shown = "".join(line.rstrip("\n") for line in screen.display).replace(" " * columns, "").strip()
    assert b"prices" in b"".join(written) or columns < 20
    assert not screen.cursor.hidden and not set("│╭╰━─") & set(shown)
    assert "after" in shown or columns < 5
    if lines >= 24:
        assert re.fullmatch(rf"before *{END} *after", shown)
    assert not re.search(rb"\x1b\[[0-9;]*3[0-9]m", b"".join(written))


def test_a_window_that_becomes_narrower_is_drawn_anew() -> None:
    """A panel for the new width; without a frame where that is small."""
    terminal = talk("import time; time.sleep(2.5)")
    terminal.until(is_drawn)
    terminal.resize(40, 24)
    terminal.until(lambda text: "\nbound 0.625000\n" in text)
    terminal.resize(100, 24)
    terminal.until(lambda text: "bound 0.625000    gap 25.00%" in text)
    assert terminal.end() == 0
    assert terminal.text.endswith("after") and not terminal.screen.cursor.hidden


def test_what_others_print_stands_above_the_panel() -> None:
    """Prints, warnings and log lines of handlers made before; each whole, in order, and none lost."""
    terminal = talk(
        "import logging, time, warnings; time.sleep(0.5); print('said'); warnings.warn('mind'); "
        "logging.getLogger('accel_oct').warning('noted'); time.sleep(0.5)"
    )
    assert terminal.end() == 0
    shown = terminal.text
    assert re.search(r"^before\nsaid\n.*UserWarning: mind\n(.*\n)*?noted\n", shown) and re.search(
        END + "\nafter$", shown
    )


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """TERM=dumb: not one escape."""
    monkeypatch.setenv("TERM", "dumb")
    with terminal_stream(90, 24) as (stream, screen, written), watching(stream) as progress:
        progress(ProgressEvent(0.1, objective=0.5, bound=0.625))
    assert b"\x1b" not in b"".join(written) and re.match(END, screen.display[0])


def test_standard_output_of_a_pipe_stays_there(tmp_path: object) -> None:
    """A panel on standard error must not take what is printed to a file."""
    path = f"{tmp_path}/out.txt"
    terminal = talk(
        f"sys.stdout = open({path!r}, 'w'); import time; time.sleep(0.5); print('kept'); sys.stdout.close()"
    )
    terminal.end()
    assert "kept" not in terminal.text
    with open(path, encoding="utf-8") as file:
        assert file.read() == "kept\n"


SOLVE = """
import warnings, numpy as np
from accel_oct import OptimalTreeClassifier
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, y = rng.integers(0, 2, (250, 60)), rng.integers(0, 2, 250)
model = OptimalTreeClassifier(6, 0.0001, time_limit=100, verbose=1, encoder=None).fit(X, y)
print(model.status_, model.tree_ is not None, model.bound_ >= model.objective_)
"""


@pytest.mark.daily(1)
@pytest.mark.parametrize("at", ["objective 0.", "roots open"])
def test_ctrl_c_leaves_a_usable_terminal_and_the_incumbent(at: str) -> None:
    """At the first moment that a tree is known, and deep in the search; the ^C itself goes too."""
    terminal = Terminal(SOLVE)
    terminal.until(lambda text: at in text)
    terminal.type(b"\x03")
    assert terminal.end() == 0 and not terminal.screen.cursor.hidden
    assert re.fullmatch(
        r" +\d+\.\d s  end  objective 0\.\d{6}  bound 0\.\d{6}  gap \d+\.\d\d%\ninterrupted True True", terminal.text
    )


@pytest.mark.parametrize("columns", [90, 40])
def test_the_cursor_waits_below_the_panel(columns: int) -> None:
    """So that the ^C which a terminal shows stands in a line of its own."""
    console = Console(file=io.StringIO(), width=columns, height=24)
    drawn = [
        "".join(part.text for part in line).strip()
        for line in console.render_lines(MomentPanel(Moment(step="bounds"), on_terminal=True))
    ]
    assert drawn[-1] == "" and drawn[-2] != ""
