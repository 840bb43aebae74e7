"""What a certificate is about: a table and a problem in whole numbers, and a tree."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from accel_oct.constraints import BoundConstraint
from accel_oct.constraints.leaves import BoundMinLeafWeight
from accel_oct.constraints.statements import RowSet
from accel_oct.constraints.traits import TOLERANCE
from accel_oct.data import BinaryDataset
from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct.exact.ordered import OrderedTree, Ranks
from accel_oct.support.arrays import BoolArray, IntArray
from accel_oct.tree import DecisionTree

_SIMPLE = 10**6
"""Largest denominator of a leaf penalty that is taken as a fraction."""


@dataclass(frozen=True)
class Column:
    """A column of ranks and how the checker reads them: a name, a kind and its arguments, as the format has them."""

    name: str
    kind: str
    arguments: tuple[Any, ...] = ()

    def as_list(self) -> list[Any]:
        return [self.name, self.kind, *self.arguments]


@dataclass(frozen=True)
class Limit:
    """A limit as the format has it, and in integers: ``sum of amounts + leaves * (number of leaves) <= most``.

    Attributes
    ----------
    stated : dict
        The limit in the file.
    """

    stated: dict[str, Any]

    def renamed(self, before: str, after: str) -> Limit:
        """Return the limit with another name of the column of classes."""
        terms = [
            term | {key: [[after if name == before else name, cells] for name, cells in term[key]] for key in _SETS}
            for term in self.stated["terms"]
        ]
        return Limit(self.stated | {"terms": terms})

    def amounts(self, claim: Claim) -> tuple[Any, int, int]:
        """Return the amounts (n, classes) as an object array, and the integers `leaves` and `most`."""
        units = np.array(claim.units, dtype=object)
        leaves, most = Fraction(self.stated["leaves"]), Fraction(self.stated["at_most"])
        terms = [
            (Fraction(term["times"]) / int(units[claim.rows(term["per"])].sum()), term) for term in self.stated["terms"]
        ]
        factor = math.lcm(leaves.denominator, *(times.denominator for times, _ in terms))
        shared = math.gcd(int(leaves * factor), *(int(times * factor) for times, _ in terms)) or 1
        found = np.zeros((len(units), len(claim.classes)), dtype=object)
        for times, term in terms:
            rows = claim.rows(term["rows"])
            for label in term["predicted"]:
                found[rows, label] += int(times * factor) // shared * units[rows]
        return found, int(leaves * factor) // shared, math.floor(most * factor / shared)


_SETS = ("rows", "per")
_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?", re.ASCII)  # in the format


@dataclass(frozen=True, eq=False)
class Claim:
    """The claim that no tree of a problem has a larger objective than a given one.

    Attributes
    ----------
    columns : tuple of Column
        How each column of `ranks` is read.
    ranks : int32 array (columns, n)
    cells : dict of names to sequences of str
        The table's cells by column, as in a CSV file.
    labels : int array (n,)
    classes : tuple of str
    weights : tuple of Fraction
        As given.
    weight_bits : int
        Weights are rounded to multiples of two to the power of minus this number.
    leaf_price : Fraction
        In units.
    max_depth : int or None
    tree : OrderedTree
    least : int
        Least weight of a leaf, in units; 0 for none.
    limits : tuple of Limit
    groups : tuple of tuple of int
        Columns of every group, if `most_groups` limits the number of groups that a tree uses.
    most_groups : int or None
    """

    columns: tuple[Column, ...]
    ranks: Ranks
    cells: dict[str, Sequence[str]]
    labels: IntArray
    classes: tuple[str, ...]
    weights: tuple[Fraction, ...]
    weight_bits: int
    leaf_price: Fraction
    max_depth: int | None
    tree: OrderedTree
    least: int = 0
    limits: tuple[Limit, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    most_groups: int | None = None
    target: str = "target"
    weight: str | None = None

    @classmethod
    def of_features(
        cls,
        dataset: BinaryDataset,
        tree: DecisionTree,
        max_depth: int | None,
        leaf_penalty: float,
        constraints: Sequence[BoundConstraint] = (),
    ) -> Claim:
        """Return the claim about a tree over the binary features of a data set.

        Raises
        ------
        InvalidInputError
            If the problem cannot be certified.
        """
        names = dataset.feature_names
        _check_names(names)
        given = dataset.weights if dataset.given is None else dataset.given
        weights, bits = whole_weights(given, dataset.weights, dataset.grid_bits)
        cells: dict[str, Sequence[str]] = {
            name: np.where(column, "1", "0").tolist() for name, column in zip(names, dataset.X.T, strict=True)
        }
        target, classes = _unused("target", names), class_texts(dataset)
        limits = _limits(constraints, weights, cells, target, classes)
        groups, most_groups = _groups(constraints)
        if limits and groups:
            raise InvalidInputError(
                "a certificate cannot yet be written under a limit on features together with other constraints on the "
                "whole tree"
            )
        return cls(
            columns=tuple(Column(name, "binary") for name in names),
            ranks=np.ascontiguousarray(dataset.X.T).astype(np.int32),
            cells=cells,
            labels=dataset.y,
            classes=classes,
            weights=weights,
            weight_bits=bits,
            leaf_price=exact_price(dataset, leaf_penalty, bits),
            max_depth=max_depth,
            tree=_ordered(tree),
            least=least_weight(constraints, weights),
            limits=limits,
            groups=groups,
            most_groups=most_groups,
            target=target,
            weight=None if all(weight == 1 for weight in weights) else _unused("weight", (*cells, target)),
        )

    @classmethod
    def of_table(
        cls,
        dataset: BinaryDataset,
        columns: Sequence[Column],
        cells: dict[str, Sequence[str]],
        ranks: Ranks,
        tree: OrderedTree,
        max_depth: int | None,
        leaf_penalty: float,
        constraints: Sequence[BoundConstraint] = (),
    ) -> Claim:
        """Return the claim about a tree over all splits of a table.

        Parameters
        ----------
        dataset : BinaryDataset
            Classes and weights of all rows; its features are not used.
        columns, cells, ranks, tree
            As in `Claim`.

        Raises
        ------
        InvalidInputError
            If the problem cannot be certified.
        """
        given = dataset.weights if dataset.given is None else dataset.given
        if not (given > 0).all():
            raise InvalidInputError("a certificate over every split needs positive weights: leave the other rows out")
        weights, bits = whole_weights(given, dataset.weights, dataset.grid_bits)
        target, classes, cells = _unused("target", list(cells)), class_texts(dataset), dict(cells)
        numbers = {column.name for column in columns if column.kind == "number"}
        for constraint in constraints:
            if constraint.statements() is None:
                raise InvalidInputError(
                    f"a certificate over every split cannot yet be written under the constraint `{constraint.name}`"
                )
        return cls(
            columns=tuple(columns),
            ranks=ranks,
            limits=_limits(constraints, weights, cells, target, classes, numbers),
            cells=cells,
            labels=dataset.y,
            classes=classes,
            weights=weights,
            weight_bits=bits,
            leaf_price=exact_price(dataset, leaf_penalty, bits),
            max_depth=max_depth,
            tree=tree,
            target=target,
            weight=None if all(weight == 1 for weight in weights) else _unused("weight", [*cells, target]),
        )

    def named(self, target: str | None, weight: str | None) -> Claim:
        """Return the claim with other names of the columns of classes and weights; None for no change.

        Raises
        ------
        InvalidInputError
            If a name is that of another column.
        """
        weight = self.weight if weight is None or self.weight is None else weight
        target = target or self.target
        limits = tuple(limit.renamed(self.target, target) for limit in self.limits)
        found = replace(self, target=target, weight=weight, limits=limits)
        _check_names([*self.cells, found.target, *([] if found.weight is None else [found.weight])])
        return found

    def rows(self, conditions: Sequence[Any]) -> BoolArray:
        """Return which rows fulfil all conditions [column, cells]."""
        found = np.ones(len(self.labels), dtype=bool)
        for name, chosen in conditions:
            if name == self.target:
                found &= np.isin(self.labels, [self.classes.index(text) for text in chosen])
            else:
                found &= np.isin(np.array(self.cells[name]), chosen)
        return found

    # ---------------------------------------------------------------- whole numbers

    @cached_property
    def units(self) -> list[int]:
        """Weights of the rows in units."""
        scale = Fraction(2) ** self.weight_bits
        return [round(weight * scale) for weight in self.weights]

    @property
    def scale(self) -> int:
        """Number of cost units of a unit of weight."""
        return self.leaf_price.denominator

    @cached_property
    def price(self) -> int:
        """Cost of a leaf."""
        return self.leaf_price.numerator

    @cached_property
    def cost(self) -> int:
        """Cost of the tree: the weight of its errors and the price of its leaves."""
        wrong = self.tree.predict(self.ranks) != self.labels
        errors = sum(unit for unit, miss in zip(self.units, wrong.tolist(), strict=True) if miss)
        return self.scale * errors + self.price * self.tree.n_leaves

    # ---------------------------------------------------------------- text

    def lines(self) -> Iterator[str]:
        """Yield the lines that the fingerprint is computed from."""
        names = list(self.cells)
        yield _line([*names, self.target, self.weight])
        kinds = {column.name: column.kind for column in self.columns}
        columns = [
            list(map(_canonical, cells)) if kinds.get(name) == "number" else cells for name, cells in self.cells.items()
        ]
        for row, label in enumerate(self.labels.tolist()):
            yield _line([*(column[row] for column in columns), self.classes[label], str(self.weights[row])])

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the table."""
        digest = hashlib.sha256()
        for line in self.lines():
            digest.update(line.encode())
        return digest.hexdigest()

    def check_texts(self) -> None:
        """Check that the texts of the file stand for one class or one category each, as the checker reads them.

        Raises
        ------
        InvalidInputError
            If two classes are the same text or number, or two categories the same text, without outer white space.
        """
        numbers = [float(text) for text in self.classes if _NUMBER.fullmatch(text)]
        if len(set(self.classes)) < len(self.classes) or len(set(numbers)) < len(numbers):
            raise InvalidInputError(
                "a certificate needs classes that differ as texts without outer white space, and as floats if they "
                f"are numbers, got {list(self.classes)[:10]}"
            )
        for column in self.columns:
            texts = [text for group in column.arguments[0] for text in group] if column.kind == "groups" else []
            if len(set(texts)) < len(texts):
                raise InvalidInputError(
                    "a certificate needs categories that differ without outer white space; those of column "
                    f"{column.name!r} do not"
                )

    def as_nodes(self) -> list[list[int]]:
        """Return the tree as nodes of the format."""
        parts = zip(self.tree.column, self.tree.rank, self.tree.left, self.tree.right, self.tree.label, strict=True)
        return [[c, r + 1, low, high] if c >= 0 else [label] for c, r, low, high, label in parts]


def _canonical(cell: str) -> str:
    """Return the text of a number in the lines of the fingerprint."""
    return (float(cell) + 0.0).hex() if cell else ""


def _line(cells: Sequence[str | None]) -> str:
    return json.dumps(cells, ensure_ascii=True, separators=(",", ":")) + "\n"


def class_texts(dataset: BinaryDataset) -> tuple[str, ...]:
    """Return the labels as texts that stand for them in a file."""
    return tuple(str(label).strip() for label in dataset.classes.tolist())


def exact_price(dataset: BinaryDataset, leaf_penalty: float, bits: int) -> Fraction:
    """Return the price of a leaf in units.

    For weights that are whole numbers, the penalty is the simplest fraction that is this float: 0.01 is 1/100, where
    the solve has a price on its grid. In units of such weights, values of trees are far apart compared to the
    difference, so the same trees are optimal. Otherwise the price is that of the solve.
    """
    simple = Fraction(float(leaf_penalty)).limit_denominator(_SIMPLE)
    if bits == 0 and float(simple) == float(leaf_penalty):
        return simple * int(dataset.total_weight)
    price, total = Fraction(dataset.leaf_price(leaf_penalty)), Fraction(dataset.total_weight)
    if abs(price - Fraction(float(leaf_penalty)) * total) > total / 2**40:  # the grid is finer
        raise AccelOctError(
            f"the leaf price {float(price)} of the solve is not that of leaf_penalty: please report this"
        )
    return price * Fraction(2) ** (0 if bits == 0 else dataset.grid_bits)


def whole_weights(given: Any, rounded: Any, grid_bits: int) -> tuple[tuple[Fraction, ...], int]:
    """Return the weights as decimal numbers, and the bits of the grid that they are rounded to.

    They are the given ones, unless one of them lies halfway between two steps of the grid as a float and not as the
    decimal number that stands for it: then they are those of the solve.

    Raises
    ------
    InvalidInputError
        If rounding the decimal numbers gives other weights than those of the solve.
    """
    weights = tuple(Fraction(repr(weight)) for weight in given.tolist())
    if all(weight.denominator == 1 for weight in weights) and np.array_equal(given, rounded):
        return weights, 0
    largest = int(np.argmax(rounded))
    # `in_usual_range` may have scaled extreme weights by a power of two.
    shift = round(float(np.log2(rounded[largest]) - np.log2(given[largest])))
    bits = grid_bits + shift
    wanted = [int(unit) for unit in np.ldexp(rounded, grid_bits).tolist()]
    solved = tuple(Fraction(repr(weight)) for weight in np.ldexp(rounded, -shift).tolist())
    for stated in (weights, solved):
        if [round(weight * Fraction(2) ** bits) for weight in stated] == wanted:
            return stated, bits
    raise InvalidInputError("sample_weight has weights that a certificate cannot state exactly")


def least_weight(constraints: Sequence[BoundConstraint], weights: Sequence[Fraction]) -> int:
    """Return the least weight of a leaf that some constraints ask for, for whole weights.

    Raises
    ------
    InvalidInputError
        If a constraint cannot be certified.
    """
    least = 0
    for constraint in constraints:
        if constraint.statements() is not None or _largest_number(constraint) is not None:
            continue
        if not isinstance(constraint, BoundMinLeafWeight):
            raise InvalidInputError(f"a certificate cannot yet be written under the constraint `{constraint.name}`")
        if not all(weight.denominator == 1 for weight in weights):
            raise InvalidInputError(
                f"a certificate under the constraint `{constraint.name}` needs weights that are whole numbers"
            )
        if "rows" in constraint.reads and any(weight != 1 for weight in weights):
            raise InvalidInputError(
                f"a certificate under the constraint `{constraint.name}` needs rows without weights; "
                "MinLeafWeight(amount=...) limits the weight"
            )
        minimum = constraint.minimum - Fraction(TOLERANCE) * sum(weights)
        least = max(least, -(-minimum.numerator // minimum.denominator))
    return least


def _largest_number(constraint: BoundConstraint) -> int | None:
    """Return the largest number of groups of features, if the constraint limits it and nothing else."""
    return None if constraint.traits.features is None else constraint.traits.features.most


def _groups(constraints: Sequence[BoundConstraint]) -> tuple[tuple[tuple[int, ...], ...], int | None]:
    """Return the columns of every group, and how many groups a tree may use; () and None without a limit.

    Raises
    ------
    InvalidInputError
        If there are several limits about different groups.
    """
    found: dict[tuple[tuple[int, ...], ...], int] = {}
    for constraint in constraints:
        rule, most = constraint.traits.features, _largest_number(constraint)
        if rule is not None and most is not None:
            groups = [np.flatnonzero(rule.group == group).tolist() for group in np.unique(rule.group)]
            key = tuple(map(tuple, groups))
            found[key] = min(most, len(groups), found.get(key, most))
    if len(found) > 1:
        raise InvalidInputError("a certificate cannot yet be written under limits on different groups of features")
    return next(iter(found.items())) if found else ((), None)


def _limits(
    constraints: Sequence[BoundConstraint],
    weights: Sequence[Fraction],
    cells: dict[str, Sequence[str]],
    target: str,
    classes: tuple[str, ...],
    numbers: Collection[str] = (),
) -> tuple[Limit, ...]:
    """Return the limits that some constraints state, and add the columns that they name to the cells.

    Columns that are read as numbers have a copy as texts.

    Raises
    ------
    InvalidInputError
        If weights are not whole numbers: shares are of the weights in units.
    """
    names: dict[tuple[str, int], str] = {}

    def condition(rows: RowSet) -> list[Any]:
        if rows.column is None:
            return [target, [classes[int(label)] for label in rows.chosen]]
        key = rows.column, id(rows.values)
        if key not in names:
            texts = [name for name in cells if name == rows.column and name not in numbers]
            same = [name for name in texts if list(cells[name]) == list(rows.values)]
            names[key] = same[0] if same else _unused(rows.column, (*cells, target))
            cells.setdefault(names[key], rows.values)
        return [names[key], list(rows.chosen)]

    limits = []
    for constraint in constraints:
        for stated in constraint.statements() or ():
            if stated.shares and not all(weight.denominator == 1 for weight in weights):
                raise InvalidInputError(
                    f"a certificate under the constraint `{constraint.name}` needs weights that are whole numbers"
                )
            terms = [
                {
                    "times": _text(share.times),
                    "predicted": list(share.predicted),
                    "rows": [condition(rows) for rows in share.rows],
                    "per": [condition(rows) for rows in share.per],
                }
                for share in stated.shares
            ]
            limits.append(Limit({"terms": terms, "leaves": _text(stated.leaves), "at_most": _text(stated.at_most)}))
    return tuple(limits)


def _text(number: Fraction) -> str:
    """Return a decimal number as such, other fractions with a bar."""
    for digits in range(40):
        if 10**digits % number.denominator == 0:
            whole, sign = abs(number.numerator) * 10**digits // number.denominator, "-" * (number < 0)
            text = f"{whole:0{digits + 1}d}"
            return sign + text[: len(text) - digits] + ("." + text[len(text) - digits :]) * bool(digits)
    return str(number)


def _check_names(names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise InvalidInputError("a certificate needs columns with different names")


def _unused(name: str, others: Sequence[str]) -> str:
    while name in others:
        name += "_"
    return name


def _ordered(tree: DecisionTree) -> OrderedTree:
    """Return a tree over features as one over ranks."""
    rows: list[list[int]] = []

    def add(node: int) -> int:
        place, feature = len(rows), int(tree.feature[node - 1])
        rows.append([feature, 0, -1, -1, int(tree.label[node - 1])])
        if feature >= 0:
            rows[place][2] = add(2 * node)
            rows[place][3] = add(2 * node + 1)
        return place

    add(1)
    return OrderedTree.of_rows(np.array(rows, dtype=np.int32))


@dataclass(frozen=True, eq=False)
class FeatureProblem:
    """A problem over binary features, from which the claim about its optimal tree is made.

    Attributes
    ----------
    dataset : BinaryDataset
    max_depth : int or None
    leaf_penalty : float
    constraints : tuple of BoundConstraint
    objective : str
        Name of the objective.
    """

    dataset: BinaryDataset
    max_depth: int | None
    leaf_penalty: float
    constraints: tuple[BoundConstraint, ...]
    objective: str

    def claim(self, tree: DecisionTree) -> Claim:
        """Return the claim that a tree is optimal.

        Raises
        ------
        InvalidInputError
            If the problem cannot be certified.
        """
        if self.objective != "accuracy":
            raise InvalidInputError(f"a certificate cannot yet be written for the objective {self.objective!r}")
        return Claim.of_features(self.dataset, tree, self.max_depth, self.leaf_penalty, self.constraints)
