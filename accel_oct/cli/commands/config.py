"""``accel-oct config``: print the switches of a preset."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from accel_oct.cli.codes import Code
from accel_oct.cli.commands.output import printed, tell
from accel_oct.cli.options import PresetName, TellingOptions
from accel_oct.solving.config import Config


def run(wanted: PresetName, telling: TellingOptions) -> int:
    """Print the switches as TOML for a run file."""
    switches = asdict(Config.preset(wanted.preset))
    printed(telling, None, f"# preset {wanted.preset}", *_lines(switches, "config"))
    return tell(telling, "config", Code.DONE, preset=wanted.preset, config=switches)


def _lines(values: Mapping[str, Any], section: str) -> Iterator[str]:
    """Yield lines of TOML; strings, numbers and booleans have the same form in JSON."""
    yield f"[{section}]"
    yield from (f"{key} = {json.dumps(value)}" for key, value in values.items() if not isinstance(value, dict))
    for key, value in values.items():
        if isinstance(value, dict):
            yield ""
            yield from _lines(value, f"{section}.{key}")
