"""Installs wheels into empty environments without a compiler, and grows trees there.

Run as ``python tests/programs/clean_room.py dist`` (`make release`). Each wheel of accel-oct that this machine can run
is installed on the oldest and on the newest supported Python that are found here; ``--python`` names others.
Dependencies come from the index of pip, as wheels only. With no other folder on the PATH than that of the environment,
``accel-oct fit``, ``predict``, ``certify`` and ``check --proof`` run, then, with the extra `pandas`, the first Python
example of README.md, and where the folder has a wheel of accel-oct-bench also ``accel-oct bench``. ``--sdist`` builds
one more wheel from the source distribution, which may use no compiler but that of its build requirements. Exits with 1
where something fails, or where no wheel could be tried.

It needs nothing but Python, so that it runs everywhere; which Pythons are supported is read from the wheel.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "cl", "icx", "zig")
#: Seconds that one process may take. A build from sources takes minutes.
LIMIT = 1800

#: There is no compiler, and the library is the installed one.
ROOM = """
import importlib.util, shutil, sys
from pathlib import Path
import accel_oct
found = [name for name in {compilers!r} if shutil.which(name)]
assert not found and importlib.util.find_spec("ziglang") is None, f"there is a compiler: {{found or 'ziglang'}}"
assert Path(accel_oct.__file__).is_relative_to(sys.prefix), accel_oct.__file__
assert accel_oct.__version__ == {version!r}, accel_oct.__version__
"""
#: What must hold after the example of README.md.
PROVEN = """
assert model.status_ == "optimal" and model.proof_.startswith("proven optimal"), model.proof_
assert (model.predict(X) == y).mean() > 0.9
"""
ROWS = [
    (age, income, "yes" if income > (20 if age < 40 else 30) else "no")
    for age in range(20, 60)
    for income in (15, 25, 35)
]
TABLE = "age,income,paid\n" + "".join(f"{age},{income},{paid}\n" for age, income, paid in ROWS)


class Failure(Exception):
    """A process of a clean room failed; the message is what it said."""


class Room:
    """A virtual environment, and processes that see no other programs, packages or settings of this project."""

    def __init__(self, python: str, folder: Path) -> None:
        self.folder, self.programs = folder, folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        dropped = re.compile(r"PYTHON|VIRTUAL_ENV|ACCEL_OCT|CC$|CXX$|CFLAGS|CPPFLAGS|LD_")
        self.environment = {name: value for name, value in os.environ.items() if not dropped.match(name)}
        self._run([python, "-m", "venv", str(folder / "venv")])
        self.environment["PATH"] = str(self.programs)

    def python(self, *arguments: str) -> str:
        """Standard output of this room's Python."""
        return self._run([str(self.programs / "python"), "-I", *arguments])

    def pip(self, *arguments: str) -> str:
        """Standard output of this room's pip."""
        return self.python("-m", "pip", "--disable-pip-version-check", *arguments)

    def accel_oct(self, *arguments: str) -> str:
        """Standard output of the installed command."""
        return self._run([str(self.programs / "accel-oct"), *arguments])

    def takes(self, wheel: Path) -> bool:
        """Whether this Python can install a wheel."""
        try:
            self.pip("download", "--quiet", "--no-deps", "--no-index", "--dest", str(self.folder / "taken"), str(wheel))
        except Failure as failure:
            if "is not a supported wheel on this platform" not in str(failure):
                raise
            return False
        return True

    def _run(self, command: Sequence[str]) -> str:
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired as error:
            raise Failure(f"{' '.join(command[:6])} ... takes more than {LIMIT} s") from error
        if done.returncode:
            said = f"{done.stdout}\n{done.stderr}".strip()
            raise Failure(f"exit code {done.returncode} of {' '.join(map(str, command[:6]))} ...\n{said[-4000:]}")
        return done.stdout


def metadata(wheel: Path) -> str:
    """The METADATA of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def supported(wheel: Path) -> list[tuple[int, int]]:
    """The versions of Python that the classifiers of a wheel name, oldest first."""
    found = re.findall(r"^Classifier: Programming Language :: Python :: (\d+)\.(\d+)$", metadata(wheel), re.MULTILINE)
    return sorted((int(major), int(minor)) for major, minor in found)


def version_of(python: str) -> tuple[int, int] | None:
    """Major and minor version of an interpreter, or None where it does not run."""
    asked = [python, "-c", "import sys, ensurepip, venv; print(*sys.version_info[:2])"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return None
    numbers = done.stdout.split()
    return (int(numbers[0]), int(numbers[1])) if done.returncode == 0 and len(numbers) == 2 else None


def interpreters(versions: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """Supported interpreters of this machine: this one, pythonX.Y on the PATH, and those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = {}
    for major, minor in versions:
        name = f"python{major}.{minor}"
        tried = [*filter(None, [shutil.which(name)]), *map(str, sorted(pyenv.glob(f"{major}.{minor}*/bin/{name}")))]
        if sys.version_info[:2] == (major, minor):
            tried.insert(0, sys.executable)
        for python in tried:
            if version_of(python) == (major, minor):
                found[major, minor] = python
                break
    return found


def example() -> str:
    """The first Python example of README.md."""
    found = re.search(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if found is None or not re.search(r"^model = .*\.fit\(X, y\)$", found[1], re.MULTILINE):
        raise SystemExit("the first Python example of README.md does not fit a model to X and y")
    return found[1]


def try_wheel(room: Room, wheel: Path, benchmarks: Path | None) -> None:
    """Install a wheel and use it; a `Failure` says what did not work."""
    version = wheel.name.split("-")[1]
    room.pip("install", "--quiet", "--only-binary", ":all:", str(wheel))
    room.python("-c", ROOM.format(compilers=COMPILERS, version=version))
    (room.folder / "table.csv").write_text(TABLE, encoding="utf-8")
    room.accel_oct("fit", "table.csv", "--target", "paid", "--max-depth", "2", "-o", "model.json")
    predicted = room.accel_oct("predict", "model.json", "table.csv").split()[1:]
    if predicted != [paid for _, _, paid in ROWS]:
        raise Failure(f"accel-oct predict: {predicted}")
    room.accel_oct("certify", "model.json", "table.csv", "-o", "proof.json")
    room.accel_oct("check", "proof.json", "table.csv", "--proof")
    room.pip("install", "--quiet", "--only-binary", ":all:", f"{wheel}[pandas]")
    room.python("-c", example() + PROVEN)
    if benchmarks is not None:
        room.pip("install", "--quiet", "--only-binary", ":all:", str(benchmarks))
        only = ["--data=gen-monk1", "--depths=2", "--penalties=0.01", "--methods=default", "--time-limit=300"]
        room.accel_oct("bench", "run", "quick", *only, "--out", "results", "--quiet")
        room.accel_oct("bench", "verify", "results")


def built_from_sources(python: str, sdist: Path, folder: Path) -> Path:
    """A wheel that pip builds from a source distribution, in an environment of its own as users have it."""
    room = Room(python, folder)
    room.pip("wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder / "built"), str(sdist))
    (wheel,) = (folder / "built").glob("*.whl")
    return wheel


def trials(
    pythons: dict[tuple[int, int], str], wheels: Sequence[Path], sdist: Path | None, benchmarks: Path | None
) -> Iterator[tuple[str, str, float]]:
    """What was tried, what was wrong with it, and seconds; a wheel that no Python here takes is one, too."""
    left = set(wheels)
    with tempfile.TemporaryDirectory() as name:
        number, made = 0, []
        if sdist is not None:
            start, wrong, newest = time.monotonic(), "", max(pythons)
            (folder := Path(name, "build")).mkdir()
            try:
                made = [built_from_sources(pythons[newest], sdist, folder)]
            except Failure as failure:
                wrong = str(failure)
            what = f"{sdist.name} builds a wheel on Python {newest[0]}.{newest[1]}"
            yield what, wrong, time.monotonic() - start
        for (major, minor), python in pythons.items():
            for wheel in [*wheels, *made]:
                number += 1
                start, wrong = time.monotonic(), ""
                (folder := Path(name, str(number))).mkdir()
                try:
                    room = Room(python, folder)
                    if not room.takes(wheel):
                        continue
                    left -= {wheel}
                    try_wheel(room, wheel, benchmarks)
                except Failure as failure:
                    wrong = str(failure)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
                origin = f"{wheel.name} of the sdist" if wheel in made else wheel.name
                yield f"{origin} on Python {major}.{minor}", wrong, time.monotonic() - start
    for wheel in sorted(left):
        print(f"{wheel.name}: not tried, no Python here installs it")


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the wheels are")
    parser.add_argument("--python", action="append", help="an interpreter; may be repeated")
    parser.add_argument("--sdist", action="store_true", help="also build a wheel from the source distribution")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    wheels = sorted(folder.glob("accel_oct-*.whl"))
    sdists = sorted(folder.glob("accel_oct-*.tar.gz"))
    if not wheels or (arguments.sdist and len(sdists) != 1):
        raise SystemExit(f"{folder} has {len(wheels)} wheels and {len(sdists)} source distributions of accel-oct")
    versions = supported(wheels[0])
    if arguments.python:
        named = {python: version_of(python) for python in arguments.python}
        unfit = [python for python, version in named.items() if version not in versions]
        if unfit:
            raise SystemExit(f"not there, or no supported version: {', '.join(unfit)}")
        chosen = {version: python for python, version in named.items() if version is not None}
    else:
        found = interpreters(versions)
        if not found:
            raise SystemExit("no supported Python was found; name one with --python")
        chosen = {version: found[version] for version in (min(found), max(found))}
    for (major, minor), python in chosen.items():
        print(f"Python {major}.{minor}: {python}", flush=True)
    failed, tried = False, 0
    benchmarks = next(iter(sorted(folder.glob("accel_oct_bench-*.whl"))), None)
    for what, wrong, seconds in trials(chosen, wheels, sdists[0] if arguments.sdist else None, benchmarks):
        print(f"{what}: {wrong or 'good'} ({seconds:.0f} s)", flush=True)
        failed, tried = failed or bool(wrong), tried + 1
    if not tried:
        print("nothing was tried: no Python here installs any of these wheels")
    return int(failed or not tried)


if __name__ == "__main__":
    sys.exit(main())
