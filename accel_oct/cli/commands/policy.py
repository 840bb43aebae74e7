"""``accel-oct policy``: fit a policy tree to a table of treatments and outcomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accel_oct.cli.codes import Code
from accel_oct.cli.commands.models import model_text
from accel_oct.cli.commands.output import check_output, code_of, emit, printed, watched, writing
from accel_oct.cli.commands.settings import RunSettings
from accel_oct.cli.commands.tables import Training, read_training, with_columns
from accel_oct.cli.commands.training import (
    depths_of,
    leaves_of,
    numbers,
    plain_labels,
    read_rules,
    single,
    tree_parameters,
)
from accel_oct.cli.options import (
    DisplayOptions,
    EncoderOptions,
    LimitOptions,
    OutputOptions,
    PolicyOptions,
    RuleOptions,
    TableOptions,
    TargetOptions,
    TreeOptions,
)
from accel_oct.errors import InvalidInputError, did_you_mean, shown
from accel_oct.estimators.policy import OptimalPolicyTree
from accel_oct.estimators.policy_scores import PolicyValue
from accel_oct.export import to_text
from accel_oct.io.tables import missing_column

#: Options that other commands have and policies lack.
_UNUSED = ("class_weight", "--class-weight"), ("objective", "--objective"), ("ties", "--ties")


@dataclass(frozen=True, eq=False)
class _Rows:
    """Columns, treatments and weights of a table, and its outcomes."""

    data: Training
    outcome: Any


def policy(
    table: TableOptions,
    wanted: PolicyOptions,
    tree: TreeOptions,
    rules: RuleOptions,
    encoder: EncoderOptions,
    limits: LimitOptions,
    output: OutputOptions,
    display: DisplayOptions,
) -> int:
    """Fit, write the model, then print the policy and its value."""
    settings = RunSettings()
    check_output(output, display)
    for name, option in _UNUSED:
        if getattr(tree, name, None) or getattr(rules, name, None):
            raise InvalidInputError(f"{option} is for classifiers: of policies the mean reward is the largest")
    if wanted.treatment == wanted.outcome:
        raise InvalidInputError(f"--treatment and --outcome both name {shown(wanted.outcome)}; give two columns")
    said, depth = read_rules(settings, rules), "2" if tree.max_depth is None else tree.max_depth
    max_depth = single(depths_of(replace(tree, max_depth=depth)), "--max-depth")
    penalty = single(numbers(tree.leaf_penalty or ["0"], "--leaf-penalty"), "--leaf-penalty")
    rows = _read(settings.filled(table), wanted, display)
    tree, limits = settings.filled(tree), settings.filled(limits)
    shared = tree_parameters(tree, said, settings.filled(encoder), limits, rows.data.y)
    shared = {name: value for name, value in shared.items() if name not in dict(_UNUSED)}
    model = OptimalPolicyTree(
        max_depth,
        penalty,
        min_samples_leaf=single(leaves_of(tree), "--min-samples-leaf"),
        method=wanted.method.replace("-", "_"),
        minimise=wanted.minimise,
        treatment_costs=_costs(wanted.treatment_cost, rows.data.y),
        **shared,
    )
    with watched(display, limits.time_limit) as model.progress:
        model.fit(rows.data.X, rows.data.y, rows.outcome, sample_weight=rows.data.weights)
    if output.output is not None:
        texts = {"outcome": wanted.outcome, "constraints": said.texts["constraints"]}
        with writing(output.output) as file:
            file.write(model_text(model, rows.data, TargetOptions(wanted.treatment, wanted.sample_weight), texts))
    value = None
    if wanted.test is not None:
        held_out = _read(replace(settings.filled(table), data=wanted.test), wanted, display, model)
        value = model.value(held_out.data.X, held_out.data.y, held_out.outcome, sample_weight=held_out.data.weights)
    return _show_result(model, value, wanted, output, display)


def _read(table: TableOptions, wanted: PolicyOptions, display: DisplayOptions, like: Any = None) -> _Rows:
    """Read the table, with the columns of a model if one is given."""
    columns = TargetOptions(wanted.treatment, wanted.sample_weight)
    data = read_training(table, columns, display, None if like is None else with_columns(like, [wanted.outcome]))
    names = list(data.X.names or ())
    if wanted.outcome not in names:
        raise InvalidInputError(f"--outcome: {missing_column(str(table.data), wanted.outcome, names)}")
    outcome = data.X.columns[names.index(wanted.outcome)]
    return _Rows(replace(data, X=data.X.select([name for name in names if name != wanted.outcome])), outcome)


def _costs(texts: list[str] | None, treatments: Any) -> dict[Any, float] | None:
    """Return costs by label of the table."""
    labels, found = plain_labels(treatments), {}
    for text in texts or ():
        name, mark, cost = text.rpartition("=")
        if not mark:
            raise InvalidInputError(f"--treatment-cost must be LABEL=COST, got {shown(text)}")
        if name not in labels:
            near = did_you_mean(name, list(labels)) or f"; there are {', '.join(list(labels)[:10])}"
            raise InvalidInputError(f"--treatment-cost: there is no treatment {shown(name)}{near}")
        found[labels[name]] = numbers([cost], "--treatment-cost")[0]
    return found or None


def _show_result(
    model: Any, value: PolicyValue | None, wanted: PolicyOptions, output: OutputOptions, display: DisplayOptions
) -> int:
    assigned = model.tree_.label[model.tree_.label >= 0]
    reached = model.status_ == "optimal" or (model.status_ == "gap_limit" and model.gap_ <= model.solver.gap)
    code: Code = code_of(["optimal" if reached else model.status_])
    leaves = model.get_n_leaves()
    summary = (
        f"# {leaves} {'leaf' if leaves == 1 else 'leaves'}, objective {model.objective_:.6g}, bound "
        f"{model.bound_:.6g}, {model.proof_}"
    )
    printed(display, output, to_text(model), summary)
    if model.constraints_:
        printed(display, output, str(model.constraints_))
    if value is not None:
        printed(display, output, f"# on {wanted.test}: {value}")
    return emit(
        display,
        "policy",
        code,
        status=model.status_,
        proven=model.status_ == "optimal",
        proof=model.proof_,
        exact=model.exact_,
        objective=model.objective_,
        bound=model.bound_,
        gap=model.gap_,
        seconds=model.result_.seconds,
        leaves=leaves,
        depth=model.get_depth(),
        classes=model.classes_,
        assigned=model.classes_[np.unique(assigned)],
        value=None if value is None else value.estimate,
        standard_error=None if value is None else value.standard_error,
        constraints=[vars(report) for report in model.constraints_],
        tree=to_text(model),
        output=output.output,
    )
