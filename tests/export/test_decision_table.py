"""Decision tables: every row of data matches one row of the table, that of its leaf."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.format_support import ALL_KINDS, random_model

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding import AllThresholdsEncoder, QuantileBucketEncoder, TableEncoder
from accel_oct.encoding.scales import NANOSECONDS
from accel_oct.export import DecisionTable, to_table
from accel_oct.export.decision_table import Cell, LeafRow
from accel_oct.export.view import view


def matches(cell: Cell, value: Any, kind: str, scale: Any) -> bool:
    """Whether a value of the user's table lies in a cell."""
    if value is None or value is pd.NA or value != value:
        return cell.missing
    if cell == Cell():
        return True
    if kind == "boolean":
        return str(value).lower() in cell.categories
    if kind == "categorical":
        return (value in cell.categories) != cell.others
    if kind == "ordered":
        value = scale.categories.index(value)
    elif kind == "datetime":
        value = (pd.Timestamp(value).as_unit("ns").value) // NANOSECONDS[scale.unit]
    elif kind == "duration":
        value = (pd.Timedelta(value).as_unit("ns").value) // NANOSECONDS[scale.unit]
    return any((low is None or value >= low) and (high is None or value < high) for low, high in cell.intervals)


@pytest.mark.filterwarnings("ignore::accel_oct.errors.SingleLeafWarning")
@pytest.mark.daily(25, "slow")
@pytest.mark.parametrize("seed", range(300))
def test_each_row_matches_the_row_of_its_leaf_alone(seed: int) -> None:
    """Merged intervals and sets of categories, missing values and unseen categories, for every kind of column."""
    model, tables = random_model(seed, ALL_KINDS)
    table = to_table(model)
    names = list(model.feature_names_in_)
    places = [names.index(name) for name in table.columns]
    for X in tables:
        leaves, shares = model.apply(X).tolist(), model.predict_proba(X)
        columns = [X.iloc[:, place].astype(object).tolist() for place in places]
        asked = [(model.encoder_.kinds_[place], model.encoder_.scales_.get(place)) for place in places]
        for number in range(len(X)):
            values = [column[number] for column in columns]
            found = [
                row
                for row in table.rows
                if all(matches(c, v, *k) for c, v, k in zip(row.cells, values, asked, strict=True))
            ]
            assert [row.leaf for row in found] == [leaves[number]]
            assert found[0].probabilities == tuple(shares[number])
    assert sum(row.share for row in table.rows) == pytest.approx(1.0)
    assert sum(row.samples for row in table.rows) == len(tables[0])
    assert [row.label for row in table.rows] == [model.classes_[model.tree_.label[row.leaf]] for row in table.rows]


@pytest.fixture(scope="module")
def table() -> DecisionTable:
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {"x": rng.integers(0, 30, 300) / 2, "c|<b>": rng.choice(["a", "b, c", "=1+1", "", "line\nbreak"], 300)}
    )
    X.iloc[:40, 0] = np.nan
    inside = (X["x"] >= 4) & (X["x"] < 9)
    y = np.where(X["c|<b>"].isin(["a", "=1+1"]) ^ inside, "<yes>", "no")
    model = OptimalTreeClassifier(4, 0.0, encoder=TableEncoder(QuantileBucketEncoder(5))).fit(X, y)
    return model.to_table()


def test_thresholds_of_a_path_become_one_interval() -> None:
    """Two questions about a column are one interval with all digits; missing values are named where there were some."""
    X = pd.DataFrame({"x": [*np.arange(30) / 30 + 1e-9, *[np.nan] * 6]})
    y = np.where((X["x"] > 0.31) & (X["x"] < 0.7), 1, 0)
    model = OptimalTreeClassifier(2, 0.01, encoder=TableEncoder(AllThresholdsEncoder())).fit(X, y)
    low, high = sorted(c.low for c in (node.condition for node in view(model).nodes) if c is not None)
    below, inside, above = (cell for (cell,) in (row.cells for row in sorted(model.to_table().rows, key=first)))
    assert inside.intervals == ((low, high),) and inside.text == f">= {low!r} and < {high!r}" and not inside.missing
    assert below.intervals == ((None, low),) and above.intervals == ((high, None),)
    assert below.text == f"< {low!r}" + " or missing" * below.missing
    assert above.text == f">= {high!r}" + " or missing" * above.missing
    assert below.missing != above.missing


def first(row: LeafRow) -> float:
    return row.cells[0].intervals[0][0] or 0.0


def test_sets_of_values_in_words() -> None:
    """Alternatives, all but some categories, known, missing, any; categories that could be misread are quoted."""
    X = pd.DataFrame({"c": ["a", "b", "missing", "x, y", "-1", None] * 10, "x": [0.0, 1.0, np.nan] * 20})
    texts = {}
    for place, y in enumerate((X["c"] == "a", X["c"] == "missing", X["c"] == "x, y", X["c"] == "-1", X["x"].isna())):
        rows = OptimalTreeClassifier(1, 0.0).fit(X, y).to_table().rows
        texts[place] = {row.label: row.cells[0].text for row in rows}
    assert texts == {
        0: {False: "not a or missing", True: "a"},
        1: {False: 'not "missing" or missing', True: '"missing"'},
        2: {False: 'not "x, y" or missing', True: '"x, y"'},
        3: {False: 'not "-1" or missing', True: '"-1"'},
        4: {False: "known", True: "missing"},
    }


def test_text_has_a_line_per_leaf(table: DecisionTable) -> None:
    """Line breaks are escaped, columns are aligned, categories with separators are quoted."""
    lines = str(table).splitlines()
    assert len(lines) == 2 + len(table.rows)
    assert lines[0].split() == ["x", "c|<b>", "class", "probability", "samples", "share"]
    ends = [end for end, mark in enumerate(lines[1]) if mark == " " and lines[1][end - 1] == "-"]
    assert all(line[end : end + 2] == "  " for line in lines for end in ends)
    assert '"=1+1"' in str(table)
    X = pd.DataFrame({"a\nb": ["c\nd", "e", "f"] * 5})
    lines = str(OptimalTreeClassifier(1, 0.0).fit(X, X["a\nb"] == "c\nd").to_table()).splitlines()
    assert len(lines) == 4 and lines[0].startswith("a\\nb") and any("c\\nd" in line for line in lines)


def test_csv_is_read_back(table: DecisionTable) -> None:
    """A record per leaf with the probabilities of all classes; no field starts a formula."""
    header, *records = csv.reader(io.StringIO(table.to_csv()))
    shares = ["probability of <yes>", "probability of no"]
    assert header == ["x", "c|<b>", "class", "probability", "samples", "share", *shares]
    assert len(records) == len(table.rows)
    for record, row in zip(records, table.rows, strict=True):
        assert record[:3] == [*(cell.text for cell in row.cells), row.label]
        assert float(record[6]) + float(record[7]) == pytest.approx(1.0)
        assert (int(record[4]), float(record[5])) == (row.samples, row.share)
        assert not any(field.startswith(("=", "+", "-", "@")) for field in record)


def test_html_is_escaped(table: DecisionTable) -> None:
    """The texts of the table come back from the HTML, which has no other elements."""

    class Reader(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.cells: list[str] = []
            self.tags: set[str] = set()

        def handle_starttag(self, tag: str, attrs: Any) -> None:
            self.tags.add(tag)
            if tag in ("td", "th"):
                self.cells.append("")

        def handle_data(self, data: str) -> None:
            self.cells[-1] += data

    reader = Reader()
    reader.feed(table.to_html())
    assert reader.tags == {"div", "table", "thead", "tbody", "tr", "td", "th"}
    width = len(table.columns) + 4
    assert reader.cells[:2] == list(table.columns)
    assert [reader.cells[width * (j + 1) + 2] for j in range(len(table.rows))] == [row.label for row in table.rows]
    assert table._repr_html_() == table.to_html()


def test_names_of_results_differ_from_columns() -> None:
    """A column called class keeps its name in CSV."""
    X = pd.DataFrame({"class": [0.0, 1.0] * 5})
    header = OptimalTreeClassifier(1, 0.0).fit(X, [0, 1] * 5).to_table().to_csv().splitlines()[0]
    assert header.startswith("class,class_2,probability,")


def test_leaves_against_the_majority_are_marked() -> None:
    """With the asterisk and the note of the other forms."""
    X, y = np.array([[0.0]] * 10 + [[1.0]] * 10), [0] * 10 + [0] * 6 + [1] * 4
    table = OptimalTreeClassifier(1, 0.0, class_weight={0: 1.0, 1: 9.0}).fit(X, y).to_table()
    assert [row.against_majority for row in table.rows] == [False, True]
    assert "1 *" in str(table) and str(table).endswith(table.note) and table.note in table.to_html()


def test_a_tree_without_a_split() -> None:
    """One row without conditions."""
    table = OptimalTreeClassifier(max_depth=0).fit([[1.0], [2.0]], [3, 3]).to_table()
    assert table.columns == () and [row.label for row in table.rows] == [3]
    assert str(table).splitlines()[2].split() == ["3", "100.0%", "2", "100.0%"]
