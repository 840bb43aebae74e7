"""Rules that run in a database: an SQL expression."""

from __future__ import annotations

from typing import Any

from accel_oct.encoding.conditions import Condition
from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.code import own_view
from accel_oct.export.measured_code import sql_measured
from accel_oct.export.view import AGAINST_MAJORITY, NodeView, TreeView

__all__ = ["to_sql"]

_DIALECTS = ("portable", "sqlite")
#: The largest number. NaN is above it where databases order NaN (DuckDB, PostgreSQL, Spark), and elsewhere compares as
#: false with everything: "not at most this" is true of NaN in both.
_LARGEST = "1.7976931348623157e308"
_STEP = 50


def to_sql(model: Any, *, column: str | None = None, dialect: str = "portable") -> str:
    """A standard SQL CASE expression; NULL and NaN count as missing.

    It answers as `predict` does where numeric columns hold numbers, boolean ones booleans, and all others text: the
    text that `predict` compares, so that the number 3 is ``'3'`` and a boolean ``'True'`` or ``'False'``.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    column : str, optional
        Name of the result, added as ``AS "column"``.
    dialect : {"portable", "sqlite"}
        "portable" runs wherever names are quoted by ``"`` and text by ``'`` alone, as the standard has it. "sqlite"
        leaves out what is there for NaN, which SQLite keeps as NULL, and writes fractions as quotients of whole
        numbers: SQLite reads some decimal fractions one unit in the last place off.
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
        return sql_measured(condition, name)
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
    """With an exponent: without one, most databases take it for a decimal and not for a floating-point number."""
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
