"""Model files: what `fit` writes and others read, with what the data were."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accel_oct.cli.commands.tables import Training
from accel_oct.cli.options import ModelFile, TableOptions, TargetOptions
from accel_oct.errors import InvalidInputError, shown
from accel_oct.estimators.classifier import OptimalTreeClassifier
from accel_oct.export.stored_model import MAX_BYTES
from accel_oct.support.files import read_text

__all__ = ["Stored", "model_text", "read_model"]


class Stored:
    """A model from a file, and what the file says of its training.

    Attributes
    ----------
    model : OptimalTreeClassifier
    training : mapping
        Empty where the file was not written by ``accel-oct fit``.
    """

    def __init__(self, model: OptimalTreeClassifier, training: Mapping[str, Any]) -> None:
        self.model, self.training = model, training

    def columns(self, given: TargetOptions) -> TargetOptions:
        """Target and weights: as given, else as in training."""
        return TargetOptions(
            given.target if given.target is not None else self._text("target"),
            given.sample_weight if given.sample_weight is not None else self._text("sample_weight"),
        )

    def texts(self, key: str) -> list[str]:
        """A list of texts of the training, empty where there is none."""
        found = self.training.get(key)
        if found is None:
            return []
        if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
            raise InvalidInputError(f"model: training.{key} must be a list of texts, got {shown(found)}")
        return found

    def _text(self, key: str) -> str | None:
        found = self.training.get(key)
        if found is not None and not isinstance(found, str):
            raise InvalidInputError(f"model: training.{key} must be text, got {shown(found)}")
        return found

    @property
    def objective(self) -> str | None:
        """The objective in words, where one was asked for."""
        return self._text("objective")

    @property
    def fingerprint(self) -> str | None:
        """Of the table that it was fitted on."""
        return self._text("fingerprint")


def read_model(file: ModelFile, table: TableOptions | None = None) -> Stored:
    """Read a model, from standard input too."""
    if file.model == "-":
        if table is not None and table.data == "-":
            raise InvalidInputError("model and data cannot both be standard input")
        text = sys.stdin.buffer.read(MAX_BYTES + 1).decode("utf-8", "replace")
        if text.lstrip()[:1] != "{":
            raise InvalidInputError("standard input does not hold a model: it is not JSON")
        model = OptimalTreeClassifier.from_json(text)
    else:
        model = OptimalTreeClassifier.from_json(Path(file.model))
        text = read_text(file.model, MAX_BYTES, "model")
    training = json.loads(text).get("training")
    return Stored(model, training if isinstance(training, Mapping) else {})


def model_text(model: Any, data: Training, columns: TargetOptions, texts: Mapping[str, Any]) -> str:
    """The model as JSON, with what its training data were: enough for `check`."""
    document = json.loads(model.to_json())
    document["training"] = {
        "target": columns.target,
        "sample_weight": columns.sample_weight,
        "rows": len(data.y),
        "fingerprint": data.fingerprint,
        **texts,
    }
    return json.dumps(document, allow_nan=False, indent=1)
