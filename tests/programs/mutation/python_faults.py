"""Faults in Python, from the syntax tree.

Left alone: annotations, decorators, f-strings, messages of errors, assertions and logging. Outside of functions, in
modules and classes, only constants change.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from programs.mutation.faults import Edit, Fault

#: Binary operators and comparisons: how each is written, and what it becomes.
SYMBOLS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
_PAIRS = [("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"), ("floor", "ceil")]
NAMES = dict(_PAIRS) | {second: first for first, second in _PAIRS}
#: Functions whose first arguments may change places, or whose arguments cannot be taken for each other.
UNORDERED = {*NAMES, "isinstance", "issubclass", "getattr", "hasattr", "setattr", "cast", "array_equal", "gcd", "lcm"}
UNORDERED |= {"logical_and", "logical_or", "add", "multiply"}
LOGGERS = {"log", "logger", "logging"}
_OPPOSITES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
_TEXTS = (ast.JoinedStr, ast.List, ast.Tuple)


def python_faults(text: str, file: str, module: str) -> list[Fault]:
    """Return all faults of a module, given its text, its path and its dotted name."""
    finder = _Finder(text, file, module)
    finder.visit(ast.parse(text))
    return finder.faults


class _Finder(ast.NodeVisitor):
    def __init__(self, text: str, file: str, module: str) -> None:
        self.faults: list[Fault] = []
        self._text, self._file = text, file
        self._names = [module]
        self._lines = (0, 0)
        self._last: list[ast.stmt] = []  # statements of all functions
        self._rows = [row.encode() for row in text.splitlines(keepends=True)]
        self._starts = [0]
        for row in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(row))

    # ------------------------------------------------------------ places

    def _place(self, line: int, column: int) -> int:
        """Return the character at a column, which the syntax tree counts in bytes."""
        return self._starts[line - 1] + len(self._rows[line - 1][:column].decode())

    def _span(self, node: ast.AST) -> tuple[int, int]:
        start = self._place(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return start, self._place(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _source(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._text[start:end]

    def _add(self, operator: str, line: int, *edits: Edit) -> None:
        self.faults.append(Fault(self._file, ".".join(self._names), operator, line, self._lines, edits))

    def _replace(self, operator: str, node: ast.AST, new: str) -> None:
        self._add(operator, node.lineno, (*self._span(node), new))  # type: ignore[attr-defined]

    def _symbol(self, kind: ast.AST, left: ast.AST, right: ast.AST, suffix: str = "") -> None:
        """Replace the operator between two operands."""
        if type(kind) not in SYMBOLS:
            return
        old, new = SYMBOLS[type(kind)]
        first = self._span(left)[1]
        gap = self._text[first : self._span(right)[0]]
        found = re.search(r"\s+".join(map(re.escape, (old + suffix).split())), re.sub("#.*", _blank, gap))
        if found:
            edit = (first + found.start(), first + found.end(), new + suffix)
            self._add(f"{old}{suffix} to {new}{suffix}", left.end_lineno, edit)  # type: ignore[attr-defined]

    # ------------------------------------------------------------ functions, classes, and what is left alone

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer = self._lines
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        self._names.append(node.name)
        self._lines = (first, node.end_lineno or first)
        self._last.append(node.body[-1])
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(part)
        self._lines = outer
        self._names.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self._lines = self._lines, (0, 0)
        self._names.append(node.name)
        for part in node.body:
            self.visit(part)
        self._names.pop()
        self._lines = outer

    def visit(self, node: ast.AST) -> None:
        inside = self._lines != (0, 0) or isinstance(
            node,
            (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.Constant),
        )
        if inside:
            super().visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, (ast.Attribute, ast.Subscript)) and node.value is not None:
            self._replace("drop assignment", node, "pass")
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    # ------------------------------------------------------------ statements

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace("drop raise", node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace("drop break", node, "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace("drop continue", node, "pass")

    def visit_Return(self, node: ast.Return) -> None:
        if node not in self._last:  # None instead of a result is noticed by every caller
            self._replace("drop return", node, "pass")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            if LOGGERS & {name.lstrip("_") for name in _dotted(node.value.func)}:
                return
            self._replace("drop call", node, "pass")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        inside = self._lines != (0, 0)
        kept = all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets)
        if inside and kept and self._names[-1] != "__init__":  # a missing attribute is noticed by every test
            self._replace("drop assignment", node, "pass")
        for part in (*node.targets, node.value) if inside else (node.value,):
            self.visit(part)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace("drop assignment", node, "pass")
        self._symbol(node.op, node.target, node.value, "=")
        self.generic_visit(node)

    # ------------------------------------------------------------ conditions

    def _negate(self, test: ast.expr) -> None:
        """Negate a condition, unless another operator does the same."""
        compares = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], _OPPOSITES)
        is_not = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        if not (compares or is_not or isinstance(test, ast.Constant)):
            self._replace("negate condition", test, f"not ({self._source(test)})")

    def visit_If(self, node: ast.If | ast.While | ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    visit_While = visit_IfExp = visit_If

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    # ------------------------------------------------------------ expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for kind, left, right in zip(node.ops, operands, operands[1:], strict=False):
            self._symbol(kind, left, right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._symbol(node.op, left, right)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if not any(isinstance(side, _TEXTS) or _is_text(side) for side in (node.left, node.right)):
            self._symbol(node.op, node.left, node.right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        sign = {ast.Not: "not", ast.USub: "minus", ast.Invert: "invert"}.get(type(node.op))
        if sign:
            self._replace(f"drop {sign}", node, f"({self._source(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._replace(f"{value} to {not value}", node, repr(not value))
        elif isinstance(value, (int, float)) and value + 1 != value:
            self._replace("constant + 1", node, repr(value + 1))
            if isinstance(value, int):
                self._replace("constant - 1", node, repr(value - 1))

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in NAMES and isinstance(node.ctx, ast.Load):
            self._replace(f"{node.id} to {NAMES[node.id]}", node, NAMES[node.id])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in NAMES and isinstance(node.ctx, ast.Load):
            end = self._span(node)[1]
            edit = (end - len(node.attr), end, NAMES[node.attr])
            self._add(f"{node.attr} to {NAMES[node.attr]}", node.end_lineno or node.lineno, edit)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        names = _dotted(node.func)[:1]
        if names == ["isinstance"]:  # types may be written with |
            return
        if not UNORDERED & {*names}:
            for first, second in zip(node.args, node.args[1:], strict=False):
                texts = self._source(first), self._source(second)
                if texts[0] != texts[1] and not any(isinstance(part, ast.Starred) for part in (first, second)):
                    edits = (*self._span(first), texts[1]), (*self._span(second), texts[0])
                    self._add("swap arguments", first.lineno, *edits)
        self.generic_visit(node)


def _dotted(node: ast.expr) -> list[str]:
    """Return the names of ``a.b.c``, the last one first."""
    return list(_names(node))


def _names(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Attribute):
        yield node.attr
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _blank(found: re.Match[str]) -> str:
    return " " * len(found.group())
