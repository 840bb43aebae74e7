"""Build hook: compiles the native kernels into ``accel_oct/native/lib`` before a wheel or an editable install is made.

The compiler is that of the PyPI package ``ziglang``, which pyproject.toml names among the build requirements, so no
compiler needs to be installed. The environment variable ``CXX`` replaces it (GCC 12 or Clang 14 and newer).
``ACCEL_OCT_TARGET`` names another platform to build a wheel for, one of `TARGETS`; only ``ziglang`` does that.

Run as a script, ``python hatch_build.py``, it compiles for this machine and nothing else. ``--quick`` compiles one CPU
level, the lowest, and hardly optimised. ``--sanitized`` adds a library with address and undefined-behaviour sanitizers,
by the compiler that ``CXX`` names.
"""

from __future__ import annotations

import hashlib
import os
import platform
import runpy
import shlex
import subprocess
import sys
import sysconfig
import tempfile
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
    *("-O3", "-std=c++20", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden", "-g0"),
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
    return [sys.executable, "-m", "ziglang", "c++", "-nostdlib++", "-target", target.triple, *cpu]


def build(target: Target) -> list[Path]:
    """Compile all CPU levels of a target, side by side, and return the libraries.

    Nothing is compiled where the libraries of the same sources, target and compiler are there already.
    """
    libraries = [_library(target, level) for level in target.levels]
    stamp, digest = LIBRARY / "built-from", _digest(target)
    if stamp.is_file() and stamp.read_text() == digest and all(path.is_file() for path in libraries):
        return libraries
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(lambda level: _compiled(target, level, Path(folder)), target.levels))
        _replace(dict(zip(libraries, made, strict=True)))
    stamp.write_text(digest)
    return libraries


def build_quick(target: Target) -> list[Path]:
    """Compile the lowest CPU level, hardly optimised, in place of all libraries: for tests of changed sources."""
    level = target.levels[0]
    (LIBRARY / "built-from").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        _replace({_library(target, level): _compiled(target, level, Path(folder), "-O1")})
    return [_library(target, level)]


def _library(target: Target, level: str) -> Path:
    return LIBRARY / f"kernels-{level}{target.suffix}"


def _replace(libraries: dict[Path, Path]) -> None:
    """Put compiled files into the place of all libraries."""
    LIBRARY.mkdir(exist_ok=True)
    for old in {*LIBRARY.glob("kernels-*")} - {*libraries}:
        old.unlink()
    for library, made in libraries.items():
        # Beside the old one first: a process that has it loaded keeps its file.
        partial = library.with_suffix(".part")
        partial.write_bytes(made.read_bytes())
        partial.replace(library)


def _digest(target: Target) -> str:
    """Changes with the sources, the target and the compiler."""
    parts = target, os.environ.get("CXX"), Path(__file__).read_bytes(), source_digest(SOURCE)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _compiled(target: Target, level: str, folder: Path, *options: str) -> Path:
    """Compile one CPU level into a folder; the compiler's caches go there too."""
    made = folder / _library(target, level).name
    # A dylib has a name of its own, and that would be where it was compiled.
    named = [f"-Wl,-install_name,@rpath/{made.name}"] if target.suffix == ".dylib" else []
    command = [*compiler(target, level), *FLAGS, *named, *options, *_sources(made)]
    caches = {"ZIG_GLOBAL_CACHE_DIR": str(folder), "ZIG_LOCAL_CACHE_DIR": str(folder)}
    try:
        done = subprocess.run(command, env=os.environ | caches, capture_output=True, text=True)
    except OSError as error:
        raise SystemExit(f"accel_oct: the compiler {command[0]} cannot be started: {error}") from error
    if "No module named ziglang" in done.stderr:
        raise SystemExit("accel_oct: no compiler: pip install ziglang, or set CXX to a C++20 compiler")
    if done.returncode:
        raise SystemExit(f"accel_oct: {shlex.join(command)} failed:\n{done.stderr}")
    return made


def _sources(made: Path) -> list[str]:
    """Arguments: what is compiled into what, and the digest that the library can tell."""
    return [f'-DSOURCE_DIGEST="{source_digest(SOURCE)}"', "-o", str(made), str(SOURCE / "kernels.cpp")]


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
        libraries = build(target)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{target.tag}"
        build_data["artifacts"] += [str(path.relative_to(ROOT)) for path in libraries]


def build_sanitized(target: Target) -> Path:
    """Compile a library that stops at the first access outside of an array and at undefined behaviour."""
    checks = ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    library = _library(target, "sanitized")
    LIBRARY.mkdir(exist_ok=True)
    command = [*shlex.split(os.environ.get("CXX", "c++")), *FLAGS, *checks]
    subprocess.run([*command, *_sources(library)], check=True)
    return library


if __name__ == "__main__":
    builders = {"": build, "--quick": build_quick, "--sanitized": lambda target: [build_sanitized(target)]}
    for built in builders[" ".join(sys.argv[1:])](chosen()):
        print(built.relative_to(ROOT))
