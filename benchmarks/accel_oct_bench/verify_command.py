"""``accel-oct bench verify``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from accel_oct.errors import InvalidInputError
from accel_oct_bench.command import DataDir, app

__all__ = ["CONTRADICTED", "NOT_CHECKED", "verify"]

#: Exit codes: something does not hold; something could not be looked at.
CONTRADICTED, NOT_CHECKED = 4, 3
_SHOWN = 50


@app.command()
def verify(
    results: Annotated[list[Path], typer.Argument(help="Folders of results, or files of rows (.jsonl, .jsonl.gz).")],
    data_dir: DataDir = None,
    prove: Annotated[bool, typer.Option("--prove", help="Count claimed optima up to depth 3 again.")] = False,
    prove_limit: Annotated[float, typer.Option(help="Seconds for each data set and depth.", min=0.0)] = 60.0,
) -> int:
    """Check every row without the solver; exit code 4 for a contradiction, 3 where something could not be checked."""
    from accel_oct_bench.instances import DATA_VARIABLE  # loads NumPy
    from accel_oct_bench.registry import Registry  # as above
    from accel_oct_bench.sources import all_rows  # as above
    from accel_oct_bench.verify import checked, compared, proven_again  # as above

    rows = [row for source in all_rows(results) for row in source.rows]
    if not rows:
        raise InvalidInputError(f"there are no rows in {', '.join(map(str, results))}")
    registry = Registry(data_dir or os.environ.get(DATA_VARIABLE) or None)
    examined = checked(rows, registry)
    findings = [finding for one in examined for finding in one.findings] + compared(examined)
    counted = sum(one.correct is not None for one in examined)
    print(f"{len(rows)} rows, {counted} trees recomputed, {len({row.instance for row in rows})} instances")
    if prove:
        told = (lambda text: print(f"counting {text}", file=sys.stderr)) if sys.stderr.isatty() else lambda _: None
        proofs = proven_again(rows, registry, prove_limit, told)
        findings += proofs.findings
        print(proofs)
    notes: dict[str, int] = {}
    for one in examined:
        for note in one.notes:
            notes[note] = notes.get(note, 0) + 1
    for note, count in notes.items():
        print(f"{count} rows: {note}")
    for finding in findings[:_SHOWN]:
        print(finding)
    if len(findings) > _SHOWN:
        print(f"... and {len(findings) - _SHOWN} more")
    if findings:
        print("1 contradiction" if len(findings) == 1 else f"{len(findings)} contradictions")
    else:
        print("no contradiction in what could be checked" if notes else "no contradiction")
    return CONTRADICTED if findings else NOT_CHECKED if notes else 0
