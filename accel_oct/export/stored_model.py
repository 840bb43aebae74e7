"""A fitted classifier or policy tree as JSON, written and read back.

Reading checks every entry and executes nothing. It returns values, from which the estimator builds itself, so this
module needs no estimator class.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from accel_oct._version import __version__
from accel_oct.encoding.auto import AutoEncoder
from accel_oct.encoding.base import BinaryEncoder, PassthroughEncoder
from accel_oct.encoding.categorical import OneHotCategoryEncoder
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.scales import NANOSECONDS, MeasuredKind, Scale
from accel_oct.encoding.spreads import ordered_columns, spreads_from_list, spreads_to_list
from accel_oct.encoding.table_encoder import TableEncoder
from accel_oct.encoding.thresholds import (
    AllThresholdsEncoder,
    QuantileBucketEncoder,
    QuantileThresholdEncoder,
    TreeGuidedThresholdEncoder,
)
from accel_oct.encoding.values import EXACT, Kind
from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.checked_json import JsonObject, parsed
from accel_oct.mip import Solver
from accel_oct.objectives.built_in import NAMED
from accel_oct.solving.config import Config
from accel_oct.solving.result import STATUSES, ConstraintReport, HistoryRow, Result
from accel_oct.support.arguments import MAX_SUPPORTED_DEPTH, TIE_CRITERIA, as_whole, checked_depth
from accel_oct.support.files import read_text, replacing
from accel_oct.tree import DecisionTree
from accel_oct.tree.fitted_tree import FittedTree
from accel_oct.tree.probabilities import checked_smoothing

#: Names of the stored estimators; a file begins with the one that it holds.
CLASSIFIER, POLICY = "accel_oct.OptimalTreeClassifier", "accel_oct.OptimalPolicyTree"
#: Increased when files change in a way that earlier readers cannot read.
SCHEMA_VERSION = 2
MAX_BYTES = 64 << 20

#: Parameters that JSON holds as they are.
_PLAIN_PARAMETERS = (
    *("max_depth", "leaf_penalty", "time_limit", "missing"),
    *("min_samples_leaf", "max_leaf_nodes", "max_features_used", "monotonic_cst", "exclude"),
)
#: Parameters of policy trees that JSON holds as they are; those that only classifiers have, with neutral values.
_POLICY_PARAMETERS = ("method", "clip", "minimise")
_CLASSIFIER_ONLY = {
    "config": "default",
    "class_weight": None,
    "objective": None,
    "smoothing": 0.0,
    "calibrate": None,
    "ties": "first",
}
_LABEL_TYPES = {"bool": bool, "int": int, "float": (int, float), "str": str}
_LABEL_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str"}
_MAX_THREADS = 1 << 20
#: Limit on the memory of class labels: NumPy stores each as long as the longest.
_MAX_LABEL_CHARACTERS = 1 << 24
#: About a million years: NumPy cannot write later times both in seconds and in years.
_MAX_NANOSECONDS = 10**9 * 86_400 * 366 * 10**6
#: The only classes that are created from a file.
_ENCODERS: dict[str, type[BinaryEncoder]] = {
    cls.__name__: cls
    for cls in (
        AllThresholdsEncoder,
        AutoEncoder,
        OneHotCategoryEncoder,
        PassthroughEncoder,
        QuantileBucketEncoder,
        QuantileThresholdEncoder,
        TableEncoder,
        TreeGuidedThresholdEncoder,
    )
}


@dataclass(frozen=True)
class StoredModel:
    """A classifier as values.

    Attributes
    ----------
    parameters : dict
        Arguments of the constructor.
    attributes : dict
        Fitted attributes.
    """

    parameters: dict[str, Any]
    attributes: dict[str, Any]


# ---------------------------------------------------------------- writing


def to_json(model: Any, path: str | Path | None = None) -> str:
    """Return a fitted classifier or policy tree as JSON text; with `path`, also write it to a file.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier or OptimalPolicyTree
        With an encoder of accel_oct, and labels that are numbers, strings or booleans.
    path : path, optional
        The file is replaced as a whole: if writing fails, its previous content is kept.

    Notes
    -----
    Numbers are read back bit for bit. Not stored: `progress`, `constraints` (their reports are), an `objective`
    without a name, and options of the solver and entries of ``result_.stats`` that JSON cannot hold.

    Raises
    ------
    InvalidInputError
        If `read_json` could not read the result.
    """
    check_is_fitted(model, "tree_")
    names = getattr(model, "feature_names_in_", None)
    arrays = model.tree_
    kind = CLASSIFIER if arrays.rewards is None else POLICY
    document = {
        "format": kind,
        "schema": SCHEMA_VERSION,
        "library": __version__,
        "parameters": _classifier_parameters(model) if kind == CLASSIFIER else _policy_parameters(model),
        "classes": {"type": _label_type(model.classes_), "values": model.classes_.tolist()},
        "encoder": _encoder(model.encoder_, fitted=True),
        "columns": {
            "names": None if names is None else [str(name) for name in names],
            "kinds": list(model.encoder_.kinds_),
            **({"spreads": spreads_to_list(model.spreads_)} if kind == CLASSIFIER else {}),
        },
        "tree": arrays.tree.to_dict(),
        "nodes": {
            "samples": arrays.n_node_samples.tolist(),
            "class_weights": arrays.class_weights.tolist(),
            "class_counts": arrays.class_counts.tolist(),
            "class_factors": None if arrays.class_factors is None else arrays.class_factors.tolist(),
            **({"smoothing": model.smoothing_} if arrays.rewards is None else {"rewards": arrays.rewards.tolist()}),
        },
        "result": _result(model.result_),
    }
    text = json.dumps(document, allow_nan=False, indent=1)
    try:
        read_json(text, kind=kind)
    except InvalidInputError as error:
        raise InvalidInputError(f"to_json cannot store this model so that it could be read again: {error}") from None
    if path is not None:
        with replacing(path) as file:
            file.write(text)
    return text


def _parameters(model: Any) -> dict[str, Any]:
    """Parameters that classifiers and policy trees have."""
    encoder = model.encoder
    return {name: _plain(getattr(model, name)) for name in _PLAIN_PARAMETERS} | {
        "solver": model.solver if isinstance(model.solver, str) else _solver(model.solver),
        "verbose": int(model.verbose),
        "encoder": encoder if encoder is None or isinstance(encoder, str) else _encoder(encoder),
    }


def _classifier_parameters(model: Any) -> dict[str, Any]:
    weight = model.class_weight
    if isinstance(weight, dict):
        weight = [[_plain(label), float(value)] for label, value in weight.items()]
    return _parameters(model) | {
        "config": model.config if isinstance(model.config, str) else asdict(model.config),
        "class_weight": weight,
        "objective": model.objective if isinstance(model.objective, str) else None,
        "smoothing": checked_smoothing(model.smoothing),
        "calibrate": as_whole(model.calibrate),
        "ties": model.ties,
    }


def _policy_parameters(model: Any) -> dict[str, Any]:
    """Parameters of a policy tree, without those of the models of outcome and propensity."""
    costs = model.treatment_costs
    if isinstance(costs, Mapping):
        costs = [costs.get(label, 0.0) for label in model.classes_.tolist()]
    return _parameters(model) | {
        **{name: _plain(getattr(model, name)) for name in _POLICY_PARAMETERS},
        "treatment_costs": None if costs is None else [float(cost) for cost in costs],
        "cv": as_whole(model.cv),
        "random_state": as_whole(model.random_state),
    }


def _solver(solver: Solver) -> Any:
    fields = asdict(replace(solver, log=None))
    del fields["log"]
    return _plain(fields)


def _label_type(classes: Any) -> str:
    if classes.dtype.kind not in _LABEL_KINDS:
        raise InvalidInputError(f"to_json cannot store labels of the type {classes.dtype}")
    return _LABEL_KINDS[classes.dtype.kind]


def _encoder(encoder: Any, *, fitted: bool = False) -> dict[str, Any]:
    """Name and parameters; with `fitted`, conditions and categories as well."""
    name = type(encoder).__name__
    if _ENCODERS.get(name) is not type(encoder):
        raise InvalidInputError(f"to_json cannot store a {name}; use an encoder of accel_oct, or pickle")
    parameters: dict[str, Any] = {}
    for key, value in encoder.get_params(deep=False).items():
        # Plain values; a random generator becomes None.
        parameters[key] = _encoder(value) if isinstance(value, BinaryEncoder) else _plain(value)
    document: dict[str, Any] = {"name": name, "parameters": parameters}
    if fitted:
        document["exact"] = bool(encoder.exact_)
        document["conditions"] = [condition.to_dict() for condition in encoder.conditions_]
        document["inexact"], document["oversized"] = list(encoder.inexact_), list(encoder.oversized_)
        document["scales"] = [[column, scale.to_dict()] for column, scale in encoder.scales_.items()]
        if hasattr(encoder, "categories_"):
            document["categories"] = [[column, list(known)] for column, known in encoder.categories_.items()]
    return document


def _result(result: Result) -> dict[str, Any]:
    return {
        "objective": result.objective,
        "bound": result.bound,
        "status": result.status,
        "seconds": result.seconds,
        "nodes": int(result.nodes),
        "backend": result.backend,
        # JSON has no infinity: rows from before the first tree are left out.
        "history": [[float(part) for part in row] for row in result.history if math.isfinite(row.objective)],
        "stats": _plain(dict(result.stats)),
        "constraints": [{**_plain(asdict(report)), "slack": float(report.slack)} for report in result.constraints],
    }


def _plain(value: Any) -> Any:
    """Convert to types of JSON; values that it cannot hold become None."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else None


# ---------------------------------------------------------------- reading


def stored_kind(source: str | Path, *, max_bytes: int = MAX_BYTES) -> str:
    """Return which estimator a file or text holds: `CLASSIFIER`, `POLICY`, or another text of a foreign file."""
    return JsonObject(parsed(_text(source, max_bytes)), "the JSON document").string("format")


def read_json(source: str | Path, *, max_bytes: int = MAX_BYTES, kind: str = CLASSIFIER) -> StoredModel:
    """Read a file or text written by `to_json`.

    Parameters
    ----------
    source : path, or the JSON text itself
    max_bytes : int
        Larger input is rejected unread.
    kind : str
        The estimator that the input must hold: `CLASSIFIER` or `POLICY`.

    Raises
    ------
    InvalidInputError
        If the input is not JSON, truncated, of a newer schema, too large, or inconsistent.
    """
    top = JsonObject(parsed(_text(source, max_bytes)), "the JSON document")
    if top.string("format") != kind:
        raise InvalidInputError(f"the JSON document is no {kind}: its format is {shown(top.string('format'))}")
    schema = top.whole("schema", least=1)
    if schema > SCHEMA_VERSION:
        writer = shown(top.string("library"))
        raise InvalidInputError(
            f"the JSON document has schema {schema}, written by accel_oct {writer}, but this version "
            f"({__version__}) reads up to {SCHEMA_VERSION}; upgrade accel_oct"
        )
    if schema < SCHEMA_VERSION:
        raise InvalidInputError(
            f"the JSON document has schema {schema}, which lacks what predict_proba needs; fit the model again"
        )
    fitted = SimpleNamespace(classes_=_read_classes(top.table("classes")))
    entries, is_policy = top.table("parameters"), kind == POLICY
    parameters = _read_policy_parameters(entries, fitted.classes_) if is_policy else _read_parameters(entries)
    _read_columns(fitted, top)
    _read_tree(fitted, top, is_policy)
    _read_result(fitted, top.table("result"))
    return StoredModel(parameters, vars(fitted))


def _text(source: Any, max_bytes: int) -> str:
    if not isinstance(source, str) or source.lstrip()[:1] not in ("{", "["):
        return read_text(source, max_bytes, "the JSON document")
    if len(source) > max_bytes:
        raise InvalidInputError(f"the JSON document has {len(source)} bytes, more than the limit of {max_bytes}")
    return source


def _read_solver(entries: JsonObject) -> Solver:
    return Solver(
        entries.string("backend"),
        threads=entries.whole("threads", least=-_MAX_THREADS),
        seed=entries.whole("seed"),
        gap=entries.number("gap", least=0.0),
        node_limit=None if entries.get("node_limit") is None else entries.whole("node_limit"),
        options=entries.table("options").values,
    )


def _read_parameters(entries: JsonObject) -> dict[str, Any]:
    if entries.get("max_depth") is not None:
        checked_depth(entries.get("max_depth"))
    entries.string("missing")
    for name in ("leaf_penalty", "min_samples_leaf", "smoothing"):
        entries.number(name, least=0.0)
    if entries.get("time_limit") is not None:
        entries.number("time_limit", least=0.0)
    for name in ("max_leaf_nodes", "max_features_used", "calibrate"):
        if entries.get(name) is not None:
            entries.whole(name)
    if entries.get("exclude") is not None and not all(
        isinstance(column, str | int) and not isinstance(column, bool) for column in entries.sequence("exclude")
    ):
        raise InvalidInputError("parameters.exclude must hold names or positions of columns")
    signs = entries.values.get("monotonic_cst")  # files of earlier versions lack it, and `ties`
    if signs is not None and not (
        isinstance(signs, dict | list)
        and all(as_whole(sign) in (-1, 0, 1) for sign in (signs.values() if isinstance(signs, dict) else signs))
    ):
        raise InvalidInputError("parameters.monotonic_cst must hold 1, 0 or -1 for columns")
    if entries.get("objective") is not None and entries.string("objective") not in NAMED:
        raise InvalidInputError(f"parameters.objective must be one of {', '.join(NAMED)} or null")
    solver, config, encoder = entries.get("solver"), entries.get("config"), entries.get("encoder")
    if isinstance(config, str):
        Config.preset(config)  # refuses an unknown name
    ties = entries.values.get("ties", "first")
    if ties not in TIE_CRITERIA:
        raise InvalidInputError(f"parameters.ties must be one of {', '.join(TIE_CRITERIA)}, got {shown(ties)}")
    plain = [name for name in _PLAIN_PARAMETERS if name != "monotonic_cst"]
    return {name: entries.get(name) for name in (*plain, "objective", "smoothing", "calibrate")} | {
        "monotonic_cst": signs,
        "ties": ties,
        "solver": solver if isinstance(solver, str) else _read_solver(entries.table("solver")),
        "verbose": entries.whole("verbose"),
        "config": config if isinstance(config, str) else Config.from_mapping(entries.table("config").values),
        "class_weight": _read_class_weight(entries),
        "encoder": encoder if encoder in (None, "auto") else _read_encoder(JsonObject(encoder, "parameters.encoder")),
    }


def _read_policy_parameters(entries: JsonObject, treatments: Any) -> dict[str, Any]:
    """Parameters of a policy tree; the rest is read as of a classifier with its defaults."""
    found = _read_parameters(JsonObject({**_CLASSIFIER_ONLY, **entries.values}, "parameters"))
    entries.string("method")
    entries.number("clip", least=0.0)
    if not isinstance(entries.get("minimise"), bool):
        raise InvalidInputError("parameters.minimise must be true or false")
    costs = None if entries.get("treatment_costs") is None else entries.float_array("treatment_costs")
    if costs is not None and costs.shape != (len(treatments),):
        raise InvalidInputError("parameters.treatment_costs must hold one cost per treatment")
    seed = None if entries.get("random_state") is None else entries.whole("random_state")
    return {name: value for name, value in found.items() if name not in _CLASSIFIER_ONLY} | {
        **{name: entries.get(name) for name in _POLICY_PARAMETERS},
        **({} if entries.get("cv") is None else {"cv": entries.whole("cv", least=2)}),
        "treatment_costs": None if costs is None else costs.tolist(),
        "random_state": seed,
    }


def _read_class_weight(entries: JsonObject) -> Any:
    weight = entries.get("class_weight")
    if isinstance(weight, list):
        pairs = dict(entries.pairs("class_weight"))
        if len(pairs) < len(weight):
            raise InvalidInputError("class_weight names a class twice")
        return pairs
    if weight not in (None, "balanced"):
        raise InvalidInputError(f"class_weight must be 'balanced', pairs or null, got {shown(weight)}")
    return weight


def _read_classes(entries: JsonObject) -> Any:
    kind = entries.string("type")
    values = entries.sequence("values")
    if kind not in _LABEL_TYPES:
        raise InvalidInputError(f"classes.type must be one of {', '.join(_LABEL_TYPES)}, got {shown(kind)}")
    wanted: Any = _LABEL_TYPES[kind]
    if not values or any(not isinstance(v, wanted) or (isinstance(v, bool) and kind != "bool") for v in values):
        raise InvalidInputError(f"classes.values must hold one or more values of type {kind}")
    if kind == "str" and len(values) * max(map(len, values)) > _MAX_LABEL_CHARACTERS:
        raise InvalidInputError("classes.values holds too many labels that are too long")
    dtype = _whole_type(values) if kind == "int" else {"str": np.str_, "bool": np.bool_, "float": np.float64}[kind]
    classes: Any = np.array(values, dtype=dtype)
    if classes.tolist() != values:
        raise InvalidInputError("classes.values holds a label that NumPy cannot store exactly")
    if np.any(classes[1:] <= classes[:-1]):
        raise InvalidInputError("classes.values must be distinct and increasing")
    return classes


def _whole_type(values: list[int]) -> Any:
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= min(values) and max(values) <= np.iinfo(kind).max:
            return kind
    raise InvalidInputError("classes.values must hold whole numbers of 64 bits")


def _read_columns(fitted: SimpleNamespace, top: JsonObject) -> None:
    columns = top.table("columns")
    kinds = columns.sequence("kinds")
    if not kinds or any(kind not in get_args(Kind) for kind in kinds):
        raise InvalidInputError(f"columns.kinds must hold one of {', '.join(get_args(Kind))} for each column")
    names = None if columns.get("names") is None else columns.sequence("names")
    if names is not None:
        if len(names) != len(kinds) or not all(isinstance(name, str) for name in names):
            raise InvalidInputError("columns.names must hold one string per column")
        if len(set(names)) < len(names):
            raise InvalidInputError("columns.names must be distinct")
    encoder = _read_encoder(top.table("encoder"), n_columns=len(kinds))
    encoder.kinds_ = tuple(kinds)
    for column in getattr(encoder, "categories_", {}):
        if column >= len(kinds) or kinds[column] != "categorical":
            raise InvalidInputError(f"encoder.categories names column {column}, which is not categorical")
    measured = {column: kind for column, kind in enumerate(kinds) if kind in get_args(MeasuredKind)}
    if {column: scale.kind for column, scale in encoder.scales_.items()} != measured:
        raise InvalidInputError(
            "encoder.scales must have one scale for each column of dates, durations or ordered categories, and no other"
        )
    for condition in encoder.conditions_:
        if condition.column >= len(kinds):
            raise InvalidInputError(f"a condition asks for column {condition.column}, but there are {len(kinds)}")
        _check_condition(condition, kinds[condition.column])
    for owner in (fitted, encoder):
        owner.n_features_in_ = len(kinds)
        if names is not None:
            owner.feature_names_in_ = np.array(names, dtype=object)
    fitted.encoder_ = encoder


def _read_encoder(entries: JsonObject, *, n_columns: int | None = None) -> Any:
    """Inverse of `_encoder`; `n_columns`, the number of input columns, is given for a fitted encoder."""
    name = entries.string("name")
    if name not in _ENCODERS:
        raise InvalidInputError(f"unknown encoder {shown(name)}; known are {', '.join(_ENCODERS)}")
    cls = _ENCODERS[name]
    parameters = entries.table("parameters")
    unknown = set(parameters.values) - set(cls().get_params(deep=False))
    if unknown:
        raise InvalidInputError(f"{name} has no parameter {shown(sorted(unknown)[0])}")
    encoder = cls(
        **{
            key: _read_encoder(JsonObject(value, key)) if isinstance(value, dict) else parameters.scalar(key)
            for key, value in parameters.values.items()
        }
    )
    encoder._check_parameters()
    if n_columns is not None:
        plain = [Condition.from_dict(JsonObject(c, "a condition").values) for c in entries.sequence("conditions")]
        encoder.exact_ = entries.get("exact") is True
        encoder.scales_ = {
            column: Scale.from_dict(JsonObject(scale, "a scale").values)
            for column, scale in _by_column(entries, "scales").items()
        }
        encoder.conditions_ = tuple(replace(c, scale=encoder.scales_.get(c.column)) for c in plain)
        encoder.inexact_ = _positions(entries, "inexact", len(plain))
        encoder.oversized_ = _positions(entries, "oversized", n_columns)
        if isinstance(encoder, OneHotCategoryEncoder | TableEncoder):
            known = _by_column(entries, "categories")
            if not all(isinstance(texts, list) and all(isinstance(t, str) for t in texts) for texts in known.values()):
                raise InvalidInputError("encoder.categories must hold lists of strings")
            encoder.categories_ = {column: tuple(texts) for column, texts in known.items()}
        if isinstance(encoder, TableEncoder):
            encoder.unknown_ = "ignore" if encoder.categorical is None else encoder.categorical.unknown
    return encoder


def _positions(entries: JsonObject, name: str, count: int) -> tuple[int, ...]:
    """Positions of conditions or columns."""
    found = entries.sequence(name)
    if any(isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < count for place in found):
        raise InvalidInputError(f"encoder.{name} must hold positions below {count}")
    return tuple(sorted(set(found)))


def _by_column(entries: JsonObject, name: str) -> dict[int, Any]:
    """A list of pairs (column, value) as a dictionary."""
    result: dict[int, Any] = {}
    for pair in entries.sequence(name):
        if not isinstance(pair, list) or len(pair) != 2:
            raise InvalidInputError(f"encoder.{name} must hold pairs of a column and its {name}")
        column, value = pair
        if isinstance(column, bool) or not isinstance(column, int) or column < 0 or column in result:
            raise InvalidInputError(f"encoder.{name} names the column {shown(column)}")
        result[column] = value
    return result


def _check_condition(condition: Condition, kind: str) -> None:
    """Raise unless the condition can be asked of a column of this kind."""
    measured = kind in get_args(MeasuredKind)
    limits = [limit for limit in (condition.low, condition.high) if limit is not None]
    if (
        kind == "ignored"
        or (condition.test in ("at_least", "between", "is_true") and kind == "categorical")
        or (condition.test == "none_of" and kind != "categorical")
        or (isinstance(condition.value, str) and kind != "categorical")
        or (measured and condition.test not in ("at_least", "between", "is_missing"))
        or (measured and any(limit % 1 for limit in limits))
    ):
        raise InvalidInputError(f"a condition {condition.test!r} does not fit a column of kind {kind!r}")
    if measured:
        assert condition.scale is not None
        if kind == "ordered" and any(not 0 <= limit < len(condition.scale.categories) for limit in limits):
            raise InvalidInputError("a condition names a place beyond the end of its ordered categories")
        if any(abs(limit) * NANOSECONDS.get(condition.scale.unit, 0) > _MAX_NANOSECONDS for limit in limits):
            raise InvalidInputError("a condition asks for a time out of range")


def _read_tree(fitted: SimpleNamespace, top: JsonObject, is_policy: bool) -> None:
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
    factors = None if nodes.get("class_factors") is None else nodes.float_array("class_factors")
    if factors is not None and (factors.shape != (n_classes,) or (factors < 0).any()):
        raise InvalidInputError(f"nodes.class_factors must hold {n_classes} numbers that are not negative")
    rewards = nodes.float_array("rewards") if is_policy else None
    if rewards is not None and rewards.shape != (n_nodes, n_classes):
        raise InvalidInputError(f"nodes.rewards must hold {n_classes} numbers for each of {n_nodes} nodes")
    counts = nodes.float_array("class_counts")
    if counts.shape != weights.shape or (counts < 0).any() or (counts > EXACT).any() or (counts % 1).any():
        raise InvalidInputError(f"nodes.class_counts must hold {n_classes} whole numbers for each node")
    if (counts.sum(axis=1) != samples).any():
        raise InvalidInputError("nodes.class_counts must have the sums nodes.samples")
    if not is_policy:
        fitted.smoothing_ = nodes.number("smoothing", least=0.0)
        spreads = top.table("columns").sequence("spreads")
        fitted.spreads_ = spreads_from_list(spreads, ordered_columns(fitted.encoder_, tree.features_used))
    fitted.tree_ = FittedTree(tree, weights, samples, n_features, counts.astype(np.int64), factors, rewards)


def _read_result(fitted: SimpleNamespace, entries: JsonObject) -> None:
    status = entries.string("status")
    if status not in STATUSES:
        raise InvalidInputError(f"result.status must be one of {', '.join(STATUSES)}")
    objective, bound = entries.number("objective"), entries.number("bound")
    if objective > bound or (status == "optimal" and objective < bound):
        raise InvalidInputError(
            f"result.objective {objective} and result.bound {bound} contradict each other or the status"
        )
    history = entries.float_array("history")
    if len(history) and history.shape[1:] != (3,):
        raise InvalidInputError("result.history must hold rows of three numbers")
    if len(history) and np.any(history[:, 1] > history[:, 2]):
        raise InvalidInputError("result.history has an objective above its bound")
    fitted.result_ = Result(
        found=fitted.tree_.tree,
        objective=objective,
        bound=bound,
        status=status,  # type: ignore[arg-type]  # checked above
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


def _read_constraints(entries: JsonObject) -> tuple[ConstraintReport, ...]:
    found = []
    for entry in entries.sequence("constraints"):
        report = JsonObject(entry, "result.constraints")
        numbers = {
            name: None if report.get(name) is None else report.number(name)
            for name in ("value", "multiplier", "lower", "upper")
        }
        found.append(ConstraintReport(name=report.string("name"), slack=report.number("slack"), **numbers))
    return tuple(found)
