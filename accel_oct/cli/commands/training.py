"""Classifiers from the command line and the run file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_oct.cli.commands.output import check_output
from accel_oct.cli.commands.settings import RunSettings, read_run
from accel_oct.cli.commands.tables import Training, read_training
from accel_oct.cli.options import (
    BackendOptions,
    DisplayOptions,
    EncoderOptions,
    LimitOptions,
    OutputOptions,
    ProbabilityOptions,
    RuleOptions,
    RunFile,
    TableOptions,
    TargetOptions,
    TreeOptions,
    ValidationOptions,
)
from accel_oct.encoding import (
    AllThresholdsEncoder,
    OneHotCategoryEncoder,
    QuantileBucketEncoder,
    QuantileThresholdEncoder,
    TableEncoder,
    TreeGuidedThresholdEncoder,
)
from accel_oct.encoding.table_encoder import DEFAULT_QUANTILES
from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.estimators.classifier import OptimalTreeClassifier
from accel_oct.estimators.cross_validated import OptimalTreeClassifierCV
from accel_oct.mip import Solver
from accel_oct.solving.parsing import constraint, objective
from accel_oct.tree.probabilities import DEFAULT_SMOOTHING

_DEFAULT_PENALTY = 0.01


@dataclass(frozen=True)
class Rules:
    """Objective and constraints, and their texts."""

    objective: Any
    constraints: list[Any]
    texts: dict[str, Any]


def read_rules(settings: RunSettings, options: RuleOptions) -> Rules:
    """Read objective and constraints."""
    goal, listed = settings.rules(options)
    made = [constraint(text) for text in listed]
    found, text = (None, None) if goal is None else objective(goal)
    return Rules(found, [value for value, _ in made], {"objective": text, "constraints": [said for _, said in made]})


def tree_parameters(
    tree: TreeOptions, rules: Rules, encoder: EncoderOptions, limits: LimitOptions, y: NDArray[Any]
) -> dict[str, Any]:
    """Return the parameters that all searches share, without penalty, depth and smallest leaf."""
    return {
        "ties": tree.ties or "purity",
        "max_leaf_nodes": tree.max_leaf_nodes,
        "max_features_used": tree.max_features_used,
        "exclude": list(tree.exclude) if tree.exclude else None,
        "class_weight": _class_weight(tree.class_weight, y),
        "objective": rules.objective,
        "constraints": rules.constraints or None,
        "encoder": estimator_encoder(encoder),
        "missing": encoder.missing or "category",
        "time_limit": limits.time_limit,
        "solver": Solver(threads=1 if limits.threads is None else limits.threads),
    }


def probability_parameters(shares: ProbabilityOptions) -> dict[str, Any]:
    """Return the parameters of the probabilities."""
    smoothing = DEFAULT_SMOOTHING if shares.smoothing is None else shares.smoothing
    return {"smoothing": smoothing, "calibrate": shares.calibrate}


def classifier(
    tree: TreeOptions,
    shared: dict[str, Any],
    settings: RunSettings,
    solver: BackendOptions,
    validation: ValidationOptions,
) -> Any:
    """Return the classifier of the command `fit`."""
    penalties, leaves = numbers(tree.leaf_penalty or [], "--leaf-penalty"), leaves_of(tree)
    chosen = replace(shared["solver"], backend=solver.backend, seed=solver.seed, gap=solver.gap)
    shared = shared | {"solver": chosen, "config": settings.switches(solver.preset)}
    if validation.cv is not None:
        how = {name: getattr(validation, name) for name in ("cv", "scoring", "rule", "n_jobs")}
        depths: Any = "auto" if tree.max_depth == "auto" else depths_of(tree)
        return OptimalTreeClassifierCV(depths, penalties or None, min_samples_leaf=leaves, **how, **shared)
    for name, value in (("--scoring", validation.scoring), ("--n-jobs", validation.n_jobs)):
        if value is not None:
            raise InvalidInputError(f"{name} needs --cv")
    return OptimalTreeClassifier(
        single(depths_of(tree), "--max-depth"),
        single(penalties or [_DEFAULT_PENALTY], "--leaf-penalty"),
        min_samples_leaf=single(leaves, "--min-samples-leaf"),
        **shared,
    )


def estimator_encoder(options: EncoderOptions) -> Any:
    """Return the parameter `encoder` of the estimators."""
    name = options.encoder or "auto"
    if name == "none":
        return None
    if name != "auto":
        return table_encoder(options)
    if options.quantiles is not None or options.max_categories is not None:
        raise InvalidInputError(
            "--quantiles and --max-categories need an encoder that uses them: name it with --encoder, such as "
            "quantile-thresholds"
        )
    return "auto"


def table_encoder(options: EncoderOptions) -> TableEncoder:
    """Return the encoder of the options."""
    count = DEFAULT_QUANTILES if options.quantiles is None else options.quantiles
    makers: dict[str, Callable[[], Any]] = {
        "quantile-thresholds": lambda: QuantileThresholdEncoder(count),
        "quantile-buckets": lambda: QuantileBucketEncoder(count),
        "all-thresholds": AllThresholdsEncoder,
        "tree-guided": TreeGuidedThresholdEncoder,
    }
    limit = options.max_categories
    categorical = None if limit is None else OneHotCategoryEncoder(limit or None)
    return TableEncoder(
        makers[options.encoder or "quantile-thresholds"](), categorical, missing=options.missing or "category"
    )


def depths_of(tree: TreeOptions) -> list[int | None]:
    """Return the depths of --max-depth; "none" means no limit."""
    parts = str(tree.max_depth).replace(",", " ").split()
    found: list[int | None] = []
    for part in parts or [""]:
        none = part.lower() == "none"
        found += [None] if none else [int(depth) for depth in numbers([part], "--max-depth", whole=True)]
    return found


def leaves_of(tree: TreeOptions) -> list[float]:
    """Return the values of --min-samples-leaf."""
    return numbers([str(tree.min_samples_leaf or 1)], "--min-samples-leaf")


def numbers(texts: Sequence[str], option: str, whole: bool = False) -> list[float]:
    """Parse numbers from texts, optionally separated by commas."""
    found = [_one_number(part, option) for text in texts for part in str(text).replace(",", " ").split()]
    for number in found if whole else ():
        if not isinstance(number, int):
            raise InvalidInputError(f"{option} must be a whole number, got {shown(number)}")
    if texts and not found:
        raise InvalidInputError(f"{option} must be a number, got {shown(texts[0])}")
    return found


def _one_number(text: str, option: str) -> float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise InvalidInputError(f"{option} must be a number, got {shown(text)}")


def single(values: Sequence[float | None], option: str) -> Any:
    if len(values) > 1:
        raise InvalidInputError(f"{option} takes several values only in `fit` with --cv")
    return values[0]


def _class_weight(texts: Sequence[str] | None, y: NDArray[Any]) -> Any:
    """Return ``balanced``, or weights by label of the table."""
    if not texts:
        return None
    if list(texts) == ["balanced"]:
        return "balanced"
    labels = plain_labels(y)
    found = {}
    for text in texts:
        name, mark, weight = text.rpartition("=")
        if not mark:
            raise InvalidInputError(f"--class-weight must be LABEL=WEIGHT or balanced, got {shown(text)}")
        if name not in labels:
            near = did_you_mean(name, list(labels)) or f"; there are {', '.join(list(labels)[:10])}"
            raise InvalidInputError(f"--class-weight: there is no class {shown(name)}{near}")
        found[labels[name]] = float(_one_number(weight, "--class-weight"))
    return found


def plain_labels(y: NDArray[Any]) -> dict[str, Any]:
    """Return the labels of a column by their texts."""
    return {str(label): label for label in (y if y.dtype == object else np.unique(y)).tolist()}


@dataclass(frozen=True, eq=False)
class Searched:
    """A table and the unfitted classifier for it.

    Attributes
    ----------
    model : OptimalTreeClassifier
        Not fitted.
    penalties : list of float
        As given; may be empty.
    texts : dict
        Texts of objective and constraints.
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
    display: DisplayOptions,
    penalty: float = 0.01,
) -> Searched:
    """Read the settings and the table; `penalty` is the default penalty."""
    settings = read_run(file)
    check_output(output, display)
    columns, tree, limits = settings.filled(columns), settings.filled(tree), settings.filled(limits)
    said = read_rules(settings, rules)
    depth = single(depths_of(tree), "--max-depth")
    penalties = numbers(tree.leaf_penalty or [], "--leaf-penalty")
    data = read_training(settings.filled(table), columns, display)
    shared = tree_parameters(tree, said, settings.filled(encoder), limits, data.y)
    least = single(leaves_of(tree), "--min-samples-leaf")
    model = OptimalTreeClassifier(depth, penalties[0] if penalties else penalty, min_samples_leaf=least, **shared)
    return Searched(model, data, columns, penalties, said.texts)
