"""Data in pieces as the argument X of a solve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accel_oct.data.encoded_table import EncodedTable
from accel_oct.errors import InvalidInputError
from accel_oct.pieces.detection import is_in_pieces
from accel_oct.support.arguments import checked_depth


def read_pieces(
    X: Any, y: Any, sample_weight: Any, *, max_depth: Any, groups: Sequence[str] = (), client: Any = None
) -> tuple[Any, Any, Any]:
    """Return X, y and weights with encoded tables and gathered binary pieces as data; other input is unchanged.

    Parameters
    ----------
    X, y, sample_weight
        Arguments of `solve`. For data in pieces, y and the weights are names of columns; for dask, y may be a
        collection. An `EncodedTable` holds both.
    max_depth : int
        Depth of the solve, which a tally must support.
    groups : sequence of str
        Columns that constraints name as groups.
    client : distributed.Client, optional
        Client of the cluster that reads the pieces.
    """
    if isinstance(X, EncodedTable):
        X.check_alone(y=y, sample_weight=sample_weight)
        return X.data, None, None
    if not is_in_pieces(X, y):
        return X, y, sample_weight
    if y is None:
        raise InvalidInputError("y must be the name of the column with the classes where X is data in pieces, got None")
    # Imported here because it loads scikit-learn, which solves on arrays do not need.
    from accel_oct.pieces.gathering import gather

    depth = checked_depth(max_depth)
    found = gather(
        X,
        y,
        sample_weight=sample_weight,
        sensitive_features=list(groups) or None,
        encoder=None,
        depth=depth,
        client=client,
    )
    return found.data, None, None
