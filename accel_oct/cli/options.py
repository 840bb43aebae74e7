"""Options of the command line, in groups that commands share.

A group is a dataclass whose fields are typer options. An option that is not given is None (or empty), so that the run
file, and then `DEFAULTS`, can set it. No other part of the library is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from typer import Argument, Option

#: Values of options that neither the command line nor the run file sets. Other options have no default.
DEFAULTS: dict[str, Any] = {
    "header": True,
    "decimal": ".",
    "text_encoding": "utf-8",
    "max_depth": "3",
    "encoder": "auto",
    "missing": "category",
    "backend": "highs",
    "gap": 0.0,
    "seed": 0,
    "threads": 1,
    "min_samples_leaf": "1",
    "ties": "purity",
    "rule": "smooth",
}


@dataclass(frozen=True)
class Group:
    """Related options; `SECTION` is their section in a run file, if any."""

    SECTION: ClassVar[str | None] = None
    #: Keys of the run file that differ from the field names; "" for fields without a key.
    KEYS: ClassVar[dict[str, str]] = {}


_READING, _TREE, _ENCODING, _SOLVING = "Reading the table", "The tree", "Columns to binary features", "Solving"
_VALIDATING, _REWARDS = "Cross-validation", "Rewards"


def _option(*names: str, help: str, panel: str, metavar: str | None = None) -> Any:
    return Option(*names, help=help, rich_help_panel=panel, metavar=metavar, show_default=False)


@dataclass(frozen=True)
class TableOptions(Group):
    """Input file and its format."""

    SECTION = "data"
    KEYS: ClassVar[dict[str, str]] = {"data": "path", "input_format": "format", "text_encoding": "encoding"}

    data: Annotated[
        str | None,
        Argument(metavar="DATA", help="CSV, TSV, Parquet, Feather or Excel file; - is standard input."),
    ] = None
    input_format: Annotated[
        Literal["csv", "tsv", "parquet", "feather", "excel"] | None,
        _option("--format", help="File format; by default from content and extension.", panel=_READING),
    ] = None
    delimiter: Annotated[
        str | None, _option("--delimiter", "--separator", help="Delimiter of a text file.", panel=_READING)
    ] = None
    header: Annotated[
        bool | None,
        _option("--header/--no-header", help="Whether the first row has names; else x0, x1, ...", panel=_READING),
    ] = None
    decimal: Annotated[str | None, _option("--decimal", help="Decimal mark of a text file.", panel=_READING)] = None
    text_encoding: Annotated[
        str | None, _option("--encoding", help="Encoding of a text file; utf-8 by default.", panel=_READING)
    ] = None
    na_values: Annotated[
        list[str] | None,
        _option("--na-values", metavar="TEXT", help="A text that means a missing value; repeatable.", panel=_READING),
    ] = None
    dtype: Annotated[
        list[str] | None,
        _option(
            "--dtype",
            metavar="NAME=TYPE",
            help="text, number, boolean, datetime, duration or ordered:low<mid<high; repeatable.",
            panel=_READING,
        ),
    ] = None
    sheet: Annotated[
        str | None, _option("--sheet", help="Name or number (from 1) of an Excel sheet.", panel=_READING)
    ] = None


@dataclass(frozen=True)
class TargetOptions(Group):
    """Target and weights."""

    SECTION = "data"

    target: Annotated[
        str | None,
        _option("--target", "-t", metavar="COLUMN", help="Column of the classes.", panel=_READING),
    ] = None
    sample_weight: Annotated[
        str | None,
        _option("--sample-weight", metavar="COLUMN", help="Column of the sample weights.", panel=_READING),
    ] = None


@dataclass(frozen=True)
class PolicyOptions(Group):
    """Treatments, outcomes, and the estimation of rewards."""

    treatment: Annotated[
        str, _option("--treatment", "-t", metavar="COLUMN", help="Column of the treatment received.", panel=_READING)
    ]
    outcome: Annotated[
        str, _option("--outcome", "-y", metavar="COLUMN", help="Column of the outcome, a number.", panel=_READING)
    ]
    sample_weight: Annotated[
        str | None,
        _option("--sample-weight", metavar="COLUMN", help="Column of the sample weights.", panel=_READING),
    ] = None
    test: Annotated[
        str | None,
        _option("--test", metavar="FILE", help="File with other rows, on which the policy is valued.", panel=_READING),
    ] = None
    method: Annotated[
        Literal["doubly-robust", "direct", "inverse-propensity"],
        _option("--method", help="Estimate of rewards; doubly-robust by default.", panel=_REWARDS),
    ] = "doubly-robust"
    minimise: Annotated[bool, _option("--minimise", help="Small outcomes are good.", panel=_REWARDS)] = False
    treatment_cost: Annotated[
        list[str] | None,
        _option(
            "--treatment-cost",
            metavar="LABEL=COST",
            help="Cost of a treatment in the unit of the outcome; repeatable.",
            panel=_REWARDS,
        ),
    ] = None


@dataclass(frozen=True)
class TreeOptions(Group):
    """Limits on the tree."""

    SECTION = "tree"

    max_depth: Annotated[
        str | None,
        _option(
            "--max-depth",
            "-d",
            metavar="DEPTH",
            help="Maximum depth, 3 by default; none for no limit; with --cv also auto, or several: 2,3,none.",
            panel=_TREE,
        ),
    ] = None
    leaf_penalty: Annotated[
        list[str] | None,
        _option(
            "--leaf-penalty",
            metavar="PENALTY",
            help="Score that each leaf must add, 0.01 by default; several with --cv and in `path`: 0.1,0.01.",
            panel=_TREE,
        ),
    ] = None
    min_samples_leaf: Annotated[
        str | None,
        _option(
            "--min-samples-leaf",
            metavar="N",
            help="Minimum rows in a leaf, or their share; several with --cv: 1,5.",
            panel=_TREE,
        ),
    ] = None
    ties: Annotated[
        Literal["purity", "support", "first"] | None,
        _option(
            "--ties", help="Of equally good trees: purer leaves (default), larger leaves, or the first.", panel=_TREE
        ),
    ] = None
    max_leaf_nodes: Annotated[
        int | None, _option("--max-leaf-nodes", help="Maximum number of leaves.", panel=_TREE)
    ] = None
    max_features_used: Annotated[
        int | None, _option("--max-features-used", help="Maximum number of columns in the tree.", panel=_TREE)
    ] = None
    exclude: Annotated[
        list[str] | None,
        _option("--exclude", metavar="COLUMN", help="Column that no split may use; repeatable.", panel=_TREE),
    ] = None
    class_weight: Annotated[
        list[str] | None,
        _option(
            "--class-weight",
            metavar="LABEL=WEIGHT",
            help="Weight of a class in the objective, repeatable; or balanced.",
            panel=_TREE,
        ),
    ] = None


@dataclass(frozen=True)
class RuleOptions(Group):
    """Objective and constraints."""

    objective: Annotated[
        str | None,
        _option(
            "--objective",
            metavar="OBJECTIVE",
            help="accuracy, balanced_accuracy, f1, f_beta(beta=2), cost_matrix([[0, 1], [5, 0]]), ...",
            panel=_TREE,
        ),
    ] = None
    constraint: Annotated[
        list[str] | None,
        _option(
            "--constraint",
            metavar="RULE",
            help="Such as 'statistical_parity(sex, at_most=0.02)' or 'recall(high, at_least=0.9)'; repeatable.",
            panel=_TREE,
        ),
    ] = None


@dataclass(frozen=True)
class EncoderOptions(Group):
    """Encoding of columns."""

    SECTION = "encoder"

    encoder: Annotated[
        Literal["auto", "quantile-thresholds", "quantile-buckets", "all-thresholds", "tree-guided", "none"] | None,
        _option(
            "--encoder",
            help="Encoder of numeric columns; auto by default. none requires a table of 0 and 1.",
            panel=_ENCODING,
        ),
    ] = None
    quantiles: Annotated[
        int | None, _option("--quantiles", help="Number of quantiles, for quantile encoders.", panel=_ENCODING)
    ] = None
    max_categories: Annotated[
        int | None,
        _option(
            "--max-categories",
            help="Maximum features per categorical column, 0 for no limit; not with --encoder auto.",
            panel=_ENCODING,
        ),
    ] = None
    missing: Annotated[
        Literal["category", "error"] | None,
        _option("--missing", help="Treat missing values as a category, or as an error.", panel=_ENCODING),
    ] = None


@dataclass(frozen=True)
class LimitOptions(Group):
    """Limits on time and threads."""

    SECTION = "solver"

    time_limit: Annotated[
        float | None,
        _option("--time-limit", metavar="SECONDS", help="Time limit; keeps the best tree.", panel=_SOLVING),
    ] = None
    threads: Annotated[
        int | None, _option("--threads", help="Threads of a solve: 1 by default; -1 for all cores.", panel=_SOLVING)
    ] = None


@dataclass(frozen=True)
class ProbabilityOptions(Group):
    """Probabilities of the model."""

    SECTION = "tree"

    smoothing: Annotated[
        float | None,
        _option("--smoothing", metavar="M", help="Smoothing of probabilities, 5 by default; 0 for none.", panel=_TREE),
    ] = None
    calibrate: Annotated[
        int | None,
        _option("--calibrate", metavar="K", help="Choose the smoothing by K-fold cross-validation.", panel=_TREE),
    ] = None


@dataclass(frozen=True)
class BackendOptions(Group):
    """Solver and gap."""

    SECTION = "solver"
    KEYS: ClassVar[dict[str, str]] = {"preset": ""}

    backend: Annotated[
        str | None, _option("--backend", help="Solver, see `accel-oct backends`; highs by default.", panel=_SOLVING)
    ] = None
    preset: Annotated[
        str | None, _option("--preset", help="Preset of techniques; see `accel-oct config`.", panel=_SOLVING)
    ] = None
    gap: Annotated[
        float | None, _option("--gap", help="Relative gap at which to stop; 0 for a full proof.", panel=_SOLVING)
    ] = None
    seed: Annotated[int | None, _option("--seed", help="Breaks ties between equally good trees.", panel=_SOLVING)] = (
        None
    )


@dataclass(frozen=True)
class ValidationOptions(Group):
    """Cross-validation of the penalty and the depth."""

    SECTION = "validation"

    cv: Annotated[
        int | None,
        _option("--cv", metavar="K", help="Select penalty and depth by K-fold cross-validation.", panel=_VALIDATING),
    ] = None
    scoring: Annotated[
        str | None,
        _option("--scoring", help="scikit-learn score on held-out rows.", panel=_VALIDATING),
    ] = None
    rule: Annotated[
        Literal["smooth", "best", "one_standard_error"] | None,
        _option("--cv-rule", help="Best score, or smallest within one standard error.", panel=_VALIDATING),
    ] = None
    n_jobs: Annotated[
        int | None,
        _option("--n-jobs", help="Folds in parallel: 1 by default; -1 for all cores.", panel=_VALIDATING),
    ] = None


#: Groups that a run file can set.
GROUPS: tuple[type[Group], ...] = (
    TableOptions,
    TargetOptions,
    TreeOptions,
    ProbabilityOptions,
    EncoderOptions,
    LimitOptions,
    BackendOptions,
    ValidationOptions,
)


@dataclass(frozen=True)
class ModelFile(Group):
    """File of a fitted model."""

    model: Annotated[str, Argument(metavar="MODEL", help="JSON of `accel-oct fit -o`; - is standard input.")]


@dataclass(frozen=True)
class RunFile(Group):
    """Run file with further options."""

    config: Annotated[
        str | None,
        Option("--config", metavar="RUN.TOML", help="Run file in TOML; options override it.", show_default=False),
    ] = None


@dataclass(frozen=True)
class OutputOptions(Group):
    """Output file."""

    output: Annotated[
        str | None,
        Option("--output", "-o", metavar="FILE", help="Output file; - is standard output.", show_default=False),
    ] = None


@dataclass(frozen=True)
class DisplayOptions(Group):
    """Amount and format of the output."""

    json: Annotated[bool, Option("--json", help="Print one JSON document to standard output.")] = False
    quiet: Annotated[bool, Option("--quiet", "-q", help="Show no progress on standard error.")] = False
    verbose: Annotated[bool, Option("--verbose", "-v", help="Show all figures of the search on standard error.")] = (
        False
    )
    debug: Annotated[bool, Option("--debug", help="Show the traceback of an error.")] = False


@dataclass(frozen=True)
class PredictionOptions(Group):
    """Output of `predict`."""

    proba: Annotated[bool, Option("--proba", help="Add the probability of each class.")] = False
    unweighted: Annotated[
        bool, Option("--unweighted", help="With --proba: probabilities without the class weights of the fit.")
    ] = False
    escape_formulas: Annotated[
        bool, Option("--escape-formulas", help="Put ' before text that a spreadsheet would run as a formula.")
    ] = False


@dataclass(frozen=True)
class ExplanationOptions(Group):
    """Changes that `explain` may propose."""

    fixed: Annotated[
        list[str] | None,
        Option("--fixed", metavar="COLUMN", help="Column that cannot change; repeatable.", show_default=False),
    ] = None
    direction: Annotated[
        list[str] | None,
        Option(
            "--direction",
            metavar="COLUMN=up|down",
            help="Column that can only rise or only fall; repeatable.",
            show_default=False,
        ),
    ] = None
    to: Annotated[
        str | None, Option("--to", metavar="CLASS", help="Class that the changed row must have.", show_default=False)
    ] = None
    escape_formulas: Annotated[
        bool, Option("--escape-formulas", help="Put ' before text that a spreadsheet would run as a formula.")
    ] = False


@dataclass(frozen=True)
class DrawingOptions(Group):
    """Format of `show`."""

    format: Annotated[
        Literal[
            "text", "dot", "svg", "png", "html", "table", "table-csv", "table-html", "python", "sql", "onnx", "pmml"
        ]
        | None,
        Option("--format", "-f", help="Format; by default that of --output, else text.", show_default=False),
    ] = None
    dialect: Annotated[
        Literal["ansi", "postgres", "duckdb", "sqlite", "mysql", "bigquery"] | None,
        Option("--dialect", help="Database of --format sql; by default ansi.", show_default=False),
    ] = None
    missing_text: Annotated[
        str | None,
        Option(
            "--missing-text",
            metavar="TEXT",
            help="Text of a missing cell for --format onnx; by default empty.",
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True)
class NearOptions(Group):
    """Trees that `near-optimal` lists."""

    within: Annotated[float, Option("--within", help="Largest difference to the best objective.")] = 0.01
    limit: Annotated[int, Option("--limit", help="Maximum number of trees.")] = 100
    pick: Annotated[
        int | None,
        Option(
            "--pick", metavar="RANK", help="Write this tree (1 is the best) as a model to --output.", show_default=False
        ),
    ] = None


@dataclass(frozen=True)
class ReportOptions(Group):
    """Content of a report."""

    test: Annotated[str | None, Option("--test", metavar="FILE", help="File with test rows.", show_default=False)] = (
        None
    )
    near_optimal: Annotated[
        float | None,
        Option("--near-optimal", metavar="WITHIN", help="Include near-optimal trees.", show_default=False),
    ] = None
    certificate: Annotated[
        str | None,
        Option("--certificate", metavar="FILE", help="Show this certificate of the tree.", show_default=False),
    ] = None
    title: Annotated[str | None, Option("--title", help="Title of the page.", show_default=False)] = None
    groups: Annotated[
        list[str] | None,
        Option("--groups", metavar="COLUMN", help="Show accuracy by group; repeatable.", show_default=False),
    ] = None
    bootstrap: Annotated[
        int | None,
        Option(
            "--bootstrap", metavar="N", help="Refit on N resampled tables: stability of splits.", show_default=False
        ),
    ] = None
    seed: Annotated[int, Option("--seed", help="Seed of --bootstrap.")] = 0
    time_limit: Annotated[
        float | None,
        Option("--time-limit", metavar="SECONDS", help="Time limit of --bootstrap.", show_default=False),
    ] = None
    card: Annotated[
        str | None, Option("--card", metavar="FILE", help="Write a model card in Markdown.", show_default=False)
    ] = None


@dataclass(frozen=True)
class CertificateOptions(Group):
    """What `certify` writes besides the certificate."""

    table: Annotated[
        str | None,
        Option("--table", metavar="FILE", help="Write the data as the checker reads them, as CSV.", show_default=False),
    ] = None
    time_limit: Annotated[
        float | None, Option("--time-limit", metavar="SECONDS", help="Time limit.", show_default=False)
    ] = None


@dataclass(frozen=True)
class CertificateOutput(Group):
    """Certificate of `fit`."""

    certificate: Annotated[
        str | None,
        Option("--certificate", metavar="FILE", help="Also write a certificate of the proof.", show_default=False),
    ] = None


@dataclass(frozen=True)
class ProofOptions(Group):
    """What `check` checks."""

    proof: Annotated[
        bool, Option("--proof", help="MODEL is a certificate: check it, and nothing else, against a CSV file.")
    ] = False
    time_limit: Annotated[
        float | None,
        Option("--time-limit", metavar="SECONDS", help="Time limit of --proof.", min=0.0, show_default=False),
    ] = None
    memory: Annotated[
        int | None,
        Option(
            "--memory",
            metavar="MB",
            help="Memory limit of --proof, where the system has limits; 4096 by default.",
            min=1,
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True)
class PresetName(Group):
    """Name of a preset."""

    preset: Annotated[str, Argument(metavar="PRESET", help="Such as default, baseline or paper.")] = "default"
