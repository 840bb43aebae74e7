"""The command ``accel-oct``."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from accel_oct._version import __version__
from accel_oct.bench import command as bench
from accel_oct.cli import inputs
from accel_oct.cli.progress import ProgressLine
from accel_oct.encoding import (
    AllThresholdsEncoder,
    OneHotCategoryEncoder,
    QuantileBucketEncoder,
    QuantileThresholdEncoder,
    TableEncoder,
    TreeGuidedThresholdEncoder,
)
from accel_oct.encoding.table import DEFAULT_CATEGORIES, DEFAULT_QUANTILES
from accel_oct.errors import AccelOctError, InvalidInputError
from accel_oct.estimators.classifier import OptimalTreeClassifier
from accel_oct.estimators.cross_validated import DEFAULT_PENALTIES, OptimalTreeClassifierCV
from accel_oct.export import to_dot, to_html, to_python, to_sql, to_text
from accel_oct.io.writing import is_binary, write_columns, write_csv
from accel_oct.mip import list_backends
from accel_oct.solving.frontier import solve_path
from accel_oct.support.files import replacing

__all__ = ["main"]

_FORMATS: dict[str, Callable[[Any], str]] = {
    "text": to_text,
    "dot": to_dot,
    "html": to_html,
    "python": to_python,
    "sql": to_sql,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit code is 2 for bad input, and our own bugs come out as they are."""
    options = _parser().parse_args(arguments)
    try:
        with _warnings_as_lines():
            return int(options.run(options) or 0)
    except KeyboardInterrupt:
        print("accel-oct: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has seen enough
        return 0
    except (AccelOctError, OSError) as error:
        if options.debug:
            raise
        print(f"accel-oct: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


# ---------------------------------------------------------------- commands


def _fit(options: argparse.Namespace) -> None:
    X, y = inputs.labelled_table(options)
    shared = {
        "backend": options.backend,
        "preset": options.preset,
        "time_limit": options.time_limit,
        "encoder": _encoder(options),
        "n_jobs": options.threads,
        "random_state": options.seed,
    }
    progress = ProgressLine(sys.stderr, quiet=options.quiet)
    model: Any
    if options.cv:
        penalties = options.leaf_penalty or None
        model = OptimalTreeClassifierCV(options.max_depth, penalties, cv=options.cv, progress=progress, **shared)
    else:
        if options.leaf_penalty is not None and len(options.leaf_penalty) > 1:
            raise InvalidInputError("--leaf-penalty takes several values only together with --cv")
        penalty = options.leaf_penalty[0] if options.leaf_penalty else 0.01
        model = OptimalTreeClassifier(options.max_depth, penalty, progress=progress, **shared)
    try:
        model.fit(X, y)
    finally:
        progress.end()
    print(to_text(model))
    chosen = f"leaf penalty {model.leaf_penalty_:g} (cross-validated), " if options.cv else ""
    print(
        f"# {chosen}{model.get_n_leaves()} leaves, training accuracy {model.score(X, y):.4f}, "
        f"objective {model.objective_:.6f}, bound {model.bound_:.6f}, {model.status_}"
    )
    if options.output:
        model.to_json(options.output)


def _predict(options: argparse.Namespace) -> None:
    model = OptimalTreeClassifier.from_json(Path(options.model))
    X = inputs.table(options, like=model)  # the order in the file, and further columns, do not matter
    classes = model.predict(X)
    names, columns = ["prediction"], [classes.tolist()]
    if options.proba:
        names += [f"probability of {label}" for label in model.classes_]
        columns += model.predict_proba(X).T.tolist()
    if is_binary(options.output):
        write_columns(options.output, names, columns)
        return
    with _opened(options.output) as file:
        write_csv(file, names, zip(*columns, strict=True), escape_formulas=options.escape_formulas)


def _show(options: argparse.Namespace) -> None:
    model = OptimalTreeClassifier.from_json(Path(options.model))
    if options.format == "png":
        if not options.output:
            raise InvalidInputError("--format png needs --output")
        from accel_oct.plotting import plot_tree  # matplotlib is an extra

        with replacing(options.output, binary=True) as file:
            plot_tree(model).figure.savefig(file, format="png", dpi=150)
        return
    with _opened(options.output) as file:
        print(_FORMATS[options.format](model).rstrip("\n"), file=file)


def _path(options: argparse.Namespace) -> None:
    X, y = inputs.labelled_table(options)
    encoder = _encoder(options).fit(X, y)
    penalties = options.leaf_penalty or list(DEFAULT_PENALTIES)
    results = solve_path(
        encoder.transform(X),
        y,
        max_depth=options.max_depth,
        leaf_penalties=penalties,
        time_limit=options.time_limit,
        threads=options.threads,
    )
    rows = []
    for penalty, result in zip(penalties, results, strict=True):
        accuracy = result.objective + penalty * result.tree.n_leaves
        rows.append([f"{penalty:g}", result.tree.n_leaves, f"{accuracy:.6f}", f"{result.objective:.6f}", result.status])
    with _opened(options.output) as file:
        write_csv(file, ["leaf_penalty", "leaves", "accuracy", "objective", "status"], rows)


def _encode(options: argparse.Namespace) -> None:
    y = None
    if options.target:
        table, y = inputs.labelled_table(options)
    else:
        table = inputs.table(options)
    encoder = _encoder(options).fit(table, y)
    names = [str(name) for name in encoder.get_feature_names_out()]
    rows = encoder.transform(table).tolist()
    if y is not None:
        names.append(options.target)
        rows = [[*row, label] for row, label in zip(rows, y.tolist(), strict=True)]
    with _opened(options.output) as file:
        write_csv(file, names, rows)


def _backends(options: argparse.Namespace) -> None:
    for info in list_backends():
        state = "ready" if info.installed and info.licensed else ("no licence" if info.installed else "not installed")
        print(f"{info.name:12s} {state}" + (f": {info.reason}" if info.reason else ""))
        able = (f"{what.replace('_', ' ')} {how.value}" for what, how in vars(info.capabilities).items())
        print(f"{'':12s} {', '.join(able)}")


# ---------------------------------------------------------------- arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="accel-oct", description="Provably optimal classification trees.")
    parser.add_argument("--version", action="version", version=f"accel-oct {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    fit = commands.add_parser("fit", help="find the optimal tree of a table")
    inputs.add_data(fit, target_required=True)
    _add_tree(fit)
    fit.add_argument("--cv", type=int, metavar="K", help="choose the leaf penalty by K-fold cross-validation")
    fit.add_argument("--backend", default="highs")
    fit.add_argument("--preset", default="default")
    fit.add_argument("--seed", type=int, default=0)
    fit.add_argument("--quiet", action="store_true", help="no progress on stderr")
    fit.add_argument("-o", "--output", help="write the fitted model as JSON")
    fit.set_defaults(run=_fit)

    predict = commands.add_parser("predict", help="classify the rows of a table")
    predict.add_argument("model", help="JSON of `accel-oct fit -o`")
    inputs.add_data(predict, target_required=None)
    predict.add_argument("--proba", action="store_true", help="add the probability of each class")
    predict.add_argument(
        "--escape-formulas",
        action="store_true",
        help="put ' before text that a spreadsheet would run as a formula",
    )
    predict.add_argument(
        "-o", "--output", help="CSV file, or Parquet or Feather by its ending; standard output by default"
    )
    predict.set_defaults(run=_predict)

    show = commands.add_parser("show", help="print or draw a fitted tree")
    show.add_argument("model", help="JSON of `accel-oct fit -o`")
    show.add_argument("--format", choices=[*_FORMATS, "png"], default="text")
    show.add_argument("-o", "--output")
    show.set_defaults(run=_show)

    path = commands.add_parser("path", help="the optimal trees of many leaf penalties, in one pass")
    inputs.add_data(path, target_required=True)
    _add_tree(path)
    path.add_argument("-o", "--output")
    path.set_defaults(run=_path)

    encode = commands.add_parser("encode", help="turn a table into binary columns")
    inputs.add_data(encode, target_required=False)
    _add_encoder(encode)
    encode.add_argument("-o", "--output")
    encode.set_defaults(run=_encode)

    backends = commands.add_parser("backends", help="which solvers can be used")
    backends.set_defaults(run=_backends)

    benchmark = commands.add_parser("bench", help="measure, and report what was measured")
    bench.add_arguments(benchmark)
    benchmark.set_defaults(run=bench.execute)
    return parser


def _add_tree(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-depth", type=int, default=3)
    parser.add_argument("--leaf-penalty", type=float, nargs="+", metavar="PENALTY")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS")
    parser.add_argument("--threads", type=int, default=1)
    _add_encoder(parser)


def _add_encoder(parser: argparse.ArgumentParser) -> None:
    choices = ["quantile-thresholds", "quantile-buckets", "all-thresholds", "tree-guided"]
    parser.add_argument("--encoder", choices=choices, default=choices[0], help="for numeric columns")
    parser.add_argument("--quantiles", type=int, default=DEFAULT_QUANTILES, help="number of quantiles")
    parser.add_argument(
        "--max-categories",
        type=int,
        help=f"features per column of categories, 0 for no limit; {DEFAULT_CATEGORIES} by default",
    )
    parser.add_argument("--missing", choices=["category", "error"], default="category")


def _encoder(options: argparse.Namespace) -> TableEncoder:
    makers: dict[str, Callable[[], Any]] = {
        "quantile-thresholds": lambda: QuantileThresholdEncoder(options.quantiles),
        "quantile-buckets": lambda: QuantileBucketEncoder(options.quantiles),
        "all-thresholds": AllThresholdsEncoder,
        "tree-guided": TreeGuidedThresholdEncoder,
    }
    limit = options.max_categories
    categorical = None if limit is None else OneHotCategoryEncoder(limit or None)
    return TableEncoder(makers[options.encoder](), categorical, missing=options.missing)


# ---------------------------------------------------------------- input and output


@contextmanager
def _opened(path: str | None) -> Iterator[IO[str]]:
    if path is None or path == "-":
        yield sys.stdout
        return
    with replacing(path) as file:
        yield file


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *_, **__: print(f"accel-oct: warning: {message}", file=sys.stderr)
        yield
