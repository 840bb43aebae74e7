"""What can be said on the command line, in groups that commands share.

A group is a dataclass whose fields are typer's options. Nothing is decided here: an option that was not given is None
(or empty), so that a run file can fill it in, and then `DEFAULTS`. No other part of the library is imported.
"""

from accel_oct.cli.options.groups import DEFAULTS, Group
from accel_oct.cli.options.results import (
    DrawingOptions,
    ModelFile,
    NearOptions,
    OutputOptions,
    PredictionOptions,
    PresetName,
    ReportOptions,
    RunFile,
    TellingOptions,
)
from accel_oct.cli.options.training import (
    GROUPS,
    BackendOptions,
    EncoderOptions,
    LimitOptions,
    RuleOptions,
    TableOptions,
    TargetOptions,
    TreeOptions,
    ValidationOptions,
)

__all__ = [
    "DEFAULTS",
    "GROUPS",
    "BackendOptions",
    "DrawingOptions",
    "EncoderOptions",
    "Group",
    "LimitOptions",
    "ModelFile",
    "NearOptions",
    "OutputOptions",
    "PredictionOptions",
    "PresetName",
    "ReportOptions",
    "RuleOptions",
    "RunFile",
    "TableOptions",
    "TargetOptions",
    "TellingOptions",
    "TreeOptions",
    "ValidationOptions",
]
