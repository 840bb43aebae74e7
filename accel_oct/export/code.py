"""Rules that run elsewhere: a Python function, an SQL expression."""

from __future__ import annotations

import keyword
import re
from typing import Any

from accel_oct.encoding.conditions import Condition
from accel_oct.errors import InvalidInputError
from accel_oct.export.view import NodeView, TreeView, view

__all__ = ["to_python", "to_sql"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def to_python(model: Any, *, function_name: str = "predict") -> str:
    """A Python function of one row (a mapping from column name to value) that needs no package at all.

    A value that is None, NaN or absent counts as missing.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    function_name : str
    """
    if not _IDENTIFIER.match(function_name) or keyword.iskeyword(function_name):
        raise InvalidInputError(f"function_name must be a Python name, got {function_name!r}")
    tree = _own_view(model, "to_python")
    lines = [f"def {function_name}(row):"]
    _python_node(tree, tree.nodes[0], "    ", lines)
    return "\n".join([*lines, ""])


def _python_node(tree: TreeView, node: NodeView, indent: str, lines: list[str]) -> None:
    if node.is_leaf:
        lines.append(f"{indent}return {tree.classes[node.label]!r}")
        return
    assert node.condition is not None
    column = node.condition.column
    key = repr(tree.column_names[column])
    lines.append(f"{indent}value = row.get({key})")
    lines.append(f"{indent}if {_python_test(node.condition)}:")
    _python_node(tree, tree.nodes[node.right], indent + "    ", lines)
    lines.append(f"{indent}else:")
    _python_node(tree, tree.nodes[node.left], indent + "    ", lines)


def _python_test(condition: Condition) -> str:
    if condition.test == "is_missing":
        return "value is None or value != value"
    if condition.test == "is_true":
        return "value == 1"
    if condition.test == "equals":
        return f"value in {_spellings(condition.value)!r}"
    low = "" if condition.low is None else f"{condition.low!r} <= "
    high = "" if condition.high is None else f" < {condition.high!r}"
    return f"value is not None and {low}value{high}"


def _spellings(value: str | float | None) -> tuple[str | float, ...]:
    """A category as text, and as a number where it is one; a number only as such."""
    assert value is not None
    if not isinstance(value, str):
        return (value,)
    try:
        return (value, float(value))
    except ValueError:
        return (value,)


def to_sql(model: Any, *, column: str | None = None) -> str:
    """A standard SQL CASE expression; NULL counts as missing.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    column : str, optional
        Name of the result, added as ``AS "column"``.
    """
    tree = _own_view(model, "to_sql")
    expression = "\n".join(_sql_node(tree, tree.nodes[0], ""))
    return expression if column is None else f"{expression} AS {_sql_name(column)}"


def _sql_node(tree: TreeView, node: NodeView, indent: str) -> list[str]:
    if node.is_leaf:
        return [indent + _sql_literal(tree.classes[node.label])]
    assert node.condition is not None
    name = _sql_name(tree.column_names[node.condition.column])
    boolean = tree.kinds[node.condition.column] == "boolean"
    # NULL makes a test neither true nor false, and CASE then takes ELSE: the side of "no", as in the tree.
    return [
        f"{indent}CASE WHEN {_sql_test(node.condition, name, boolean)} THEN",
        *_sql_node(tree, tree.nodes[node.right], indent + "  "),
        f"{indent}ELSE",
        *_sql_node(tree, tree.nodes[node.left], indent + "  "),
        f"{indent}END",
    ]


def _sql_test(condition: Condition, name: str, boolean: bool) -> str:
    if condition.test == "is_missing":
        return f"{name} IS NULL"
    if condition.test == "is_true" or boolean:
        return f"{name} = TRUE"
    if condition.test == "equals":
        return f"{name} = {_sql_literal(condition.value)}"
    tests = []
    if condition.low is not None:
        tests.append(f"{name} >= {_sql_literal(condition.low)}")
    if condition.high is not None:
        tests.append(f"{name} < {_sql_literal(condition.high)}")
    return " AND ".join(tests)


def _sql_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_literal(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"


def _own_view(model: Any, what: str) -> TreeView:
    tree = view(model)
    if any(node.condition is None and not node.is_leaf for node in tree.nodes):
        raise InvalidInputError(
            f"{what} cannot write the conditions of a {type(model.encoder_).__name__}; use an encoder of accel_oct"
        )
    return tree
