"""Rules read back from the text, and tables with missing values: what tests of exports share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

#: Numbers that are near each other and far apart; none needs more than single precision.
NUMBERS = [-2.5, 0.0, 0.25, 1.0, 1.5, 2.0, 1024.0, None]
POOLS: dict[str, list[Any]] = {
    "number": NUMBERS,
    "full": [0.5, 1.5, 2.5],  # never missing when fitting
    "bit": [0, 1, None],
    "truth": [True, False, None],
    'it\'s "text"': ["a", "b'; --", 'c"', "NULL", None],
}


@st.composite
def tables(
    draw: st.DrawFn, names: Sequence[str] = tuple(POOLS), rows: int = 16
) -> tuple[pd.DataFrame, list[str], list[float] | None, pd.DataFrame]:
    """Rows to learn from, their classes and weights, and new rows in which any value may be missing."""

    def frame(extra: list[Any]) -> pd.DataFrame:
        cells = st.tuples(*(st.sampled_from([*POOLS[name], *extra]) for name in names))
        drawn = draw(st.lists(cells, min_size=rows, max_size=rows))
        return pd.DataFrame(dict(zip(names, map(list, zip(*drawn, strict=True)), strict=True)), dtype=object)

    X, new = frame([]), frame([None])
    y = draw(st.lists(st.sampled_from(["no", "o'k", "yes"]), min_size=rows, max_size=rows))
    weight = st.sampled_from(draw(st.sampled_from([[1, 2, 3], [0.1, 0.2, 0.7], [0.3]])))
    weights = draw(st.none() | st.lists(weight, min_size=rows, max_size=rows))
    return X, y, weights, new


def by_text(text: str, row: dict[str, Any]) -> str:
    """The class that rules as `to_text` writes them give to a row; exactly one of two rules must hold."""
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in text.splitlines()]

    def follow(at: int) -> str:
        indent, said = lines[at]
        if said.startswith("class "):
            return said.removeprefix("class ")
        second = next(j for j in range(at + 1, len(lines)) if lines[j][0] == indent)
        rules = [lines[j][1].removeprefix("if ").removesuffix(":") for j in (at, second)]
        holds = [_holds(rule, row) for rule in rules]
        if not any(rule.endswith(" or missing") for rule in rules) and not any(holds):
            return follow(at + 1)  # missing in a column that never was: "no", which comes first
        assert sum(holds) == 1, (rules, row)
        return follow((at if holds[0] else second) + 1)

    return follow(0)


def _holds(rule: str, row: dict[str, Any]) -> bool:
    name = next(name for name in sorted(row, key=len, reverse=True) if name in rule)
    value = row[name]
    absent = value is None or value != value
    rest = rule.replace(name, "@", 1)
    if rest.endswith(" or missing"):
        if absent:
            return True
        rest = rest.removesuffix(" or missing")
    if rest in ("@ is missing", "@ is known"):
        return absent == rest.endswith("missing")
    if absent:
        return False
    if rest in ("@", "not @"):
        return bool(value) == (rest == "@")
    equal = re.fullmatch(r"@ (=|!=) (.*)", rest, re.DOTALL)
    if equal:
        written = value if isinstance(value, str) else f"{value:g}"
        return (written == equal[2]) == (equal[1] == "=")
    above = re.fullmatch(r"@ (>=|<) (\S+)", rest)
    if above:
        return (value >= float(above[2])) == (above[1] == ">=")
    between = re.fullmatch(r"(not )?(\S+) <= @ < (\S+)", rest)
    assert between, rule
    return (float(between[2]) <= value < float(between[3])) == (between[1] is None)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dictionaries of plain values."""
    return [
        {name: cell.item() if isinstance(cell, np.generic) else cell for name, cell in row.items()}
        for row in frame.to_dict("records")
    ]
