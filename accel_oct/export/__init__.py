"""Fitted trees as text, HTML, Graphviz, tables, Python, SQL, ONNX, PMML, JSON and scikit-learn trees."""

from accel_oct.export.decision_table import DecisionTable, to_table
from accel_oct.export.onnx import onnx_inputs, to_onnx
from accel_oct.export.pmml import to_pmml
from accel_oct.export.python import to_python
from accel_oct.export.sklearn_tree import to_sklearn
from accel_oct.export.sql import to_sql
from accel_oct.export.stored_model import SCHEMA_VERSION, read_json, to_json
from accel_oct.export.text import to_dot, to_html, to_text

__all__ = [
    "SCHEMA_VERSION",
    "DecisionTable",
    "onnx_inputs",
    "read_json",
    "to_dot",
    "to_html",
    "to_json",
    "to_onnx",
    "to_pmml",
    "to_python",
    "to_sklearn",
    "to_sql",
    "to_table",
    "to_text",
]
