"""Solvers behind Pyomo: what has to be known of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Profile:
    """What has to be known of a solver: its name in Pyomo, and its own names for our options."""

    interface: str
    persistent: bool = False
    install: str = "put its executable on the PATH, or install its Python package"
    seed: str | None = None
    nodes: str | None = None
    threads: str | None = None
    fixed: dict[str, Any] = field(default_factory=dict)
    wide: dict[str, Any] = field(default_factory=dict)
    """Takes the place of settings in `fixed` where a bound is as large as `WIDE`."""


#: Bounds of this size do not go with tolerances that are tighter than a solver's own; see docs/solver-faults.md.
WIDE = 1e6

PROFILES = {
    "highs": Profile(
        "highs",
        True,
        "pip install highspy",
        seed="random_seed",
        nodes="mip_max_nodes",
        # As in the native backend: rounding may move no row by more than a cut's tolerance.
        fixed={"mip_feasibility_tolerance": 1e-7},
        wide={"mip_feasibility_tolerance": 1e-6},
    ),
    "gurobi": Profile(
        "gurobi_persistent",
        True,
        "pip install gurobipy",
        seed="Seed",
        nodes="NodeLimit",
        # As in the native backend: branch variables that are almost zero may not add up to a score that no tree has.
        fixed={"IntFeasTol": 1e-9},
    ),
    "scip": Profile(
        "scip_persistent",
        True,
        "pip install pyscipopt",
        seed="randomization/randomseedshift",
        nodes="limits/totalnodes",
        # Pyomo reads SCIP's log in a thread that never gets its turn: a full pipe would stop both for good.
        fixed={"display/verblevel": 0},
    ),
    "cbc": Profile(
        "cbc",
        install="install Debian's coinor-cbc, or pip install pulp, which carries one",
        seed="randomCbcSeed",
        nodes="maxNodes",
        threads="threads",
        # Its preprocessing loses optima; so does its presolve, at the default tolerance, where they differ by 1e-5. By
        # itself it takes no solution that is not better by as much.
        fixed={
            "ratioGap": 0.0,
            "allowableGap": 0.0,
            "preprocess": "off",
            "increment": 0.0,
            "primalTolerance": 1e-9,
        },
        wide={"primalTolerance": 1e-7},
    ),
    "glpk": Profile("glpk", install="install Debian's glpk-utils", seed="seed", fixed={"mipgap": 0.0}),
}


def profile(name: str) -> Profile:
    """What is known of a solver; of a stranger only its name."""
    return PROFILES.get(name) or Profile(name)
