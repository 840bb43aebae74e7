"""What a source imports, where, and how: read from its syntax tree, nothing is executed."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import accel_oct_backends

import accel_oct

_IMPORT_CALLS = {"__import__", "import_module", "importlib.import_module"}


@dataclass(frozen=True)
class Import:
    """One import statement, or a call that imports a constant name.

    Parameters
    ----------
    module : str
        ``a`` of ``import a`` and of ``from a import b``, dots resolved.
    names : tuple of str
        ``b``; empty for ``import a``.
    lines : range
        Of the statement.
    late : bool
        Inside a function: it runs when the function is called.
    for_types : bool
        Under ``if TYPE_CHECKING``: it never runs.
    """

    module: str
    names: tuple[str, ...]
    lines: range
    late: bool
    for_types: bool

    @property
    def candidates(self) -> Iterator[str]:
        """Every name that may be a module: ``from a import b`` gives a and a.b."""
        yield self.module
        yield from (f"{self.module}.{name}" for name in self.names)

    def targets(self, known: Iterable[str]) -> set[str]:
        """The modules among `known` that it asks for: a.b where that is a module, else a."""
        known = set(known)
        wanted = {name for name in (f"{self.module}.{name}" for name in self.names) if name in known}
        only_modules = bool(self.names) and len(wanted) == len(set(self.names))
        return wanted if only_modules else wanted | ({self.module} & known)


@cache
def imports(source: str, module: str, is_package: bool = False) -> tuple[Import, ...]:
    """All imports of a source, at any depth of nesting; several tests read all sources."""
    found: list[Import] = []
    parents = module.split(".") if is_package else module.split(".")[:-1]

    def visit(node: ast.AST, late: bool, for_types: bool) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            for name, members in _named(node, parents):
                found.append(Import(name, members, lines, late, for_types))
        if isinstance(node, ast.If) and ast.unparse(node.test).removeprefix("typing.") == "TYPE_CHECKING":
            for child in node.body:
                visit(child, late, True)
            for child in node.orelse:
                visit(child, late, for_types)
            return
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, late, for_types)

    visit(ast.parse(source), late=False, for_types=False)
    return tuple(found)


def _named(node: ast.Import | ast.ImportFrom | ast.Call, parents: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name, ()) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            base = ".".join([*parents[: len(parents) - node.level + 1], *([base] if base else [])])
        yield base, tuple(alias.name for alias in node.names)
    elif getattr(node.func, "attr", getattr(node.func, "id", None)) not in ("__import__", "import_module"):
        return
    elif ast.unparse(node.func) in _IMPORT_CALLS and node.args and isinstance(node.args[0], ast.Constant):
        yield str(node.args[0].value), ()


def comments(source: str) -> dict[int, str]:
    """Line number to the comment on that line, marks for tools taken out."""
    found = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            said = [part.strip() for part in token.string.split("#")]
            found[token.start[0]] = " ".join(part for part in said if not part.startswith(("noqa", "type: ignore")))
    return found


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the library and of its backends."""
    for package in (accel_oct, accel_oct_backends):
        root = Path(str(package.__file__)).parent
        for path in sorted(root.rglob("*.py")):
            parts = [package.__name__, *path.relative_to(root).with_suffix("").parts]
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


# ---------------------------------------------------------------- cycles

#: Module to the modules it imports, each with the line that does so.
Graph = Mapping[str, Mapping[str, int]]


def import_graph(sources: Mapping[str, str], packages: Iterable[str] = ()) -> dict[str, dict[str, int]]:
    """Who imports whom when all functions are called; imports for type checkers are left out.

    That ``import a.b`` also runs a's ``__init__`` is left out too: it would make every package that gathers its own
    modules a cycle.
    """
    packages = set(packages)
    graph: dict[str, dict[str, int]] = {}
    for module, source in sources.items():
        edges: dict[str, int] = {}
        for found in imports(source, module, module in packages):
            if not found.for_types:
                for target in found.targets(sources):
                    edges.setdefault(target, found.lines[0])
        graph[module] = edges
    return graph


def cycles(graph: Graph) -> list[list[str]]:
    """One shortest cycle, ``[a, b, a]``, through the first module of every knot that imports tie.

    A knot is a set of modules that reach each other. When its cycle is undone, the next one shows.
    """
    reach = {module: _reachable(graph, module) for module in graph}
    found, seen = [], set()
    for module in sorted(graph):
        if module in seen or module not in reach[module]:
            continue
        knot = {other for other in reach[module] if module in reach[other]}
        seen |= knot
        found.append(min((_shortest_cycle(graph, start) for start in sorted(knot)), key=len))
    return found


def knot(graph: Graph, module: str) -> set[str]:
    """The modules that a module reaches and that reach it."""
    return {other for other in _reachable(graph, module) if module in _reachable(graph, other)}


def _reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = set(graph[waiting.pop()]) - seen
        seen |= fresh
        waiting += fresh
    return seen


def _shortest_cycle(graph: Graph, start: str) -> list[str]:
    ways = deque([[start]])
    seen: set[str] = set()
    while ways:
        way = ways.popleft()
        for target in sorted(graph[way[-1]]):
            if target == start:
                return [*way, start]
            if target not in seen:
                seen.add(target)
                ways.append([*way, target])
    raise ValueError(f"{start} lies on no cycle")
