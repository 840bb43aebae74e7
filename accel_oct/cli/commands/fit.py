"""``accel-oct fit``: fit a model to a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from accel_oct.cli.codes import Code
from accel_oct.cli.commands.models import model_text
from accel_oct.cli.commands.output import check_output, code_of, emit, printed, watched, write_errors_named, writing
from accel_oct.cli.commands.settings import read_run
from accel_oct.cli.commands.tables import Training, read_training
from accel_oct.cli.commands.training import classifier, probability_parameters, read_rules, tree_parameters
from accel_oct.cli.options import (
    BackendOptions,
    CertificateOutput,
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
from accel_oct.errors import AccelOctError
from accel_oct.export import to_text
from accel_oct.support.stopping import kept_interrupts, remembered_interrupts


def fit(
    table: TableOptions,
    columns: TargetOptions,
    tree: TreeOptions,
    rules: RuleOptions,
    encoder: EncoderOptions,
    limits: LimitOptions,
    shares: ProbabilityOptions,
    solver: BackendOptions,
    validation: ValidationOptions,
    proof: CertificateOutput,
    file: RunFile,
    output: OutputOptions,
    display: DisplayOptions,
) -> int:
    """Fit, write the model, then print the result."""
    settings = read_run(file)
    check_output(output, display)
    columns, tree, limits = settings.filled(columns), settings.filled(tree), settings.filled(limits)
    said = read_rules(settings, rules)
    data = read_training(settings.filled(table), columns, display)
    _warn_of_one_class(data)
    shared = tree_parameters(tree, said, settings.filled(encoder), limits, data.y)
    shared |= probability_parameters(settings.filled(shares))
    model = classifier(tree, shared, settings, settings.filled(solver), settings.filled(validation))
    interrupted = _fitted(model, data, limits.time_limit, display)
    # From here on there is a tree, which Ctrl-C must not discard.
    with kept_interrupts() as late:
        failure = _saved(lambda: model_text(model, data, columns, said.texts), output) or _certified(
            model, data, columns, proof
        )
        reached = model.status_ == "optimal" or (model.status_ == "gap_limit" and model.gap_ <= model.solver.gap)
        status = "optimal" if reached else model.status_
        code = code_of([status], interrupted)
        _show_result(model, data, code, output, display)
        if failure is not None:
            raise failure
    return int(Code.INTERRUPTED if late.is_set() else code)


def _warn_of_one_class(data: Training) -> None:
    labels = set(data.y.tolist())
    if len(labels) == 1:
        rows = f"all {len(data.y)} rows have" if len(data.y) > 1 else "there is a single row, of"
        warnings.warn(f"{rows} the class {labels.pop()!r}: the tree is a single leaf", UserWarning, stacklevel=2)


def _fitted(model: Any, data: Training, time_limit: float | None, display: DisplayOptions) -> bool:
    """Fit with progress display; return whether Ctrl-C was pressed. Raises only if there is no tree yet."""
    with remembered_interrupts() as pressed:
        try:
            with watched(display, time_limit) as model.progress:
                model.fit(data.X, data.y, sample_weight=data.weights)
        except KeyboardInterrupt:
            if not hasattr(model, "tree_"):
                raise
            pressed.set()
        return pressed.is_set()


def _saved(text: Callable[[], str], output: OutputOptions) -> AccelOctError | None:
    """Write the model; return an error, which is reported after the tree is printed."""
    if output.output is None:
        return None
    try:
        content = text()
        with writing(output.output) as file:
            file.write(content)
    except AccelOctError as error:
        return error
    return None


def _certified(model: Any, data: Training, columns: TargetOptions, proof: CertificateOutput) -> AccelOctError | None:
    """Write the certificate; return an error, which is reported after the tree is printed."""
    if proof.certificate is None:
        return None
    best = model.best_estimator_ if hasattr(model, "best_estimator_") else model
    try:
        with write_errors_named(proof.certificate):
            best.certificate(
                proof.certificate,
                data.X,
                data.y,
                data.weights,
                target=columns.target,
                weight=columns.sample_weight,
            )
    except AccelOctError as error:
        return error
    return None


def _show_result(model: Any, data: Training, code: int, output: OutputOptions, display: DisplayOptions) -> None:
    accuracy = model.score(data.X, data.y, sample_weight=data.weights)
    chosen = hasattr(model, "best_estimator_")
    printed(display, output, to_text(model), _summary(model, accuracy, chosen))
    if model.constraints_:
        printed(display, output, str(model.constraints_))
    best = model.best_estimator_ if chosen else model
    emit(
        display,
        "fit",
        code,
        status=model.status_,
        proven=model.status_ == "optimal",
        proof=model.proof_,
        exact=model.exact_,
        objective=model.objective_,
        bound=model.bound_,
        gap=model.gap_,
        seconds=model.result_.seconds,
        backend=model.result_.backend,
        accuracy=accuracy,
        leaves=model.get_n_leaves(),
        depth=model.get_depth(),
        leaf_penalty=best.leaf_penalty,
        max_depth=best.max_depth,
        cross_validated=chosen,
        classes=model.classes_,
        columns_used=_columns_used(model),
        constraints=[vars(report) for report in model.constraints_],
        tree=to_text(model),
        output=output.output,
    )


def _summary(model: Any, accuracy: float, chosen: bool) -> str:
    parts = []
    if chosen:
        parts.append(f"leaf penalty {model.leaf_penalty_:g} and depth {model.max_depth_} (cross-validated)")
    leaves = model.get_n_leaves()
    parts += [
        f"{leaves} {'leaf' if leaves == 1 else 'leaves'}",
        f"training accuracy {accuracy:.4f}",
        f"objective {model.objective_:.6f}",
        f"bound {model.bound_:.6f}",
        model.proof_,
    ]
    return f"# {', '.join(parts)}"


def _columns_used(model: Any) -> list[str]:
    """Return the names of the columns in the tree."""
    names = getattr(model, "feature_names_in_", None)
    used = sorted({model.encoder_.conditions_[feature].column for feature in model.tree_.tree.features_used})
    return [f"x{column}" if names is None else str(names[column]) for column in used]
