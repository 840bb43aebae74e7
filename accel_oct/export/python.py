"""The tree as a Python function."""

from __future__ import annotations

import builtins
import keyword
from typing import Any

from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.scales import NANOSECONDS
from accel_oct.errors import InvalidInputError
from accel_oct.export.view import AGAINST_MAJORITY, NodeView, TreeView, codable_view, matching_categories

#: Helpers of the generated function. They convert a value as `is_missing`, `as_numbers` and `as_categories` of the
#: encoders do; times and durations become whole microseconds.
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
    "datetime": """\
def {name}(value, has_zone):
    if {is_missing}(value):
        return float("nan")
    import datetime
    if not isinstance(value, datetime.date):
        raise TypeError("a date or a time is needed, not " + repr(value))
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if (value.utcoffset() is not None) != has_zone:
        raise ValueError("times with and without a time zone cannot be compared")
    if has_zone:
        value = value.astimezone(datetime.timezone.utc)
    seconds = (value.toordinal() - 719163) * 86400 + value.hour * 3600 + value.minute * 60 + value.second
    return seconds * 1000000 + value.microsecond
""",
    "duration": """\
def {name}(value):
    if {is_missing}(value):
        return float("nan")
    import datetime
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000000 + value.microsecond
    if not isinstance(value, datetime.timedelta):
        raise TypeError("a duration is needed, not " + repr(value))
    return (value.days * 86400 + value.seconds) * 1000000 + value.microseconds
""",
}


def to_python(model: Any, *, function_name: str = "predict") -> str:
    """Return the source of a Python function of one row that imports nothing beyond the standard library.

    A row is a mapping from column names to values, or any object with a method `get`: a dictionary, a pandas series, a
    row of ``polars_frame.iter_rows(named=True)``. The function returns what `predict` returns, for any mixture of
    numbers, text and booleans in a column. None, NaN, pandas.NA and absent columns count as missing.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
    function_name : str
        Name of the function. Names of its helper functions begin with an underscore and this name.
    """
    is_name = function_name.isidentifier() and function_name.isascii()
    if not is_name or keyword.iskeyword(function_name) or hasattr(builtins, function_name):
        raise InvalidInputError(
            f"function_name must be a Python name that is neither a keyword nor a builtin, got {function_name!r}"
        )
    tree = codable_view(model, "to_python")
    names = {helper: f"_{function_name}_{helper}" for helper in _HELPERS}
    body: list[str] = []
    _write_node(tree, tree.nodes[0], "    ", names, body)
    called = [helper for helper, name in names.items() if any(f"{name}(" in line for line in body)]
    if called:
        called = ["is_missing", *(helper for helper in called if helper != "is_missing")]
    names["real"] = f"_{function_name}_Real"
    imports = [f"from numbers import Real as {names['real']}\n\n"] if "text" in called else []
    helpers = [_HELPERS[helper].format(name=names[helper], **names) + "\n" for helper in called]
    return "\n".join([*imports, *helpers, f"def {function_name}(row):", *body, ""])


def _write_node(tree: TreeView, node: NodeView, indent: str, names: dict[str, str], lines: list[str]) -> None:
    if node.is_leaf:
        mark = f"  # {AGAINST_MAJORITY}" if node.against_majority else ""
        lines.append(f"{indent}return {tree.classes[node.label]!r}{mark}")
        return
    assert node.condition is not None
    column = node.condition.column
    value = f"row.get({tree.column_names[column]!r})"
    lines.append(f"{indent}if {_test(node.condition, value, tree.kinds[column], names)}:")
    _write_node(tree, tree.nodes[node.right], indent + "    ", names, lines)
    lines.append(f"{indent}else:")
    _write_node(tree, tree.nodes[node.left], indent + "    ", names, lines)


def _test(condition: Condition, value: str, kind: str, names: dict[str, str]) -> str:
    missing, text, number = (f"{names[helper]}({value})" for helper in ("is_missing", "text", "number"))
    if condition.test == "is_missing":
        return missing
    if condition.missing:
        return f"{missing} or {_test(condition.plain, value, kind, names)}"
    if kind == "ordered":
        return f"{text} in {matching_categories(condition)!r}"
    if condition.test == "none_of":
        return f"{text} not in {(None, *(condition.values or ()))!r}"
    if kind == "categorical":
        return f"{text} == {condition.value!r}"
    if condition.test in ("is_true", "equals"):
        return f"{number} == {1.0 if condition.test == 'is_true' else condition.value!r}"
    low, high, scale = condition.low, condition.high, condition.scale
    if scale is not None:
        if scale.unit == "ns":
            raise InvalidInputError("to_python cannot write times finer than microseconds, the unit of Python's times")
        number = f"{names[scale.kind]}({value if kind == 'duration' else f'{value}, {scale.zone is not None}'})"
        factor = NANOSECONDS[scale.unit] // 1000
        low, high = (None if limit is None else int(limit) * factor for limit in (low, high))
    return ("" if low is None else f"{low!r} <= ") + number + ("" if high is None else f" < {high!r}")
