"""The tree as an SQL expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.scales import NANOSECONDS, Scale
from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.view import AGAINST_MAJORITY, NodeView, TreeView, codable_view, matching_categories

#: The largest double. NaN is above it in databases that order NaN (DuckDB, PostgreSQL, Spark); in others every
#: comparison with NaN is false. "NOT x <= largest" is true of NaN in both.
_LARGEST = "1.7976931348623157e308"
#: Powers of two are written as factors of at most 2 ** 50.
_STEP = 50
_MICROSECOND = NANOSECONDS["us"]
#: Least and largest TIME of MySQL, in nanoseconds.
_MYSQL_TIME = (838 * 3600 + 59 * 60 + 59) * NANOSECONDS["s"]


@dataclass(frozen=True)
class _Dialect:
    """How a database writes names, text, numbers and times.

    Attributes
    ----------
    name : callable
        Quotes a name.
    text : callable
        Returns a literal of a text.
    compared_text : callable
        Returns a literal of a text that a column is compared with.
    compared : str
        A column of text in comparisons.
    number : callable
        Returns a literal of a float.
    has_nan : bool
        Whether a column of numbers may hold NaN.
    time : callable
        Compares a column of times or durations, by its quoted name, with a number of nanoseconds.
    """

    name: Callable[[str], str]
    text: Callable[[str], str]
    number: Callable[[float], str]
    time: Callable[[str, str, int, Scale], str]
    has_nan: bool = True
    compared: str = "{}"
    compared_text: Callable[[str], str] | None = None


def to_sql(model: Any, *, column: str | None = None, dialect: str = "ansi") -> str:
    """Return the tree as an SQL CASE expression; NULL and NaN count as missing.

    The expression equals `predict` if the columns have the types in the table below.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    column : str, optional
        Name of the result, added as ``AS "column"``.
    dialect : {"ansi", "postgres", "duckdb", "sqlite", "mysql", "bigquery"}
        "ansi" is the standard: names in ``"`` and text in ``'``, in which a backslash is a character like any other. It
        runs on PostgreSQL, DuckDB and others. "postgres" writes text with a backslash so that no setting changes it;
        "duckdb" writes NUL characters too. "mysql" is for MySQL and MariaDB.

    Notes
    -----
    ================ ======================== ================= ============== ==============
    column of X      ansi, postgres, duckdb   sqlite            mysql          bigquery
    ================ ======================== ================= ============== ==============
    numeric          numbers                  numbers           numbers        INT64, FLOAT64
    boolean          BOOLEAN                  0 and 1           BOOLEAN        BOOL
    date, naive time DATE, TIMESTAMP          text (ISO 8601)   DATE, DATETIME DATE, DATETIME
    time with a zone TIMESTAMP WITH TIME ZONE text (ISO 8601)   TIMESTAMP      TIMESTAMP
    duration         INTERVAL                 whole nanoseconds TIME           INTERVAL
    all others       text                     text              text           STRING
    ================ ======================== ================= ============== ==============

    A column of text must hold the text that `predict` compares: ``'3'`` for the number 3, and ``'True'`` or ``'False'``
    for a boolean.

    - Thresholds of times without a zone are DATE or TIMESTAMP literals, those of times with a zone are independent of
      the time zone of the session. If the training data have nanoseconds, thresholds of times are text in the first
      three dialects, which takes the type of the column.
    - "sqlite" omits tests for NaN, which SQLite stores as NULL, and writes fractions as quotients of whole numbers,
      because SQLite reads some decimal fractions one unit in the last place off. Times are text such as
      ``YYYY-MM-DD[ HH:MM[:SS[.fff...]]]``, with ``+HH:MM`` or ``Z`` if they have a zone; a ``T`` may stand in between.
    - "mysql" compares the bytes of text in UTF-8, independent of the collation of the column, and writes text with
      quotes, backslashes or characters beyond ASCII in hexadecimal digits, which no setting changes.

    Raises
    ------
    InvalidInputError
        If a threshold is before the year 1, after 9999 in SQLite, MySQL and BigQuery, or a duration beyond TIME in
        MySQL; if a text has a lone surrogate, or NUL in "ansi" and "postgres"; if a column has no name, which only
        SQLite allows.
    """
    if dialect not in DIALECTS:
        raise InvalidInputError(f"dialect must be one of {', '.join(DIALECTS)}, got {shown(dialect)}")
    tree, chosen = codable_view(model, "to_sql"), DIALECTS[dialect]
    asked = [node.condition.column for node in tree.nodes if node.condition is not None]
    names = [*(tree.column_names[place] for place in asked), *([] if column is None else [column])]
    if dialect != "sqlite" and "" in names:
        raise InvalidInputError("to_sql cannot write a column without a name; give it one, or use dialect='sqlite'")
    expression = "\n".join(_node(tree, tree.nodes[0], "", chosen))
    return expression if column is None else f"{expression} AS {chosen.name(column)}"


def _node(tree: TreeView, node: NodeView, indent: str, dialect: _Dialect) -> list[str]:
    if node.is_leaf:
        mark = f" /* {AGAINST_MAJORITY} */" if node.against_majority else ""
        return [indent + _literal(tree.classes[node.label], dialect) + mark]
    assert node.condition is not None
    place = node.condition.column
    name = dialect.name(tree.column_names[place])
    # A test of NULL is neither true nor false, so CASE takes ELSE, the side of "no", unless the test asks for NULL.
    return [
        f"{indent}CASE WHEN {_test(node.condition, name, tree.kinds[place], dialect)} THEN",
        *_node(tree, tree.nodes[node.right], indent + "  ", dialect),
        f"{indent}ELSE",
        *_node(tree, tree.nodes[node.left], indent + "  ", dialect),
        f"{indent}END",
    ]


def _test(condition: Condition, name: str, kind: str, dialect: _Dialect) -> str:
    """Return a test that is true exactly where the condition holds, and false or NULL elsewhere."""
    can_be_nan = kind == "numeric" and dialect.has_nan
    missing = f"{name} IS NULL" + (f" OR NOT {name} <= {_LARGEST}" if can_be_nan else "")
    if condition.test == "is_missing":
        return missing
    if condition.missing:
        if condition.low is not None and condition.high is None and can_be_nan:
            return f"{name} IS NULL OR NOT {name} < {_literal(condition.low, dialect)}"
        return f"{missing} OR {_test(condition.plain, name, kind, dialect)}"
    if kind == "ordered":
        return _text_test(name, "IN", matching_categories(condition), dialect)
    if condition.scale is not None:
        return _time_test(condition, condition.scale, name, dialect)
    if condition.test == "none_of":
        return _text_test(name, "NOT IN", condition.values or (), dialect)
    if condition.test == "is_true" or kind == "boolean":
        return f"{name} = TRUE"
    if isinstance(condition.value, str):
        return _text_test(name, "=", (condition.value,), dialect)
    if condition.test == "equals":
        return f"{name} = {_literal(condition.value, dialect)}"
    tests = []
    if condition.low is not None:
        tests.append(f"{name} >= {_literal(condition.low, dialect)}")
    if condition.high is not None:
        tests.append(f"{name} < {_literal(condition.high, dialect)}")
    elif can_be_nan:
        tests.append(f"{name} <= {_LARGEST}")
    return " AND ".join(tests)


def _text_test(name: str, sign: str, texts: tuple[str, ...], dialect: _Dialect) -> str:
    listed = ", ".join(map(dialect.compared_text or dialect.text, map(_checked, texts)))
    return f"{dialect.compared.format(name)} {sign} {listed if sign == '=' else f'({listed})'}"


def _time_test(condition: Condition, scale: Scale, name: str, dialect: _Dialect) -> str:
    limits = zip((">=", "<"), (condition.low, condition.high), strict=True)
    given = [(sign, int(limit) * NANOSECONDS[scale.unit]) for sign, limit in limits if limit is not None]
    return " AND ".join(dialect.time(name, sign, nanoseconds, scale) for sign, nanoseconds in given)


def _literal(value: Any, dialect: _Dialect) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return repr(value)
    return dialect.number(value) if isinstance(value, float) else dialect.text(_checked(str(value)))


# ---------------------------------------------------------------- times


def _standard_time(name: str, sign: str, nanoseconds: int, scale: Scale) -> str:
    """Compare a column of DATE, TIMESTAMP, TIMESTAMP WITH TIME ZONE or INTERVAL with a threshold.

    A threshold between two microseconds needs two comparisons. Databases that store microseconds round or truncate
    the threshold; there the first comparison, with the whole microsecond below, decides. Where the column stores
    nanoseconds, the second decides.
    """
    below = nanoseconds // _MICROSECOND * _MICROSECOND
    if below == nanoseconds:
        return f"{name} {sign} {_time_literal(nanoseconds, scale)}"
    before, exact = _time_literal(below, scale), _time_literal(nanoseconds, scale)
    if sign == ">=":
        return f"{name} > {before} AND {name} >= {exact}"
    return f"({name} <= {before} OR {name} < {exact})"


def _time_literal(nanoseconds: int, scale: Scale) -> str:
    if scale.kind == "duration":
        return _interval(nanoseconds)
    text = _time_text(nanoseconds, scale)
    if scale.unit == "ns":  # text takes the type of the column: DuckDB truncates TIMESTAMP '...' to microseconds
        return f"'{text}'"
    if scale.zone is not None:  # TIMESTAMP '...' would drop the offset and use the time zone of the session
        return f"CAST('{text}' AS TIMESTAMP WITH TIME ZONE)"
    if scale.unit == "D":
        return f"DATE '{text}'"
    return f"TIMESTAMP '{text if ':' in text else text + ' 00:00:00'}'"


def _interval(nanoseconds: int) -> str:
    """Return a sum of one-field intervals: DuckDB has no DAY TO SECOND, and PostgreSQL reads its sign differently."""
    sign = "-" if nanoseconds < 0 else ""
    minutes, shown_seconds = _minutes(nanoseconds)
    fields = {"DAY": minutes // 1440, "HOUR": minutes // 60 % 24, "MINUTE": minutes % 60, "SECOND": shown_seconds}
    parts = [f"INTERVAL '{sign}{count}' {field}" for field, count in fields.items() if count not in (0, "0")]
    return " + ".join(parts) or "INTERVAL '0' SECOND"


def _sqlite_time(name: str, sign: str, nanoseconds: int, scale: Scale) -> str:
    """Compare a column of text (times) or of nanoseconds (durations): SQLite has no types for them.

    Text in ISO 8601 sorts by time if the threshold is as short as possible: '2021-01-01' is below
    '2021-01-01 00:00:00', which begins with it. Times with a zone are converted to UTC in whole seconds, because
    SQLite rounds fractions to milliseconds; the fraction decides between equal seconds.
    """
    if scale.kind == "duration":
        return f"{name} {sign} {nanoseconds}"
    text = _time_text(nanoseconds, scale)
    _check_year(text, "sqlite")
    if scale.zone is None:
        return f"replace({name}, 'T', ' ') {sign} '{text.removesuffix(':00')}'"
    stored = f"replace({name}, 'Z', '+00:00')"
    offset = f"ltrim(substr({stored}, 20), '.0123456789')"
    reverse = f"replace(replace(replace({offset}, '+', '!'), '-', '+'), '!', '-')"
    seconds = f"datetime(substr({name}, 1, 19), {reverse})"
    second, _, fraction = text.removesuffix("+00:00").partition(".")
    if not fraction:
        return f"{seconds} {sign} '{second}'"
    return f"({seconds} {sign[0]} '{second}' OR {seconds} = '{second}' AND substr({stored}, 20) {sign} '.{fraction}')"


def _time_text(nanoseconds: int, scale: Scale) -> str:
    """Return the time as text: in UTC if it has a zone; midnight without a zone is written as a date."""
    text = Scale("datetime", "ns", None if scale.zone is None else "UTC").text(nanoseconds)
    if text.startswith(("-", "0000")):
        raise InvalidInputError(f"to_sql cannot write the time {text}: databases write years before 1 differently")
    return text


def _minutes(nanoseconds: int) -> tuple[int, str]:
    """Return the whole minutes of a duration without its sign, and the rest in seconds."""
    minutes, rest = divmod(abs(nanoseconds), 60 * NANOSECONDS["s"])
    seconds, fraction = divmod(rest, NANOSECONDS["s"])
    return minutes, f"{seconds}.{fraction:09d}".rstrip("0") if fraction else f"{seconds}"


def _whole_microseconds(sign: str, nanoseconds: int) -> tuple[str, int]:
    """Return a comparison with whole microseconds that is the same for columns of whole microseconds."""
    below = nanoseconds // _MICROSECOND * _MICROSECOND
    return sign if below == nanoseconds else {">=": ">", "<": "<="}[sign], below


def _mysql_time(name: str, sign: str, nanoseconds: int, scale: Scale) -> str:
    """Compare a column of DATE or DATETIME, of TIMESTAMP (times with a zone), or of TIME (durations)."""
    sign, nanoseconds = _whole_microseconds(sign, nanoseconds)
    if scale.kind == "duration":
        if abs(nanoseconds) > _MYSQL_TIME:
            raise InvalidInputError("to_sql cannot write durations beyond 838:59:59, the largest TIME of MySQL")
        minutes, seconds = _minutes(nanoseconds)
        return f"{name} {sign} TIME '{'-' if nanoseconds < 0 else ''}{minutes // 60}:{minutes % 60}:{seconds}'"
    if scale.zone is not None:  # the literal of a time would be one of the session's zone
        return f"UNIX_TIMESTAMP({name}) {sign} {_decimal(nanoseconds // 1000)}"
    text = _time_text(nanoseconds, scale)
    _check_year(text, "mysql")
    return f"{name} {sign} TIMESTAMP '{text if ':' in text else text + ' 00:00:00'}'"


def _decimal(microseconds: int) -> str:
    """Return seconds with six decimals."""
    whole, rest = divmod(abs(microseconds), 10**6)
    return f"{'-' if microseconds < 0 else ''}{whole}.{rest:06d}"


def _bigquery_time(name: str, sign: str, nanoseconds: int, scale: Scale) -> str:
    """Compare a column of DATE or DATETIME, of TIMESTAMP (times with a zone), or of INTERVAL."""
    sign, nanoseconds = _whole_microseconds(sign, nanoseconds)
    if scale.kind == "duration":
        minutes, seconds = _minutes(nanoseconds)
        minus = "-" if nanoseconds < 0 else ""
        return f"{name} {sign} INTERVAL '0 {minus}{minutes // 60}:{minutes % 60}:{seconds}' DAY TO SECOND"
    text = _time_text(nanoseconds, scale)
    _check_year(text, "bigquery")
    if scale.zone is not None:
        return f"{name} {sign} TIMESTAMP '{text}'"
    return f"CAST({name} AS DATETIME) {sign} DATETIME '{text if ':' in text else text + ' 00:00:00'}'"


def _check_year(text: str, dialect: str) -> None:
    if len(text.partition("-")[0]) != 4:
        raise InvalidInputError(
            f"to_sql cannot write the time {text} in dialect {dialect!r}: its year needs four digits"
        )


# ---------------------------------------------------------------- numbers


def _double(value: float) -> str:
    """Return a literal with an exponent: without one, most databases read a decimal, not a floating-point number.

    Whole numbers from 2**53 on have no exponent: a column of whole numbers is rounded before it is compared with a
    floating-point number.
    """
    if 2**53 <= abs(value) < 2**63:
        return repr(int(value))
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def _quotient(value: float) -> str:
    """Return the exact number as a whole number below 2**53 times powers of two, which SQLite reads exactly."""
    above, below = value.as_integer_ratio()
    if below == 1 and abs(above) < 2**53:
        return repr(value)
    exponent = 1 - below.bit_length()
    while abs(above) >= 2**53:  # the last bits are zeros: a float has 53 digits
        above, exponent = above // 2, exponent + 1
    sign, steps = ("*" if exponent > 0 else "/"), divmod(abs(exponent), _STEP)
    powers = [2.0**_STEP] * steps[0] + [2.0 ** steps[1]] * (steps[1] > 0)
    return "(" + f" {sign} ".join([f"{above}.0", *map(repr, powers)]) + f" /* {value!r} */)"


# ---------------------------------------------------------------- names and text


def _checked(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInputError(f"to_sql cannot write {shown(text)}, which has a lone surrogate") from None
    return text


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise InvalidInputError(f"to_sql cannot write {shown(text)}, which has a NUL character")
    return text


def _doubled(quote: str, text: str) -> str:
    return quote + text.replace(quote, quote * 2) + quote


def _standard_name(name: str) -> str:
    return _doubled('"', _without_nul(_checked(name)))


def _standard_text(text: str) -> str:
    return _doubled("'", _without_nul(text))


def _postgres_text(text: str) -> str:
    """Write a text with a backslash as E'...': standard_conforming_strings has no effect on it."""
    return _standard_text(text) if "\\" not in text else "E" + _standard_text(text.replace("\\", "\\\\"))


def _duckdb_text(text: str) -> str:
    parts = [_standard_text(part) for part in text.split("\0")]
    return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"


def _sqlite_text(text: str) -> str:
    return f"CAST({_hexadecimal(text)} AS TEXT)" if "\0" in text else _standard_text(text)


def _mysql_name(name: str) -> str:
    return _doubled("`", _without_nul(_checked(name)))


def _mysql_bytes(text: str) -> str:
    """Return the text if every setting reads it in the same way, else its bytes in UTF-8."""
    plain = text.isascii() and text.isprintable() and not set(text) & {"'", "\\"}
    return f"'{text}'" if plain else _hexadecimal(text)


def _mysql_text(text: str) -> str:
    written = _mysql_bytes(text)
    return written if written.startswith("'") else f"CONVERT({written} USING utf8mb4)"


def _bigquery_name(name: str) -> str:
    return f"`{_escaped(_without_nul(_checked(name)), '`')}`"


def _bigquery_text(text: str) -> str:
    return f"'{_escaped(text, chr(39))}'"


def _escaped(text: str, quote: str) -> str:
    """Escape quotes, backslashes and control characters by backslashes."""
    marked = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    return "".join(f"\\x{ord(c):02x}" if ord(c) < 32 else c for c in marked)


def _hexadecimal(text: str) -> str:
    return f"X'{text.encode('utf-8').hex()}'"


_ANSI = _Dialect(_standard_name, _standard_text, _double, _standard_time)
DIALECTS = {
    "ansi": _ANSI,
    "postgres": replace(_ANSI, text=_postgres_text),
    "duckdb": replace(_ANSI, text=_duckdb_text),
    "sqlite": _Dialect(_standard_name, _sqlite_text, _quotient, _sqlite_time, has_nan=False),
    "mysql": _Dialect(
        *(_mysql_name, _mysql_text, _double, _mysql_time),
        has_nan=False,
        compared="CAST(CONVERT({} USING utf8mb4) AS BINARY)",  # the bytes: collations ignore case, accents and spaces
        compared_text=_mysql_bytes,
    ),
    "bigquery": _Dialect(_bigquery_name, _bigquery_text, _double, _bigquery_time),
}
