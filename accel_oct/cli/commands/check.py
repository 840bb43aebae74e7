"""``accel-oct check``: verify a model on a file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import accel_oct_checker
from accel_oct.cli.codes import Code
from accel_oct.cli.commands.models import Stored, read_model
from accel_oct.cli.commands.output import emit, printed
from accel_oct.cli.commands.tables import read_training
from accel_oct.cli.options import DisplayOptions, ModelFile, ProofOptions, RuleOptions, TableOptions, TargetOptions
from accel_oct.constraints import bind_all
from accel_oct.data import BinaryDataset
from accel_oct.errors import InvalidInputError
from accel_oct.estimators.held_out import held_out_data, objective_score
from accel_oct.estimators.rules import all_constraints, column_constraints, n_by_parameter
from accel_oct.estimators.training import attached
from accel_oct.solving.parsing import constraint, objective
from accel_oct.support.files import check_regular

#: Memory limit of the checker in MB.
_MEMORY = 4096
#: Tolerance for sums of floats in another order.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Finding:
    """Result of one check; `holds` is None if it was not possible."""

    what: str
    holds: bool | None
    detail: str


def check(
    file: ModelFile,
    table: TableOptions,
    columns: TargetOptions,
    rules: RuleOptions,
    proof: ProofOptions,
    display: DisplayOptions,
) -> int:
    """Check proof, objective and constraints; return the exit code of the worst result."""
    if proof.proof:
        return _check_certificate(file.model, table, proof, display)
    if proof.time_limit is not None or proof.memory is not None:
        raise InvalidInputError("--time-limit and --memory are limits of --proof")
    stored = read_model(file, table, policies="`check` is for classifiers")
    model = stored.model
    data = read_training(table, stored.columns(columns), display, like=model)
    goal = rules.objective or stored.objective
    if goal is not None:
        model.objective, _ = objective(goal)
    texts = rules.constraint or stored.texts("constraints")
    model.constraints = [constraint(text)[0] for text in texts]
    own = stored.fingerprint
    same = None if own is None else own == data.fingerprint
    rows = held_out_data(model, data.X, data.y, data.weights, attached(None, None, len(data.y)))
    accuracy = float(model.score(data.X, data.y, sample_weight=data.weights))
    value, found = _objective(stored, rows, same)
    findings = [Finding("proof", model.status_ == "optimal", model.proof_), found, *_constraints(stored, rows, same)]
    code = _code(findings)
    on = {None: "a file", True: "the training data", False: "other data than those of the training"}[same]
    printed(display, None, f"{len(data.y)} rows of {on}, accuracy {accuracy:.4f}", *map(_line, findings))
    return emit(
        display,
        "check",
        code,
        training_data=same,
        rows=len(data.y),
        accuracy=accuracy,
        objective=value,
        stored_objective=model.objective_,
        findings=[vars(each) for each in findings],
    )


def _check_certificate(path: str, table: TableOptions, limits: ProofOptions, display: DisplayOptions) -> int:
    """Check a certificate by the program that shares nothing with the solver, in a process with limited memory."""
    if table.data is None:
        raise InvalidInputError("no table was given: name the CSV file that the certificate is about")
    for file in (path, table.data):
        check_regular(file)
    command = [sys.executable, str(accel_oct_checker.__file__), "--memory", str(limits.memory or _MEMORY)]
    if limits.time_limit is not None:
        command += ["--seconds", str(limits.time_limit)]
    done = subprocess.run(
        [*command, "--", path, table.data],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env=os.environ | {"PYTHONUTF8": "1"},
        check=False,
    )
    said = " ".join(done.stdout.split())
    if done.returncode == 2 and said:
        raise InvalidInputError(said.removeprefix("malformed: "))
    code = {0: Code.DONE, 1: Code.DOES_NOT_HOLD}.get(done.returncode, Code.NOT_PROVEN)
    if not said:  # killed, or ended by a library that found no memory
        code, said = Code.NOT_PROVEN, f"undecided: the checker ended with code {done.returncode}"
    printed(display, None, said)
    return emit(display, "check", code, proven=code is Code.DONE, finding=said)


def _code(findings: list[Finding]) -> Code:
    if any(each.holds is not True for each in findings[1:]):
        return Code.DOES_NOT_HOLD
    return Code.DONE if findings[0].holds else Code.NOT_PROVEN


def _line(finding: Finding) -> str:
    word = {True: "holds", False: "DOES NOT HOLD", None: "not checked"}[finding.holds]
    return f"{finding.what}: {word}: {finding.detail}"


def _objective(stored: Stored, rows: BinaryDataset, same: bool | None) -> tuple[float | None, Finding]:
    """Recompute the objective; only on the training data it must equal the stored one."""
    model, tree = stored.model, stored.model.tree_.tree
    given = model.class_weight if isinstance(model.class_weight, dict) else {}
    factors = np.array([float(given.get(label, 1.0)) for label in model.classes_.tolist()])
    try:
        score = objective_score(model, tree, rows, factors)
    except InvalidInputError as error:  # such as F1 without a sample of the class
        return None, Finding("objective", None, str(error))
    value = score - model.leaf_penalty * tree.n_leaves
    found = f"{value:.6f}, and {model.objective_:.6f} in the model"
    if not same:
        return value, Finding(
            "objective", True, f"{found}, which was measured on other data" if same is False else found
        )
    close = abs(value - model.objective_) <= _ROUNDING * max(1.0, abs(value))
    return value, Finding("objective", close, found)


def _constraints(stored: Stored, rows: BinaryDataset, same: bool | None) -> Iterator[Finding]:
    """Yield the checks of limits on these rows; minimum leaf samples are checked on training data only."""
    model = stored.model
    least = model.min_samples_leaf if same else 1
    sizes = (rows.n_samples, int((rows.weights > 0).sum()))
    listed = all_constraints(model.constraints, least, model.max_leaf_nodes, model.max_features_used, *sizes)
    listed += column_constraints(model)
    for each in listed:
        try:
            (bound,) = bind_all([each], rows)
        except InvalidInputError as error:
            yield Finding(type(each).__name__, None, str(error))
            continue
        value = bound.value(model.tree_.tree)
        holds = bound.violation(model.tree_.tree) <= 0
        yield Finding(bound.name, holds, "" if value is None else f"value {value:.6g}")
    if not model.constraints and len(model.constraints_) > n_by_parameter(model):
        names = "; ".join(report.name for report in model.constraints_)
        yield Finding("constraints", None, f"the model names them ({names}) but not their columns; use --constraint")
