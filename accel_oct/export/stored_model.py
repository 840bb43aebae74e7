"""Reads a classifier that was stored as JSON; checks everything and executes nothing.

What comes out are values. The estimator that asks builds itself from them, so that nothing here has to know it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np

from accel_oct._version import __version__
from accel_oct.encoding.columns import Kind
from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.column_checks import check_condition, check_scales
from accel_oct.export.encoders import encoder_from_dict
from accel_oct.export.reading import Reader, parsed
from accel_oct.mip import Solver
from accel_oct.objectives.named import NAMED
from accel_oct.solving.config import Config
from accel_oct.solving.result import STATUSES, ConstraintReport, HistoryRow, Result
from accel_oct.support.arguments import checked_depth
from accel_oct.support.files import read_text
from accel_oct.tree import DecisionTree
from accel_oct.tree.fitted_tree import FittedTree
from accel_oct.tree.topology import MAX_SUPPORTED_DEPTH

__all__ = ["FORMAT", "LATER_PARAMETERS", "MAX_BYTES", "PLAIN_PARAMETERS", "SCHEMA_VERSION", "StoredModel", "read_json"]

FORMAT = "accel_oct.OptimalTreeClassifier"
#: Grows when a reader of the version before could not read the file. 2: conditions that missing values answer yes to,
#: scales, rare categories, large whole numbers.
SCHEMA_VERSION = 2
MAX_BYTES = 64 << 20

PLAIN_PARAMETERS = ("max_depth", "leaf_penalty", "time_limit", "missing")
#: Those that came later; files without them are read too.
LATER_PARAMETERS = ("min_samples_leaf", "max_leaf_nodes", "max_features_used", "exclude", "objective", "verbose")
_LABEL_TYPES = {"bool": bool, "int": int, "float": (int, float), "str": str}
_MOST_THREADS = 1 << 20
#: Characters of all class labels together, each as long as the longest: so much room NumPy takes for them.
_MOST_LABEL_TEXT = 1 << 24


@dataclass(frozen=True)
class StoredModel:
    """A classifier as values: the arguments it was made with, and the attributes it has since it was fitted."""

    parameters: dict[str, Any]
    attributes: dict[str, Any]


def read_json(source: str | Path, *, max_bytes: int = MAX_BYTES) -> StoredModel:
    """Read what `to_json` wrote.

    Parameters
    ----------
    source : path, or the JSON text itself
    max_bytes : int
        Larger input is refused unread.

    Raises
    ------
    InvalidInputError
        Saying what is wrong: not JSON, cut off, of a newer schema, too large, or inconsistent in itself.
    """
    top = Reader(parsed(_text(source, max_bytes)), "the JSON document")
    if top.string("format") != FORMAT:
        raise InvalidInputError(f"the JSON document is no {FORMAT}: its format is {shown(top.string('format'))}")
    schema = top.whole("schema", least=1)
    if schema > SCHEMA_VERSION:
        writer = shown(top.string("library"))
        raise InvalidInputError(
            f"the JSON document has schema {schema}, written by accel_oct {writer}, but this version "
            f"({__version__}) reads up to {SCHEMA_VERSION}; upgrade accel_oct"
        )
    parameters = _read_parameters(top.table("parameters"))
    fitted = SimpleNamespace(classes_=_read_classes(top.table("classes")))
    _read_columns(fitted, top)
    _read_tree(fitted, top)
    return StoredModel(parameters, vars(fitted))


def _text(source: Any, max_bytes: int) -> str:
    if not isinstance(source, str) or source.lstrip()[:1] not in ("{", "["):
        return read_text(source, max_bytes, "the JSON document")
    if len(source) > max_bytes:
        raise InvalidInputError(
            f"the JSON document has {len(source)} bytes, more than the {max_bytes} that are allowed"
        )
    return source


def _read_parameters(entries: Reader) -> dict[str, Any]:
    if entries.get("max_depth") is not None:
        checked_depth(entries.get("max_depth"))
    entries.string("missing")
    entries.number("leaf_penalty", least=0.0)
    if entries.get("time_limit") is not None:
        entries.number("time_limit", least=0.0)
    parameters = {name: entries.get(name) for name in PLAIN_PARAMETERS}
    solver, config = entries.get("solver"), entries.get("config")
    parameters["solver"] = solver if isinstance(solver, str) else _read_solver(entries.table("solver"))
    if isinstance(config, str):
        Config.preset(config)  # refuses an unknown name
    parameters["config"] = config if isinstance(config, str) else Config.from_mapping(entries.table("config").values)
    parameters["class_weight"] = _read_class_weight(entries)
    parameters |= _read_later(entries)
    encoder = entries.get("encoder")
    if encoder not in (None, "auto"):
        encoder = encoder_from_dict(Reader(encoder, "parameters.encoder"))
    parameters["encoder"] = encoder
    return parameters


def _read_solver(entries: Reader) -> Solver:
    return Solver(
        entries.string("backend"),
        threads=entries.whole("threads", least=-_MOST_THREADS),
        seed=entries.whole("seed"),
        gap=entries.number("gap", least=0.0),
        node_limit=None if entries.get("node_limit") is None else entries.whole("node_limit"),
        options=entries.table("options").values,
    )


def _read_later(entries: Reader) -> dict[str, Any]:
    found = {name: entries.get(name) for name in LATER_PARAMETERS if name in entries.values}
    if "min_samples_leaf" in found:
        entries.number("min_samples_leaf", least=0.0)
    if "verbose" in found:
        entries.whole("verbose")
    for name in ("max_leaf_nodes", "max_features_used"):
        if found.get(name) is not None:
            entries.whole(name)
    if found.get("exclude") is not None and not all(
        isinstance(column, str | int) and not isinstance(column, bool) for column in entries.sequence("exclude")
    ):
        raise InvalidInputError("parameters.exclude must hold names or positions of columns")
    if found.get("objective") is not None and entries.string("objective") not in NAMED:
        raise InvalidInputError(f"parameters.objective must be one of {', '.join(NAMED)} or null")
    return found


def _read_class_weight(entries: Reader) -> Any:
    weight = entries.get("class_weight")
    if isinstance(weight, list):
        pairs = dict(entries.pairs("class_weight"))
        if len(pairs) < len(weight):
            raise InvalidInputError("class_weight names a class twice")
        return pairs
    if weight not in (None, "balanced"):
        raise InvalidInputError(f"class_weight must be 'balanced', pairs or null, got {shown(weight)}")
    return weight


def _read_classes(entries: Reader) -> Any:
    kind = entries.string("type")
    values = entries.sequence("values")
    if kind not in _LABEL_TYPES:
        raise InvalidInputError(f"classes.type must be one of {', '.join(_LABEL_TYPES)}, got {shown(kind)}")
    wanted: Any = _LABEL_TYPES[kind]
    if not values or any(not isinstance(v, wanted) or (isinstance(v, bool) and kind != "bool") for v in values):
        raise InvalidInputError(f"classes.values must hold one or more values of type {kind}")
    if kind == "str" and len(values) * max(map(len, values)) > _MOST_LABEL_TEXT:
        raise InvalidInputError("classes.values holds too many labels that are too long")
    dtype = _whole_type(values) if kind == "int" else {"str": np.str_, "bool": np.bool_, "float": np.float64}[kind]
    classes: Any = np.array(values, dtype=dtype)
    if classes.tolist() != values:
        raise InvalidInputError("classes.values holds a label that NumPy cannot keep as it is")
    if np.any(classes[1:] <= classes[:-1]):
        raise InvalidInputError("classes.values must be distinct and increasing")
    return classes


def _whole_type(values: list[int]) -> Any:
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= min(values) and max(values) <= np.iinfo(kind).max:
            return kind
    raise InvalidInputError("classes.values must hold whole numbers of 64 bits")


def _read_columns(fitted: SimpleNamespace, top: Reader) -> None:
    columns = top.table("columns")
    kinds = columns.sequence("kinds")
    if not kinds or any(kind not in get_args(Kind) for kind in kinds):
        raise InvalidInputError(f"columns.kinds must hold one of {', '.join(get_args(Kind))} for each column")
    names = None if columns.get("names") is None else _read_names(columns, len(kinds))
    encoder = encoder_from_dict(top.table("encoder"), n_columns=len(kinds))
    encoder.kinds_ = tuple(kinds)
    for column in getattr(encoder, "categories_", {}):
        if column >= len(kinds) or kinds[column] != "categorical":
            raise InvalidInputError(f"encoder.categories names column {column}, which is none of categories")
    check_scales(encoder.scales_, kinds)
    for condition in encoder.conditions_:
        if condition.column >= len(kinds):
            raise InvalidInputError(f"a condition asks for column {condition.column}, but there are {len(kinds)}")
        check_condition(condition, kinds[condition.column])
    for owner in (fitted, encoder):
        owner.n_features_in_ = len(kinds)
        if names is not None:
            owner.feature_names_in_ = names
    fitted.encoder_ = encoder


def _read_names(columns: Reader, n_columns: int) -> Any:
    names = columns.sequence("names")
    if len(names) != n_columns or not all(isinstance(name, str) for name in names):
        raise InvalidInputError("columns.names must hold one string per column")
    if len(set(names)) < n_columns:
        raise InvalidInputError("columns.names must be distinct")
    return np.array(names, dtype=object)


def _read_tree(fitted: SimpleNamespace, top: Reader) -> None:
    entries = top.table("tree")
    tree = DecisionTree(entries.whole_array("feature"), entries.whole_array("label"))
    if tree.max_depth > MAX_SUPPORTED_DEPTH:
        raise InvalidInputError(f"tree has room for depth {tree.max_depth}, more than {MAX_SUPPORTED_DEPTH}")
    n_features, n_classes = len(fitted.encoder_.conditions_), len(fitted.classes_)
    if tree.feature.max() >= n_features:
        raise InvalidInputError(f"tree.feature asks for feature {tree.feature.max()}, but there are {n_features}")
    if tree.label.max() >= n_classes:
        raise InvalidInputError(f"tree.label names class {tree.label.max()}, but there are {n_classes}")
    nodes = top.table("nodes")
    n_nodes = tree.n_leaves + len(tree.branch_nodes)
    samples = nodes.whole_array("samples")
    weights = nodes.float_array("class_weights")
    if samples.shape != (n_nodes,) or weights.shape != (n_nodes, n_classes):
        raise InvalidInputError(f"nodes must describe {n_nodes} nodes and {n_classes} classes")
    if (samples < 0).any() or (weights < 0).any():
        raise InvalidInputError("nodes must not hold negative counts")
    factors = None if nodes.values.get("class_factors") is None else nodes.float_array("class_factors")
    if factors is not None and (factors.shape != (n_classes,) or (factors < 0).any()):
        raise InvalidInputError(f"nodes.class_factors must hold {n_classes} numbers that are not negative")
    fitted.tree_ = FittedTree(tree, weights, samples, n_features, factors)
    _read_result(fitted, top.table("result"), tree)


def _read_result(fitted: SimpleNamespace, entries: Reader, tree: DecisionTree) -> None:
    if entries.string("status") not in STATUSES:
        raise InvalidInputError(f"result.status must be one of {', '.join(STATUSES)}")
    objective, bound = entries.number("objective"), entries.number("bound")
    if objective > bound or (entries.string("status") == "optimal" and objective < bound):
        raise InvalidInputError(
            f"result.objective {objective} and result.bound {bound} contradict each other or the status"
        )
    history = entries.float_array("history")
    if len(history) and history.shape[1:] != (3,):
        raise InvalidInputError("result.history must hold rows of three numbers")
    if len(history) and np.any(history[:, 1] > history[:, 2]):
        raise InvalidInputError("result.history has an objective above its bound")
    fitted.result_ = Result(
        found=tree,
        objective=objective,
        bound=bound,
        status=entries.string("status"),  # type: ignore[arg-type]  # checked above
        seconds=entries.number("seconds", least=0.0),
        nodes=entries.whole("nodes"),
        backend=entries.string("backend"),
        stats=entries.table("stats").values,
        history=tuple(HistoryRow(*row) for row in history.tolist()),
        feature_names=tuple(str(name) for name in fitted.encoder_.get_feature_names_out()),
        class_names=tuple(str(label) for label in fitted.classes_),
        constraints=_read_constraints(entries),
    )
    for name in ("objective", "bound", "gap", "status"):
        setattr(fitted, f"{name}_", getattr(fitted.result_, name))


def _read_constraints(entries: Reader) -> tuple[ConstraintReport, ...]:
    found = []
    for entry in entries.sequence("constraints") if "constraints" in entries.values else []:
        report = Reader(entry, "result.constraints")
        numbers = {
            name: None if report.get(name) is None else report.number(name)
            for name in ("value", "slack", "multiplier", "lower", "upper")
        }
        if numbers["slack"] is None:
            raise InvalidInputError("result.constraints.slack must be a number")
        found.append(ConstraintReport(name=report.string("name"), **numbers))  # type: ignore[arg-type]
    return tuple(found)
