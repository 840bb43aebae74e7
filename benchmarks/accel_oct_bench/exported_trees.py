"""Exported trees, run by programs other than this library on the rows of a data frame.

Each function takes a fitted model and a frame, and returns the class of each row; None where the program cannot hold
the row. `Unavailable` says that the program is not there.
"""

from __future__ import annotations

import importlib
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta, timezone
from typing import Any
from xml.etree import ElementTree as ET

from accel_oct import OptimalTreeClassifier
from accel_oct.encoding.tables import Table
from accel_oct.encoding.values import as_categories, as_numbers
from accel_oct.export import onnx_inputs, to_onnx, to_pmml, to_python, to_sql
from accel_oct_bench.servers import Unavailable, ask, mariadb, postgres

#: Stands for missing cells of text: a character that no table has.
MISSING_TEXT = "\N{OBJECT REPLACEMENT CHARACTER}"
_NAT = -(2**63)


def by_json(model: Any, frame: Any) -> list[Any]:
    """Return the classes of the model that is read back from JSON."""
    return list(OptimalTreeClassifier.from_json(model.to_json()).predict(frame).tolist())


def by_python(model: Any, frame: Any) -> list[Any]:
    """Return the classes of the generated function."""
    names: dict[str, Any] = {}
    exec(to_python(model), names)
    columns = [frame[name].tolist() for name in frame.columns]
    return [names["predict"](dict(zip(frame.columns, row, strict=True))) for row in zip(*columns, strict=True)]


def by_onnx(model: Any, frame: Any) -> list[Any]:
    """Return the classes of onnxruntime."""
    runtime = _package("onnxruntime")
    session = runtime.InferenceSession(to_onnx(model, missing_text=MISSING_TEXT), providers=["CPUExecutionProvider"])
    return list(session.run(["label"], onnx_inputs(model, frame, missing_text=MISSING_TEXT))[0].tolist())


# ---------------------------------------------------------------- PMML


def pmml_cells(model: Any, frame: Any) -> dict[str, list[Any]]:
    """Return the cells of the fields of a PMML document; None is missing."""
    document = ET.fromstring(to_pmml(model))
    _, *fields = (field.attrib["name"] for field in document.iter("{http://www.dmg.org/PMML-4_4}DataField"))
    given = onnx_inputs(model, frame, missing_text=MISSING_TEXT).values()  # the same columns in the same order
    return {
        name: [None if c != c or c in (MISSING_TEXT, _NAT) else c for c in cells[:, 0].tolist()]
        for name, cells in zip(fields, given, strict=True)
    }


def by_jpmml(model: Any, frame: Any) -> list[Any]:
    """Return the classes of JPMML-Evaluator."""
    _need_java()
    package = _package("jpmml_evaluator")
    backend = importlib.import_module("jpmml_evaluator.jpype").JPypeBackend()
    evaluator = package.LoadingModelEvaluatorBuilder(backend).loadString(to_pmml(model)).build()
    pandas = _package("pandas")
    columns = {name: pandas.Series(cells, dtype=object) for name, cells in pmml_cells(model, frame).items()}
    found = evaluator.evaluateAll(pandas.DataFrame(columns))
    return list(found["label"].tolist())


def by_pmml4s(model: Any, frame: Any) -> list[Any]:
    """Return the classes of PMML4S, by pypmml."""
    _need_java()
    loaded = _package("pypmml").Model.fromString(to_pmml(model))
    cells = pmml_cells(model, frame)
    rows = zip(*cells.values(), strict=True)
    return [loaded.predict(dict(zip(cells, row, strict=True)))["label"] for row in rows]


# ---------------------------------------------------------------- SQL


def by_sqlite(model: Any, frame: Any) -> list[Any]:
    """Return the classes of the SQL expression in SQLite."""
    names, rows = _sql_rows(model, frame, _sqlite_cell)
    columns = ", ".join(_quoted(name) for name in names)
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE data ({columns})")
        connection.executemany(f"INSERT INTO data VALUES ({', '.join('?' * len(names))})", rows)
        found = connection.execute(f"SELECT {to_sql(model, dialect='sqlite')} FROM data ORDER BY rowid").fetchall()
    connection.close()
    return _as_classes(model, [answer for (answer,) in found])


def by_duckdb(model: Any, frame: Any) -> list[Any]:
    """Return the classes of the SQL expression in DuckDB."""
    duckdb, arrow = _package("duckdb"), _package("pyarrow")
    names, rows = _sql_rows(model, frame, lambda value, kind: value)
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    zones = _zones(model)
    types = {"numeric": arrow.float64(), "boolean": arrow.bool_(), "duration": arrow.duration("us")}
    arrays = []
    for place, (column, kind) in enumerate(zip(columns, model.encoder_.kinds_, strict=True)):
        time = arrow.timestamp("us", "UTC" if place in zones else None)
        arrays.append(arrow.array(column, time if kind == "datetime" else types.get(kind, arrow.string())))
    given = arrow.table([*arrays, arrow.array(range(len(rows)))], names=[*names, "accel_oct row"])
    with duckdb.connect() as connection:
        connection.register("data", given)
        query = f'SELECT {to_sql(model, dialect="duckdb")} FROM data ORDER BY "accel_oct row"'
        return [answer for (answer,) in connection.execute(query).fetchall()]


def by_postgres(model: Any, frame: Any) -> list[Any]:
    """Return the classes of the SQL expression in PostgreSQL; None for rows with NUL, which it cannot store."""
    names, rows = _sql_rows(model, frame, _postgres_cell)
    types = [_POSTGRES[kind] for kind in model.encoder_.kinds_]
    zones = _zones(model)
    types = ["timestamptz" if place in zones else kind for place, kind in enumerate(types)]
    kept = [place for place, row in enumerate(rows) if not any("\0" in cell for cell in row)]
    columns = ", ".join(f"{_quoted(name)} {kind}" for name, kind in zip(names, types, strict=True))
    lines = ["\t".join([str(place), *rows[place]]) for place in kept]
    expression = to_sql(model, dialect="postgres")
    with postgres() as command:
        found = ask(
            command,
            f"CREATE TABLE data (accel_oct_row integer, {columns});\nCOPY data FROM stdin;\n"
            + "".join(f"{line}\n" for line in lines)
            + "\\.\nSET TimeZone = 'Asia/Tokyo';\n"
            + f"SELECT encode(convert_to(({expression})::text, 'UTF8'), 'hex') FROM data ORDER BY accel_oct_row;\n",
        )
    return _spread(model, found, kept, len(rows))


def by_mariadb(model: Any, frame: Any) -> list[Any]:
    """Return the classes of the SQL expression in MariaDB."""
    names, rows = _sql_rows(model, frame, _mariadb_cell)
    types = [_MARIADB[kind] for kind in model.encoder_.kinds_]
    zones = _zones(model)
    types = ["TIMESTAMP(6) NULL" if place in zones else kind for place, kind in enumerate(types)]
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(quoted, types, strict=True))
    statements = [f"CREATE TABLE data (accel_oct_row INTEGER, {columns}) CHARACTER SET utf8mb4"]
    statements.append("SET time_zone = '+00:00'")
    for start in range(0, len(rows), 500):
        some = [f"({', '.join([str(start + j), *row])})" for j, row in enumerate(rows[start : start + 500])]
        statements.append(f"INSERT INTO data VALUES {', '.join(some)}")
    statements.append("SET time_zone = '+09:00'")
    expression = to_sql(model, dialect="mysql")
    statements.append(f"SELECT HEX(CONVERT({expression} USING utf8mb4)) FROM data ORDER BY accel_oct_row")
    with mariadb() as command:
        found = ask(command, ";\n".join(statements) + ";\n")
    return _spread(model, found, range(len(rows)), len(rows))


PROGRAMS: dict[str, Callable[[Any, Any], list[Any]]] = {
    "JSON": by_json,
    "Python": by_python,
    "ONNX": by_onnx,
    "PMML (JPMML)": by_jpmml,
    "PMML (PMML4S)": by_pmml4s,
    "SQLite": by_sqlite,
    "DuckDB": by_duckdb,
    "PostgreSQL": by_postgres,
    "MariaDB": by_mariadb,
}

_POSTGRES = {"numeric": "double precision", "boolean": "boolean", "categorical": "text", "ordered": "text"}
_POSTGRES |= {"datetime": "timestamp", "duration": "interval"}
_MARIADB = {"numeric": "DOUBLE", "boolean": "BOOLEAN", "categorical": "LONGTEXT", "ordered": "LONGTEXT"}
_MARIADB |= {"datetime": "DATETIME(6)", "duration": "TIME(6)"}


def _sql_rows(model: Any, frame: Any, write: Callable[[Any, str], Any]) -> tuple[list[str], list[list[Any]]]:
    """Return names and rows of the columns as a database holds them, each cell as `write` gives it."""
    table, kinds = Table.read(frame), model.encoder_.kinds_
    columns: list[list[Any]] = []
    for place, (values, kind) in enumerate(zip(table.columns, kinds, strict=True)):
        name = table.name(place)
        if kind in ("categorical", "ordered"):
            cells = as_categories(values, name).tolist()
        elif kind in ("numeric", "boolean"):
            cells = [None if value != value else value for value in as_numbers(values, name).tolist()]
            cells = [None if value is None else bool(value) for value in cells] if kind == "boolean" else cells
        else:
            cells = [None if value is None or value != value else value for value in frame.iloc[:, place].tolist()]
        columns.append([write(cell, kind) for cell in cells])
    return [table.name(place) for place in range(len(kinds))], [list(row) for row in zip(*columns, strict=True)]


def _zones(model: Any) -> set[int]:
    """Return the columns of times with a zone."""
    return {column for column, scale in model.encoder_.scales_.items() if scale.zone is not None}


def _sqlite_cell(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "duration":
        return _microseconds(value) * 1000
    return value.isoformat(sep=" ") if kind == "datetime" else int(value) if kind == "boolean" else value


def _postgres_cell(value: Any, kind: str) -> str:
    """Return a cell in the text format of COPY."""
    if value is None:
        return "\\N"
    if kind == "duration":
        return f"{_microseconds(value)} microseconds"
    text = value.isoformat(sep=" ") if kind == "datetime" else value if isinstance(value, str) else repr(value)
    for character, escaped in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(character, escaped)
    return str(text)


def _mariadb_cell(value: Any, kind: str) -> str:
    """Return a literal."""
    if value is None:
        return "NULL"
    if kind == "duration":
        seconds, rest = divmod(abs(_microseconds(value)), 10**6)
        sign = "-" if _microseconds(value) < 0 else ""
        return f"'{sign}{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest:06d}'"
    if kind == "datetime":
        return (
            f"'{(value if value.tzinfo is None else value.astimezone(timezone.utc)).strftime('%Y-%m-%d %H:%M:%S.%f')}'"
        )
    return f"X'{value.encode('utf-8').hex()}'" if isinstance(value, str) else repr(value).upper()


def _microseconds(value: Any) -> int:
    return int(value // timedelta(microseconds=1))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _as_classes(model: Any, answers: Iterable[Any]) -> list[Any]:
    """Return answers as classes: SQLite has 0 and 1 for booleans."""
    whole = model.classes_.dtype.kind == "b"
    return [bool(answer) if whole else answer for answer in answers]


def _spread(model: Any, found: Sequence[str], places: Sequence[int], n_rows: int) -> list[Any]:
    """Return the classes that a client printed as hexadecimal digits, each at its row."""
    classes = {str(label): label for label in model.classes_.tolist()}
    result: list[Any] = [None] * n_rows
    for place, digits in zip(places, found, strict=True):
        result[place] = classes[bytes.fromhex(digits).decode("utf-8")]
    return result


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Unavailable(f"the package {name} is not installed") from None


def _need_java() -> None:
    if shutil.which("java") is None:
        raise Unavailable("Java is not installed (Debian: apt-get install default-jre-headless)")
