"""A fitted tree in the forms that people, tools and databases read."""

from accel_oct.export.code import to_python
from accel_oct.export.dot import to_dot
from accel_oct.export.html import to_html
from accel_oct.export.json import to_json
from accel_oct.export.sklearn_tree import to_sklearn
from accel_oct.export.sql import to_sql
from accel_oct.export.stored_model import SCHEMA_VERSION, read_json
from accel_oct.export.text import to_text

__all__ = [
    "SCHEMA_VERSION",
    "read_json",
    "to_dot",
    "to_html",
    "to_json",
    "to_python",
    "to_sklearn",
    "to_sql",
    "to_text",
]
