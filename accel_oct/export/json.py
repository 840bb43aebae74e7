"""A fitted classifier as JSON; `accel_oct.export.stored_model` reads it back."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from accel_oct._version import __version__
from accel_oct.encoding.base import BinaryEncoder
from accel_oct.errors import InvalidInputError
from accel_oct.export.encoders import encoder_to_dict, needs_schema
from accel_oct.export.stored_model import FORMAT, LATER_PARAMETERS, PLAIN_PARAMETERS, read_json
from accel_oct.solving.result import Result
from accel_oct.support.files import replacing

__all__ = ["to_json"]


def to_json(model: Any, path: str | Path | None = None) -> str:
    """The fitted classifier as JSON text, written to a file when `path` is given.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier
        With an encoder of accel_oct, and labels that are numbers, strings or booleans.
    path : path, optional

    Notes
    -----
    Numbers are written so that they read back bit for bit. Left out: `progress`, `constraints` (what came of them is
    kept), an `objective` that has no name, and options of the solver and entries of ``result_.stats`` that JSON cannot
    hold. The file is replaced as a whole: when writing fails, what was there before
    still is.

    Raises
    ------
    InvalidInputError
        When `read_json` could not read the result.
    """
    check_is_fitted(model, "tree_")
    if not isinstance(model.encoder_, BinaryEncoder):
        raise InvalidInputError(
            f"to_json cannot store a {type(model.encoder_).__name__}; use an encoder of accel_oct, or pickle"
        )
    names = getattr(model, "feature_names_in_", None)
    arrays = model.tree_
    document = {
        "format": FORMAT,
        "schema": needs_schema(model.encoder_),
        "library": __version__,
        "parameters": _parameters(model),
        "classes": {"type": _label_type(model.classes_), "values": model.classes_.tolist()},
        "columns": {
            "names": None if names is None else [str(name) for name in names],
            "kinds": list(model.encoder_.kinds_),
        },
        "encoder": encoder_to_dict(model.encoder_, fitted=True),
        "tree": arrays.tree.to_dict(),
        "nodes": {
            "samples": arrays.n_node_samples.tolist(),
            "class_weights": arrays.class_weights.tolist(),
            "class_factors": None if arrays.class_factors is None else arrays.class_factors.tolist(),
        },
        "result": _result(model.result_),
    }
    text = json.dumps(document, allow_nan=False, indent=1)
    try:
        read_json(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"to_json cannot store this model so that it could be read again: {error}") from None
    if path is not None:
        with replacing(path) as file:
            file.write(text)
    return text


def _parameters(model: Any) -> dict[str, Any]:
    parameters = {name: _plain(getattr(model, name)) for name in PLAIN_PARAMETERS}
    parameters["solver"] = model.solver if isinstance(model.solver, str) else _plain(asdict(model.solver))
    parameters["config"] = model.config if isinstance(model.config, str) else asdict(model.config)
    weight = model.class_weight
    if isinstance(weight, dict):
        weight = [[_plain(label), float(value)] for label, value in weight.items()]
    parameters["class_weight"] = weight
    encoder = model.encoder
    named = isinstance(model.objective, str)
    parameters |= {name: _plain(getattr(model, name)) for name in LATER_PARAMETERS if name != "objective"}
    parameters["objective"] = model.objective if named else None
    parameters["verbose"] = int(model.verbose)
    parameters["encoder"] = encoder if encoder is None or isinstance(encoder, str) else encoder_to_dict(encoder)
    return parameters


def _label_type(classes: Any) -> str:
    kinds = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str"}
    if classes.dtype.kind not in kinds:
        raise InvalidInputError(f"to_json cannot store labels of the type {classes.dtype}")
    return kinds[classes.dtype.kind]


def _result(result: Result) -> dict[str, Any]:
    return {
        "objective": result.objective,
        "bound": result.bound,
        "status": result.status,
        "seconds": result.seconds,
        "nodes": int(result.nodes),
        "backend": result.backend,
        # JSON has no infinity: the moments before there was a tree are left out.
        "history": [[float(part) for part in row] for row in result.history if math.isfinite(row.objective)],
        "stats": _plain(dict(result.stats)),
        "constraints": [{**_plain(asdict(report)), "slack": float(report.slack)} for report in result.constraints],
    }


def _plain(value: Any) -> Any:
    """JSON's own types; None for what they cannot express."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else None
