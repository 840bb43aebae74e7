"""Rules that run elsewhere: a Python function."""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Any

from accel_oct.encoding.conditions import Condition
from accel_oct.errors import InvalidInputError
from accel_oct.export.measured_code import TIME_HELPERS, python_measured
from accel_oct.export.view import AGAINST_MAJORITY, NodeView, TreeView, view

__all__ = ["own_view", "to_python"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


# What the generated function asks of a value, as `is_missing`, `as_numbers` and `as_categories` of the encoders do.
_HELPERS = {
    "is_missing": """\
def {name}(value):
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"
""",
    "number": """\
def {name}(value):
    if {is_missing}(value):
        return float("nan")
    if isinstance(value, (str, bytes)):
        raise TypeError("a number is needed, not " + repr(value))
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        value = float(value)
    if abs(value) == float("inf"):
        raise ValueError("infinite values cannot be classified")
    return value
""",
    "text": """\
def {name}(value):
    if {is_missing}(value):
        return None
    if isinstance(value, bool) or not isinstance(value, {real}):
        return str(value)
    whole, value = value, float(value)
    if abs(value) == float("inf"):
        raise ValueError("infinite values cannot be classified")
    if value != whole and hasattr(whole, "__index__"):
        return str(int(whole))
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
""",
    **TIME_HELPERS,
}


def to_python(model: Any, *, function_name: str = "predict") -> str:
    """A Python function of one row that needs nothing but Python.

    A row is a mapping from column names to values, or whatever has its method `get`: a dictionary, a series of pandas,
    a row of ``polars_frame.iter_rows(named=True)``. The function answers as `predict` does, whatever mixture of
    numbers, text and booleans a column holds. A value that is None, NaN, pandas.NA or absent counts as missing.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    function_name : str
        The few helpers beside it have names that begin with an underscore and this.
    """
    if not _IDENTIFIER.match(function_name) or keyword.iskeyword(function_name) or hasattr(builtins, function_name):
        raise InvalidInputError(f"function_name must be a Python name that is not taken, got {function_name!r}")
    tree = own_view(model, "to_python")
    names = {helper: f"_{function_name}_{helper}" for helper in _HELPERS}
    body: list[str] = []
    _python_node(tree, tree.nodes[0], "    ", names, body)
    called = [helper for helper, name in names.items() if any(f"{name}(" in line for line in body)]
    if called:
        called = ["is_missing", *(helper for helper in called if helper != "is_missing")]
    names["real"] = f"_{function_name}_Real"
    imports = [f"from numbers import Real as {names['real']}\n\n"] if "text" in called else []
    helpers = [_HELPERS[helper].format(name=names[helper], **names) + "\n" for helper in called]
    return "\n".join([*imports, *helpers, f"def {function_name}(row):", *body, ""])


def _python_node(tree: TreeView, node: NodeView, indent: str, names: dict[str, str], lines: list[str]) -> None:
    if node.is_leaf:
        mark = f"  # {AGAINST_MAJORITY}" if node.against_majority else ""
        lines.append(f"{indent}return {tree.classes[node.label]!r}{mark}")
        return
    assert node.condition is not None
    column = node.condition.column
    value = f"row.get({tree.column_names[column]!r})"
    lines.append(f"{indent}if {_python_test(node.condition, value, tree.kinds[column], names)}:")
    _python_node(tree, tree.nodes[node.right], indent + "    ", names, lines)
    lines.append(f"{indent}else:")
    _python_node(tree, tree.nodes[node.left], indent + "    ", names, lines)


def _python_test(condition: Condition, value: str, kind: str, names: dict[str, str]) -> str:
    if condition.test == "is_missing":
        return f"{names['is_missing']}({value})"
    if condition.missing:
        return f"{names['is_missing']}({value}) or {_python_test(condition.plain, value, kind, names)}"
    if condition.scale is not None:
        return python_measured(condition, value, names)
    if condition.test == "none_of":
        return f"{names['text']}({value}) not in {(None, *(condition.values or ()))!r}"
    if kind == "categorical":
        return f"{names['text']}({value}) == {condition.value!r}"
    number = f"{names['number']}({value})"
    if condition.test == "is_true":
        return f"{number} == 1.0"
    if condition.test == "equals":
        return f"{number} == {condition.value!r}"
    low = "" if condition.low is None else f"{condition.low!r} <= "
    high = "" if condition.high is None else f" < {condition.high!r}"
    return f"{low}{number}{high}"


def own_view(model: Any, what: str) -> TreeView:
    """The nodes, where every condition and class of theirs can be written as code; `what` is the caller's name."""
    tree = view(model)
    if any(node.condition is None and not node.is_leaf for node in tree.nodes):
        raise InvalidInputError(
            f"{what} cannot write the conditions of a {type(model.encoder_).__name__}; use an encoder of accel_oct"
        )
    if not all(isinstance(label, str | bool | int | float) for label in tree.classes):
        raise InvalidInputError(f"{what} can write classes that are text, numbers or booleans only")
    return tree
