"""What `path`, `frontier` and `near-optimal` share: a table as it is searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accel_oct.cli.commands.settings import read_run
from accel_oct.cli.commands.tables import Training, read_training
from accel_oct.cli.commands.telling import check_output
from accel_oct.cli.commands.training import numbers, read_rules, tree_parameters
from accel_oct.cli.options import (
    EncoderOptions,
    LimitOptions,
    OutputOptions,
    RuleOptions,
    RunFile,
    TableOptions,
    TargetOptions,
    TellingOptions,
    TreeOptions,
)
from accel_oct.constraints import Constraint
from accel_oct.errors import InvalidInputError
from accel_oct.estimators.classifier import OptimalTreeClassifier
from accel_oct.estimators.parameters import n_threads
from accel_oct.objectives import Fixed

__all__ = ["Searched", "searched"]


@dataclass(frozen=True, eq=False)
class Searched:
    """A table, and how it is to be searched.

    Attributes
    ----------
    model : OptimalTreeClassifier
        Not fitted.
    data : Training
    columns : TargetOptions
    penalties : list of float
        As given, maybe none.
    texts : dict
        Objective and constraints in words.
    """

    model: OptimalTreeClassifier
    data: Training
    columns: TargetOptions
    penalties: list[float]
    texts: dict[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """For `accel_oct.frontier` and `accel_oct.solve_path`, X included: the table as it is encoded."""
        encoded = self.model._prepare(self.data.X, self.data.y, self.data.weights)
        rules: list[Constraint] = self.model._all_constraints(encoded)
        return {
            "X": encoded.dataset,
            "max_depth": self.model.max_depth,
            "constraints": rules,
            "objective": Fixed(encoded.score),
            "time_limit": self.model.time_limit,
            "threads": n_threads(self.model.n_jobs),
        }


def searched(
    table: TableOptions,
    columns: TargetOptions,
    tree: TreeOptions,
    rules: RuleOptions,
    encoder: EncoderOptions,
    limits: LimitOptions,
    file: RunFile,
    output: OutputOptions,
    telling: TellingOptions,
    penalty: float = 0.01,
) -> Searched:
    """Read what was said, and the table; `penalty` stands in where none was given."""
    settings = read_run(file)
    check_output(output, telling)
    columns, tree, limits = settings.filled(columns), settings.filled(tree), settings.filled(limits)
    said = read_rules(settings, rules)
    depths = numbers([str(tree.max_depth)], "--max-depth", whole=True)
    if len(depths) > 1:
        raise InvalidInputError("--max-depth takes several values only in `fit` with --cv")
    penalties = numbers(tree.leaf_penalty or [], "--leaf-penalty")
    data = read_training(settings.filled(table), columns, telling)
    shared = tree_parameters(tree, said, settings.filled(encoder), limits, data.y)
    model = OptimalTreeClassifier(int(depths[0]), penalties[0] if penalties else penalty, **shared)
    return Searched(model, data, columns, penalties, said.texts)
