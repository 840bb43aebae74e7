"""Fitted trees as text, HTML, Graphviz, Python, SQL, JSON and scikit-learn trees."""

from accel_oct.export.python import to_python
from accel_oct.export.sklearn_tree import to_sklearn
from accel_oct.export.sql import to_sql
from accel_oct.export.stored_model import SCHEMA_VERSION, read_json, to_json
from accel_oct.export.text import to_dot, to_html, to_text

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
