"""The tree as an SQL expression."""

from __future__ import annotations

from typing import Any

from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.scales import NANOSECONDS, Scale
from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.view import AGAINST_MAJORITY, NodeView, TreeView, codable_view, matching_categories

_DIALECTS = ("portable", "sqlite")
#: The largest double. NaN is above it in databases that order NaN (DuckDB, PostgreSQL, Spark); in others every
#: comparison with NaN is false. "NOT x <= largest" is true of NaN in both.
_LARGEST = "1.7976931348623157e308"
#: Powers of two are written as factors of at most 2 ** 50.
_STEP = 50
_MICROSECOND = NANOSECONDS["us"]


def to_sql(model: Any, *, column: str | None = None, dialect: str = "portable") -> str:
    """Return the tree as a standard SQL CASE expression; NULL and NaN count as missing.

    The expression equals `predict` if the columns have the types in the table below. Thresholds of times without a
    zone are DATE or TIMESTAMP literals; those of times with a zone are TIMESTAMP WITH TIME ZONE in UTC, independent
    of the time zone of the session; those of durations are sums of INTERVALs. If the training data have nanoseconds,
    thresholds of times are text, which takes the type of the column.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    column : str, optional
        Name of the result, added as ``AS "column"``.
    dialect : {"portable", "sqlite"}
        "portable" runs on databases that quote names with ``"`` and text with ``'``, as the standard does. "sqlite"
        omits tests for NaN, which SQLite stores as NULL, and writes fractions as quotients of whole numbers, because
        SQLite reads some decimal fractions one unit in the last place off. SQLite has no types for times and
        durations: they are compared as in the table.

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
        If a threshold is before the year 1 or, in SQLite, after 9999, or a text has a lone surrogate or NUL.
    """
    if dialect not in _DIALECTS:
        raise InvalidInputError(f"dialect must be one of {', '.join(_DIALECTS)}, got {shown(dialect)}")
    tree = codable_view(model, "to_sql")
    expression = "\n".join(_node(tree, tree.nodes[0], "", dialect))
    return expression if column is None else f"{expression} AS {_name(column)}"


def _node(tree: TreeView, node: NodeView, indent: str, dialect: str) -> list[str]:
    if node.is_leaf:
        mark = f" /* {AGAINST_MAJORITY} */" if node.against_majority else ""
        return [indent + _literal(tree.classes[node.label], dialect) + mark]
    assert node.condition is not None
    place = node.condition.column
    # A test of NULL is neither true nor false, so CASE takes ELSE, the side of "no", unless the test asks for NULL.
    return [
        f"{indent}CASE WHEN {_test(node.condition, _name(tree.column_names[place]), tree.kinds[place], dialect)} THEN",
        *_node(tree, tree.nodes[node.right], indent + "  ", dialect),
        f"{indent}ELSE",
        *_node(tree, tree.nodes[node.left], indent + "  ", dialect),
        f"{indent}END",
    ]


def _test(condition: Condition, name: str, kind: str, dialect: str) -> str:
    """Return a test that is true exactly where the condition holds, and false or NULL elsewhere."""
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
    """Return the test of a condition on a time, a duration or an ordered category."""
    scale = condition.scale
    assert scale is not None
    if scale.kind == "ordered":
        return f"{name} IN ({', '.join(_literal(category, dialect) for category in matching_categories(condition))})"
    compare = _sqlite_time if dialect == "sqlite" else _standard_time
    tests = []
    if condition.low is not None:
        tests.append(compare(name, ">=", int(condition.low) * NANOSECONDS[scale.unit], scale))
    if condition.high is not None:
        tests.append(compare(name, "<", int(condition.high) * NANOSECONDS[scale.unit], scale))
    return " AND ".join(tests)


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
    minutes, rest = divmod(abs(nanoseconds), 60 * NANOSECONDS["s"])
    seconds, fraction = divmod(rest, NANOSECONDS["s"])
    shown_seconds = f"{seconds}.{fraction:09d}".rstrip("0") if fraction else f"{seconds}"
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
    """Return the time as text: in UTC if it has a zone; midnight without a zone is written as a date."""
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


def _text(text: str) -> str:
    """Return the text unchanged; raise if no SQL statement can contain it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInputError(f"to_sql cannot write {shown(text)}, which has a lone surrogate") from None
    if "\0" in text:
        raise InvalidInputError(f"to_sql cannot write {shown(text)}, which has a NUL character")
    return text
