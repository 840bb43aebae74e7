"""Problems that are made by a rule, the same on every machine: no file is needed.

| name | rows | rule |
| --- | ---: | --- |
| ``gen-monk1`` | 432 | all points of the monk's problems; a1 = a2 or a5 = 1 |
| ``gen-monk2`` | 432 | exactly two of a1, ..., a6 are 1 |
| ``gen-monk3`` | 432 | (a5 = 3 and a4 = 1) or (a5 is not 4 and a2 is not 3), 22 labels (5 %) turned, by a seed |
| ``gen-tic-tac-toe`` | 958 | all boards at the end of a game that x began; x has won |
| ``gen-balance-scale`` | 625 | left weight times distance against right weight times distance |
| ``gen-chain-N`` | 2^N | all points with N bits; the first 1 at an even place, or not (a decision list) |
| ``gen-ties-NxF`` | N | N rows of F bits, few of them distinct, labels without a pattern: many equally good trees |
| ``gen-hidden-NxF`` | N | F bits, a hidden tree of depth three, 10 % of the labels turned |

Attributes with more than two values are one-hot, as the paper's files are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.errors import InvalidInputError
from accel_oct_bench.instances import EncodedData, synthetic_data

__all__ = ["GENERATED", "generated"]

#: Names, and of families an example each.
GENERATED = (
    "gen-monk1", "gen-monk2", "gen-monk3", "gen-tic-tac-toe", "gen-balance-scale", "gen-chain-6", "gen-ties-200x12",
    "gen-hidden-1000x50",
)  # fmt: skip

_MONK_VALUES = (3, 3, 2, 3, 4, 2)
_MOST_BITS = 16
_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def generated(name: str) -> EncodedData | None:
    """The problem of that name; None where no rule has it."""
    if name in _FIXED:
        return _FIXED[name](name)
    found = re.fullmatch(r"gen-chain-(\d{1,6})", name)
    if found:
        return _chain(name, int(found[1]))
    found = re.fullmatch(r"gen-(ties|hidden)-(\d{1,9})x(\d{1,6})", name)
    if found:
        n_samples, n_features = int(found[2]), int(found[3])
        if n_samples < 2 or n_features < 3:
            raise InvalidInputError(f"data {name!r} must have at least 2 rows and 3 features")
        return _ties(name, n_samples, n_features) if found[1] == "ties" else _hidden(name, n_samples, n_features)
    return None


def one_hot(table: NDArray[Any]) -> NDArray[np.bool_]:
    """A column per value and attribute, values in sorted order; of two values the second alone."""
    columns = []
    for values in table.T:
        categories = np.unique(values)
        columns += [values == category for category in (categories[1:] if len(categories) == 2 else categories)]
    return np.array(columns).T


def _monk(rule: Callable[[NDArray[Any]], NDArray[Any]], turned: int = 0) -> Callable[[str], EncodedData]:
    def build(name: str) -> EncodedData:
        points = np.array(list(product(*(range(1, values + 1) for values in _MONK_VALUES))))
        y = rule(points).astype(np.int64)
        y[np.random.default_rng(3).permutation(len(y))[:turned]] ^= 1
        return EncodedData(name, one_hot(points), y)

    return build


def _tic_tac_toe(name: str) -> EncodedData:
    boards = sorted(set(_final_boards("b" * 9, "x")))
    y = np.array([_has_won(board, "x") for board in boards]).astype(np.int64)
    return EncodedData(name, one_hot(np.array([list(board) for board in boards])), y)


def _final_boards(board: str, player: str) -> Iterator[str]:
    """Every board on which a game ends that goes on from this one."""
    seen = {board}
    level = [(board, player)]
    while level:
        following = []
        for held, turn in level:
            if _has_won(held, "x") or _has_won(held, "o") or "b" not in held:
                yield held
                continue
            for place in range(9):
                after = held[:place] + turn + held[place + 1 :]
                if held[place] == "b" and after not in seen:
                    seen.add(after)
                    following.append((after, "o" if turn == "x" else "x"))
        level = following


def _has_won(board: str, player: str) -> bool:
    return any(all(board[place] == player for place in line) for line in _LINES)


def _balance_scale(name: str) -> EncodedData:
    points = np.array(list(product(range(1, 6), repeat=4)))
    moment = points[:, 0] * points[:, 1] - points[:, 2] * points[:, 3]
    return EncodedData(name, one_hot(points), np.array(["B", "L", "R"])[np.sign(moment)])


def _chain(name: str, bits: int) -> EncodedData:
    if not 2 <= bits <= _MOST_BITS:
        raise InvalidInputError(f"data {name!r} must have between 2 and {_MOST_BITS} bits: it has all of their points")
    X = (np.arange(2**bits)[:, None] >> np.arange(bits)) % 2 == 1
    first = np.where(X.any(axis=1), X.argmax(axis=1), bits)
    return EncodedData(name, X, (first % 2 == 0).astype(np.int64))


def _ties(name: str, n_samples: int, n_features: int) -> EncodedData:
    rng = np.random.default_rng([n_samples, n_features])
    distinct = rng.integers(0, 2, (max(2, n_samples // 4), n_features)) == 1
    return EncodedData(name, distinct[rng.integers(0, len(distinct), n_samples)], rng.integers(0, 2, n_samples))


def _hidden(name: str, n_samples: int, n_features: int) -> EncodedData:
    made = synthetic_data(n_samples, n_features)
    return EncodedData(name, made.X, made.y)


_FIXED: dict[str, Callable[[str], EncodedData]] = {
    "gen-monk1": _monk(lambda a: (a[:, 0] == a[:, 1]) | (a[:, 4] == 1)),
    "gen-monk2": _monk(lambda a: (a == 1).sum(axis=1) == 2),
    "gen-monk3": _monk(lambda a: ((a[:, 4] == 3) & (a[:, 3] == 1)) | ((a[:, 4] != 4) & (a[:, 1] != 3)), turned=22),
    "gen-tic-tac-toe": _tic_tac_toe,
    "gen-balance-scale": _balance_scale,
}
