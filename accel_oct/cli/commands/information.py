"""``accel-oct backends`` and ``config``: available solvers, and the switches of a preset."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from accel_oct.cli.codes import Code
from accel_oct.cli.commands.output import emit, printed
from accel_oct.cli.options import DisplayOptions, PresetName
from accel_oct.mip import list_backends
from accel_oct.solving.config import Config


def backends(display: DisplayOptions) -> int:
    """Print two lines per backend: availability and capabilities."""
    found = []
    for info in list_backends():
        state = "ready" if info.installed and info.licensed else ("no licence" if info.installed else "not installed")
        able = {what: how.value for what, how in vars(info.capabilities).items()}
        skills = ", ".join(f"{what.replace('_', ' ')} {how}" for what, how in able.items())
        reason = f": {info.reason}" if info.reason else ""
        printed(display, None, f"{info.name:12s} {state}{reason}", f"{'':12s} {skills}")
        found.append({"name": info.name, "state": state, "reason": info.reason, "capabilities": able})
    return emit(display, "backends", Code.DONE, backends=found)


def config(wanted: PresetName, display: DisplayOptions) -> int:
    """Print the switches as TOML for a run file."""
    switches = asdict(Config.preset(wanted.preset))
    printed(display, None, f"# preset {wanted.preset}", *_lines(switches, "config"))
    return emit(display, "config", Code.DONE, preset=wanted.preset, config=switches)


def _lines(values: Mapping[str, Any], section: str) -> Iterator[str]:
    """Yield lines of TOML; strings, numbers and booleans have the same form in JSON."""
    yield f"[{section}]"
    yield from (f"{key} = {json.dumps(value)}" for key, value in values.items() if not isinstance(value, dict))
    for key, value in values.items():
        if isinstance(value, dict):
            yield ""
            yield from _lines(value, f"{section}.{key}")
