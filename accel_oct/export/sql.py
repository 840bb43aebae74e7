"""Rules that run in a database: an SQL expression."""

from __future__ import annotations

from typing import Any

from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.scales import NANOSECONDS, Scale
from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.code import own_view
from accel_oct.export.measured_code import categories_of, scale_of
from accel_oct.export.view import AGAINST_MAJORITY, NodeView, TreeView

__all__ = ["to_sql"]

_DIALECTS = ("portable", "sqlite")
#: The largest number. NaN is above it where databases order NaN (DuckDB, PostgreSQL, Spark), and elsewhere compares as
#: false with everything: "not at most this" is true of NaN in both.
_LARGEST = "1.7976931348623157e308"
_STEP = 50
_MICROSECOND = NANOSECONDS["us"]


def to_sql(model: Any, *, column: str | None = None, dialect: str = "portable") -> str:
    """A standard SQL CASE expression; NULL and NaN count as missing.

    It answers as `predict` does where columns have the types of the table below. Thresholds of times without a zone
    are literals of DATE or TIMESTAMP, those of zoned times TIMESTAMP WITH TIME ZONE, in UTC, so that the time zone of
    the session does not matter; those of durations are sums of INTERVALs. Where the training data have nanoseconds,
    thresholds of times are text, which takes the type of the column.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    column : str, optional
        Name of the result, added as ``AS "column"``.
    dialect : {"portable", "sqlite"}
        "portable" runs wherever names are quoted by ``"`` and text by ``'`` alone, as the standard has it. "sqlite"
        leaves out what is there for NaN, which SQLite keeps as NULL, and writes fractions as quotients of whole
        numbers: SQLite reads some decimal fractions one unit in the last place off. Times and durations, for which
        SQLite has no types, are compared as the table says.

    Notes
    -----
    ================== =================================== =======================================================
    column of X        "portable"                          "sqlite"
    ================== =================================== =======================================================
    numeric            numbers                             numbers
    boolean            BOOLEAN                             0 and 1
    date, naive time   DATE, TIMESTAMP                     text, ``YYYY-MM-DD[ HH:MM[:SS[.fff...]]]``
    time with a zone   TIMESTAMP WITH TIME ZONE            text, ``YYYY-MM-DD HH:MM:SS[.fff...]+HH:MM``, or ``Z``
    duration           INTERVAL                            whole nanoseconds, as pandas writes them
    all others         the text that `predict` compares    the same
    ================== =================================== =======================================================

    The text that `predict` compares is ``'3'`` for the number 3, and ``'True'`` or ``'False'`` for a boolean. In
    SQLite, a ``T`` may stand between date and time.

    Raises
    ------
    InvalidInputError
        For thresholds before the year 1, and in SQLite for those after 9999; for text with half a character or NUL.
    """
    if dialect not in _DIALECTS:
        raise InvalidInputError(f"dialect must be one of {', '.join(_DIALECTS)}, got {shown(dialect)}")
    tree = own_view(model, "to_sql")
    expression = "\n".join(_node(tree, tree.nodes[0], "", dialect))
    return expression if column is None else f"{expression} AS {_name(column)}"


def _node(tree: TreeView, node: NodeView, indent: str, dialect: str) -> list[str]:
    if node.is_leaf:
        mark = f" /* {AGAINST_MAJORITY} */" if node.against_majority else ""
        return [indent + _literal(tree.classes[node.label], dialect) + mark]
    assert node.condition is not None
    place = node.condition.column
    # NULL makes a test neither true nor false, and CASE then takes ELSE: the side of "no", unless the test asks for it.
    return [
        f"{indent}CASE WHEN {_test(node.condition, _name(tree.column_names[place]), tree.kinds[place], dialect)} THEN",
        *_node(tree, tree.nodes[node.right], indent + "  ", dialect),
        f"{indent}ELSE",
        *_node(tree, tree.nodes[node.left], indent + "  ", dialect),
        f"{indent}END",
    ]


def _test(condition: Condition, name: str, kind: str, dialect: str) -> str:
    """A test that is true exactly where the condition holds; elsewhere it is false or NULL."""
    can_be_nan = kind == "numeric" and dialect != "sqlite"
    missing = f"{name} IS NULL" + (f" OR NOT {name} <= {_LARGEST}" if can_be_nan else "")
    if condition.test == "is_missing":
        return missing
    if condition.missing:
        if condition.low is not None and condition.high is None and can_be_nan:
            return f"{name} IS NULL OR NOT {name} < {_literal(condition.low, dialect)}"
        return f"{missing} OR {_test(condition.plain, name, kind, dialect)}"
    if condition.scale is not None:
        return _measured(condition, name, dialect)
    if condition.test == "none_of":
        return f"{name} NOT IN ({', '.join(_literal(value, dialect) for value in condition.values or ())})"
    if condition.test == "is_true" or kind == "boolean":
        return f"{name} = TRUE"
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


def _measured(condition: Condition, name: str, dialect: str) -> str:
    """The test of a condition on a time, a duration or an ordered category."""
    scale = scale_of(condition)
    if scale.kind == "ordered":
        return f"{name} IN ({', '.join(_literal(category, dialect) for category in categories_of(condition, scale))})"
    compare = _sqlite_time if dialect == "sqlite" else _standard_time
    tests = []
    if condition.low is not None:
        tests.append(compare(name, ">=", int(condition.low) * NANOSECONDS[scale.unit], scale))
    if condition.high is not None:
        tests.append(compare(name, "<", int(condition.high) * NANOSECONDS[scale.unit], scale))
    return " AND ".join(tests)


def _standard_time(name: str, sign: str, nanoseconds: int, scale: Scale) -> str:
    """Compare a column of DATE, TIMESTAMP, TIMESTAMP WITH TIME ZONE or INTERVAL with a threshold.

    A threshold between two microseconds needs two comparisons. Databases that count microseconds round or cut the
    threshold as it is, and the first comparison, with the whole microsecond below, decides there. Where the column
    counts nanoseconds, the second decides.
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
    if scale.unit == "ns":  # text takes the type of the column: DuckDB cuts TIMESTAMP '...' to microseconds
        return f"'{text}'"
    if scale.zone is not None:  # a TIMESTAMP '...' would lose its offset: it is one of the time zone of the session
        return f"CAST('{text}' AS TIMESTAMP WITH TIME ZONE)"
    if scale.unit == "D":
        return f"DATE '{text}'"
    return f"TIMESTAMP '{text if ':' in text else text + ' 00:00:00'}'"


def _interval(nanoseconds: int) -> str:
    """A sum of intervals of one field: DuckDB does not read DAY TO SECOND, and PostgreSQL reads its sign otherwise."""
    sign = "-" if nanoseconds < 0 else ""
    minutes, rest = divmod(abs(nanoseconds), 60 * NANOSECONDS["s"])
    seconds, fraction = divmod(rest, NANOSECONDS["s"])
    shown_seconds = f"{seconds}.{fraction:09d}".rstrip("0") if fraction else f"{seconds}"
    fields = {"DAY": minutes // 1440, "HOUR": minutes // 60 % 24, "MINUTE": minutes % 60, "SECOND": shown_seconds}
    parts = [f"INTERVAL '{sign}{count}' {field}" for field, count in fields.items() if count not in (0, "0")]
    return " + ".join(parts) or "INTERVAL '0' SECOND"


def _sqlite_time(name: str, sign: str, nanoseconds: int, scale: Scale) -> str:
    """Compare a column in which SQLite, which has no such types, holds text (times) or nanoseconds (durations).

    Text in ISO 8601 is in the order of time if the threshold is as short as possible: '2021-01-01' is below
    '2021-01-01 00:00:00', which begins with it. Times of a zone are first converted to UTC, in whole seconds because
    SQLite rounds fractions to milliseconds; the fraction decides where the seconds are equal.
    """
    if scale.kind == "duration":
        return f"{name} {sign} {nanoseconds}"
    text = _time_text(nanoseconds, scale)
    if len(text.partition("-")[0]) != 4:
        raise InvalidInputError(f"to_sql cannot write the time {text} in dialect 'sqlite': its year needs four digits")
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
    """The time in UTC if it has a zone; without one, a time at midnight is a date."""
    text = Scale("datetime", "ns", None if scale.zone is None else "UTC").text(nanoseconds)
    if text.startswith(("-", "0000")):
        raise InvalidInputError(f"to_sql cannot write the time {text}: databases write years before 1 differently")
    return text


def _name(name: str) -> str:
    return '"' + _text(name).replace('"', '""') + '"'


def _literal(value: Any, dialect: str) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return repr(value)
    if isinstance(value, float):
        return _quotient(value) if dialect == "sqlite" else _double(value)
    return "'" + _text(str(value)).replace("'", "''") + "'"


def _double(value: float) -> str:
    """With an exponent: without one, most databases take it for a decimal and not for a floating-point number.

    Whole numbers from 2**53 on are written as such: compared with a floating-point number, a column of whole numbers is
    rounded first.
    """
    if 2**53 <= abs(value) < 2**63:
        return repr(int(value))
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def _quotient(value: float) -> str:
    """The number exactly, from whole numbers below 2**53 and powers of two, which SQLite reads as they are."""
    above, below = value.as_integer_ratio()
    if below == 1 and abs(above) < 2**53:
        return repr(value)
    exponent = 1 - below.bit_length()
    while abs(above) >= 2**53:  # a float has no more digits: these are zeros
        above, exponent = above // 2, exponent + 1
    sign, steps = ("*" if exponent > 0 else "/"), divmod(abs(exponent), _STEP)
    powers = [2.0**_STEP] * steps[0] + [2.0 ** steps[1]] * (steps[1] > 0)
    return "(" + f" {sign} ".join([f"{above}.0", *map(repr, powers)]) + f" /* {value!r} */)"


def _text(text: str) -> str:
    """Text as it is, if it can stand in a statement."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInputError(f"to_sql cannot write {shown(text)}, which holds half a character") from None
    if "\0" in text:
        raise InvalidInputError(f"to_sql cannot write {shown(text)}, which holds a NUL character")
    return text
