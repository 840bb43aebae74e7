"""``accel-oct backends``: available solvers."""

from __future__ import annotations

from accel_oct.cli.codes import Code
from accel_oct.cli.commands.output import printed, tell
from accel_oct.cli.options import TellingOptions
from accel_oct.mip import list_backends


def run(telling: TellingOptions) -> int:
    """Print two lines per backend: availability and capabilities."""
    found = []
    for info in list_backends():
        state = "ready" if info.installed and info.licensed else ("no licence" if info.installed else "not installed")
        able = {what: how.value for what, how in vars(info.capabilities).items()}
        skills = ", ".join(f"{what.replace('_', ' ')} {how}" for what, how in able.items())
        reason = f": {info.reason}" if info.reason else ""
        printed(telling, None, f"{info.name:12s} {state}{reason}", f"{'':12s} {skills}")
        found.append({"name": info.name, "state": state, "reason": info.reason, "capabilities": able})
    return tell(telling, "backends", Code.DONE, backends=found)
