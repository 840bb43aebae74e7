"""Numeric columns at their quantiles: thresholds (QT-q) and buckets (QB-q), section 6.1 of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from accel_oct.encoding.base import BinaryEncoder, Column, FloatArray, check_whole
from accel_oct.encoding.conditions import Condition
from accel_oct.encoding.positions import Distinct, quantile_positions

__all__ = ["QuantileBucketEncoder", "QuantileThresholdEncoder"]


class _QuantileEncoder(BinaryEncoder):
    def __init__(self, n_quantiles: int = 5, *, missing: str = "error") -> None:
        self.n_quantiles = n_quantiles
        self.missing = missing

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_whole(self.n_quantiles, "n_quantiles", 2)


class QuantileThresholdEncoder(_QuantileEncoder):
    """QT-q: binary feature m is 1 when the value is at least the m-th of q - 1 quantile thresholds.

    Parameters
    ----------
    n_quantiles : int
        q; 5 gives the paper's QT-5.
    missing : {"error", "category"}
        Refuse missing values, or ask for them and let them answer yes as well as no: see ``docs/encoders.md``.

    Notes
    -----
    Thresholds lie halfway between two neighbouring values of the data. Quantiles that coincide give one threshold; a
    constant column gives none. See ``docs/encoders.md`` for the exact rule and how it compares to the paper's files.
    """

    def _find_conditions(self, columns: Sequence[Column], y: Any, weights: FloatArray) -> Iterable[Condition]:
        for column in columns:
            distinct = Distinct.of(column.values, weights, column.scale)
            positions = quantile_positions(distinct, self.n_quantiles)
            for threshold in distinct.thresholds(positions):
                yield Condition(column.index, "at_least", low=threshold)


class QuantileBucketEncoder(_QuantileEncoder):
    """QB-q: binary feature m is 1 when the value falls into the m-th of q quantile buckets.

    The outer buckets are open, so every number falls into exactly one.

    Parameters
    ----------
    n_quantiles : int
        q; 5 gives the paper's QB-5.
    missing : {"error", "category"}
        Refuse missing values, or ask for them and let them answer yes as well as no: see ``docs/encoders.md``.

    Notes
    -----
    A bucket edge at the smallest value is dropped, as `pandas.qcut` does; a column with fewer than two buckets gives
    no binary feature.
    """

    def _find_conditions(self, columns: Sequence[Column], y: Any, weights: FloatArray) -> Iterable[Condition]:
        for column in columns:
            distinct = Distinct.of(column.values, weights, column.scale)
            positions = quantile_positions(distinct, self.n_quantiles)
            edges = distinct.thresholds(positions[positions > 0])
            if edges:
                for low, high in zip([None, *edges], [*edges, None], strict=True):
                    yield Condition(column.index, "between", low=low, high=high)
