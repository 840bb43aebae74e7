"""A generated fault: where it is, what it changes, and which faults are drawn."""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

#: Start and end in the text of the file, and what stands there instead.
Edit = tuple[int, int, str]


@dataclass(frozen=True)
class Fault:
    """A change of one operator in one function.

    `function` is a dotted name from the package on (``exact.bounds.Bounds.below``); outside of functions it is that of
    the class or module. `lines` are the first and last line of the function, or (0, 0) outside of functions.
    """

    file: str
    function: str
    operator: str
    line: int
    lines: tuple[int, int]
    edits: tuple[Edit, ...]

    @property
    def is_native(self) -> bool:
        return self.file.endswith((".hpp", ".cpp"))

    @property
    def family(self) -> str:
        """The kind of operator; kinds are drawn equally often."""
        first = self.operator.split()[0]
        if first in ("drop", "swap", "negate", "constant"):
            return first
        return "compare" if first in ("<", "<=", ">", ">=", "==", "!=", "in", "not", "is") else "replace"

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.function}: {self.operator}"

    def applied(self, text: str) -> str:
        """Return the text of the file with the fault in it."""
        for start, end, new in sorted(self.edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def diff(self, text: str) -> str:
        """Return the changed lines of the text of the file."""
        lines = difflib.unified_diff(text.splitlines(), self.applied(text).splitlines(), n=0, lineterm="")
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))

    def is_below(self, name: str) -> bool:
        """Whether the fault is in the room, module, class or function of that dotted name; all are below ""."""
        return not name or f"{self.function}.".startswith(f"{name}.")


def shuffled(faults: Iterable[Fault], seed: int) -> list[Fault]:
    """Return faults in an order drawn by the seed, in which all families come equally often while they last.

    A fault is drawn by its function, its operator and how many of the same precede it in the function. So a change of
    other functions, and moving lines, leaves the relative order of the faults of a family as it was.
    """
    count: Counter[object] = Counter()
    keys = {}
    for fault in faults:
        key = (fault.function, fault.operator)
        keys[fault] = hashlib.sha256(repr((seed, key, count[key])).encode()).hexdigest()
        count[key] += 1
    turns = {}
    for fault in sorted(keys, key=keys.__getitem__):
        turns[fault] = count[fault.family]
        count[fault.family] += 1
    return sorted(turns, key=lambda fault: (turns[fault], keys[fault]))
