"""The program ``accel-oct``: commands, options and exit codes.

Each command is a function in a module of `accel_oct.cli.commands`, which is imported when the command is called: this
module imports neither NumPy nor other parts of the library that are slow to load. Other packages add commands by entry
points.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from accel_oct._version import __version__
from accel_oct.cli import options as opt
from accel_oct.cli.codes import Code
from accel_oct.cli.streams import separate_results, tolerant_streams
from accel_oct.errors import AccelOctError, InvalidInputError, NoTreeError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Group of entry points for commands of other packages: functions that take a list of arguments and return an exit
#: code. The summary of the package is the help of the command.
COMMAND_GROUP = "accel_oct.commands"
#: Commands in other packages of the project, with the package names.
_ELSEWHERE = {"bench": "accel-oct-bench"}

_HELP = "Provably optimal classification trees."
_TRACKER = "please report it, with the command and these lines, where you got accel_oct from"


@dataclass(frozen=True)
class Command:
    """A command: its help, the groups of options that its function takes, in this order, and the module of this."""

    name: str
    help: str
    groups: tuple[type[opt.Group], ...]
    panel: str
    module: str = ""

    def load(self) -> Callable[..., int]:
        """Import the module of the command, by default of the same name, and return its function."""
        module = import_module(f"accel_oct.cli.commands.{self.module or self.name}")
        found: Callable[..., int] = getattr(module, self.name.replace("-", "_"))
        return found


_FIND, _USE, _MORE = "Find trees", "Use a fitted tree", "More"
_TRAINING = (
    opt.TableOptions,
    opt.TargetOptions,
    opt.TreeOptions,
    opt.RuleOptions,
    opt.EncoderOptions,
    opt.LimitOptions,
)
_LAST = (opt.RunFile, opt.OutputOptions, opt.DisplayOptions)

COMMANDS = (
    Command(
        "fit",
        "Find the optimal tree of a table.",
        (
            *_TRAINING,
            opt.ProbabilityOptions,
            opt.BackendOptions,
            opt.ValidationOptions,
            opt.CertificateOutput,
            *_LAST,
        ),
        _FIND,
    ),
    Command("path", "Find the optimal tree of each of many leaf penalties.", (*_TRAINING, *_LAST), _FIND, "families"),
    Command("frontier", "Find the best tree for each number of leaves.", (*_TRAINING, *_LAST), _FIND, "families"),
    Command(
        "near-optimal",
        "List all trees close to the optimum.",
        (*_TRAINING, opt.NearOptions, *_LAST),
        _FIND,
        "families",
    ),
    Command(
        "policy",
        "Find the optimal policy tree: a treatment for each row.",
        (
            opt.TableOptions,
            opt.PolicyOptions,
            opt.TreeOptions,
            opt.RuleOptions,
            opt.EncoderOptions,
            opt.LimitOptions,
            opt.OutputOptions,
            opt.DisplayOptions,
        ),
        _FIND,
    ),
    Command(
        "predict",
        "Classify the rows of a table.",
        (opt.ModelFile, opt.TableOptions, opt.PredictionOptions, opt.OutputOptions, opt.DisplayOptions),
        _USE,
    ),
    Command(
        "explain",
        "Give the reasons of predictions, and the smallest changes that alter them.",
        (opt.ModelFile, opt.TableOptions, opt.ExplanationOptions, opt.OutputOptions, opt.DisplayOptions),
        _USE,
    ),
    Command(
        "show",
        "Print or draw a fitted tree, or turn it into code.",
        (opt.ModelFile, opt.DrawingOptions, opt.OutputOptions, opt.DisplayOptions),
        _USE,
    ),
    Command(
        "check",
        "Verify proof, objective and constraints on a file.",
        (opt.ModelFile, opt.TableOptions, opt.TargetOptions, opt.RuleOptions, opt.ProofOptions, opt.DisplayOptions),
        _USE,
    ),
    Command(
        "certify",
        "Write a certificate of optimality that others can check.",
        (
            opt.ModelFile,
            opt.TableOptions,
            opt.TargetOptions,
            opt.CertificateOptions,
            opt.OutputOptions,
            opt.DisplayOptions,
        ),
        _USE,
    ),
    Command(
        "report",
        "Write an HTML report on a model and its data.",
        (
            opt.ModelFile,
            opt.TableOptions,
            opt.TargetOptions,
            opt.ReportOptions,
            opt.OutputOptions,
            opt.DisplayOptions,
        ),
        _USE,
    ),
    Command(
        "encode",
        "Encode a table as binary columns.",
        (opt.TableOptions, opt.TargetOptions, opt.EncoderOptions, opt.OutputOptions, opt.DisplayOptions),
        _MORE,
    ),
    Command("backends", "List the available solvers.", (opt.DisplayOptions,), _MORE, "information"),
    Command(
        "config",
        "Print a preset with all of its switches, as TOML.",
        (opt.PresetName, opt.DisplayOptions),
        _MORE,
        "information",
    ),
)


class _Ended(Exception):
    """Wraps the exception of a command, because typer handles Ctrl-C and closed pipes differently."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with tolerant_streams(), _warnings_as_lines():
        try:
            found = _app(given)(given or ["--help"], prog_name="accel-oct", standalone_mode=False)
            sys.stdout.flush()
            return int(found or 0) if given else int(Code.BAD_INPUT)
        except (Exception, KeyboardInterrupt) as raised:
            error = raised.args[0] if isinstance(raised, _Ended) else raised
            if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
                return int(Code.DONE)
            code, message = _ending(error)
            if "--debug" in given or code is Code.BUG:
                traceback.print_exception(error)
            return _report_error(code, message, "--json" in given)


def _ending(error: BaseException) -> tuple[Code, str]:
    """Return the exit code of an error, and its message."""
    message = " ".join(str(error).split())
    if isinstance(error, KeyboardInterrupt):
        return Code.INTERRUPTED, message or "stopped before there was a result"
    if hasattr(error, "format_message"):  # usage errors; their class depends on the version of typer
        where = getattr(getattr(error, "ctx", None), "command_path", "accel-oct")
        said = " ".join(error.format_message().split()).rstrip(".")
        return Code.BAD_INPUT, f"{said[:1].lower()}{said[1:]} (see '{where} --help')"
    if isinstance(error, NoTreeError):
        return {"infeasible": Code.NO_TREE, "interrupted": Code.INTERRUPTED}.get(error.status, Code.NOT_PROVEN), message
    if isinstance(error, AccelOctError):
        return Code.BAD_INPUT, message
    if isinstance(error, UnicodeEncodeError):
        shown = ascii(error.object[error.start : error.end])[:60]
        how = "name a file by --output, or set PYTHONUTF8=1"
        return Code.BAD_INPUT, f"standard output is {error.encoding} here and cannot hold {shown}; {how}"
    if isinstance(error, OverflowError) and message.startswith("int too large"):  # only user input is that large
        return Code.BAD_INPUT, "a number that was given is too large"
    if isinstance(error, OSError):
        named = isinstance(error.filename, str | bytes)
        what = f"read or write {os.fsdecode(error.filename)}" if named else "write standard output"
        return Code.BAD_INPUT, f"cannot {what}: {error.strerror or message}"
    return Code.BUG, f"this is a bug of accel_oct: {type(error).__name__}: {message}; {_TRACKER}"


def _report_error(code: Code, message: str, as_json: bool) -> int:
    print(f"accel-oct: {'interrupted' if code is Code.INTERRUPTED else 'error'}: {message}", file=sys.stderr)
    if as_json:
        with suppress(OSError):  # standard output itself may have failed
            print(json.dumps({"error": {"code": int(code), "kind": code.name.lower(), "message": message}}))
    return int(code)


# ---------------------------------------------------------------- typer


def _app(given: Sequence[str]) -> typer.Typer:
    """Return the typer application for these arguments; with rich output on a terminal, else plain text."""
    app = typer.Typer(
        name="accel-oct",
        help=_HELP,
        rich_markup_mode="rich" if sys.stdout.isatty() else None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_whole)
    for command in COMMANDS:
        app.command(command.name, help=command.help, rich_help_panel=command.panel)(_called(command))
    asked = next((word for word in given if not word.startswith("-")), None)
    if asked not in {command.name for command in COMMANDS}:  # finding other packages is slow
        for name, entry in _installed_commands().items():
            app.command(
                name,
                help=_summary(entry),
                rich_help_panel=_MORE,
                hidden=entry is None,
                context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
            )(_delegate(name, entry))
    return app


def _installed_commands() -> dict[str, EntryPoint | None]:
    """Return commands of other packages by name; None for those of `_ELSEWHERE` that are not installed."""
    from importlib.metadata import entry_points  # slow: imports the email package

    found: dict[str, EntryPoint | None] = dict.fromkeys(_ELSEWHERE)
    own = {command.name for command in COMMANDS}
    return found | {entry.name: entry for entry in entry_points(group=COMMAND_GROUP) if entry.name not in own}


def _summary(entry: EntryPoint | None) -> str:
    """Return the summary of the package of a command."""
    return "" if entry is None or entry.dist is None else str(entry.dist.metadata["Summary"])


def _delegate(name: str, entry: EntryPoint | None) -> Callable[[typer.Context], int]:
    """Return a function that passes all arguments to a command of another package."""

    def call(context: typer.Context) -> int:
        if entry is None:
            package = _ELSEWHERE[name]
            raise InvalidInputError(f"the command {name!r} is in a separate package: pip install {package}")
        try:
            command = entry.load()
        except ImportError as error:
            raise InvalidInputError(f"the command {name!r} cannot be loaded from {entry.value}: {error}") from error
        try:
            return int(command(context.args))
        except (Exception, KeyboardInterrupt) as error:
            raise _Ended(error) from None

    return call


def _called(command: Command) -> Callable[..., int]:
    """Return a function whose parameters are all options of the groups, for typer."""

    def call(**values: Any) -> int:
        groups = [group(**{field.name: values[field.name] for field in fields(group)}) for group in command.groups]
        try:
            with separate_results():
                return command.load()(*groups)
        except (Exception, KeyboardInterrupt) as error:
            raise _Ended(error) from None

    parameters = []
    for group in command.groups:
        hints = get_type_hints(group, include_extras=True)
        for field in fields(group):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            parameters.append(
                inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
                )
            )
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _whole(
    version: Annotated[bool, typer.Option("--version", is_eager=True, callback=lambda asked: _version(asked))] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Declare the options before the command; `run` handles --debug."""


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"accel-oct {__version__}")
        raise typer.Exit()


_FOR_DEVELOPERS = DeprecationWarning, ImportWarning, PendingDeprecationWarning, ResourceWarning
"""Warnings that are not shown, such as those on files that Ctrl-C left open during an import."""


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print warnings for users, one line each."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for category in _FOR_DEVELOPERS:
            warnings.simplefilter("ignore", category)
        warnings.showwarning = lambda message, *_, **__: print(f"accel-oct: warning: {message}", file=sys.stderr)
        yield
