"""Check a certificate of an optimal classification tree, with nothing but the standard library.

    python accel_oct_checker.py proof.json data.csv

Exit code 0: the claim of the certificate is proven for these data; one sentence says what is proven. 1: the tree, the
data or a lemma does not bear out the claim; the first fault is named. 2: a file is malformed. 3: a limit on time or
memory was reached, and nothing is decided.

The program imports nothing of the solver. All decisions are made with integers and fractions. NumPy, where it is
installed, makes the counting faster: its floats then hold only integers below 2**53, sums of which are exact.
The format and the proof of every rule are in docs/certificates.md.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import json
import math
import re
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from fractions import Fraction
from itertools import compress
from operator import add, mul, sub
from typing import Any, NoReturn

try:
    import numpy as np
except ImportError:  # the plain path
    np = None  # type: ignore[assignment]

INFINITE = 1 << 200  # the cost of a leaf that is not allowed
LARGE = 1 << 60  # the same in units, where floats are used
LEAST, MOST, WEIGHT = 0, 1, 2  # quantities: least and largest cost of a point, weight of a row
MEMO = 1 << 17  # sets whose cost at depth two is remembered


class Malformed(Exception):
    """A file is not what the format asks for."""


class Refused(Exception):
    """The data, the tree or a lemma does not bear out the claim."""


class LimitReached(Exception):
    """Time or memory is used up."""


class Clock:
    """Raises `LimitReached` once the seconds are over."""

    def __init__(self, seconds: float | None) -> None:
        self.end = math.inf if seconds is None else time.monotonic() + seconds

    def tick(self) -> None:
        if time.monotonic() > self.end:
            raise LimitReached("the time limit is reached")


# ---------------------------------------------------------------- files


def need(holds: Any, message: str) -> None:
    if not holds:
        raise Malformed(message)


def whole(value: Any, low: int, high: int, name: str) -> int:
    need(type(value) is int and low <= value <= high, f"{name} must be a whole number from {low} to {high}")
    return int(value)


def only(value: Any, names: set[str], where: str) -> None:
    need(isinstance(value, dict) and set(value) <= names, f"{where} must be an object with no keys but {sorted(names)}")


def part(value: Any, name: str, kind: type, where: str) -> Any:
    need(isinstance(value, dict) and type(value.get(name)) is kind, f"{where} needs {name!r}, a {kind.__name__}")
    return value[name]


def read_bytes(path: str, most: int) -> bytes:
    """Return the content of a file, unpacked if it is gzip, of at most `most` bytes."""
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else open(path, "rb") as source:
            pieces, held = [], 0
            while held <= most and (piece := source.read(min(1 << 20, most + 1 - held))):
                pieces.append(piece)  # a single large read would allocate its limit at once
                held += len(piece)
            content = b"".join(pieces)
    except (OSError, EOFError, zlib.error) as error:
        raise Malformed(f"cannot read {path}: {error}") from None
    if len(content) > most:
        raise LimitReached(f"{path} is larger than the limit of {most} bytes")
    return content


def read_certificate(path: str, most: int) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        need(len(found) == len(pairs), f"{path} names a key twice")
        return found

    def never(text: str) -> NoReturn:
        raise Malformed(f"{path} has the number {text}; only integers are allowed")

    try:
        found: dict[str, Any] = json.loads(
            read_bytes(path, most).decode("utf-8"), object_pairs_hook=once, parse_float=never, parse_constant=never
        )
    except (ValueError, RecursionError) as error:
        raise Malformed(f"{path} is not JSON: {error}") from None
    need(isinstance(found, dict) and found.get("format") == "accel-oct certificate", f"{path} is no certificate")
    version = found.get("version")
    need(type(version) is int and version == 1, f"{path} is not of version 1, which this program reads")
    return found


_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?", re.ASCII)


def exact(text: str, name: str) -> Fraction:
    need(_NUMBER.fullmatch(text), f"{name} must be a decimal number, got {text[:40]!r}")
    return Fraction(text)


def fraction(text: Any, name: str, signed: bool = False) -> Fraction:
    form = r"-?[0-9]{1,400}(/[1-9][0-9]{0,400}|\.[0-9]{1,400})?" if signed else r"[0-9]{1,400}(/[1-9][0-9]{0,400})?"
    need(isinstance(text, str) and re.fullmatch(form, text), f"{name} must be a fraction")
    return Fraction(text)


class Data:
    """The rows of the table, as the certificate reads it: ranks by column, classes and whole weights.

    Attributes
    ----------
    labels, weights : class and weight of every row; all lists are without the rows of weight 0
    texts : by column that a limit names, the cell of every row
    n_rows : number of rows of the table
    point_of : the point of every row; rows with equal ranks in every column form a point
    ranks : one list per column with the rank of every point
    tops : the largest rank of every column
    """

    def __init__(self, spec: dict[str, Any], extra: list[str], content: bytes, clock: Clock) -> None:
        self.classes = part(spec, "classes", list, "data")
        columns, target = part(spec, "columns", list, "data"), part(spec, "target", str, "data")
        weight, bits = spec.get("weight"), whole(spec.get("weight_bits"), -1200, 1200, "weight_bits")
        need(weight is None or isinstance(weight, str), "weight must be a name or null")
        need(self.classes and all(isinstance(c, str) for c in self.classes), "classes must be texts")
        need(len(set(self.classes)) == len(self.classes), "classes must differ")
        for column in columns:
            need(isinstance(column, list) and 2 <= len(column) <= 3, "a column is [name, kind] or [name, kind, more]")
            need(all(isinstance(text, str) for text in column[:2]), "a column has a name and a kind")
            need(column[1] in KINDS, f"the kind {column[1]!r} is unknown")
            need(column[-1] is not None, "an argument of a kind cannot be null")
        try:
            table = []
            for row in csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True):
                clock.tick()
                if row:
                    table.append(row)
        except (UnicodeDecodeError, csv.Error) as error:
            raise Malformed(f"the data are no CSV in UTF-8: {error}") from None
        need(table, "the data are empty")
        header, rows = table[0], table[1:]
        names = list(dict.fromkeys(column[0] for column in columns))
        need(
            all(column[1] != "number" for column in columns if column[0] in extra), "a limit names a column of numbers"
        )
        extra = [name for name in dict.fromkeys(extra) if name != target]
        named = list(dict.fromkeys([*names, *extra]))
        asked = [*named, target] + ([] if weight is None else [weight])
        for name in asked:
            clock.tick()
            need(header.count(name) == 1, f"the data must have the column {name!r} once")
        need(all(len(row) == len(header) for row in rows), "a row of the data has too few or too many cells")
        cells = dict[str, list[str]]()
        for name in dict.fromkeys(asked):
            clock.tick()
            place_of = header.index(name)
            cells[name] = [row[place_of].strip() for row in rows]
        place = {text: number for number, text in enumerate(self.classes)}
        numbers = [text for text in self.classes if _NUMBER.fullmatch(text)]
        numeric = {float(text): place[text] for text in numbers}
        need(len(numeric) == len(numbers), "two classes are the same number")
        labels = [
            place.get(cell, numeric.get(float(cell)) if _NUMBER.fullmatch(cell) else None) for cell in cells[target]
        ]
        for cell, label in zip(cells[target], labels, strict=True):
            if label is None:
                raise Refused(f"the data have the class {cell[:40]!r}, which the certificate does not name")
        scale = Fraction(2) ** bits
        given = [Fraction(1)] * len(rows) if weight is None else [exact(cell, "a weight") for cell in cells[weight]]
        need(all(amount >= 0 for amount in given), "weights must not be negative")
        self.weights = [round(amount * scale) for amount in given]
        self.labels: list[int] = [label for label in labels if label is not None]
        self.names, self.columns = [column[0] for column in columns], columns
        self.ranks, self.tops = list[list[int]](), list[int]()
        shown = {name: cells[name] for name in extra}
        for column in columns:
            clock.tick()
            ranks, texts = KINDS[column[1]](cells[column[0]], *column[2:])
            need(shown.setdefault(column[0], texts) == texts, f"{column[0]!r} is read in two ways")
            self.ranks.append(ranks)
            self.tops.append(max(ranks, default=0))
        digest = hashlib.sha256((_line([*named, target, weight])).encode())
        columns_of = [shown[name] for name in named]
        for number, label in enumerate(self.labels):
            clock.tick()
            row = [texts[number] for texts in columns_of]
            digest.update(_line([*row, self.classes[label], str(given[number])]).encode())
        self.fingerprint = digest.hexdigest()
        need(self.labels and sum(self.weights) > 0, "the data have no weight")
        # Share of the weight that rounding changes: the claim is about the rounded weights.
        self.rounded = sum(abs(unit - amount * scale) for unit, amount in zip(self.weights, given, strict=True)) / sum(
            amount * scale for amount in given
        )
        need(self.rounded <= Fraction(1, 1 << 20), "weight_bits are too few: they change the weights")
        # Rows without weight cost nothing: they are no part of any set of rows.
        self.n_rows, heavy = len(rows), [row for row, amount in enumerate(self.weights) if amount]
        if len(heavy) < self.n_rows:
            self.weights, self.labels = ([values[row] for row in heavy] for values in (self.weights, self.labels))
            self.ranks = [[ranks[row] for row in heavy] for ranks in self.ranks]
        self.texts = {name: [cells[name][row] for row in heavy] for name in extra}
        self.texts[target] = [self.classes[label] for label in self.labels]
        points: dict[tuple[int, ...], int] = {}
        self.point_of = [points.setdefault(key, len(points)) for key in zip(*self.ranks, strict=True)] or [0] * len(
            heavy
        )
        self.n_points = len(points) or 1
        self.ranks = [list(own) for own in zip(*points, strict=True)]

    def by_point(self, amounts: list[list[int]]) -> list[list[int]]:
        """Add up the amounts by class of the rows of every point."""
        sums = [[0] * len(self.classes) for _ in range(self.n_points)]
        for point, own in zip(self.point_of, amounts, strict=True):
            sums[point] = [old + new for old, new in zip(sums[point], own, strict=True)]
        return sums


def _line(cells: list[Any]) -> str:
    return json.dumps(cells, ensure_ascii=True, separators=(",", ":")) + "\n"


Read = tuple[list[int], list[str]]


def binary(cells: list[str], more: Any = None) -> Read:
    """Ranks of cells that are 0 or 1."""
    need(more is None and all(cell in ("0", "1") for cell in cells), "a binary column has only the cells 0 and 1")
    return [int(cell) for cell in cells], cells


def number(cells: list[str], missing: Any = None) -> Read:
    """Ranks of numbers, as the floats of 64 bits that are nearest; an empty cell is below or above all of them."""
    need(missing in (None, "below", "above"), "missing values are below or above")
    need(all(_NUMBER.fullmatch(cell) or (missing and not cell) for cell in cells), "a cell is no number")
    values = [float(cell) if cell else None for cell in cells]
    order = {value: rank for rank, value in enumerate(sorted({v for v in values if v is not None}))}
    low = 1 if missing == "below" and None in values else 0
    absent = 0 if low else len(order)
    ranks = [absent if value is None else order[value] + low for value in values]
    return ranks, ["" if value is None else (value + 0.0).hex() for value in values]


def groups(cells: list[str], listed: Any = None) -> Read:
    """Ranks of texts by the list of groups that they are in."""
    need(isinstance(listed, list), "groups must be a list of lists of texts")
    need(all(isinstance(g, list) and all(isinstance(text, str) for text in g) for g in listed), "groups hold texts")
    rank = {text: place for place, group in enumerate(listed) for text in group}
    need(len(rank) == sum(map(len, listed)), "a text is in two groups")
    need(all(cell in rank for cell in cells), "a cell is in no group")
    return [rank[cell] for cell in cells], cells


KINDS = {"binary": binary, "number": number, "groups": groups}


# ---------------------------------------------------------------- sets of points


class Plain:
    """Costs of trees on sets of points, which are integers with a bit per point, by counting bits.

    `costs` has the cost of predicting each class for the rows of a point.
    `cuts` are all splits (column, threshold): rows with at least this rank go right. A profile of a set is
    (set, totals, tables): sums over the set, and lists of sums to the right of every cut.
    """

    def __init__(self, data: Data, costs: list[list[int]], price: int, least: int, clock: Clock) -> None:
        self.arguments = data, costs, price, least, clock
        self.price, self.least, self.clock, self.n, self.data = price, least, clock, len(costs), data
        self.memo: dict[int, int] = {}
        weights = [0] * self.n
        for point, weight in zip(data.point_of, data.weights, strict=True):
            weights[point] += weight
        self.quantities = [[min(own) for own in costs], [max(own) for own in costs], weights]
        self.signed = len(costs[0]) == 2 and not least
        if self.signed:
            self.quantities += [[a - b for a, b in costs], [a + b for a, b in costs]]
        else:
            self.quantities += [list(own) for own in zip(*costs, strict=True)]
        self.used = [*range(3, len(self.quantities)), *([2] if least else [])]
        self.planes = [self._planes(values) for values in self.quantities]
        self.mask_of: dict[tuple[int, int], int] = {}
        for column, (ranks, top) in enumerate(zip(data.ranks, data.tops, strict=True)):
            rows_of: list[list[int]] = [[] for _ in range(top + 1)]
            for row, rank in enumerate(ranks):
                rows_of[rank].append(row)
            masks = [0]
            for rank in range(top, 0, -1):
                clock.tick()
                masks.append(masks[-1] | self._mask(rows_of[rank]))
            self.mask_of |= {(column, rank): masks[top + 1 - rank] for rank in range(1, top + 1)}
        self.cuts, self.masks = list(self.mask_of), list(self.mask_of.values())
        self.everything = (1 << self.n) - 1

    def _mask(self, rows: list[int]) -> int:
        packed = bytearray(self.n // 8 + 1)
        for row in rows:
            packed[row >> 3] |= 1 << (row & 7)
        return int.from_bytes(packed, "little")

    def _planes(self, values: list[int]) -> list[tuple[int, int]]:
        """Return sets of rows with weights, sums of which are the values: one per value, or per binary digit."""
        different = set(values) - {0}
        digits = max((abs(value).bit_length() for value in different), default=0)
        rows_of: dict[int, list[int]] = {}
        for row, value in enumerate(values):
            parts = [value] if len(different) <= 2 * digits else [1 << d for d in range(digits) if abs(value) >> d & 1]
            for part in parts:
                rows_of.setdefault(part if part < 0 or value > 0 else -part, []).append(row)
        return [(self._mask(rows), value) for value, rows in rows_of.items() if value]

    def total(self, subset: int, quantity: int) -> int:
        return sum(value * (subset & rows).bit_count() for rows, value in self.planes[quantity])

    def right(self, subset: int, quantity: int) -> list[int]:
        """Return the sums over a set to the right of every cut."""
        self.clock.tick()
        found = [0] * len(self.masks)
        for rows, value in self.planes[quantity]:
            if own := subset & rows:
                self.clock.tick()
                found = [old + value * (own & mask).bit_count() for old, mask in zip(found, self.masks, strict=True)]
        return found

    def profile(self, subset: int) -> Any:
        tables = [self.right(subset, quantity) for quantity in (self.used[:1] if self.signed else self.used)]
        return subset, [self.total(subset, quantity) for quantity in self.used], tables

    def leaf(self, *sums: int) -> int:
        """Return the cost of a leaf from its sums by class, and its weight if leaves have a least weight."""
        if self.least:
            return min(sums[:-1]) if sums[-1] >= self.least else INFINITE
        return min(sums)

    def leaf_and_split(self, profile: Any) -> tuple[int, int]:
        """Return the least cost of a leaf, and of two leaves, without their price."""
        _, totals, tables = profile
        if self.signed:  # min(a, b) is (a + b - |a - b|) / 2
            difference, both = totals
            largest, smallest = max(tables[0], default=0), min(tables[0], default=0)
            most = max(abs(difference), 2 * largest - difference, difference - 2 * smallest)
            return (both - abs(difference)) // 2, (both - most) // 2
        splits = (self.leaf(*sums) + self.leaf(*map(sub, totals, sums)) for sums in zip(*tables, strict=True))
        return self.leaf(*totals), min(splits, default=INFINITE)

    def one(self, profile: Any) -> int:
        """Return the least cost of trees of depth at most one."""
        leaf, split = self.leaf_and_split(profile)
        return min(leaf + self.price, split + 2 * self.price)

    def subset(self, outer: int, cut: tuple[int, int], side: int) -> int:
        rows = self.mask_of.get(cut, 0)
        return outer & rows if side else outer & ~rows

    def separating(self, subset: int) -> list[int]:
        """Return the places of cuts with rows on both sides, one of each equal set in a column."""
        found, last = [], (-1, 0)
        for place, (cut, mask) in enumerate(zip(self.cuts, self.masks, strict=True)):
            here = cut[0], subset & mask
            if here[1] and here[1] != subset and here != last:
                found.append(place)
            last = here
        return found

    def pair(self, profile: Any, cut: tuple[int, int]) -> tuple[int, int]:
        """Return the least costs at depth one of both sides of a cut."""
        right = self.profile(self.subset(profile[0], cut, 1))
        tables = [list(map(sub, all_, some)) for all_, some in zip(profile[2], right[2], strict=True)]
        return self.one((None, list(map(sub, profile[1], right[1])), tables)), self.one(right)

    def two(self, subset: int, most: int = INFINITE) -> int:
        """Return the least cost of trees of depth at most two, or a number >= `most` if it is at least `most`."""
        profile = self.profile(subset)
        best = min(most, self.one(profile))
        if best <= self.total(subset, LEAST) + 3 * self.price:
            return best
        everything, weights = self.total(subset, MOST), self.right(subset, MOST)
        by_column: dict[int, list[tuple[int, int]]] = {}
        for place in self.separating(subset):
            by_column.setdefault(self.cuts[place][0], []).append((self.cuts[place][1], everything - weights[place]))
        for column, cuts in by_column.items():  # thresholds with the weight to their left, increasing
            ranges = [(0, len(cuts) - 1, self.price, self.price)]
            while ranges:
                low, high, left, right = ranges.pop()
                if low > high or left + right >= best:
                    continue
                middle = (low + high) // 2
                a, b = self.pair(profile, (column, cuts[middle][0]))
                best = min(best, a + b)
                below, above = middle - 1, middle + 1
                if self.least:  # smaller sets may cost more
                    ranges += [(low, below, left, right), (above, high, left, right)]
                    continue
                room, here = a + b - best, cuts[middle][1]  # cuts with no more weight between cost at least `best`, too
                while below >= low and here - cuts[below][1] <= room:
                    below -= 1
                while above <= high and cuts[above][1] - here <= room:
                    above += 1
                ranges += [(low, below, left, max(right, b)), (above, high, max(left, a), right)]
        return best

    def bound(self, subset: int, height: int | None, level: int, most: int = INFINITE) -> int:
        """Return a bound by counting, exact up to depth `level`; or a number >= `most` if it is at least `most`."""
        level = level if height is None else min(level, height)
        if level == 2:
            if len(self.memo) > MEMO:
                self.memo.clear()
            found = self.memo.get(subset) or self.two(subset, most)
            if most == INFINITE:
                self.memo[subset] = found
        else:
            profile = self.profile(subset)
            found = self.one(profile) if level else self.leaf_and_split(profile)[0] + self.price
        if height is None or height > level:
            found = min(found, self.deeper(subset, level))
        return found

    def deeper(self, subset: int, level: int) -> int:
        """Return a lower bound on the cost of trees deeper than the level, from their number of leaves."""
        if self.least and self.total(subset, WEIGHT) < (level + 2) * self.least:
            return INFINITE
        return self.total(subset, LEAST) + (level + 2) * self.price

    def raise_by(self, places: list[int], low: list[Any], subset: int, other: int, cost: int) -> None:
        """Raise bounds on the sides of splits by what another set costs at least, less the weight of what differs."""
        own, whole = self.total(other & subset, MOST), self.total(other, MOST)
        weights = self.right(other & subset, MOST)
        for number, place in enumerate(places):
            for side, kept in ((0, own - weights[place]), (1, weights[place])):
                if cost - (whole - kept) > low[side][number]:
                    # Of leaf weights only a larger set has more.
                    if self.least and self.subset(subset, self.cuts[place], side) & ~other:
                        continue
                    low[side][number] = cost - (whole - kept)

    def split(self, subset: int, height: int | None, value: int, level: int, known: list[tuple[int, int]]) -> str:
        """Return "" if every tree of at most this height costs `value`, by every split; else what does not."""
        if self.bound(subset, 0, 0) < value:
            return "a leaf costs less"
        places = self.separating(subset)
        below = None if height is None else height - 1
        for place, a, b in zip(places, *self.sides(subset, places, below, value, level, known), strict=True):
            if a + b < value:
                return f"the split of column {self.cuts[place][0]} at {self.cuts[place][1]} costs {a + b}, not {value}"
        return ""

    def sides(
        self,
        subset: int,
        places: list[int],
        below: int | None,
        value: int,
        level: int,
        known: list[tuple[int, int]],
        patient: bool = False,
    ) -> list[list[int]]:
        """Return lower bounds on both sides of splits, raised until they cost a value together or counting ends.

        If not patient, counting ends with the first split that costs less.
        """
        low = [[self.price] * len(places), [self.price] * len(places)]
        for other, cost in known:
            self.raise_by(places, low, subset, other, cost)
        for tried in range(min(level, 1), level + 1):
            self.count(subset, places, low, value, below, tried, patient)
        return low

    def count(
        self,
        subset: int,
        places: list[int],
        low: list[Any],
        value: int,
        below: int | None,
        level: int,
        patient: bool,
    ) -> None:
        """Raise the bounds of splits that do not cost the value yet by counting; similar splits profit at level two."""
        tried: set[int] = set()
        while left := [n for n, (a, b) in enumerate(zip(*low, strict=True)) if a + b < value and n not in tried]:
            number = left[len(left) // 2]
            tried.add(number)
            for side in (0, 1):
                if low[0][number] + low[1][number] < value:
                    own = self.subset(subset, self.cuts[places[number]], side)
                    low[side][number] = max(low[side][number], self.bound(own, below, level))
                    if level == 2:
                        self.raise_by(places, low, subset, own, low[side][number])
            if level == 2 and not patient and low[0][number] + low[1][number] < value:
                return

    # Trees over the columns of few groups

    def sets(self, subset: int, height: int | None, value: int, groups: list[list[int]], most: int) -> str:
        """Return "" if every tree over the columns of at most `most` groups costs `value`; else whose trees do not."""
        masks_of = {column: subset & mask for (column, _), mask in zip(self.cuts, self.masks, strict=True)}
        split = [[masks_of[c] for c in group if c in masks_of and masks_of[c] not in (0, subset)] for group in groups]
        useful = [number for number, masks in enumerate(split) if masks]
        size = min(most, len(useful))
        two = self.bound(subset, 2 if height is None else min(2, height), 2)
        many = not self.least or self.total(subset, WEIGHT) >= 4 * self.least
        planes = [
            self.planes[quantity] for quantity in (self.used[:1] if self.signed else self.used) if quantity != WEIGHT
        ]
        both = self.total(subset, self.used[1]) if self.signed else 0

        def closed(cells: list[int]) -> bool:
            """Whether trees with four leaves or more cost the value, by the points of some columns; and others too."""
            if two < value or (many and height not in (0, 1, 2)):
                sums = [[sum(v * (cell & rows).bit_count() for rows, v in own) for own in planes] for cell in cells]
                lost = (both - sum(abs(d) for (d,) in sums)) // 2 if self.signed else sum(map(min, sums))
                return two >= value and lost + 4 * self.price >= value
            return True

        def visit(start: int, chosen: list[int], cells: list[int]) -> str:
            self.clock.tick()
            if len(chosen) == size:
                columns = [column for number in chosen for column in groups[number]]
                if closed(cells) or self.over(columns).least_cost(subset, height) >= value:
                    return ""
                return f"trees over the columns {columns} cost less"
            for number in range(start, len(useful) - size + len(chosen) + 1):
                parts = cells
                for mask in split[useful[number]]:
                    parts = [part for cell in parts for part in (cell & mask, cell & ~mask) if part]
                if fault := visit(number + 1, [*chosen, useful[number]], parts):
                    return fault
            return ""

        return visit(0, [], [subset])

    def over(self, columns: list[int]) -> Plain:
        """Return the same with the splits of some columns alone."""
        found = copy(self)
        found.memo, chosen = {}, set(columns)
        found.mask_of = {cut: mask for cut, mask in self.mask_of.items() if cut[0] in chosen}
        found.cuts, found.masks = list(found.mask_of), list(found.mask_of.values())
        return found

    def least_cost(self, subset: int, height: int | None) -> int:
        """Return the least cost of trees of at most this height, by every split. No path needs a binary split twice."""
        height = len(self.cuts) if height is None else min(height, len(self.cuts))
        best = self.bound(subset, min(height, 2), 2)
        if height <= 2 or best <= self.deeper(subset, 2):
            return best
        for place in self.separating(subset):
            sides = (self.subset(subset, self.cuts[place], side) for side in (0, 1))
            best = min(best, sum(self.least_cost(own, height - 1) for own in sides))
        return best


class Fast(Plain):
    """The same with NumPy, whose floats hold integers below 2**53 here: costs at depth two, of many sets at once."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        if max(sum(map(abs, values)) for values in self.quantities) + 4 * self.price >= 1 << 52:
            raise OverflowError
        self.unit = (
            math.gcd(*(value for place in (0, 1, *self.used) if place != WEIGHT for value in self.quantities[place]))
            or 1
        )
        counts = [
            [value // (1 if place == WEIGHT else self.unit) for value in values]
            for place, values in enumerate(self.quantities)
        ]
        small = max(sum(map(abs, values)) for values in counts) < 1 << 23  # sums are exact in floats of 32 bits
        self.counts = np.array(counts, dtype=np.float32 if small else np.float64)
        self.rank = np.array(self.data.ranks, dtype=np.int32).reshape(-1, self.n)
        self.ordered = max(self.data.tops, default=0) > 1
        self.order: Any = np.argsort(self.rank, axis=1, kind="stable") if self.ordered else None
        self.X: Any = None if self.ordered else np.ascontiguousarray(self.rank.T, dtype=self.counts.dtype)
        self.last: Any = (None,)

    def rows(self, subset: int) -> Any:
        packed = np.frombuffer(subset.to_bytes(self.n // 8 + 1, "little"), dtype=np.uint8)
        return np.unpackbits(packed, bitorder="little", count=self.n).astype(bool)

    def leaves(self, sums: Any) -> Any:
        """Return the costs of leaves from arrays of their sums."""
        if self.least:
            return np.where(sums[-1] >= self.least, np.minimum.reduce(sums[:-1]), float(LARGE))
        return np.minimum.reduce(sums)

    def pair(self, profile: Any, cut: tuple[int, int]) -> tuple[int, int]:
        """By sums along every order of the rows, up to the ends of equal ranks."""
        self.clock.tick()
        if self.last[0] != profile[0]:
            inside = self.rows(profile[0])
            order = self.order[inside[self.order]].reshape(len(self.order), -1)
            ranks = np.take_along_axis(self.rank, order, axis=1)
            ends = np.flatnonzero(np.diff(ranks, axis=1, append=ranks[:, -1:]).ravel())
            values = [self.counts[quantity][order].astype(np.float64) for quantity in self.used]
            sums = [np.cumsum(own, axis=1).ravel()[ends] for own in values]
            self.last = profile[0], order, ends, values, [own[0].sum() for own in values], sums
        _, order, ends, values, totals, sums = self.last
        inside = (self.rank[cut[0]] < cut[1])[order]
        left = [np.cumsum(own * inside, axis=1).ravel()[ends] for own in (values[:1] if self.signed else values)]
        left_totals = [float((own[0] * inside[0]).sum()) for own in values]
        found = []
        for whole, tables in (
            (left_totals, left),
            (
                [a - b for a, b in zip(totals, left_totals, strict=True)],
                [a - b for a, b in zip(sums, left, strict=False)],
            ),
        ):
            if self.signed:
                leaf, split = self.leaf_and_split(
                    (None, whole, [[*tables[0].max(initial=0, keepdims=True), tables[0].min(initial=0)]])
                )
            else:
                rest = [a - b for a, b in zip(whole, tables, strict=True)]
                leaf, split = self.leaves(whole), (self.leaves(tables) + self.leaves(rest)).min(initial=float(LARGE))
            found.append(min(int(leaf) * self.unit + self.price, int(split) * self.unit + 2 * self.price))
        return found[0], found[1]

    def two(self, subset: int, most: int = INFINITE) -> int:
        places = [] if self.ordered else self.separating(subset)
        if not places:
            return super().two(subset, most)
        X = self.columns(subset, places)
        return int(self.twos(subset, X, np.ones((1, len(X)), dtype=X.dtype))[0][0])

    def above(self, places: list[int]) -> Any:
        """Return, by point, which of some cuts it is above."""
        columns = np.array([self.cuts[place][0] for place in places], dtype=np.int64)
        cuts = np.array([self.cuts[place][1] for place in places], dtype=np.int64)
        return (self.rank[columns] >= cuts[:, None]).T.astype(np.float64)

    def columns(self, subset: int, places: list[int]) -> Any:
        """Return the rows of a set, and of the columns those of some cuts."""
        return self.X[self.rows(subset)][:, np.array([self.cuts[place][0] for place in places], dtype=np.int64)]

    def count(
        self,
        subset: int,
        places: list[int],
        low: list[Any],
        value: int,
        below: int | None,
        level: int,
        patient: bool,
    ) -> None:
        """For binary columns: of many splits at once, by products of matrices."""
        level = level if below is None else min(level, below)
        left = [number for number, (a, b) in enumerate(zip(*low, strict=True)) if a + b < value]
        if self.ordered or level == 0 or not left:
            return super().count(subset, places, low, value, below, level, patient)
        X = self.columns(subset, places)
        if level == 2 and self.signed and len(left) > len(places) // 3:
            self.raise_all(subset, places, X, low, below)
            return None
        at_once = len(left) if level == 1 else max(1, 2**22 // max(X.shape[1] ** 2, X.size))
        for start in range(0, len(left), at_once):
            self.clock.tick()
            numbers = left[start : start + at_once]
            if level == 1:
                costs = [side[0, numbers] for side in self.twos(subset, X, np.ones((1, len(X)), dtype=X.dtype))[2]]
            else:
                costs = self.twos(subset, X, np.ascontiguousarray(X[:, numbers].T))[:2]
            for side, found in enumerate(costs[::-1]):
                for number, cost in zip(numbers, found.tolist(), strict=True):
                    if below is None or below > level:
                        cost = min(cost, self.deeper(self.subset(subset, self.cuts[places[number]], side), level))
                    low[side][number] = max(low[side][number], int(cost))
        return None

    def raise_all(self, subset: int, places: list[int], X: Any, low: list[Any], below: int | None) -> None:
        """Raise the bounds of all splits by the costs at depth two of both sides, for two classes.

        Of two columns f < g all four parts are counted once. The sums over what a third column adds come from those of
        the rows that have a one in all three: d is the cost of the first class less that of the second, and a part's
        best split costs (the sum of both costs - the largest |2 (sum of d on one side) - (sum of d)|) / 2.
        """
        rows, size = self.rows(subset), X.shape[1]
        d, both = (self.counts[quantity][rows] for quantity in self.used)
        (D, DD), (A, AA) = ((value @ X, (X.T * value) @ X) for value in (d, both))
        costs = np.full((2, 2, size, size), 2.0**80)  # sides of f and g
        for f in range(size - 1):
            if not f % 16:
                self.clock.tick()
            g, ones = slice(f + 1, size), X[:, f] > 0
            few = ones if 2 * ones.sum() <= len(X) else ~ones  # count the smaller side of f
            three = (X[few, f + 1 :].T * d[few]) @ X[few]
            three = three if few is ones else DD[g] - three  # ones in f, g and each third column
            rest = DD[g] - three  # ones in g and the third
            sums = {(1, 1): DD[f, g], (1, 0): D[f] - DD[f, g], (0, 1): D[g] - DD[f, g]}
            sums[0, 0] = d.sum() - D[f] - sums[0, 1]
            alls = {(1, 1): AA[f, g], (1, 0): A[f] - AA[f, g], (0, 1): A[g] - AA[f, g]}
            alls[0, 0] = both.sum() - A[f] - alls[0, 1]
            for (a, b), mine in sums.items():
                third = (three if b else DD[f] - three) if a else (rest if b else D - DD[f] - rest)
                most = np.maximum(2 * third.max(axis=1) - mine, mine - 2 * third.min(axis=1))
                leaf = (alls[a, b] - abs(mine)).astype(np.float64) / 2 * self.unit + self.price
                split = (alls[a, b] - np.maximum(most, abs(mine))).astype(np.float64) / 2 * self.unit + 2 * self.price
                costs[a, b, f, g] = costs[b, a, g, f] = np.minimum(leaf, split)
        for side in (0, 1):
            mine, every = (D, A) if side else (d.sum() - D, both.sum() - A)
            leaf = (every - abs(mine)).astype(np.float64) / 2 * self.unit + self.price
            found = np.minimum(leaf, (costs[side, 0] + costs[side, 1]).min(axis=1, initial=2.0**80)).tolist()
            for number, (place, cost) in enumerate(zip(places, found, strict=True)):
                if below is None or below > 2:
                    cost = min(cost, self.deeper(self.subset(subset, self.cuts[place], side), 2))
                low[side][number] = max(low[side][number], int(cost))

    def twos(self, subset: int, X: Any, members: Any) -> Any:
        """Return least costs at depth two of some parts of a set, given by 0 and 1, and of what each leaves.

        Third, the least costs at depth one of both sides of every column in every part, ones first.
        """
        rows = self.rows(subset)
        values = [self.counts[quantity][rows] for quantity in self.used]
        parts = [value * members for value in values]
        sums = [(part.sum(axis=1), part @ X) for part in parts]
        shape, paired = (len(members), X.shape[1], X.shape[1]), 1 if self.signed else len(values)
        both = [((part[:, None, :] * X.T).reshape(-1, len(X)) @ X).reshape(shape) for part in parts[:paired]]
        rest = [(own.sum() - some, own @ X - table) for own, (some, table) in zip(values, sums, strict=True)]
        left = [(X.T * value) @ X - pair for value, pair in zip(values, both, strict=False)]
        first, sides = self.from_pairs(sums, both)
        return first, self.from_pairs(rest, left)[0], sides

    def from_pairs(self, sums: Any, both: Any) -> Any:
        """Return least costs at depth two, and at depth one of both sides of each column, from sums in units.

        The sums are totals (sets), by column (sets, columns) and by pairs of columns (sets, columns, columns).
        """
        leaf_of, split_of = [], []
        if self.signed:
            (total, own), (all_, some) = sums
            best, inner = (all_ - abs(total)) / 2, own[:, :, None] - both[0]
            for mine, every, pair in ((own, some, both[0]), (total[:, None] - own, all_[:, None] - some, inner)):
                most = np.maximum(2 * pair.max(axis=1, initial=0) - mine, mine - 2 * pair.min(axis=1, initial=0))
                leaf_of.append((every - abs(mine)) / 2)
                split_of.append((every - np.maximum(most, abs(mine))) / 2)
        else:
            best = self.leaves([total for total, _ in sums])
            for side in (1, 0):
                mine = [own if side else total[:, None] - own for total, own in sums]
                inner = [pair if side else own[:, :, None] - pair for pair, (_, own) in zip(both, sums, strict=True)]
                outer = [one[:, None, :] - pair for one, pair in zip(mine, inner, strict=True)]
                leaf_of.append(self.leaves(mine))
                split_of.append((self.leaves(inner) + self.leaves(outer)).min(axis=1, initial=float(LARGE)))
        leaf_of, split_of = [[own.astype(np.float64) * self.unit for own in costs] for costs in (leaf_of, split_of)]
        sides = [np.minimum(a + self.price, b + 2 * self.price) for a, b in zip(leaf_of, split_of, strict=True)]
        return np.minimum(
            best.astype(np.float64) * self.unit + self.price, sum(sides).min(axis=1, initial=2.0**80)
        ), sides


# ---------------------------------------------------------------- the proof


class Limit:
    """A limit on a tree: its sum of `amounts` over points and predictions, plus `leaves` per leaf, is at most `most`.

    All are integers, computed from what the certificate says: shares of the weight of some rows that are predicted
    certain classes. `alone` says that the limit is about the number of leaves and nothing else.
    """

    def __init__(self, spec: Any, data: Data, name: str) -> None:
        only(spec, {"terms", "leaves", "at_most"}, name)
        most, leaves = fraction(spec.get("at_most"), name, True), fraction(spec.get("leaves", "0"), name)
        terms, self.text = list[tuple[Fraction, set[int], list[bool]]](), ""
        for term in part(spec, "terms", list, name):
            only(term, {"times", "predicted", "rows", "per"}, f"{name}: a term")
            times, predicted = fraction(term.get("times"), name, True), part(term, "predicted", list, name)
            for label in predicted:
                whole(label, 0, len(data.classes) - 1, f"{name}: a class")
            rows, per = (self.members(part(term, key, list, name), data) for key in ("rows", "per"))
            weight = sum(compress(data.weights, per))
            need(weight, f"{name}: the rows of `per` have no weight")
            terms.append((times / weight, set(predicted), rows))
            classes, among, base = [data.classes[label] for label in predicted], term["rows"], term["per"]
            said = f"among {among}" if among == base else f"and among {among} in the weight of {base or 'all'}"
            self.text += f" {'+' if times >= 0 else '-'} {abs(times)} x share predicted {classes} {said}"
        factor = math.lcm(leaves.denominator, *(times.denominator for times, _, _ in terms))
        whole_times, whole_leaves = [int(times * factor) for times, _, _ in terms], int(leaves * factor)
        shared = math.gcd(whole_leaves, *whole_times) or 1
        self.leaves, self.most, self.alone = whole_leaves // shared, most * factor // shared, not terms
        self.text = f"{self.text} + {leaves} x leaves"[: None if leaves else -len(f" + {leaves} x leaves")]
        self.text = f"{self.text.removeprefix(' + ').strip()} at most {spec['at_most']}"
        amounts = [[0] * len(data.classes) for _ in data.labels]
        for factor_of, (_, predicted_as, rows) in zip(whole_times, terms, strict=True):
            for own, weight, counts in zip(amounts, data.weights, rows, strict=True):
                for label in predicted_as if counts else ():
                    own[label] += factor_of // shared * weight
        self.amounts = data.by_point(amounts)

    @staticmethod
    def members(conditions: list[Any], data: Data) -> list[bool]:
        """Return which rows fulfil all conditions [column, cells]."""
        found = [True] * len(data.labels)
        for column, cells in conditions:
            need(all(isinstance(cell, str) for cell in cells), "the cells of a condition must be texts")
            chosen = set(cells)
            found = [held and text in chosen for held, text in zip(found, data.texts[column], strict=True)]
        return found


def columns_of(problem: Any) -> list[str]:
    """Return the columns of the table that limits name, in order."""
    names = list[str]()
    for limit in part(problem, "limits", list, "problem") if "limits" in problem else ():
        for term in part(limit, "terms", list, "a limit"):
            for key in ("rows", "per"):
                for each in part(term, key, list, "a term"):
                    need(isinstance(each, list) and len(each) == 2, "a condition is [column, cells]")
                    need(isinstance(each[0], str) and isinstance(each[1], list), "a condition is [column, cells]")
                    names.append(each[0])
    return names


class Claim:
    """The claim of a certificate: the tree, its cost, and the problem: the trees that it is compared with."""

    def __init__(self, problem: dict[str, Any], claim: dict[str, Any], data: Data, clock: Clock) -> None:
        need("depth" in problem, "problem: depth is missing")
        self.depth = problem["depth"]
        need(self.depth is None or whole(self.depth, 0, 1000, "depth") >= 0, "depth is a number or null")
        leaf_price = fraction(problem.get("leaf_price"), "leaf_price")
        self.least = whole(problem.get("least_leaf_weight", 0), 0, INFINITE, "least_leaf_weight")
        only(problem, {"depth", "leaf_price", "least_leaf_weight", "limits", "groups", "most_groups"}, "problem")
        self.most_groups, self.groups = None, list[list[int]]()
        if "groups" in problem or "most_groups" in problem:
            self.groups = part(problem, "groups", list, "problem")
            self.most_groups = whole(problem.get("most_groups"), 0, len(data.ranks), "most_groups")
            need(all(isinstance(group, list) for group in self.groups), "groups must be lists of columns")
            columns = [whole(c, 0, len(data.ranks) - 1, "a column of a group") for group in self.groups for c in group]
            need(sorted(columns) == list(range(len(data.ranks))), "every column must be in one group")
            need(all(column[1] == "binary" for column in data.columns), "groups need binary columns")
            need(not problem.get("limits"), "a problem has limits or groups, not both")
        only(claim, {"tree", "cost"}, "claim")
        self.limits = [Limit(spec, data, f"limit {place}") for place, spec in enumerate(problem.get("limits", []))]
        self.unit = leaf_price.denominator  # costs are in this part of a unit of weight
        self.price = leaf_price.numerator
        self.total = sum(data.weights)
        self.penalty = leaf_price / self.total
        self.cost = whole(claim.get("cost"), 0, INFINITE, "the cost")
        self.tree = part(claim, "tree", list, "the claim")
        self.costs = data.by_point(
            [
                [0 if label == own else self.unit * weight for label in range(len(data.classes))]
                for own, weight in zip(data.labels, data.weights, strict=True)
            ]
        )
        self.leaves = 0
        self.check_tree(data, clock)

    def check_tree(self, data: Data, clock: Clock) -> None:
        """Recompute the tree's cost and amounts from its predictions; check its depth and the weight of its leaves."""
        need(self.tree, "the tree has no nodes")
        weights = data.by_point([[weight] * len(data.classes) for weight in data.weights])
        inner: dict[int, tuple[list[int], int]] = {0: (list(range(data.n_points)), 0)}
        cost, used, inside = 0, [0 for _ in self.limits], set[int]()
        for place, node in enumerate(self.tree):
            need(place in inner, f"node {place} of the tree has no parent before it, or two")
            clock.tick()
            points, depth = inner.pop(place)
            need(isinstance(node, list) and len(node) in (1, 4), "a node is [class] or has four numbers")
            if len(node) == 1:
                label = whole(node[0], 0, len(data.classes) - 1, "the class of a leaf")
                cost += sum(self.costs[point][label] for point in points) + self.price
                for number, limit in enumerate(self.limits):
                    used[number] += sum(limit.amounts[point][label] for point in points) + limit.leaves
                self.leaves += 1
                if sum(weights[point][0] for point in points) < self.least:
                    raise Refused(f"leaf {place} of the tree has less than the least weight {self.least}")
                continue
            column = whole(node[0], 0, len(data.ranks) - 1, "the column of a node")
            cut = whole(node[1], 1, max(1, data.tops[column]), "the threshold of a node")
            for side, name in enumerate(("left", "right")):
                child = whole(node[2 + side], place + 1, len(self.tree) - 1, f"the {name} child of a node")
                need(child not in inner, f"node {child} of the tree has two parents")
                inner[child] = (
                    [point for point in points if (data.ranks[column][point] >= cut) == bool(side)],
                    depth + 1,
                )
            if self.depth is not None and depth >= self.depth:
                raise Refused(f"the tree is deeper than {self.depth}")
            inside |= {number for number, group in enumerate(self.groups) if column in group}
            if self.most_groups is not None and len(inside) > self.most_groups:
                raise Refused(f"the tree uses more than {self.most_groups} groups of columns")
        need(not inner, "a node of the tree is missing")
        for amount, limit in zip(used, self.limits, strict=True):
            if amount > limit.most:
                raise Refused(f"the tree violates the limit: {limit.text}")
        if cost != self.cost:
            raise Refused(f"the tree costs {cost}, and the claim says {self.cost}")


def engine_of(data: Data, costs: list[list[int]], price: int, least: int, clock: Clock, fast: bool) -> Plain:
    try:
        return (Fast if fast and np is not None else Plain)(data, costs, price, least, clock)
    except OverflowError:  # numbers too large for NumPy
        return Plain(data, costs, price, least, clock)


Lemma = tuple[int, list[Any], int | None, int]  # points, path, height, value


def check_lemmas(listed: list[Any], engine: Plain, groups: tuple[list[list[int]], int] | None = None) -> list[Lemma]:
    """Check every lemma in turn; of the groups of columns, trees use at most a number."""
    known, data = list[Lemma](), engine.data
    # Sets of groups are searched without NumPy, whose floats also have a finite cost for leaves that are not allowed.
    plain = engine if type(engine) is Plain or not (groups or engine.least) else Plain(*engine.arguments)
    for number, lemma in enumerate(listed):
        engine.clock.tick()
        name = f"lemma {number}"
        only(lemma, {"path", "height", "value", "by", "level", "uses"}, name)
        path, height, rule = part(lemma, "path", list, name), lemma.get("height", 0), lemma.get("by")
        points = engine.everything
        for step in path:
            points = engine.subset(points, *condition(step, data))
        need(height is None or whole(height, 0, 1000, "a height") >= 0, "a height is a number or null")
        value = whole(lemma.get("value"), 0, INFINITE, f"{name}: value")
        level, uses = whole(lemma.get("level", 2), 0, 2, f"{name}: level"), lemma.get("uses", [])
        need(isinstance(uses, list), f"{name}: uses must be a list")
        used = [known[whole(use, 0, number - 1, f"{name}: a lemma that it uses")] for use in uses]
        own = plain if value >= LARGE else engine
        if rule == "split":
            need(height is None or height > 0, f"{name} splits at height 0")
            for _, _, other, _ in used:
                need(other is None or (height is not None and other >= height - 1), f"{name} uses one of less height")
            fault = own.split(points, height, value, level, [(lemma[0], lemma[3]) for lemma in used])
        elif rule == "sets" and groups is not None:
            fault = plain.sets(points, height, value, *groups)
        else:
            need(rule in ("count", "deeper"), f"{name} has the unknown rule {rule!r}")
            if rule == "count":
                bound = own.bound(points, height, level, value)
            else:
                need(len(used) == 1 and used[0][1] == path and used[0][2] is not None, f"{name} must use one lemma")
                bound = min(used[0][3], own.deeper(points, used[0][2] or 0))
            fault = "" if bound >= value else f"its rows are proven to cost {bound}, not {value}"
        if fault:
            raise Refused(f"{name} does not hold by its rule: {fault}")
        known.append((points, path, height, value))
    return known


def check_proof(found: dict[str, Any], claim: Claim, data: Data, clock: Clock, fast: bool, most: int) -> str:
    """Check that no tree of the problem costs less than the claim's; return what the proof consists of."""
    if claim.limits:
        need("lemmas" not in found, "under limits, lemmas belong to closings")
        return check_closings(part(found, "closings", list, "the certificate"), claim, data, clock, fast, most)
    need("closings" not in found, "closings need limits")
    engine = engine_of(data, claim.costs, claim.price, claim.least, clock, fast)
    groups = None if claim.most_groups is None else (claim.groups, claim.most_groups)
    known = check_lemmas(part(found, "lemmas", list, "the certificate"), engine, groups)
    need(known, "the certificate has no lemmas")
    _, path, height, value = known[-1]
    if path or value < claim.cost or (height is not None and (claim.depth is None or height < claim.depth)):
        raise Refused("the last lemma does not say that no tree costs less than the claim's")
    return f"{len(known)} lemmas"


def check_closings(listed: list[Any], claim: Claim, data: Data, clock: Clock, fast: bool, most: int) -> str:
    """Close every split at the root: no tree below it that satisfies the limits costs less than the claim's."""
    limits, lemmas, outcomes = claim.limits, 0, 0
    left = {(column, 1) for column, ranks in enumerate(data.ranks) if len(set(ranks)) > 1}
    single = [
        (sum(own[label] for own in table) + fixed)
        for label in range(len(data.classes))
        for table, fixed in ((claim.costs, claim.price), *((limit.amounts, limit.leaves) for limit in limits))
    ]
    step = 1 + len(limits)
    heavy = claim.total >= claim.least
    for label in range(len(data.classes)):
        cost, *used = single[label * step : (label + 1) * step]
        if heavy and cost < claim.cost and all(a <= limit.most for a, limit in zip(used, limits, strict=True)):
            raise Refused(f"the single leaf of class {label} costs {cost} and satisfies the limits")
    if claim.depth == 0:
        left = set()
    for number, closing in enumerate(listed):
        name = f"closing {number}"
        only(closing, {"multipliers", "roots", "lemmas"}, name)
        given = part(closing, "multipliers", list, name)
        need(len(given) == len(limits), f"{name} needs a multiplier for every limit")
        prices = [fraction(text, f"{name}: a multiplier") for text in given]
        roots = closing.get("roots")
        if roots is not None:
            need(isinstance(roots, list), f"{name}: roots must be a list or null")
            roots = {whole(root, 0, len(data.ranks) - 1, f"{name}: a root") for root in roots}
        priced = Priced(claim, prices, data, clock, fast, most)
        lemmas_of = part(closing, "lemmas", list, name) if "lemmas" in closing else []
        known = check_lemmas(lemmas_of, priced.engine)
        priced.close(None if roots is None else roots, known)
        left = {cut for cut in left if roots is not None and cut[0] not in roots}
        lemmas, outcomes = lemmas + len(known), outcomes + most - priced.left
    if left:
        raise Refused(f"no closing is about trees with column {min(left)[0]} at the root")
    return f"{len(listed)} closings with {lemmas} lemmas and {outcomes} outcomes"


Outcome = tuple[int, ...]  # the cost of a tree, and its amount of every limit


class Priced:
    """Trees at prices of the limits: costs plus prices times amounts, less the least of that at every point.

    A tree that satisfies the limits and costs less than the claim costs at most `budget` here. All trees within it are
    enumerated, as outcomes.
    """

    def __init__(self, claim: Claim, prices: list[Fraction], data: Data, clock: Clock, fast: bool, most: int) -> None:
        self.claim, self.clock, self.left, self.n_classes = claim, clock, most, len(data.classes)
        scale = math.lcm(*(price.denominator for price in prices))
        self.tables = [claim.costs, *(limit.amounts for limit in claim.limits)]
        self.fixed = [claim.price, *(limit.leaves for limit in claim.limits)]
        factors = [scale, *(int(price * scale) for price in prices)]
        labels = range(self.n_classes)
        costs = [
            [sum(map(mul, factors, column)) for column in zip(*(table[point] for table in self.tables), strict=True)]
            for point in range(data.n_points)
        ]
        free = [min(own) for own in costs]
        self.price = sum(map(mul, factors, self.fixed))
        self.budget = scale * (claim.cost - 1) - sum(free)
        self.budget += sum(m * limit.most for m, limit in zip(factors[1:], claim.limits, strict=True))
        self.costs = [[amount - least for amount in own] for own, least in zip(costs, free, strict=True)]
        self.engine = engine_of(data, self.costs, self.price, claim.least, clock, fast)
        # By class: the costs here, the costs, the amounts.
        values = [[[own[k] for own in table] for table in (self.costs, *self.tables)] for k in labels]
        self.arrays: Any = None
        if isinstance(self.engine, Fast) and max(sum(map(abs, own)) for one in values for own in one) < 1 << 52:
            self.arrays = np.array(values, dtype=np.float64)
        else:
            self.planes = [[self.engine._planes(own) for own in one] for one in values]

    def height(self) -> int:
        """Return the largest height of a tree that costs at most the budget: it has at least one leaf more."""
        heights: list[int] = [] if self.claim.depth is None else [self.claim.depth]
        if self.price:
            heights.append(self.budget // self.price - 1)
        heights += [limit.most // limit.leaves - 1 for limit in self.claim.limits if limit.alone and limit.leaves]
        need(heights, "trees of any depth need a leaf price or a limit on leaves")
        return min(heights)

    def close(self, roots: set[int] | None, known: list[Lemma]) -> None:
        """Refuse if some tree with one of these columns at its root satisfies the limits and costs less."""
        height = self.height()
        if height <= 0:
            return
        used = [(lemma[0], lemma[3]) for lemma in known if lemma[2] is None or lemma[2] >= height - 1]
        for outcome in self.splits(self.engine.everything, height, self.budget, roots, used):
            if outcome[0] < self.claim.cost and all(
                a <= limit.most for a, limit in zip(outcome[1:], self.claim.limits, strict=True)
            ):
                raise Refused(f"a tree costs {outcome[0]} and satisfies the limits")

    def trees(self, subset: int, height: int, budget: int) -> dict[Outcome, int]:
        """Return the outcomes of all trees of at most this height that cost at most a budget, with their costs."""
        found = {}
        for priced, outcome in self.leaves(subset):
            if priced <= budget:
                found[outcome] = priced
        if height == 1:
            self.stumps(subset, budget, found)
        elif height > 1:
            found |= self.splits(subset, height, budget, None, [])
        return found

    def splits(
        self, subset: int, height: int, budget: int, roots: set[int] | None, known: list[tuple[int, int]]
    ) -> dict[Outcome, int]:
        """Return the outcomes of trees that split a set by one of some columns."""
        engine, found = self.engine, dict[Outcome, int]()
        places = [p for p in engine.separating(subset) if roots is None or engine.cuts[p][0] in roots]
        low = engine.sides(subset, places, height - 1, budget + 1, min(2, height - 1), known, patient=True)
        seen = set[int]()
        for place, zero, one in sorted(zip(places, *low, strict=True), key=lambda each: each[1] + each[2]):
            part = engine.subset(subset, engine.cuts[place], 1)
            if zero + one > budget or part in seen or subset & ~part in seen:
                continue
            seen.add(part)
            if height > 3:
                zero = max(zero, self.least(subset & ~part, height - 1, budget - one))
                one = max(one, self.least(part, height - 1, budget - zero))
                if zero + one > budget:
                    continue
            rest = self.trees(subset & ~part, height - 1, budget - one)
            if not rest:
                continue
            both = self.trees(part, height - 1, budget - min(rest.values()))
            ordered = sorted((priced, outcome) for outcome, priced in both.items())
            for outcome, priced in rest.items():
                self.clock.tick()
                for other, more in ordered:
                    if priced + other > budget:
                        break
                    self.left -= 1
                    found[tuple(map(add, outcome, more))] = priced + other
                if self.left < 0:
                    raise LimitReached("the limit on outcomes is reached")
        return found

    def least(self, subset: int, height: int, most: int) -> int:
        """Return a lower bound on the cost of trees of at most this height, or a number above `most`."""
        engine = self.engine
        places = engine.separating(subset)
        low = engine.sides(subset, places, height - 1, most + 1, 2, [], patient=True)
        found: int = min([engine.bound(subset, 0, 0), *map(add, *low)])
        return found

    def leaves(self, subset: int) -> list[tuple[int, Outcome]]:
        """Return the cost here and the outcome of a leaf of every class."""
        if self.claim.least and self.engine.total(subset, WEIGHT) < self.claim.least:
            return []
        if self.arrays is not None and isinstance(self.engine, Fast):
            sums = self.arrays[:, :, self.engine.rows(subset)].sum(axis=2).astype(np.int64).tolist()
        else:
            sums = [
                [sum(v * (subset & points).bit_count() for points, v in planes) for planes in one]
                for one in self.planes
            ]
        return [(own[0] + self.price, tuple(map(add, own[1:], self.fixed))) for own in sums]

    def stumps(self, subset: int, budget: int, found: dict[Outcome, int]) -> None:
        """Add the outcomes of trees with one split, and leaves of two classes."""
        engine, pairs = self.engine, [(a, b) for a in range(self.n_classes) for b in range(self.n_classes) if a != b]
        # NumPy compares with floats: a larger budget allows the same, as all sums are below 2**53.
        places, room = engine.separating(subset), min(budget - 2 * self.price, LARGE)
        if self.claim.least:
            weight, right = engine.total(subset, WEIGHT), engine.right(subset, WEIGHT)
            places = [p for p in places if right[p] >= self.claim.least and weight - right[p] >= self.claim.least]
        if self.arrays is not None and isinstance(engine, Fast):
            inside = engine.rows(subset)
            values = self.arrays[:, :, inside]
            masks = engine.above(places)[inside]
            ones = values @ masks
            zeros = values.sum(axis=2)[:, :, None] - ones
            for a, b in pairs:
                chosen = np.flatnonzero(zeros[a, 0] + ones[b, 0] <= room)
                sums = (zeros[a][:, chosen] + ones[b][:, chosen]).astype(np.int64).T.tolist()
                for own in sums:
                    found[tuple(x + 2 * y for x, y in zip(own[1:], self.fixed, strict=True))] = own[0] + 2 * self.price
            return
        for place in places:
            part = engine.subset(subset, engine.cuts[place], 1)
            one, zero = self.leaves(part), self.leaves(subset & ~part)
            for a, b in pairs:
                if zero[a][0] + one[b][0] <= budget:
                    found[tuple(map(add, zero[a][1], one[b][1]))] = zero[a][0] + one[b][0]


def condition(step: Any, data: Data) -> tuple[tuple[int, int], int]:
    """Return a condition of a path: a split, and the side of it: 1 has the ranks from the threshold on."""
    need(isinstance(step, list) and len(step) == 3, "a condition is [column, threshold, side]")
    column = whole(step[0], 0, len(data.ranks) - 1, "the column of a condition")
    return (column, whole(step[1], 1, max(1, data.tops[column]), "a threshold")), whole(step[2], 0, 1, "a side")


def check(
    proof: str,
    table: str,
    seconds: float | None = None,
    size: int = 1 << 30,
    fast: bool = True,
    outcomes: int = 10_000_000,
) -> str:
    """Return a sentence that says what is proven; raises `Refused`, `Malformed` or `LimitReached`."""
    clock = Clock(seconds)
    found = read_certificate(proof, size)
    only(found, {"format", "version", "data", "problem", "claim", "lemmas", "closings", "note"}, "the certificate")
    spec = part(found, "data", dict, "the certificate")
    only(spec, {"columns", "target", "weight", "weight_bits", "classes", "sha256"}, "data")
    problem, stated = part(found, "problem", dict, "the certificate"), part(found, "claim", dict, "the certificate")
    data = Data(spec, columns_of(problem), read_bytes(table, size), clock)
    if data.fingerprint != spec.get("sha256"):
        raise Refused(f"the data have the fingerprint {data.fingerprint}, and the certificate is about others")
    claim = Claim(problem, stated, data, clock)
    proof_of = check_proof(found, claim, data, clock, fast, outcomes)
    objective = 1 - Fraction(claim.cost, claim.unit * claim.total)
    depth = "any depth" if claim.depth is None else f"depth at most {claim.depth}"
    rounded = (
        f" (weights are rounded to multiples of {Fraction(2) ** -spec['weight_bits']}, by {float(data.rounded):.2g} of "
        "their sum)"
        if data.rounded
        else ""
    )
    about = f"the classes in {spec['target']!r}" + (
        f" and the weights in {spec['weight']!r}" if spec.get("weight") else ""
    )
    rule = f" with at least {claim.least} units of weight in each leaf" if claim.least else ""
    if claim.most_groups is not None:
        rule += f", of at most {claim.most_groups} of {len(claim.groups)} groups"
    rule += "".join(f"{', and' if place else ' with'} {limit.text}" for place, limit in enumerate(claim.limits))
    return (
        f"proven by {proof_of}: of all trees of {depth} over the {len(data.ranks)} columns{rule}, none has a "
        f"larger objective than the certificate's tree of {claim.leaves} leaves: {objective} = {float(objective):.9g}, "
        f"the share of the weight classified correctly less {claim.penalty} per leaf{rounded}, by {about}, "
        f"on the {data.n_rows} rows with the fingerprint {data.fingerprint}"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check a certificate of an optimal classification tree.")
    parser.add_argument("proof", help="the certificate: JSON, possibly gzip")
    parser.add_argument("data", help="the table: CSV with a header")
    parser.add_argument("--seconds", type=float, help="limit on the time; none by default")
    parser.add_argument("--memory", type=int, default=4096, help="limit on the memory in MB, if possible; 4096")
    parser.add_argument("--size", type=int, default=1024, help="limit on the size of a file, unpacked, in MB; 1024")
    parser.add_argument("--plain", action="store_true", help="do not use NumPy")
    parser.add_argument("--outcomes", type=int, default=10_000_000, help="limit on outcomes under limits; 10 million")
    given = parser.parse_args(arguments)
    if given.seconds is not None and not given.seconds >= 0:
        parser.error("--seconds must not be negative")
    if not (0 < given.memory < 1 << 40 and 0 <= given.size < 1 << 40):
        parser.error("--memory and --size must be from 1 to 2**40 MB")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    return run(given)


@contextmanager
def memory_limit(megabytes: int | None) -> Iterator[None]:
    """Limit the memory of this process, where the system allows it; None for no limit."""
    try:
        import resource

        before = resource.getrlimit(resource.RLIMIT_AS)
        if megabytes is not None:
            resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, before[1]))
    except (ImportError, ValueError, OSError):  # not on this system
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def run(given: argparse.Namespace) -> int:
    """Check under the limit on memory, print what is found and return the exit code."""
    try:
        with memory_limit(given.memory):
            print(check(given.proof, given.data, given.seconds, given.size << 20, not given.plain, given.outcomes))
    except Refused as fault:
        print(f"refused: {fault}")
        return 1
    except Malformed as fault:
        print(f"malformed: {fault}")
        return 2
    except (LimitReached, MemoryError) as fault:
        print(f"undecided: {str(fault) or 'the memory limit is reached'}")
        return 3
    except Exception as fault:  # a fault of this program proves nothing
        print(f"undecided: {type(fault).__name__}: {fault}")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
