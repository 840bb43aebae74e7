"""Settings from options, the run file and defaults, in this order of priority."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from accel_oct.cli.options import DEFAULTS, GROUPS, Group, RuleOptions, RunFile, TableOptions
from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.solving.config import Config
from accel_oct.support.files import read_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MOST_BYTES = 1 << 20
_LARGEST = sys.float_info.max
_G = TypeVar("_G", bound=Group)


def keys_of(section: str) -> dict[str, tuple[type[Group], str]]:
    """Return the keys of a section of the run file, with the group and the field of each."""
    found = {}
    for group in GROUPS:
        for entry in fields(group) if section == group.SECTION else ():
            key = group.KEYS.get(entry.name, entry.name)
            if key:
                found[key] = group, entry.name
    return found


#: Sections that set options; `objective`, `constraints` and `config` are read separately.
SECTIONS = tuple(dict.fromkeys(group.SECTION for group in GROUPS if group.SECTION))


@dataclass(frozen=True)
class RunSettings:
    """A run file, read and checked.

    Attributes
    ----------
    values : mapping from groups to mappings from fields to values
    config : dict
        Switches of `Config`, optionally with `preset`.
    """

    values: Mapping[type[Group], Mapping[str, Any]] = field(default_factory=dict)
    objective: Any = None
    constraints: tuple[Any, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)

    def filled(self, group: _G) -> _G:
        """Return the options with missing values from the run file and the defaults."""
        own = self.values.get(type(group), {})
        changes = {}
        for entry in fields(group):
            if getattr(group, entry.name) in (None, [], ()):
                value = own.get(entry.name, DEFAULTS.get(entry.name))
                if value is not None:
                    changes[entry.name] = value
        return replace(group, **changes)

    def rules(self, group: RuleOptions) -> tuple[Any, list[Any]]:
        """Return objective and constraints as text or tables."""
        given = self.objective if group.objective is None else group.objective
        return given, list(group.constraint or self.constraints)

    def switches(self, preset: str | None) -> Config | str:
        """Return the name of a preset, or a `Config` if the file sets switches."""
        values = dict(self.config)
        name = preset or values.get("preset") or "default"
        values.pop("preset", None)
        base = Config.preset(name)
        return Config.from_mapping(values, base) if values else name


def read_run(file: RunFile) -> RunSettings:
    """Read the run file, if any; unknown sections, keys and types are errors."""
    if file.config is None:
        return RunSettings()
    where = f"run file {file.config}"
    try:
        document = tomllib.loads(read_text(file.config, _MOST_BYTES, "run file"))
    except RecursionError:
        raise InvalidInputError(f"{where} is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{where} is not valid TOML: {error}") from None
    known = [*SECTIONS, "objective", "constraints", "config"]
    values: dict[type[Group], dict[str, Any]] = {}
    for section, content in document.items():
        if section not in known:
            near = did_you_mean(section, known) or f"; known are {', '.join(known)}"
            raise InvalidInputError(f"{where} has no section {shown(section)}{near}")
        if section in SECTIONS:
            _read_section(section, content, values, where)
    _resolve_path(values, Path(file.config).parent)
    switches = document.get("config", {})
    if not isinstance(switches, Mapping):
        raise InvalidInputError(f"{where}: config must be a table of switches, got {shown(switches)}")
    settings = RunSettings(values, document.get("objective"), _rules(document, where), switches)
    settings.switches(None)  # checked before the table is read
    return settings


def _read_section(section: str, content: Any, values: dict[type[Group], dict[str, Any]], where: str) -> None:
    if not isinstance(content, Mapping):
        raise InvalidInputError(f"{where}: {section} must be a table, got {shown(content)}")
    known = keys_of(section)
    for key, value in content.items():
        if key not in known:
            near = did_you_mean(key, list(known)) or f"; known are {', '.join(known)}"
            raise InvalidInputError(f"{where}: [{section}] has no key {shown(key)}{near}")
        group, name = known[key]
        values.setdefault(group, {})[name] = _typed(group, name, value, f"{where}: [{section}] {key}")


def _typed(group: type[Group], name: str, value: Any, where: str) -> Any:
    """Return a value of the file with the type of its option."""
    kinds = [kind for kind in get_args(get_type_hints(group)[name]) if kind is not type(None)]
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    if kinds == [bool] and isinstance(value, bool):
        return value
    if kinds == [int] and isinstance(value, int) and plain:
        return value
    if kinds == [float] and plain and (isinstance(value, float) or (isinstance(value, int) and abs(value) <= _LARGEST)):
        return float(value)
    if kinds == [list[str]]:
        if isinstance(value, Mapping):
            return [f"{key}={entry}" for key, entry in value.items()]
        entries = value if isinstance(value, list) else [value]
        if all(isinstance(entry, str | int | float) and not isinstance(entry, bool) for entry in entries):
            return [str(entry) for entry in entries]
    if kinds == [str] and isinstance(value, list) and name in ("max_depth", "min_samples_leaf"):
        return ",".join(map(str, value))
    if kinds == [str] and plain:
        return str(value)
    choices = [choice for kind in kinds for choice in get_args(kind)] if kinds != [list[str]] else []
    if choices:
        if value in choices:
            return value
        raise InvalidInputError(f"{where} must be one of {', '.join(map(repr, choices))}, got {shown(value)}")
    wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "text or a number"}
    raise InvalidInputError(f"{where} must be {wanted.get(kinds[0], 'a list of texts or numbers')}, got {shown(value)}")


def _resolve_path(values: dict[type[Group], dict[str, Any]], folder: Path) -> None:
    """Resolve the path of the table relative to the run file."""
    own = values.get(TableOptions, {})
    if own.get("data") not in (None, "-"):
        own["data"] = str(folder / own["data"])


def _rules(document: Mapping[str, Any], where: str) -> tuple[Any, ...]:
    content = document.get("constraints", [])
    listed = content.get("rules", None) if isinstance(content, Mapping) and set(content) <= {"rules"} else content
    if not isinstance(listed, list) or not all(isinstance(rule, str | dict) for rule in listed):
        raise InvalidInputError(
            f"{where}: constraints must be a list of texts or tables, or a table with such a list as its `rules`, "
            f"got {shown(content)}"
        )
    return tuple(listed)
