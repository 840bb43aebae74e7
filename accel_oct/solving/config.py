"""All switches of a solve, as frozen dataclasses that can be written in Python or TOML.

The switches of a family of cuts are defined in the family's own module; they are a field of `Config`, and the family is
a line of `FAMILIES`. Each row of the paper's tables is one `Config`; the named ones are `PRESETS`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

from accel_oct.cuts.benders import BendersConfig, BendersCuts
from accel_oct.cuts.disjunctive import DisjunctivePathBounds, SubtreeBoundConfig
from accel_oct.cuts.equivalent_points import EquivalentPointConfig, EquivalentPointInequalities
from accel_oct.cuts.path_bound import PathBoundConfig, PathBoundCuts
from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.formulation import Component, Site
from accel_oct.heuristics.polish import Polishing
from accel_oct.support.files import read_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "FAMILIES",
    "PRESETS",
    "BendersConfig",
    "Config",
    "EquivalentPointConfig",
    "Family",
    "PathBoundConfig",
    "SubtreeBoundConfig",
]

_MAX_TOML_BYTES = 1 << 20
#: Whole numbers of a configuration are numbers of bytes, which NumPy counts in 64 bits.
_MOST_BYTES = 1 << 63


@dataclass(frozen=True)
class Config:
    """All switches of `accel_oct.solve`; wherever the library takes a `config`, a name of `PRESETS` stands for one.

    Parameters
    ----------
    merge_duplicates : bool
        Merge identical (x, y) rows into one weighted row. Changes the size of the model, never the result.
    warm_start : {"cart", "leaf"}
        The tree that the search begins with.
    polish_warm_start : bool
        Polish the warm start (Algorithm 1).
    local_search : bool
        Improve the warm start by local search where a proof would take long, and go on with it beside the proof.
    polishing : bool
        Polish the tree of every candidate.
    branch_priorities : bool
        Decide the root of the tree first, on backends that take priorities.
    benders, equivalent_points, path_bound, subtree_bounds
        One group of switches per family of cuts.
    prices : bool
        Price constraints that are linear, and close the gap, before the master is built.
    price_rows : bool
        Add the bounds of every root by prices as rows, where prices do not close the gap.
    enumeration : bool
        Enumerate trees best first, under constraints without a form, before the master is built.
    cache_memory_limit : int
        Bytes for cached subtrees.
    """

    merge_duplicates: bool = True
    warm_start: Literal["cart", "leaf"] = "cart"
    polish_warm_start: bool = True
    local_search: bool = False
    polishing: bool = False
    branch_priorities: bool = True
    benders: BendersConfig = field(default_factory=BendersConfig)
    equivalent_points: EquivalentPointConfig = field(default_factory=EquivalentPointConfig)
    path_bound: PathBoundConfig = field(default_factory=PathBoundConfig)
    subtree_bounds: SubtreeBoundConfig = field(default_factory=SubtreeBoundConfig)
    prices: bool = False
    price_rows: bool = True
    enumeration: bool = False
    cache_memory_limit: int = 256 << 20

    def __post_init__(self) -> None:
        _check(self, "config")

    @classmethod
    def preset(cls, name: str) -> Config:
        """Return a named configuration; see `PRESETS`."""
        if not isinstance(name, str) or name not in PRESETS:
            raise InvalidInputError(f"unknown preset {shown(name)}; known are {', '.join(PRESETS)}")
        return PRESETS[name]

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], base: Config | None = None) -> Config:
        """Build from nested mappings; `preset` chooses the base unless one is given.

        Unknown keys and values of a wrong type raise InvalidInputError with the key.
        """
        values = dict(values)
        preset = values.pop("preset", None)
        if preset is not None and base is None:
            base = cls.preset(preset)
        updated: Config = _updated(base or cls(), values, "config")
        return updated

    @classmethod
    def from_toml(cls, path: str | Path) -> Config:
        """Read a TOML file with the keys of `from_mapping`."""
        text = read_text(path, _MAX_TOML_BYTES, "config file")
        try:
            values = tomllib.loads(text)
        except ValueError as error:  # TOMLDecodeError is one, and so is what a number of 5000 digits raises
            raise InvalidInputError(f"config file {path} is not valid TOML: {error}") from error
        except RecursionError:
            raise InvalidInputError(f"config file {path} is nested too deeply") from None
        return cls.from_mapping(values)


def _updated(base: Any, values: Mapping[str, Any], where: str) -> Any:
    known = {item.name for item in fields(base)}
    changes: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            near = did_you_mean(key, sorted(known)) or f"; known are {', '.join(sorted(known))}"
            raise InvalidInputError(f"{where} has no key {shown(key)}{near}")
        current = getattr(base, key)
        if is_dataclass(current) and isinstance(value, Mapping):
            changes[key] = _updated(current, value, f"{where}.{key}")
        else:
            changes[key] = value
    result = replace(base, **changes)
    _check(result, where)
    return result


def _check(config: Any, where: str) -> None:
    """Raise InvalidInputError unless every field has its declared type."""
    for name, declared in get_type_hints(type(config)).items():
        value = getattr(config, name)
        if get_origin(declared) is Literal:
            if not any(type(value) is type(choice) and value == choice for choice in get_args(declared)):
                allowed = ", ".join(map(repr, get_args(declared)))
                raise InvalidInputError(f"{where}.{name} must be one of {allowed}, got {shown(value)}")
        elif is_dataclass(declared):
            if not is_dataclass(value) or type(value) is not declared:
                raise InvalidInputError(f"{where}.{name} must be a table of switches, got {shown(value)}")
            _check(value, f"{where}.{name}")
        elif declared is int:
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST_BYTES:
                raise InvalidInputError(f"{where}.{name} must be a whole number of bytes >= 0, got {shown(value)}")
        elif not isinstance(value, declared):
            raise InvalidInputError(f"{where}.{name} must be a {declared.__name__}, got {shown(value)}")


def as_config(config: Any) -> Config:
    """Return a `Config`, also for the name of a preset."""
    if isinstance(config, str):
        return Config.preset(config)
    if not isinstance(config, Config):
        raise InvalidInputError(f"config must be the name of a preset or a Config, got {shown(config)}")
    return config


def is_default_config(config: Any) -> bool:
    """Return whether a `Config` or the name of one asks for the techniques of the preset "default"."""
    return as_config(config) == PRESETS["default"]


Switches = TypeVar("Switches")


@dataclass(frozen=True)
class Family(Generic[Switches]):
    """A built-in family of cuts or a heuristic: its switches, and the function that builds it from them."""

    switches: Callable[[Config], Switches]
    build: Callable[[Site, Switches], Component | None]

    def component(self, site: Site, config: Config) -> Component | None:
        """Build the component; None where the switches, the backend or a constraint rule it out."""
        return self.build(site, self.switches(config))


#: In the order of their calls: cuts first, heuristics last.
FAMILIES: tuple[Family[Any], ...] = (
    Family(lambda config: config.benders, BendersCuts.build),
    Family(lambda config: config.subtree_bounds, DisjunctivePathBounds.build),
    Family(lambda config: config.equivalent_points, EquivalentPointInequalities.build),
    Family(lambda config: config.path_bound, PathBoundCuts.build),
    Family(lambda config: config.polishing, Polishing.build),
)


def _as_published(*, ec: bool = False, sp: bool = False, eqp: bool = False, pbcp: bool = False) -> Config:
    """Return a row of the paper's tables, without the improvements of this library.

    Parameters
    ----------
    ec, sp, eqp, pbcp : bool
        The paper's abbreviations: strengthened Benders cuts, solution polishing, equivalent-point inequalities,
        path-bound cutting planes (where Algorithm 2 makes them: at relaxations, below the root).
    """
    return Config(
        merge_duplicates=False,
        branch_priorities=False,
        polishing=sp,
        benders=BendersConfig(strengthened=ec),
        equivalent_points=EquivalentPointConfig(enabled=eqp),
        path_bound=PathBoundConfig(enabled=pbcp, candidates=False, empty_path=False),
    )


_BASELINE = Config()
_ALL = {"ec": True, "sp": True, "eqp": True, "pbcp": True}

#: `default`: what proves optimality fastest. `baseline`: section 4 with a polished CART warm start. `paper`: all
#: techniques but the strengthened cuts, which the paper found to be of no use together with the rest. Both have
#: improvements of this library: merged rows, branch priorities, cuts at candidates and at the empty path. Presets that
#: begin with `bendoct` have none: the model alone, each technique alone, all of them, and all but one (the paper's best
#: is `bendoct:all-ec`, its partially accelerated one `bendoct:all-pbcp`).
PRESETS: dict[str, Config] = {
    "default": replace(
        _BASELINE,
        local_search=True,
        polishing=True,
        benders=BendersConfig(fractional=True),
        subtree_bounds=SubtreeBoundConfig(enabled=True),
        prices=True,
        enumeration=True,
    ),
    "baseline": _BASELINE,
    "paper": replace(
        _BASELINE,
        polishing=True,
        equivalent_points=EquivalentPointConfig(enabled=True),
        path_bound=PathBoundConfig(enabled=True),
    ),
    "bendoct": _as_published(),
    **{f"bendoct:{technique}": _as_published(**{technique: True}) for technique in _ALL},
    "bendoct:all": _as_published(**_ALL),
    **{f"bendoct:all-{technique}": _as_published(**{**_ALL, technique: False}) for technique in _ALL},
}
