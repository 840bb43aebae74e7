"""What `path`, `frontier` and `near-optimal` share: a table as it is searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accel_oct.cli.commands.settings import read_run
from accel_oct.cli.commands.tables import Training, read_training
from accel_oct.cli.commands.telling import check_output
from accel_oct.cli.commands.training import depths_of, numbers, read_rules, tree_parameters
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
from accel_oct.errors import InvalidInputError
from accel_oct.estimators.classifier import OptimalTreeClassifier

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
    depths = depths_of(tree)
    if len(depths) > 1:
        raise InvalidInputError("--max-depth takes several values only in `fit` with --cv")
    penalties = numbers(tree.leaf_penalty or [], "--leaf-penalty")
    data = read_training(settings.filled(table), columns, telling)
    shared = tree_parameters(tree, said, settings.filled(encoder), limits, data.y)
    model = OptimalTreeClassifier(depths[0], penalties[0] if penalties else penalty, **shared)
    return Searched(model, data, columns, penalties, said.texts)
