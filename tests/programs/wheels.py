"""Inspects wheels: tag, libraries for every CPU level, their architecture, symbols and what they link to.

Run as ``python tests/programs/wheels.py dist`` (`make wheels`); exits with 1 where something is not as it should be.
"""

from __future__ import annotations

import re
import sys
import tempfile
import zipfile
from pathlib import Path

import lief

#: What libraries may link to: the C library of the platform.
SYSTEM = {
    "linux": {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"},
    "musl": {"libc.so"},
    "macosx": {"/usr/lib/libSystem.B.dylib"},
    "win": {"KERNEL32.dll", "ntdll.dll", "msvcrt.dll"},
}
X86 = {"x86_64_v2", "x86_64_v3", "x86_64_v4"}
#: What the libraries for Linux may take from the C library; they are linked without a library of the compiler.
IMPORTS = {"calloc", "free", "malloc", "memcpy", "memmove", "memset", "realloc", "sched_yield"}
SOURCES = Path(__file__).parents[2] / "accel_oct" / "native" / "source"
SYMBOLS = {
    path.stem: set(re.findall(r"^EXPORT [^(]*?(\w+)\(", path.read_text(), re.MULTILINE))
    for path in SOURCES.glob("*.cpp")
}
KERNELS = set().union(*SYMBOLS.values()) - SYMBOLS["cpu"]


def problems(wheel: Path) -> list[str]:
    """What is wrong with a wheel."""
    found = re.fullmatch(r"accel_oct-[^-]+-py3-none-(.+)", wheel.stem)
    if found is None:
        return [f"the tag is not py3-none-PLATFORM: {wheel.name}"]
    platform = found.group(1)
    kind = "musl" if "musl" in platform else next(name for name in ("linux", "macosx", "win") if name in platform)
    is_arm = "aarch64" in platform or "arm64" in platform
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = [name for name in archive.namelist() if name.startswith("accel_oct/native/lib/")]
        stems = {Path(name).stem for name in names}
        levels = {f"kernels-{level}" for level in ({"aarch64"} if is_arm else X86)}
        wrong = [] if stems == levels | {"cpu"} else [f"libraries of {sorted(stems)}"]
        for name in names:
            wrong += [f"{Path(name).name}: {what}" for what in inspect(archive.extract(name, folder), kind, is_arm)]
    return wrong


def inspect(path: str, kind: str, is_arm: bool) -> list[str]:
    """What is wrong with a library."""
    library = lief.parse(path)
    if library is None:
        return ["not a library"]
    wrong = []
    architecture = str(library.header.machine_type if kind in ("linux", "musl") else _machine(library, kind))
    if not re.search("AARCH64|ARM64" if is_arm else "X86_64|AMD64", architecture.upper()):
        wrong.append(f"built for {architecture}")
    linked = {getattr(entry, "name", entry) for entry in library.libraries} - {
        Path(path).name,
        f"@rpath/{Path(path).name}",
    }
    foreign = {name for name in linked if not _is_system(str(name), kind, path)}
    if foreign:
        wrong.append(f"links to {sorted(map(str, foreign))}")
    exported = {function.name.lstrip("_") for function in library.exported_functions}
    lacking = (SYMBOLS["cpu"] if Path(path).stem == "cpu" else KERNELS) - exported
    if lacking:
        wrong.append(f"lacks {sorted(lacking)}")
    imported = {function.name for function in library.imported_functions} - IMPORTS - {"__cxa_finalize"}
    if kind in ("linux", "musl") and imported:
        wrong.append(f"needs {sorted(imported)}")
    mangled = [name for name in exported if name.startswith("Z")]
    if mangled:
        wrong.append(f"exports C++ symbols: {mangled[:3]}")
    return wrong


def _machine(library: object, kind: str) -> object:
    return library.header.cpu_type if kind == "macosx" else library.header.machine  # type: ignore[attr-defined]


def _is_system(name: str, kind: str, path: str) -> bool:
    own = name.endswith(Path(path).name)  # a dylib names itself
    return own or name in SYSTEM[kind] or name.startswith("api-ms-win-crt")


if __name__ == "__main__":
    wheels = sorted(Path(sys.argv[1]).glob("*.whl"))
    failed = not wheels
    for wheel in wheels:
        wrong = problems(wheel)
        failed = failed or bool(wrong)
        print(f"{wheel.name}  {wheel.stat().st_size / 1e6:.2f} MB  {'; '.join(wrong) or 'good'}")
    sys.exit(failed)
