"""Faults in C++, from the tokens of a file.

Only function bodies change. Binary operators are told from pointers, references, signs and templates by the spaces
around them, as the sources are formatted. A fault that does not compile is left out when it is tried.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from programs.mutation.faults import Edit, Fault

_TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)
    |(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+')
    |(?P<number>\.?\d(?:[eE][+-]|[\w.'])*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<symbol><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|[^\s\w])""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
SYMBOLS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/", "/": "*"}
SYMBOLS |= {"%": "/", "&&": "||", "||": "&&", "&": "|", "|": "&", "^": "|", "<<": ">>", ">>": "<<"}
SYMBOLS |= {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|="}
_PAIRS = [("max_of", "min_of"), ("most", "least"), ("true", "false")]
NAMES = dict(_PAIRS) | {second: first for first, second in _PAIRS}
_ASSIGNING = {"=", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "<<=", ">>=", "++", "--"}
_KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "alignof", "decltype", "else", "do", "case", "typedef"}
_KEYWORDS |= {"using", "const", "constexpr", "static", "auto", "static_assert", "operator", "template", "break"}
_KEYWORDS |= {"continue", "delete", "goto", "default"}
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int
    is_spaced: bool  # on both sides


def cpp_faults(text: str, file: str, module: str) -> list[Fault]:
    """Return all faults of a file, given its text, its path and its dotted name."""
    return _Finder(text, file, module).faults


class _Finder:
    def __init__(self, text: str, file: str, module: str) -> None:
        self.faults: list[Fault] = []
        self._text, self._file, self._module = text, file, module
        self._tokens = [
            _Token(kind, found.group(), found.start(), found.end(), _is_spaced(text, found.start(), found.end()))
            for found in _TOKEN.finditer(text)
            if (kind := found.lastgroup) and kind != "skip"
        ]
        self._closing = self._brackets()
        self._scope(0, len(self._tokens), [])

    def _brackets(self) -> dict[int, int]:
        """Return the place of the closing bracket of every opening one."""
        closing, opened = {}, []
        for place, token in enumerate(self._tokens):
            if token.text in _CLOSING:
                opened.append(place)
            elif token.text in _CLOSING.values():
                closing[opened.pop()] = place
        return closing

    # ------------------------------------------------------------ functions

    def _scope(self, first: int, end: int, names: list[str]) -> None:
        """Look for functions between two places outside of functions."""
        header = place = first
        while place < end:
            token = self._tokens[place]
            if token.text in (";", ":") and token.kind == "symbol":
                header = place + 1
            elif token.text == "{":
                last = self._closing[place]
                heading = self._tokens[header:place]
                words = [part.text for part in heading]
                if "(" in words and "=" not in words:
                    self._function(place, last, [*names, _function_name(words)])
                elif "struct" in words or "class" in words:
                    keyword = max(at for at, word in enumerate(words) if word in ("struct", "class"))
                    self._scope(place + 1, last, [*names, words[keyword + 1]])
                elif "namespace" in words or "extern" in words:
                    self._scope(place + 1, last, names)
                place = last
                header = place + 1
            elif token.text in _CLOSING:
                place = self._closing[place]
            place += 1

    def _function(self, first: int, last: int, names: list[str]) -> None:
        self._name = ".".join([self._module, *names])
        self._lines = self._line(first), self._line(last)
        opened = [first]  # brackets around the place, the inmost last
        starts = True  # whether a statement starts here
        for place in range(first + 1, last):
            text = self._tokens[place].text
            if starts and self._is_block(opened[-1]):
                self._statement(place, last)
            self._expression(place)
            starts = text in (";", "{", "}", "else")
            if text in _CLOSING:
                opened.append(place)
            elif text in _CLOSING.values():
                before = self._tokens[opened.pop() - 1].text
                starts |= text == ")" and before in ("if", "for", "while", "constexpr")

    def _is_block(self, opening: int) -> bool:
        """Whether a bracket holds statements, and not arguments or initial values."""
        before = self._tokens[opening - 1].text
        return self._tokens[opening].text == "{" and before in (")", "else", "do", ";", "{", "}", "const", "]")

    # ------------------------------------------------------------ faults

    def _line(self, place: int) -> int:
        return self._text.count("\n", 0, self._tokens[place].start) + 1

    def _add(self, operator: str, place: int, *edits: Edit) -> None:
        self.faults.append(Fault(self._file, self._name, operator, self._line(place), self._lines, edits))

    def _replace(self, operator: str, place: int, new: str) -> None:
        token = self._tokens[place]
        self._add(operator, place, (token.start, token.end, new))

    def _statement(self, place: int, last: int) -> None:
        """Drop a call, an assignment or a jump; declarations stay."""
        first, second = self._tokens[place], self._tokens[place + 1]
        end = place
        while self._tokens[end].text != ";":
            end = self._closing.get(end, end) + 1
            if end >= last:
                return
        if first.text in ("return", "break", "continue"):
            kind = first.text
        elif first.kind != "name" or first.text in _KEYWORDS or second.kind == "name" or second.text in "<&*{:;":
            return
        else:
            kind = "assignment" if {token.text for token in self._tokens[place:end]} & _ASSIGNING else "call"
        if kind != "return" or end + 1 < last:
            self._add(f"drop {kind}", place, (first.start, self._tokens[end].start, ""))

    def _expression(self, place: int) -> None:
        token, after = self._tokens[place], self._tokens[place + 1]
        if token.kind == "symbol" and token.text in SYMBOLS and token.is_spaced:
            self._replace(f"{token.text} to {SYMBOLS[token.text]}", place, SYMBOLS[token.text])
        elif token.text == "!" and not token.is_spaced:
            self._replace("drop not", place, "")
        elif token.kind == "number" and token.text.isdecimal():
            self._replace("constant + 1", place, str(int(token.text) + 1))
            self._replace("constant - 1", place, f"({int(token.text) - 1})")
        elif token.kind == "name" and token.text in NAMES and (after.text == "(" or token.text in ("true", "false")):
            self._replace(f"{token.text} to {NAMES[token.text]}", place, NAMES[token.text])
        elif token.text in ("if", "while") and after.text == "(":
            last = self._closing[place + 1]
            words = {part.text for part in self._tokens[place + 2 : last]}
            if self._tokens[place + 2].text != "!" or words & {"&&", "||"}:  # else "drop not" does the same
                close = self._tokens[last].start
                self._add("negate condition", place, (after.end, after.end, "!("), (close, close, ")"))
        elif token.kind == "name" and token.text not in _KEYWORDS and after.text == "(":
            self._swaps(place + 1)

    def _swaps(self, opening: int) -> None:
        """Swap neighbouring arguments of a call."""
        commas, place = [], opening + 1
        while place < self._closing[opening]:
            if self._tokens[place].text == ",":
                commas.append(place)
            place = self._closing.get(place, place) + 1
        ends = [opening, *commas, self._closing[opening]]
        spans = [(self._tokens[a + 1].start, self._tokens[b - 1].end) for a, b in pairwise(ends) if b > a + 1]
        for (a, b), (c, d) in pairwise(spans):
            if self._text[a:b] != self._text[c:d]:
                self._add("swap arguments", opening, (a, b, self._text[c:d]), (c, d, self._text[a:b]))


def _is_spaced(text: str, start: int, end: int) -> bool:
    return text[start - 1 : start].isspace() and text[end : end + 1].isspace()


def _function_name(words: list[str]) -> str:
    """Return the name before the last bracket of a heading; of operators, that word."""
    if "operator" in words:
        return "operator"
    depth = 0
    for at in range(len(words) - 1, -1, -1):
        depth += (words[at] == ")") - (words[at] == "(")
        if words[at] == "(" and depth == 0:
            return words[at - 1]
    return ""
