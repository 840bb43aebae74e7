"""Model files of `fit`, with a description of the training data."""

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
from accel_oct.export.stored_model import MAX_BYTES, POLICY, stored_kind
from accel_oct.support.files import read_text


class Stored:
    """A model of a file, with the description of its training.

    Attributes
    ----------
    training : mapping
        Empty if the file was not written by ``accel-oct fit``.
    """

    def __init__(self, model: Any, training: Mapping[str, Any]) -> None:
        self.model, self.training = model, training

    def columns(self, given: TargetOptions) -> TargetOptions:
        """Return target and weights as given, or else as in training."""
        return TargetOptions(
            given.target if given.target is not None else self._text("target"),
            given.sample_weight if given.sample_weight is not None else self._text("sample_weight"),
        )

    def texts(self, key: str) -> list[str]:
        """Return a list of strings from `training`; empty if missing."""
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
        """Text of the objective, if one was given."""
        return self._text("objective")

    @property
    def fingerprint(self) -> str | None:
        """Fingerprint of the training table."""
        return self._text("fingerprint")


def read_model(file: ModelFile, table: TableOptions | None = None, *, policies: str = "") -> Stored:
    """Read a model from a file or standard input.

    `policies` names what the command cannot do with a policy tree, for the error; empty if it can use one.
    """
    if file.model == "-":
        if table is not None and table.data == "-":
            raise InvalidInputError("model and data cannot both be standard input")
        text = sys.stdin.buffer.read(MAX_BYTES + 1).decode("utf-8", "replace")
        if text.lstrip()[:1] != "{":
            raise InvalidInputError("standard input does not hold a model: it is not JSON")
    else:
        text = read_text(file.model, MAX_BYTES, "the JSON document")
    source = text if text.lstrip()[:1] in ("{", "[") else Path(file.model)
    is_policy = stored_kind(source) == POLICY
    if is_policy and policies:
        raise InvalidInputError(f"the model is a policy tree: {policies}")
    model: Any
    if is_policy:
        # Imported here to keep the import of the command fast.
        from accel_oct.estimators.policy import OptimalPolicyTree

        model = OptimalPolicyTree.from_json(source)
    else:
        model = OptimalTreeClassifier.from_json(source)
    training = json.loads(text).get("training")
    return Stored(model, training if isinstance(training, Mapping) else {})


def model_text(model: Any, data: Training, columns: TargetOptions, texts: Mapping[str, Any]) -> str:
    """Return the model as JSON with a description of its training data, as `check` needs it."""
    document = json.loads(model.to_json())
    document["training"] = {
        "target": columns.target,
        "sample_weight": columns.sample_weight,
        "rows": len(data.y),
        "fingerprint": data.fingerprint,
        **texts,
    }
    return json.dumps(document, allow_nan=False, indent=1)
