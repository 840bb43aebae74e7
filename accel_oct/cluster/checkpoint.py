"""Checkpoints: the exact profiles of the regions that are done, in a JSON file.

Profiles depend on the data and the rules alone, so a search does not compute a region in the file again, in whatever
order it comes to it.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from accel_oct.cluster.workers import Job, JobResult, Path
from accel_oct.errors import InvalidInputError
from accel_oct.exact.samples import RowSamples
from accel_oct.support.files import as_path, check_writable, read_text, replacing

FORMAT = "accel_oct deep frontier 1"
EVERY = 30.0
"""Least seconds between two writes."""

_LARGEST = 2**30


class Checkpoint:
    """Profiles of regions by path, kept in a file; without a path nothing is kept.

    Parameters
    ----------
    path : path or None
        Read if the file exists.

    Notes
    -----
    The digest detects a damaged file, not a forged one: the file is as trusted as the data.

    Raises
    ------
    InvalidInputError
        When the file is no checkpoint, or belongs to other data, rules or another depth.
    """

    def __init__(self, path: Any, data: RowSamples, max_depth: int) -> None:
        self._path: FilePath | None = None if path is None else as_path(path, "checkpoint")
        self._max_depth = max_depth
        self._known: dict[Path, list[float]] = {}
        self._changed = False
        self._written = time.monotonic()
        if self._path is None:
            return
        self._fingerprint = fingerprint(data)
        check_writable(self._path, "checkpoint")
        if self._path.exists():
            self._read(read_text(self._path, _LARGEST, "checkpoint"))

    def __len__(self) -> int:
        return len(self._known)

    def get(self, job: Job) -> JobResult | None:
        """Return the stored result of a job, or None."""
        values = self._known.get(job.path) if job.whole else None
        if values is None:
            return None
        profile = np.array(values)
        if profile.size != 2**job.depth:
            raise self.refused("has a profile with the wrong number of entries")
        return JobResult(profile, profile)

    def add(self, job: Job, found: JobResult) -> None:
        """Keep a result if it is exact; the file is written from time to time."""
        if self._path is None or not job.whole or not np.array_equal(found.lower, found.upper):
            return
        self._known[job.path] = [float(number) for number in found.lower]
        self._changed = True
        if time.monotonic() - self._written > EVERY:
            self.write()

    def write(self) -> None:
        """Replace the file, as a whole or not at all."""
        if self._path is None or not self._changed:
            return
        regions = [
            {"path": [list(literal) for literal in path], "profile": [_written(number) for number in profile]}
            for path, profile in sorted(self._known.items())
        ]
        content = {
            "format": FORMAT,
            "data": self._fingerprint,
            "max_depth": self._max_depth,
            "regions": regions,
        }
        try:
            with replacing(self._path) as file:
                file.write(json.dumps({**content, "digest": _digest(content)}, allow_nan=False) + "\n")
        except OSError as error:
            raise InvalidInputError(f"checkpoint: cannot write {self._path}: {error.strerror or error}") from None
        self._changed = False
        self._written = time.monotonic()

    def refused(self, why: str) -> InvalidInputError:
        """Return the error for a file that cannot be used; the file is left unchanged."""
        self._changed = False
        return InvalidInputError(f"checkpoint {self._path} {why}")

    # ---------------------------------------------------------------- reading

    def _read(self, text: str) -> None:
        if not text.strip():
            return  # an empty file, as made by `tempfile`
        try:
            content = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise self.refused("is not a whole JSON file: was it cut off?") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise self.refused("is not a checkpoint of a deep frontier, or of another version")
        said = content.pop("digest", None)
        if said != _digest(content):
            raise self.refused("was changed or damaged: its digest is wrong")
        if content.get("data") != self._fingerprint:
            raise self.refused("belongs to other data, weights, objective or constraints")
        if content.get("max_depth") != self._max_depth:
            raise self.refused(f"is about max_depth {content.get('max_depth')!r}, not {self._max_depth}")
        try:
            self._known = {_path(region["path"]): _profile(region["profile"]) for region in content["regions"]}
        except (KeyError, TypeError, ValueError, OverflowError):
            raise self.refused("has regions that cannot be read") from None


def fingerprint(data: RowSamples) -> str:
    """Return a digest of everything that profiles depend on."""
    rules = data.rules
    parts: list[Any] = [data.X, data.y, data.weights, data.row_ceiling, data.feature, data.flipped]
    if rules is not None:
        parts += [rules.masses, np.array(rules.least), np.zeros(0) if rules.apart is None else rules.apart]
    digest = hashlib.sha256(repr((data.n_classes, rules is None)).encode())
    for part in parts:
        digest.update(repr((part.shape, part.dtype.str)).encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _written(number: float) -> float | None:
    return None if number == -math.inf else number


def _path(literals: Any) -> Path:
    path = tuple((_whole(feature), _whole(value)) for feature, value in literals)
    if any(feature < 0 or value not in (0, 1) for feature, value in path):
        raise ValueError("no path")
    return path


def _whole(number: Any) -> int:
    if type(number) is not int:
        raise TypeError("no whole number")
    return number


def _profile(numbers: Any) -> list[float]:
    values = [-math.inf if number is None else float(number) for number in numbers]
    if any(isinstance(number, str | bool) for number in numbers) or any(a > b for a, b in pairwise(values)):
        raise ValueError("no profile")
    return values


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")
