"""Generated faults: every operator changes something, the changed code parses, and a fault is noticed or not."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from programs.mutation import cpp_faults, python_faults
from programs.mutation.__main__ import ROOT, Rooms, Session, all_faults, survivors, table
from programs.mutation.faults import Fault, shuffled

PYTHON = '''
LIMIT = 3

class Toy:
    size: int = 2

    def __init__(self, size):
        self.size = size

    def grow(self, a: int, b=(1 | 2) & 3):
        """Comments and text stay: ä < b."""
        self.total = [-x for x in range(a, b) if x]  # a < b
        self.total[0] += a - 1
        log.debug(a + b)
        for k in self.total:
            if (
                a  # first < second
                < b
            ) and not k or a in self.total or a is b:
                break
            if a <= b >= 2.5 or a > b:
                continue
            while a != b:
                a -= 1
            self.store(min(a, b), max([a], default=True))
        if a == b:
            return None if a not in self.total or a is not b else False
        if a:
            raise ValueError(a + 1)
        a *= all(self.total) and any(self.total)
        a /= (b * a / b // 2 % 3) ** 2
        return ~a ^ b + (a << 1 >> 2), f"{a + b}"
'''
CPP = """
#define LARGER(a, b) (a < b)
namespace toy {
constexpr i64 SIZE = 1 << 4;
template <class T>
struct Box {
    T* data;
    // a < b
    bool operator()(i64 a) const { return data[a] < 1; }
    i64 grow(const Array<T>& other, i64 b) {
        const i64 c = other.shape[0] * b - 2;
        Array<i64> found = {1, 2};
        if (b <= c && !other.data) return 0;
        if (b > c || b >= 3 || b == 2) {
            data[b] = T(c + b);
            store(c, b);
            b += min_of(b, c), b -= 1, b |= c & 1, b &= c | 1, b *= 2, b /= 3;
        } else
            while (b != c) b++;
        for (i64 i = 0; i < b; i++) {
            if (i % 2) continue;
            if (i / 2 ^ 3) break;
            visit([&](auto tag) { tag.call(true, false); });
        }
        return (b << 2) + (b >> 1) + max_of(most(b, c), least(b, c));
    }
};
}
"""


def in_python() -> list[Fault]:
    return python_faults.python_faults(PYTHON, "toy.py", "room.toy")


def in_cpp() -> list[Fault]:
    return cpp_faults.cpp_faults(CPP, "toy.hpp", "native.toy")


def replacements(*tables: dict[str, str]) -> set[str]:
    return {f"{old} to {new}" for pairs in tables for old, new in pairs.items()}


def test_every_operator_of_python_changes_the_tree() -> None:
    """The toy has a place for each; what comes out parses, and differs from the original and from each other fault."""
    faults = in_python()
    trees = [ast.dump(ast.parse(fault.applied(PYTHON))) for fault in faults]
    assert len({ast.dump(ast.parse(PYTHON)), *trees}) == len(faults) + 1
    drops = {"assignment", "break", "call", "continue", "invert", "minus", "not", "raise", "return"}
    expected = {f"drop {kind}" for kind in drops} | {"negate condition", "swap arguments"}
    expected |= {"constant + 1", "constant - 1", "True to False", "False to True"}
    expected |= {f"{old} to {new}" for old, new in python_faults.SYMBOLS.values()}
    found = {fault.operator for fault in faults}
    assert expected <= found
    assert {"min to max", "max to min", "any to all", "all to any", "+= to -=", "-= to +=", "*= to /="} <= found


def test_what_is_left_alone_in_python() -> None:
    """Comments, text, messages and logging; outside of functions all but constants; attributes that are set first."""
    assert {fault.operator for fault in in_python() if fault.function == "room.toy"} == {"constant + 1", "constant - 1"}
    assert not [fault for fault in in_python() if fault.function == "room.toy.Toy.__init__"]
    kept = 'f"{a + b}"', "log.debug(a + b)", "ValueError(a + 1)", "# first < second", "ä < b"
    for fault in in_python():
        assert fault.operator == "drop raise" or all(part in fault.applied(PYTHON) for part in kept)


def test_every_operator_of_cpp_changes_the_tokens() -> None:
    """Brackets stay in pairs, macros, declarations and templates as they are."""
    faults = in_cpp()
    assert {fault.function for fault in faults} == {"native.toy.Box.operator", "native.toy.Box.grow"}
    texts = [fault.applied(CPP) for fault in faults]
    assert len({CPP, *texts}) == len(faults) + 1
    expected = {f"drop {kind}" for kind in ("assignment", "break", "call", "continue", "not", "return")}
    expected |= {"negate condition", "swap arguments", "constant + 1", "constant - 1"}
    assert {fault.operator for fault in faults} == expected | replacements(cpp_faults.SYMBOLS, cpp_faults.NAMES)
    for text in texts:
        assert all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))
        kept = "#define LARGER(a, b) (a < b)", "constexpr i64 SIZE = 1 << 4;", "template <class T>", "// a < b"
        assert all(part in text for part in (*kept, "const Array<T>& other", "Array<i64> found = {"))


@pytest.mark.slow
def test_faults_of_the_library_parse() -> None:
    """A sample of what `make mutants` draws: every fault changes its module."""
    packages = {"accel_oct/exact": "exact", "accel_oct/native": "native"}
    for fault in shuffled(all_faults(packages=packages), seed=0)[:60]:
        text = (ROOT / fault.file).read_text(encoding="utf-8")
        changed = fault.applied(text)
        assert changed != text and fault.diff(text)
        if not fault.is_native:
            assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))


def test_the_order_is_drawn_and_outlives_moved_lines() -> None:
    """One seed, one order; lines above and faults of another module leave it as it is; families come in turn."""
    faults = in_python()
    order = [fault.operator for fault in shuffled(faults, 1)]
    moved = python_faults.python_faults("\n\n# moved\n" + PYTHON, "toy.py", "room.toy")
    assert [fault.operator for fault in shuffled(moved, 1)] == order
    assert [fault.operator for fault in shuffled(faults, 2)] != order
    both = shuffled([*faults, *in_cpp()], 1)
    assert [fault for fault in both if fault.family == "drop" and not fault.is_native] == [
        fault for fault in shuffled(faults, 1) if fault.family == "drop"
    ]
    assert len({fault.family for fault in both[:6]}) == 6


def test_tests_are_found_by_the_longest_name() -> None:
    fault = in_python()[0]
    assert Rooms({}).tests_of(fault) == ("tests/room",)
    assert Rooms({"room": ["a"], "room.toy": ["b", "c"], "roo": ["d"]}).tests_of(fault) == ("b", "c")
    assert all((ROOT / path).exists() for paths in Rooms.read().tests.values() for path in paths)


def test_a_fault_is_noticed_or_named(tmp_path: Path) -> None:
    """In a tree of its own: one fault is caught, one survives its tests, one is reached by none."""
    (tmp_path / "tree" / "toys").mkdir(parents=True)
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        "toys/toy.py": "def larger(a, b):\n    return a if a > b else b\n\n\ndef idle(a):\n    return not a\n",
        "test_toy.py": "from toys.toy import larger\n\ndef test_it():\n    assert larger(1, 2) == larger(2, 1) == 2\n",
    }
    for name, text in files.items():
        (tmp_path / "tree" / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "tree", check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path / "tree", check=True)
    reason = "equal numbers are the same"
    rooms = Rooms({"": ["test_toy.py"]}, [{"function": "toy.larger", "operator": "> to >=", "reason": reason}])
    session = Session(rooms, tmp_path / "copies", jobs=1, root=tmp_path / "tree")
    faults = sorted(all_faults(tmp_path / "tree", {"toys": ""}), key=lambda fault: fault.operator)
    tried = session.run(faults, count=3)
    assert [(fault.operator, verdict.outcome) for fault, verdict in tried] == [
        ("> to >=", "SURVIVED"),
        ("drop not", "SURVIVED"),
        ("negate condition", "caught"),
    ]
    assert tried[2][1].by == "test_toy.py::test_it" and tried[1][1].by == "no test reaches it"
    shown = survivors(tried, rooms, tmp_path / "tree")
    assert f"toys/toy.py:2 toy.larger: > to >=\n    equivalent: {reason}\n-    return a if a > b" in shown
    assert "toys/toy.py:6 toy.idle: drop not\n    no test reaches it\n-    return not a\n+    return (a)" in shown
    assert table(tried, rooms).endswith("| toy | 3 | 1 | 0 | 1 | 1 |")
