"""Build hook: compiles the native kernels into ``accel_oct/native/lib`` before a wheel or an editable install is made.

The compiler is that of the PyPI package ``ziglang``, which pyproject.toml names among the build requirements, so no
compiler needs to be installed. The environment variable ``CXX`` replaces it (GCC 12 or Clang 14 and newer).
``ACCEL_OCT_TARGET`` names another platform to build a wheel for, one of `TARGETS`; only ``ziglang`` does that.

Run as a script, ``python hatch_build.py``, it compiles all CPU levels and does nothing else. ``--machine`` compiles the
best level of this machine only, as an editable install does; ``--quick`` the lowest level, hardly optimised, for tests
of changed sources. ``--sanitized`` adds a library with address and undefined-behaviour sanitizers, by the compiler that
``CXX`` names.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import runpy
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script, in an environment without hatchling
    BuildHookInterface = object

ROOT = Path(__file__).parent
SOURCE = ROOT / "accel_oct" / "native" / "source"
LIBRARY = ROOT / "accel_oct" / "native" / "lib"

source_digest = runpy.run_path(str(SOURCE.parent / "digest.py"))["source_digest"]  # not imported: it needs no NumPy

FLAGS = [
    *("-O3", "-std=c++20", "-Wall", "-Wextra", "-fPIC", "-fvisibility=hidden", "-g0"),
    # Sums must not depend on the machine: no fused multiply-add.
    *("-ffp-contract=off", "-fno-exceptions", "-fno-rtti"),
]

X86_LEVELS = ("x86_64_v2", "x86_64_v3", "x86_64_v4")


class Target(NamedTuple):
    """A platform: the tag of its wheel, the compiler's name for it, and the suffix of its libraries."""

    tag: str
    triple: str
    suffix: str = ".so"

    @property
    def levels(self) -> tuple[str, ...]:
        """CPU levels that are built, see `accel_oct.native.library`."""
        return X86_LEVELS if self.triple.startswith("x86_64") else ("aarch64",)


TARGETS = {
    "linux-x86_64": Target("manylinux_2_17_x86_64.manylinux2014_x86_64", "x86_64-linux-gnu.2.17"),
    "linux-aarch64": Target("manylinux_2_17_aarch64.manylinux2014_aarch64", "aarch64-linux-gnu.2.17"),
    "musl-x86_64": Target("musllinux_1_2_x86_64", "x86_64-linux-musl"),
    "musl-aarch64": Target("musllinux_1_2_aarch64", "aarch64-linux-musl"),
    "macos-x86_64": Target("macosx_11_0_x86_64", "x86_64-macos.11.0", ".dylib"),
    "macos-arm64": Target("macosx_11_0_arm64", "aarch64-macos.11.0", ".dylib"),
    "windows-x86_64": Target("win_amd64", "x86_64-windows-gnu", ".dll"),
}


def this_machine() -> str:
    """Name of the target that this Python runs on."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    if sys.platform == "darwin":
        return "macos-arm64" if machine == "aarch64" else f"macos-{machine}"
    if sys.platform == "win32":
        return f"windows-{machine}"
    musl = "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "")
    return f"{'musl' if musl else 'linux'}-{machine}"


def compiler(target: Target, level: str) -> list[str]:
    """The command that compiles for a CPU level: that of ``CXX``, else ziglang's."""
    own = os.environ.get("CXX")
    if own and "ACCEL_OCT_TARGET" not in os.environ:
        march = [f"-march={level.replace('_', '-')}"] if level in X86_LEVELS else []
        return [*shlex.split(own), *march]
    cpu = [f"-mcpu={level}"] if level in X86_LEVELS else []
    # The kernels use nothing of the compiler's own library on Linux, and compiling that takes seconds for every level.
    without = ["-nostdlib++", *(["-rtlib=none"] if target.suffix == ".so" else [])]
    return [sys.executable, "-m", "ziglang", "c++", *without, "-target", target.triple, *cpu]


class Library(NamedTuple):
    """A library: its file, the CPU level that it is compiled for, and its sources."""

    path: Path
    level: str
    sources: tuple[Path, ...]


def libraries(target: Target, levels: Iterable[str]) -> list[Library]:
    """The library that detects the CPU level of a machine, and the kernels for some levels."""
    detects = SOURCE / "cpu.cpp"
    # Backwards, because the sources of the ordered search take longest.
    kernels = tuple(sorted({*SOURCE.glob("*.cpp")} - {detects}, reverse=True))
    return [
        Library(LIBRARY / f"cpu{target.suffix}", target.levels[0], (detects,)),
        *(Library(LIBRARY / f"kernels-{level}{target.suffix}", level, kernels) for level in levels),
    ]


def build(target: Target, levels: Iterable[str], *options: str) -> list[Path]:
    """Compile the kernels for some CPU levels of a target, with options of the compiler, and return the libraries.

    Libraries of the same sources, target and compiler that are there already are kept; all others are removed.
    """
    wanted = libraries(target, levels)
    stamp, digest = LIBRARY / "built-from", _digest(target, options)
    kept = {*LIBRARY.glob("*")} if stamp.is_file() and stamp.read_text() == digest else set()
    missing = [library for library in wanted if library.path not in kept]
    with tempfile.TemporaryDirectory() as folder:
        made = _compiled(target, missing, Path(folder), options)
        LIBRARY.mkdir(exist_ok=True)
        for old in {*LIBRARY.glob("*")} - kept:
            old.unlink()
        for library, file in zip(missing, made, strict=True):
            # Beside the old one first: a process that has it loaded keeps its file.
            partial = library.path.with_suffix(".part")
            partial.write_bytes(file.read_bytes())
            partial.replace(library.path)
    stamp.write_text(digest)
    return [library.path for library in wanted]


def machine_levels(target: Target) -> list[str]:
    """The best CPU level of this machine."""
    (detects,) = build(target, [])
    number = ctypes.CDLL(str(detects)).machine_level()
    return [level for level in target.levels if level == f"x86_64_v{number}"] or [target.levels[0]]


def _digest(target: Target, options: tuple[str, ...]) -> str:
    """Changes with the sources, the target and the compiler."""
    parts = target, options, os.environ.get("CXX"), Path(__file__).read_bytes(), source_digest(SOURCE)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _compiled(target: Target, wanted: list[Library], folder: Path, options: tuple[str, ...]) -> list[Path]:
    """Compile libraries into a folder, with the compiler's caches; every source of every library by itself."""

    def compiled(library: Library, source: Path) -> Path:
        made = folder / f"{source.stem}-{library.level}.o"
        flags = [*FLAGS, *options, _digest_flag(), "-c"]
        _run([*compiler(target, library.level), *flags, "-o", str(made), str(source)], folder)
        return made

    def linked(library: Library, objects: list[Path]) -> Path:
        made = folder / library.path.name
        # A dylib has a name of its own, and that would be where it was compiled.
        named = [f"-Wl,-install_name,@rpath/{made.name}"] if target.suffix == ".dylib" else []
        _run([*compiler(target, library.level), *FLAGS, "-shared", *named, "-o", str(made), *map(str, objects)], folder)
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [[pool.submit(compiled, library, source) for source in library.sources] for library in wanted]
        return [linked(library, [job.result() for job in own]) for library, own in zip(wanted, jobs, strict=True)]


def _digest_flag() -> str:
    """Option for the digest that a library can tell."""
    return f'-DSOURCE_DIGEST="{source_digest(SOURCE)}"'


def _run(command: list[str], caches: Path) -> None:
    """Run the compiler, or end with a sentence."""
    environment = os.environ | {"ZIG_GLOBAL_CACHE_DIR": str(caches), "ZIG_LOCAL_CACHE_DIR": str(caches)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    except OSError as error:
        raise SystemExit(f"accel_oct: the compiler {command[0]} cannot be started: {error}") from error
    if "No module named ziglang" in done.stderr:
        raise SystemExit("accel_oct: no compiler: pip install ziglang, or set CXX to a C++20 compiler")
    if done.returncode:
        raise SystemExit(f"accel_oct: {shlex.join(command)} failed:\n{done.stderr}")


def chosen() -> Target:
    """The target of the environment, or this machine."""
    name = os.environ.get("ACCEL_OCT_TARGET") or this_machine()
    if name not in TARGETS:
        raise SystemExit(f"accel_oct: no native kernels for {name}; there are {', '.join(TARGETS)}")
    return TARGETS[name]


class NativeBuildHook(BuildHookInterface):  # type: ignore[misc]
    """Compiles the kernels and tags the wheel for their platform and any Python 3."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects the files."""
        target = chosen()
        # An editable install stays on the machine; a wheel may go to others.
        levels = machine_levels(target) if version == "editable" else target.levels
        built = build(target, levels)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{target.tag}"
        build_data["artifacts"] += [str(path.relative_to(ROOT)) for path in built]


def build_sanitized(target: Target) -> Path:
    """Compile a library that stops at the first access outside of an array and at undefined behaviour."""
    checks = ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    *_, library = libraries(target, ["sanitized"])
    LIBRARY.mkdir(exist_ok=True)
    command = [*shlex.split(os.environ.get("CXX", "c++")), *FLAGS, *checks, "-shared", _digest_flag()]
    subprocess.run([*command, "-o", str(library.path), *map(str, library.sources)], check=True)
    return library.path


if __name__ == "__main__":
    target = chosen()
    made = {
        "": lambda: build(target, target.levels),
        "--machine": lambda: build(target, machine_levels(target)),
        "--quick": lambda: build(target, target.levels[:1], "-O1"),
        "--sanitized": lambda: [build_sanitized(target)],
    }[" ".join(sys.argv[1:])]()
    for path in made:
        print(path.relative_to(ROOT))
