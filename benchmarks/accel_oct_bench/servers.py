"""Database servers of this machine, started in a temporary folder, for generated SQL."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_SECONDS = 60.0


class Unavailable(Exception):
    """The program that was asked for is not there, or does not start; the message says why."""


@contextmanager
def postgres() -> Iterator[list[str]]:
    """Start PostgreSQL on a socket; yield a command that reads SQL from standard input, such as ``psql``."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    found = shutil.which("initdb", path=os.pathsep.join([*map(str, folders[-1:]), os.environ.get("PATH", "")]))
    client = shutil.which("psql")
    if found is None or client is None:
        raise Unavailable("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    bin_folder = Path(found).resolve().parent
    with _folder("postgres") as (folder, as_user):
        data = folder / "data"
        _run([*as_user, str(bin_folder / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8"])
        server = [str(bin_folder / "postgres"), "-D", str(data), "-k", str(folder), "-c", "listen_addresses="]
        command = [client, "-h", str(folder), "-U", "postgres", "-qAtX", "-v", "ON_ERROR_STOP=1"]
        with _running([*as_user, *server], [*command, "-c", "SELECT 1"]):
            yield command


@contextmanager
def mariadb() -> Iterator[list[str]]:
    """Start MariaDB on a socket; yield a command that reads SQL from standard input, with the database ``tried``."""
    server, install, client = map(shutil.which, ("mariadbd", "mariadb-install-db", "mariadb"))
    if server is None or install is None or client is None:
        raise Unavailable("MariaDB is not installed (Debian: apt-get install mariadb-server)")
    with _folder("mysql") as (folder, as_user):
        data, socket = folder / "data", folder / "socket"
        _run([*as_user, install, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"])
        arguments = [f"--datadir={data}", f"--socket={socket}", "--skip-networking", f"--pid-file={folder / 'pid'}"]
        command = [
            client,
            "--no-defaults",
            f"--socket={socket}",
            "-uroot",
            "-N",
            "-B",
            "--default-character-set=utf8mb4",
        ]
        with _running([*as_user, server, "--no-defaults", *arguments], [*command, "-e", "CREATE DATABASE tried"]):
            yield [*command, "tried"]


def ask(command: Sequence[str], sql: str) -> list[str]:
    """Return the lines that a client prints for statements."""
    return _run(command, sql).splitlines()


@contextmanager
def _folder(user: str) -> Iterator[tuple[Path, list[str]]]:
    """Yield a new folder, and the words that start a command as its owner: servers refuse to run as root."""
    with tempfile.TemporaryDirectory(prefix="accel_oct_") as name:
        folder, as_user = Path(name), list[str]()
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            try:
                shutil.chown(folder, user)
            except LookupError:
                raise Unavailable(f"this is root, and there is no user {user} to run the server") from None
            folder.chmod(0o755)
            as_user = ["runuser", "-u", user, "--"]
        yield folder, as_user


@contextmanager
def _running(server: Sequence[str], first: Sequence[str]) -> Iterator[None]:
    """Run a server until the block ends; `first` is a command that succeeds once it accepts connections."""
    process = subprocess.Popen(
        [*server], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
    )
    try:
        end = time.monotonic() + _SECONDS
        while subprocess.run([*first], capture_output=True, check=False).returncode:
            if process.poll() is not None or time.monotonic() > end:
                raise Unavailable(f"{Path(server[-1]).name}: the server does not start")
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _run(command: Sequence[str], text: str | None = None) -> str:
    found = subprocess.run(
        [*command], input=text, capture_output=True, text=True, encoding="utf-8", check=False, cwd="/"
    )
    if found.returncode:
        raise RuntimeError(f"{Path(command[0]).name}: {found.stderr.strip()[:1000]}")
    return found.stdout
