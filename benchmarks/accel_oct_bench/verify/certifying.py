"""Claims of optimality, proven by certificates: the library writes them, a program that shares no code checks them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import accel_oct_checker
from accel_oct.certificates import FeatureProblem, write_certificate
from accel_oct.errors import AccelOctError, StoppedError
from accel_oct.support.stopping import Stopper
from accel_oct.tree import DecisionTree
from accel_oct_bench.data import EncodedData, Registry
from accel_oct_bench.rows import Row, run_label
from accel_oct_bench.solving import constraints_of, dataset_of
from accel_oct_bench.verify.checks import Checked, Finding

__all__ = ["Certified", "certified", "judged"]

#: Memory of the checker, in MB.
MEMORY = 4096
#: The checker looks at its limit between steps; after these seconds more it is ended.
_GRACE = 10.0

PROVEN, REFUSED, OUT_OF_TIME = "proven", "refused", "out of time"


@dataclass
class Certified:
    """The outcome of `certified`.

    Attributes
    ----------
    proven, refused, out_of_time : int
        Claims by the answer of the checker; `out_of_time` also if the certificate was not written in time.
    uncertified : Counter of str
        Claims that have no certificate, by reason.
    findings : list of Finding
        One for each refused claim.
    """

    proven: int = 0
    refused: int = 0
    out_of_time: int = 0
    uncertified: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def claims(self) -> int:
        return self.proven + self.refused + self.out_of_time + self.uncertified.total()

    def __str__(self) -> str:
        counts = {REFUSED: self.refused, OUT_OF_TIME: self.out_of_time}
        counts["cannot be certified"] = self.uncertified.total()
        rest = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        head = (
            f"{self.proven} of {self.claims} claims of optimality proven by certificates{f' ({rest})' if rest else ''}"
        )
        reasons = [f"{count} without a certificate: {reason}" for reason, count in self.uncertified.most_common()]
        return "\n  ".join([head, *reasons])


def certified(
    examined: list[Checked], registry: Registry, time_limit: float, progress: Callable[[str], None] = lambda _: None
) -> Certified:
    """Write and check a certificate of every row that claims an optimum; equal claims are proven once.

    The certificate is about the tree of the row, whichever method found it.

    Parameters
    ----------
    time_limit : float
        Seconds for each row, for writing and checking together.
    """
    found = Certified()
    known: dict[Any, tuple[str, str]] = {}
    for one in examined:
        row = one.row
        if row.status != "optimal":
            continue
        key = (row.instance, repr(row.tree))
        if key not in known:
            progress(run_label(row.instance, row.method))
            known[key] = _judged_row(one, registry, time_limit)
        answer, reason = known[key]
        if answer == PROVEN:
            found.proven += 1
        elif answer == OUT_OF_TIME:
            found.out_of_time += 1
        elif answer == REFUSED:
            found.refused += 1
            found.findings.append(Finding("certificate", (row,), f"its certificate is not accepted: {reason}"))
        else:
            found.uncertified[reason] += 1
    return found


def _judged_row(one: Checked, registry: Registry, time_limit: float) -> tuple[str, str]:
    """Return the answer on a row: `PROVEN`, `REFUSED`, `OUT_OF_TIME`, or "" and the reason."""
    if one.findings or one.correct is None:
        return "", "the row itself is contradicted" if one.findings else "its tree could not be recomputed"
    if one.row.tree is None:
        return "", "the row has no tree"
    deadline = time.monotonic() + time_limit
    with tempfile.TemporaryDirectory() as folder:
        proof, table = Path(folder, "proof.json"), Path(folder, "table.csv")
        try:
            _write(one.row, registry.load(one.row.instance.data), proof, table, Stopper(deadline))
        except StoppedError:
            return OUT_OF_TIME, ""
        except AccelOctError as error:
            return "", str(error)
        return judged(proof, table, deadline - time.monotonic())


def _write(row: Row, data: EncodedData, proof: Path, table: Path, stopper: Stopper) -> None:
    it, dataset = row.instance, dataset_of(data)
    constraints = tuple(each.bind(dataset) for each in constraints_of(it.constraints, data))
    problem = FeatureProblem(dataset, it.max_depth, it.leaf_penalty, constraints, "accuracy")
    claim = problem.claim(DecisionTree.from_dict(row.tree or {}))
    write_certificate(claim, proof, table=table, stopper=stopper)


def judged(proof: Path, table: Path, seconds: float) -> tuple[str, str]:
    """Run the checker in a process of its own; return `PROVEN`, `REFUSED`, `OUT_OF_TIME` or "", and what it says."""
    command = [sys.executable, str(accel_oct_checker.__file__), str(proof), str(table), "--memory", str(MEMORY)]
    try:
        done = subprocess.run(
            [*command, "--seconds", str(max(0.0, seconds))],
            capture_output=True,
            text=True,
            check=False,
            timeout=max(0.0, seconds) + _GRACE,
        )
    except subprocess.TimeoutExpired:
        return OUT_OF_TIME, ""
    said = " ".join(done.stdout.split())
    if done.returncode == 0:
        return PROVEN, said
    if done.returncode in (1, 2) and said:
        return REFUSED, said
    if "time limit" in said:
        return OUT_OF_TIME, said
    return "", said or f"the checker ended with code {done.returncode}"
