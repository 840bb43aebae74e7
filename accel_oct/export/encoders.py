"""Encoders as plain values and back: only the classes named here can come out of a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from accel_oct.encoding.auto import AutoEncoder
from accel_oct.encoding.base import BinaryEncoder
from accel_oct.encoding.categorical import OneHotCategoryEncoder
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.passthrough import PassthroughEncoder
from accel_oct.encoding.quantile import QuantileBucketEncoder, QuantileThresholdEncoder
from accel_oct.encoding.scales import Scale
from accel_oct.encoding.table import TableEncoder
from accel_oct.encoding.thresholds import AllThresholdsEncoder, TreeGuidedThresholdEncoder
from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.reading import Reader

__all__ = ["encoder_from_dict", "encoder_to_dict", "needs_schema"]

_KNOWN: dict[str, type[BinaryEncoder]] = {
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


def encoder_to_dict(encoder: Any, *, fitted: bool = False) -> dict[str, Any]:
    """Name and parameters; with `fitted`, the conditions and categories as well."""
    name = type(encoder).__name__
    if _KNOWN.get(name) is not type(encoder):
        raise InvalidInputError(f"to_json cannot store a {name}; use an encoder of accel_oct, or pickle")
    parameters: dict[str, Any] = {}
    for key, value in encoder.get_params(deep=False).items():
        if isinstance(value, BinaryEncoder):
            parameters[key] = encoder_to_dict(value)
        elif value is None or isinstance(value, str | int | float | np.integer):
            parameters[key] = int(value) if isinstance(value, np.integer) else value
        else:
            parameters[key] = None  # a random generator
    document: dict[str, Any] = {"name": name, "parameters": parameters}
    if fitted:
        document["exact"] = bool(encoder.exact_)
        document["conditions"] = [condition.to_dict() for condition in encoder.conditions_]
        document["inexact"], document["oversized"] = list(encoder.inexact_), list(encoder.oversized_)
        if getattr(encoder, "scales_", None):
            document["scales"] = [[index, scale.to_dict()] for index, scale in encoder.scales_.items()]
        if hasattr(encoder, "categories_"):
            document["categories"] = [[index, list(known)] for index, known in encoder.categories_.items()]
    return document


def needs_schema(encoder: Any) -> int:
    """The first schema whose readers understand what a fitted encoder holds."""
    new = any(c.test == "none_of" or c.missing for c in encoder.conditions_)
    later = bool(getattr(encoder, "scales_", None)) or new
    large = any(isinstance(limit, int) for c in encoder.conditions_ for limit in (c.low, c.high))
    return 2 if later or large else 1


def encoder_from_dict(entries: Reader, *, n_columns: int | None = None) -> Any:
    """Inverse of `encoder_to_dict`: fitted where the number of columns of its input is given."""
    name = entries.string("name")
    if name not in _KNOWN:
        raise InvalidInputError(f"unknown encoder {shown(name)}; known are {', '.join(_KNOWN)}")
    cls = _KNOWN[name]
    parameters = entries.table("parameters")
    unknown = set(parameters.values) - set(cls().get_params(deep=False))
    if unknown:
        raise InvalidInputError(f"{name} has no parameter {shown(sorted(unknown)[0])}")
    nested = {
        key: encoder_from_dict(Reader(value, key)) if isinstance(value, dict) else parameters.scalar(key)
        for key, value in parameters.values.items()
    }
    encoder = cls(**nested)
    encoder._check_parameters()
    if n_columns is not None:
        conditions = entries.sequence("conditions")
        if "exact" in entries.values:
            encoder.exact_ = bool(entries.get("exact") is True)
        plain = [Condition.from_dict(Reader(c, "a condition").values) for c in conditions]
        encoder.scales_ = _scales(entries)
        encoder.conditions_ = tuple(replace(c, scale=encoder.scales_.get(c.column)) for c in plain)
        encoder.inexact_ = _positions(entries, "inexact", len(conditions))
        encoder.oversized_ = _positions(entries, "oversized", n_columns)
        if isinstance(encoder, OneHotCategoryEncoder | TableEncoder):
            encoder.categories_ = _categories(entries)
        if isinstance(encoder, TableEncoder):
            encoder.unknown_ = "ignore" if encoder.categorical is None else encoder.categorical.unknown
    return encoder


def _positions(entries: Reader, name: str, count: int) -> tuple[int, ...]:
    """Of conditions or columns; where an older file does not have the entry, it may be any of them."""
    if name not in entries.values:
        return tuple(range(count))
    found = entries.sequence(name)
    if any(isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < count for place in found):
        raise InvalidInputError(f"encoder.{name} must hold positions below {count}")
    return tuple(sorted(set(found)))


def _scales(entries: Reader) -> dict[int, Scale]:
    """By column; files from before there were any have none."""
    result: dict[int, Scale] = {}
    for entry in entries.sequence("scales") if "scales" in entries.values else []:
        if not isinstance(entry, list) or len(entry) != 2:
            raise InvalidInputError("encoder.scales must hold pairs of a column and its scale")
        index = entry[0]
        if isinstance(index, bool) or not isinstance(index, int) or index < 0 or index in result:
            raise InvalidInputError(f"encoder.scales names the column {shown(index)}")
        result[index] = Scale.from_dict(Reader(entry[1], "a scale").values)
    return result


def _categories(entries: Reader) -> dict[int, tuple[str, ...]]:
    result: dict[int, tuple[str, ...]] = {}
    for entry in entries.sequence("categories"):
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[1], list):
            raise InvalidInputError("encoder.categories must hold pairs of a column and its categories")
        index, known = entry
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise InvalidInputError(f"encoder.categories names the column {shown(index)}")
        if not all(isinstance(value, str) for value in known):
            raise InvalidInputError("encoder.categories must hold strings")
        result[index] = tuple(known)
    return result
