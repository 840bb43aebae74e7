"""Exported trees give the classes of `predict` in every program, on hostile rows of generated tables."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.pmml_support import PmmlTree

from accel_oct.export import to_pmml, to_sql
from accel_oct_bench.exported_trees import PROGRAMS, pmml_cells
from accel_oct_bench.servers import Unavailable, ask, mariadb
from accel_oct_bench.studies.formats import HOSTILE, fitted, generated_tables, tried_rows

#: Start no server and no Java.
QUICK = ("JSON", "Python", "ONNX", "SQLite", "DuckDB")


@pytest.fixture(scope="module")
def tried() -> dict[str, tuple[Any, Any]]:
    """Trees of three tables, and the rows to try."""
    found = {}
    for name, frame, y in generated_tables(300):
        model = fitted(frame, y, 3)
        found[name] = model, tried_rows(model, frame, 200)
    return found


def classes(program: str, model: Any, rows: Any) -> list[Any]:
    try:
        return PROGRAMS[program](model, rows)
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("table", ["times", "text"])
@pytest.mark.parametrize("program", QUICK)
def test_a_program_gives_the_classes_of_predict(program: str, table: str, tried: dict[str, tuple[Any, Any]]) -> None:
    """Missing cells, unseen categories, thresholds and their neighbours, quotes and backslashes."""
    model, rows = tried[table]
    assert model.get_n_leaves() >= 5
    assert classes(program, model, rows) == model.predict(rows).tolist()


@pytest.mark.parametrize("table", ["times", "text"])
def test_pmml_gives_the_classes_of_predict(table: str, tried: dict[str, tuple[Any, Any]]) -> None:
    """By the evaluator of the tests: others need Java."""
    model, rows = tried[table]
    tree, cells = PmmlTree(to_pmml(model)), pmml_cells(model, rows)
    found = [tree.evaluate(dict(zip(cells, row, strict=True)))[0] for row in zip(*cells.values(), strict=True)]
    assert found == model.predict(rows).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("table", ["numbers", "times", "text"])
@pytest.mark.parametrize("program", sorted(set(PROGRAMS) - set(QUICK)))
def test_other_programs_give_the_classes_of_predict(
    program: str, table: str, tried: dict[str, tuple[Any, Any]]
) -> None:
    """PostgreSQL, MariaDB and two evaluators of PMML; None for rows that a database cannot store."""
    model, rows = tried[table]
    found, expected = classes(program, model, rows), model.predict(rows).tolist()
    assert sum(one is None for one in found) < len(found) / 2
    assert [one for one in found if one is not None] == [
        other for one, other in zip(found, expected, strict=True) if one is not None
    ]


@pytest.mark.slow
def test_mysql_text_with_and_without_backslash_escapes(tried: dict[str, tuple[Any, Any]]) -> None:
    """The same answers whatever NO_BACKSLASH_ESCAPES says, and whatever the collation of the column."""
    model, _ = tried["text"]
    expression = to_sql(model, dialect="mysql")
    names = [str(name) for name in model.feature_names_in_]
    columns = ", ".join("`" + name.replace("`", "``") + "` TEXT COLLATE utf8mb4_general_ci" for name in names)
    texts = [[f"X'{text.encode().hex()}'" for text in (HOSTILE * 2)[j : j + len(HOSTILE)]] for j in range(len(names))]
    rows = ", ".join(f"({', '.join(row)})" for row in zip(*texts, strict=True))
    statements = f"CREATE TABLE data ({columns}) CHARACTER SET utf8mb4; INSERT INTO data VALUES {rows};"
    query = f"SELECT HEX({expression}) FROM data;"
    try:
        with mariadb() as command:
            found = ask(command, f"{statements} {query} SET sql_mode = 'NO_BACKSLASH_ESCAPES'; {query}")
    except Unavailable as error:
        pytest.skip(str(error))
    import pandas as pd

    frame = pd.DataFrame({name: (HOSTILE * 2)[j : j + len(HOSTILE)] for j, name in enumerate(names)})
    expected = [label.encode().hex().upper() for label in model.predict(frame).tolist()]
    assert found == expected * 2
