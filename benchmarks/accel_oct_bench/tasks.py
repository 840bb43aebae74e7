"""One run that is to be made, as a value that can be sent to another process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from accel_oct_bench.instances import EncodedData
from accel_oct_bench.registry import fingerprint
from accel_oct_bench.rows import Instance, Method, run_key

__all__ = ["Task", "instance_of"]


@dataclass(frozen=True)
class Task:
    """A method on an instance.

    Attributes
    ----------
    data_dir : str or None
        The folder that the registry of the other process looks into.
    """

    suite: str
    instance: Instance
    method: Method
    data_dir: str | None = None

    @cached_property
    def key(self) -> str:
        """See `run_key`."""
        return run_key(self.instance, self.method)

    @property
    def label(self) -> str:
        """For people."""
        limits = "".join(f", {text}" for text in self.instance.constraints)
        instance = (
            f"{self.instance.data}, depth {self.instance.max_depth}, penalty {self.instance.leaf_penalty:g}{limits}"
        )
        solver = f" on {self.method.backend}" if self.method.backend else ""
        return f"{instance}: {self.method.name}{solver}"

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        """What `to_json` wrote."""
        values: dict[str, Any] = json.loads(text)
        instance = Instance(**{**values["instance"], "constraints": tuple(values["instance"]["constraints"])})
        return cls(values["suite"], instance, Method(**values["method"]), values["data_dir"])


def instance_of(data: EncodedData, max_depth: int, leaf_penalty: float, constraints: tuple[str, ...] = ()) -> Instance:
    """What a row says of an instance of these data."""
    return Instance(
        data=data.name,
        fingerprint=fingerprint(data),
        n_samples=data.X.shape[0],
        n_features=data.X.shape[1],
        n_classes=len(np.unique(data.y)),
        max_depth=max_depth,
        leaf_penalty=leaf_penalty,
        constraints=constraints,
    )
