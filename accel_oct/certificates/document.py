"""The file of a certificate, and the table that it is about."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel_oct.certificates.claim import Claim
from accel_oct.certificates.closings import Closer
from accel_oct.certificates.lemmas import Prover
from accel_oct.support.files import as_path, replacing
from accel_oct.support.stopping import Stopper


@dataclass(frozen=True)
class Certificate:
    """What was written.

    Attributes
    ----------
    path : Path
    fingerprint : str
        SHA-256 of the file.
    data_fingerprint : str
        That of the table, see docs/certificates.md.
    lemmas, size : int
        Number of lemmas, or of closings under limits, and bytes of the file.
    seconds : float
    """

    path: Path
    fingerprint: str
    data_fingerprint: str
    lemmas: int
    size: int
    seconds: float


def write_certificate(
    claim: Claim, path: str | Path, *, table: str | Path | None = None, stopper: Stopper | None = None
) -> Certificate:
    """Prove a claim again, write the certificate, and return what was written.

    Parameters
    ----------
    path : str or Path
        Packed by gzip if it ends in ``.gz``.
    table : str or Path, optional
        Where the table that the certificate is about is written to, as CSV.
    stopper : Stopper, optional
        Asked about time limit and Ctrl-C.

    Raises
    ------
    InvalidInputError
        If the checker would read two texts of the data as one.
    """
    began, path = time.perf_counter(), as_path(path)
    claim.check_texts()
    proof, stopper = dict[str, Any](), stopper or Stopper()
    if claim.limits:
        proof["closings"] = Closer(claim, stopper).closings()
    else:
        proof["lemmas"] = Prover(claim, stopper).lemmas()
    text = json.dumps(as_dict(claim, proof), ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
    content = gzip.compress(text, mtime=0) if path.suffix == ".gz" else text
    with replacing(path, binary=True) as file:
        file.write(content)
    if table is not None:
        with replacing(table) as file:
            file.write(as_csv(claim))
    digest = hashlib.sha256(content).hexdigest()
    lemmas = sum(map(len, proof.values()))
    return Certificate(path, digest, claim.fingerprint, lemmas, len(content), time.perf_counter() - began)


def as_dict(claim: Claim, proof: dict[str, Any]) -> dict[str, Any]:
    """Return the certificate as the format has it."""
    return {
        "format": "accel-oct certificate",
        "version": 1,
        "data": {
            "columns": [column.as_list() for column in claim.columns],
            "target": claim.target,
            "weight": claim.weight,
            "weight_bits": claim.weight_bits,
            "classes": list(claim.classes),
            "sha256": claim.fingerprint,
        },
        "problem": {
            "depth": claim.max_depth,
            "leaf_price": str(claim.leaf_price),
            **({"least_leaf_weight": claim.least} if claim.least else {}),
            **({"groups": claim.groups, "most_groups": claim.most_groups} if claim.most_groups is not None else {}),
            **({"limits": [limit.stated for limit in claim.limits]} if claim.limits else {}),
        },
        "claim": {"tree": claim.as_nodes(), "cost": claim.cost},
        **proof,
    }


def as_csv(claim: Claim) -> str:
    """Return the table as CSV."""
    file = io.StringIO(newline="")
    columns = list(claim.cells.values())
    header = [*claim.cells, claim.target, *([] if claim.weight is None else [claim.weight])]
    # `csv` does not quote a carriage return, which ends a line for every reader.
    returns = any("\r" in text for texts in (header, claim.classes, *columns) for text in texts)
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL)
    writer.writerow(header)
    for row, label in enumerate(claim.labels.tolist()):
        weight = [] if claim.weight is None else [repr(float(claim.weights[row]))]
        writer.writerow([*(column[row] for column in columns), claim.classes[label], *weight])
    return file.getvalue()
