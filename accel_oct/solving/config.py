"""Every switch of a solve, in frozen dataclasses that can be written in Python or TOML.

Each row of the paper's tables is one `Config`; the named ones are `PRESETS`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from accel_oct.errors import InvalidInputError, shown
from accel_oct.support.files import read_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAX_TOML_BYTES = 1 << 20
#: Every whole number of a configuration is a number of bytes, and NumPy counts them in 64 bits.
_MOST_BYTES = 1 << 63


@dataclass(frozen=True)
class BendersConfig:
    """Benders cuts (sections 4 and 5.1).

    Parameters
    ----------
    strengthened : bool
        Use the strengthened form at terminal nodes; predictions are integral then.
    fractional : bool
        Separate relaxations too.
    """

    strengthened: bool = False
    fractional: bool = False


@dataclass(frozen=True)
class EquivalentPointConfig:
    """Equivalent-point inequalities (section 5.3).

    Parameters
    ----------
    enabled : bool
    linking : {"basic", "chain", "recursive"}
        The constraint set H.
    disaggregated : bool
        Disaggregate the chain or recursive constraints.
    bounding : {"basic", "group_selection"}
        The constraint set G.
    max_split_size : {0, 1, 2}
        Largest split set F* that is modelled.
    """

    enabled: bool = False
    linking: Literal["basic", "chain", "recursive"] = "recursive"
    disaggregated: bool = True
    bounding: Literal["basic", "group_selection"] = "group_selection"
    max_split_size: Literal[0, 1, 2] = 2


@dataclass(frozen=True)
class PathBoundConfig:
    """Path-bound cutting planes (section 5.4, Algorithm 2).

    Parameters
    ----------
    enabled : bool
    bound : bool
        The basic cut on the score of all samples of the path.
    negative_samples : bool
        Bound the samples that the optimal subtree misclassifies.
    structure : bool
        Bound the structure of the subtree.
    paths : {"all", "end_points"}
        Cut on every integral path, or only on those that are not part of a longer one.
    fractional : bool
        Separate relaxations, where the backend shows them; candidates are always separated.
    empty_path : bool
        Cut at the root too: a tree of depth at most two is the one of D2S. Algorithm 2 begins one level lower.
    """

    enabled: bool = False
    bound: bool = False
    negative_samples: bool = True
    structure: bool = True
    paths: Literal["all", "end_points"] = "all"
    fractional: bool = True
    empty_path: bool = True


@dataclass(frozen=True)
class SubtreeBoundConfig:
    """Exact subtree profiles and disjunctive path bounds, beyond the paper.

    Parameters
    ----------
    enabled : bool
    tables : bool
        Search the tables of exact profiles before the master is built; usually nothing is left to do then. Without it
        the bounds reach the solver as disjunctive rows only, refined where the relaxation puts weight.
    memory_limit : int
        Bytes that the tables may take; beyond it a slower exact way is used.
    """

    enabled: bool = False
    tables: bool = True
    memory_limit: int = 4 << 30


@dataclass(frozen=True)
class Config:
    """All switches of `accel_oct.solve`.

    Parameters
    ----------
    merge_duplicates : bool
        Merge identical (x, y) rows into one weighted row. Changes the size of the model, never the result.
    warm_start : {"cart", "leaf"}
        Where the search begins.
    polish_warm_start : bool
        Polish the warm start (Algorithm 1).
    polishing : bool
        Polish the tree of every candidate.
    branch_priorities : bool
        Decide the root of the tree first, on backends that take priorities.
    benders, equivalent_points, path_bound, subtree_bounds
        One group of switches per family of cuts.
    cache_memory_limit : int
        Bytes for cached subtrees.
    """

    merge_duplicates: bool = True
    warm_start: Literal["cart", "leaf"] = "cart"
    polish_warm_start: bool = True
    polishing: bool = False
    branch_priorities: bool = True
    benders: BendersConfig = field(default_factory=BendersConfig)
    equivalent_points: EquivalentPointConfig = field(default_factory=EquivalentPointConfig)
    path_bound: PathBoundConfig = field(default_factory=PathBoundConfig)
    subtree_bounds: SubtreeBoundConfig = field(default_factory=SubtreeBoundConfig)
    cache_memory_limit: int = 256 << 20

    def __post_init__(self) -> None:
        _check(self, "config")

    @classmethod
    def preset(cls, name: str) -> Config:
        """A named configuration: see `PRESETS`."""
        if not isinstance(name, str) or name not in PRESETS:
            raise InvalidInputError(f"unknown preset {shown(name)}; known are {', '.join(PRESETS)}")
        return PRESETS[name]

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], base: Config | None = None) -> Config:
        """Build from nested mappings; `preset` chooses the base unless one is given.

        Unknown keys and values of a wrong type are errors that name the key.
        """
        values = dict(values)
        preset = values.pop("preset", None)
        if preset is not None and base is None:
            base = cls.preset(preset)
        updated: Config = _updated(base or cls(), values, "config")
        return updated

    @classmethod
    def from_toml(cls, path: str | Path, base: Config | None = None) -> Config:
        """Read a TOML file with the same keys."""
        text = read_text(path, _MAX_TOML_BYTES, "config file")
        try:
            values = tomllib.loads(text)
        except ValueError as error:  # TOMLDecodeError is one, and so is what a number of 5000 digits raises
            raise InvalidInputError(f"config file {path} is not valid TOML: {error}") from error
        except RecursionError:
            raise InvalidInputError(f"config file {path} is nested too deeply") from None
        return cls.from_mapping(values, base)


def _updated(base: Any, values: Mapping[str, Any], where: str) -> Any:
    known = {item.name for item in fields(base)}
    changes: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            raise InvalidInputError(f"{where} has no key {shown(key)}; known are {', '.join(sorted(known))}")
        current = getattr(base, key)
        if is_dataclass(current) and isinstance(value, Mapping):
            changes[key] = _updated(current, value, f"{where}.{key}")
        else:
            changes[key] = value
    result = replace(base, **changes)
    _check(result, where)
    return result


def _check(config: Any, where: str) -> None:
    """Every field has the type that it was declared with."""
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


_BASELINE = Config()

#: `baseline`: section 4 with a polished CART warm start. `paper`: everything but the strengthened cuts, which the paper
#: found to be of no use together with the rest. `default`: whatever proves optimality fastest.
PRESETS: dict[str, Config] = {
    "baseline": _BASELINE,
    "paper": replace(
        _BASELINE,
        polishing=True,
        equivalent_points=EquivalentPointConfig(enabled=True),
        path_bound=PathBoundConfig(enabled=True),
    ),
    "default": replace(
        _BASELINE,
        polishing=True,
        benders=BendersConfig(fractional=True),
        subtree_bounds=SubtreeBoundConfig(enabled=True),
    ),
}
