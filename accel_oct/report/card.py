"""A model card: the facts about a fitted tree and its data as Markdown, for a repository or a review."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from accel_oct._version import __version__
from accel_oct.encoding.tables import Table, table_fingerprint
from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.text import to_text
from accel_oct.reasons.leaves import leaf_table
from accel_oct.reasons.stability import Stability
from accel_oct.report.markup import count, decimals, percent
from accel_oct.report.proof import gap_of, verdict
from accel_oct.report.provenance import same_counts, settings_of
from accel_oct.report.scores import GroupScore, Scores, group_scores, scores_on
from accel_oct.support.files import as_path, replacing

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$])")
#: In cells without a value.
_NONE = "none"
_BREAKS = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")


def model_card(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    test: tuple[Any, Any] | None = None,
    groups: Any = None,
    stability: Stability | None = None,
    title: str | None = None,
) -> str:
    """Return a model card of a fitted tree as Markdown.

    Parameters
    ----------
    model, X, y, sample_weight, test, groups, title
        As in `html_report`.
    stability : Stability, optional
        Result of ``model.stability``.

    Returns
    -------
    str
        Sections on purpose (to be written by the owner), tree, proof, data, accuracy, probabilities, groups,
        constraints, stability and settings. The same model and data give the same text.
    """
    check_is_fitted(model, "tree_")
    if stability is not None and not isinstance(stability, Stability):
        raise InvalidInputError(f"stability must be the result of model.stability or None, got {shown(stability)}")
    training = scores_on(model, X, y)
    held_out = None if test is None else scores_on(model, test[0], test[1], "the y of test")
    lines = [f"# {_escaped(title or 'Optimal decision tree')}", "", _escaped(verdict(model)), ""]
    lines += [
        "## Intended use",
        "",
        "To be written by the owner: the decision that the model supports, who is affected, where it must not be used.",
        "",
    ]
    lines += ["## Tree", "", *_code(to_text(model, show_counts=False)), ""]
    lines += _proof(model)
    lines += _data(model, X, y, sample_weight, test)
    lines += _accuracy(training, held_out)
    lines += _leaves(model, training, held_out)
    if groups is not None:
        rows, where = (test, "test") if test is not None else ((X, y), "training")
        lines += _groups(group_scores(model, rows[0], rows[1], groups), where)
    lines += _constraints(model)
    if stability is not None:
        lines += _stability(stability)
    lines += ["## Settings", "", *_table(("setting", "value"), settings_of(model)), ""]
    lines.append(f"Made with accel_oct {__version__}.")
    return "\n".join(lines) + "\n"


def write_card(model: Any, path: str | Path, X: Any, y: Any, **options: Any) -> Path:
    """Write `model_card` to a file, which is replaced as a whole, and return its path.

    Parameters
    ----------
    path : path
    model, X, y, options
        Arguments of `model_card`.
    """
    target = as_path(path)
    text = model_card(model, X, y, **options)
    with replacing(target) as file:
        file.write(text)
    return target


def _proof(model: Any) -> list[str]:
    figures = [
        ("objective on training data", decimals(model.objective_)),
        ("upper bound of all trees", decimals(model.bound_)),
        ("gap", gap_of(model)),
        ("scope", model.proof_),
    ]
    return ["## Proof", "", *_table(("figure", "value"), figures), ""]


def _data(model: Any, X: Any, y: Any, weight: Any, test: tuple[Any, Any] | None) -> list[str]:
    table = Table.read(X)
    rows = [("training", len(table), len(table.columns), table_fingerprint(table, y, weight))]
    if test is not None:
        held_out = Table.read(test[0])
        rows.append(("test", len(held_out), len(held_out.columns), table_fingerprint(held_out, test[1])))
    lines = ["## Data", "", *_table(("table", "rows", "columns", "fingerprint (SHA-256)"), rows), ""]
    if not same_counts(model, X, weight):
        lines += [
            "The training table given here is not the one of the tree: the numbers of rows at its nodes differ.",
            "",
        ]
    return lines


def _accuracy(training: Scores, test: Scores | None) -> list[str]:
    rows = []
    for name, found in (("training", training), ("test", test)):
        if found is not None:
            low, high = found.interval
            interval = (
                f"{percent(low)} to {percent(high)}" if name == "test" else "not valid: the tree was chosen on them"
            )
            scores = [_NONE if value is None else f"{value:.4f}" for value in (found.log_loss, found.brier)]
            rows.append((name, found.n_rows, percent(found.accuracy), interval, *scores))
    head = ("rows", "number", "correct", "95 % interval", "log-loss", "Brier score")
    return ["## Accuracy and probabilities", "", *_table(head, rows), ""]


def _leaves(model: Any, training: Scores, test: Scores | None) -> list[str]:
    where = "training" if test is None else "test"
    leaves = leaf_table(model, (training if test is None else test).counts)
    rows = [
        (
            str(leaf.prediction) + (" (not the majority class)" if leaf.against_majority else ""),
            f"{leaf.probability:.3f}",
            f"{leaf.n_right} of {leaf.n_rows}",
            f"{leaf.low:.3f} to {leaf.high:.3f}",
            " and ".join(leaf.rule) or "every row",
        )
        for leaf in leaves
    ]
    head = ("class", "probability", f"right ({where})", "exact 95 % interval", "rule")
    smoothing = f"Amount of smoothing: {model.smoothing_:.3g}."
    return ["## Leaves", "", smoothing, "", *_table(head, rows), ""]


def _groups(scores: Sequence[GroupScore], where: str) -> list[str]:
    rows = [
        (f"{s.column} = {s.value}", s.n_rows, percent(s.accuracy), f"{percent(s.low)} to {percent(s.high)}")
        for s in scores
    ]
    return [
        f"## Accuracy by group ({where} rows)",
        "",
        *_table(("group", "rows", "correct", "exact 95 % interval"), rows),
        "",
    ]


def _constraints(model: Any) -> list[str]:
    rows = [
        (report.name, *(_NONE if v is None else decimals(v) for v in (report.lower, report.upper, report.value)))
        for report in model.constraints_
    ]
    if not rows:
        return ["## Constraints", "", "None.", ""]
    return ["## Constraints", "", *_table(("constraint", "at least", "at most", "training value"), rows), ""]


def _stability(found: Stability) -> list[str]:
    words = (
        f"{count(found.n_trees, 'tree')} fitted to bootstrap samples (seed {found.seed}); they give on average "
        f"{percent(found.agreement)} of the training rows the class of this tree."
    )
    splits = [(s.question, percent(s.share), percent(s.column_share), s.near) for s in found.splits]
    head = ("split", "comes back", "column used", "counted as the same")
    return ["## Stability", "", words, "", *_table(head, splits), ""]


# ---------------------------------------------------------------- Markdown


def _escaped(value: Any) -> str:
    """Return text in one line, without effect as Markdown or HTML."""
    return _SPECIAL.sub(r"\\\1", _BREAKS.sub(" ", str(value)))


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [
        f"| {' | '.join(str(cell) if place == 1 else _escaped(cell) for cell in cells)} |"
        for place, cells in enumerate(lines)
    ]


def _code(text: str) -> list[str]:
    """Return a block of code whose fence is longer than any in the text."""
    longest = max((len(found) for found in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *_BREAKS.sub("\n", text).rstrip().splitlines(), fence]
