"""Claims of optimality at small depths, proven again by `simple_proof`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from accel_oct.errors import AccelOctError
from accel_oct_bench.data import Registry, fingerprint
from accel_oct_bench.rows import Row
from accel_oct_bench.verify.checks import TOLERANCE, Finding
from accel_oct_bench.verify.simple_proof import OutOfTimeError, best_counts, best_objective

__all__ = ["DEEPEST", "Proofs", "proven_again"]

DEEPEST = 3


@dataclass
class Proofs:
    """The outcome of `proven_again`.

    Attributes
    ----------
    agreed : int
        Claims that were confirmed.
    out_of_time, deeper, constrained, without_data : int
        Claims that were not checked, by reason.
    findings : list of Finding
    """

    agreed: int = 0
    out_of_time: int = 0
    deeper: int = 0
    constrained: int = 0
    without_data: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def claims(self) -> int:
        wrong = sum(finding.kind == "proof" for finding in self.findings)
        return self.agreed + self.out_of_time + self.deeper + self.constrained + self.without_data + wrong

    def __str__(self) -> str:
        reasons = {
            "out of time": self.out_of_time,
            f"deeper than {DEEPEST}": self.deeper,
            "with constraints": self.constrained,
            "without data": self.without_data,
        }
        left = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count)
        return f"{self.agreed} of {self.claims} claims of optimality proven again{f' ({left})' if left else ''}"


def proven_again(
    rows: list[Row], registry: Registry, time_limit: float, progress: Callable[[str], None] = lambda _: None
) -> Proofs:
    """Recompute every claimed optimum; each data set and depth is counted once for all penalties.

    Parameters
    ----------
    time_limit : float
        Seconds for each data set and depth.
    """
    proofs = Proofs()
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        it = row.instance
        if row.status != "optimal" or row.objective is None:
            continue
        if it.constraints:
            proofs.constrained += 1
        elif it.max_depth > DEEPEST:
            proofs.deeper += 1
        else:
            groups.setdefault((it.data, it.fingerprint, it.max_depth), []).append(row)
    for (name, mark, depth), claims in groups.items():
        progress(f"{name}, depth {depth}")
        try:
            data = registry.load(name)
        except AccelOctError:
            proofs.without_data += len(claims)
            continue
        if fingerprint(data) != mark:
            proofs.without_data += len(claims)
            continue
        try:
            counts = best_counts(data.X, np.asarray(data.y), depth, time_limit)
        except OutOfTimeError:
            proofs.out_of_time += len(claims)
            continue
        for row in claims:
            real = best_objective(counts, len(data.y), row.instance.leaf_penalty)
            if row.objective is not None and abs(row.objective - real) <= TOLERANCE:
                proofs.agreed += 1
            else:
                text = f"it says that {row.objective:.9f} is optimal, counting finds {real:.9f}"
                proofs.findings.append(Finding("proof", (row,), text))
    return proofs
