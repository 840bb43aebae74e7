"""The report as one HTML file."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from accel_oct._version import __version__
from accel_oct.errors import InvalidInputError, shown
from accel_oct.export.palette import class_hue
from accel_oct.export.view import TreeView, view
from accel_oct.reasons.stability import Stability
from accel_oct.report.alternatives import alternatives_section, listed_alternatives
from accel_oct.report.certificate import certificate_section
from accel_oct.report.explained import explanation_data
from accel_oct.report.groups import groups_section
from accel_oct.report.markup import Content, Markup, element, joined, percent, readable, script_data, terms
from accel_oct.report.performance import Confusion, confusion, performance_section
from accel_oct.report.probabilities import probabilities_section
from accel_oct.report.proof import constraints_section, gap_of, proof_section, verdict
from accel_oct.report.provenance import provenance_section, same_counts
from accel_oct.report.row_form import column_data, condition_data, row_section
from accel_oct.report.scores import GroupScore, group_scores, scores_on
from accel_oct.report.stability import stability_section
from accel_oct.report.tree import node_data, tree_section
from accel_oct.support.files import as_path, replacing

_TITLE = "Optimal decision tree"


def html_report(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    test: tuple[Any, Any] | None = None,
    near_optimal: Any = None,
    certificate: str | Path | None = None,
    groups: Any = None,
    stability: Stability | None = None,
    title: str | None = None,
) -> str:
    """Return a report on a fitted tree as the text of a self-contained HTML file.

    Parameters
    ----------
    model : fitted OptimalTreeClassifier or OptimalTreeClassifierCV
        For a model read from JSON, the report states what the file does not hold.
    X : data frame or array-like (n_samples, n_features)
        The training table.
    y : array-like (n_samples,)
    sample_weight : array-like (n_samples,), optional
    test : pair (X, y), optional
        Held-out rows, for a second confusion matrix.
    near_optimal : float or NearOptimalTrees, optional
        Show other trees whose objective is lower by at most this: 0.01 is one percentage point of accuracy. Or the
        result of ``model.near_optimal``, which takes the columns that constraints need. The section on stability then
        also has the range of importance over these trees.
    certificate : str or Path, optional
        A certificate of the tree: see ``docs/certificates.md``. The report states its claim, its fingerprint and how to
        check it. A certificate that is not about this tree, problem and table is refused.
    groups : list of str, or pair of mappings, optional
        Show the accuracy by group: columns of X; or the groups of the training rows and of the test rows (or None),
        each a mapping from names to arrays.
    stability : Stability, optional
        Result of ``model.stability``, which refits the tree on bootstrap samples.
    title : str, optional

    Returns
    -------
    str
        The same model and data give the same text. It contains no row of the tables: see ``docs/report.md``.
    """
    check_is_fitted(model, "tree_")
    if title is not None and not isinstance(title, str):
        raise InvalidInputError(f"title must be text, got {shown(title)}")
    if test is not None and (not isinstance(test, tuple | list) or len(test) != 2):
        raise InvalidInputError(f"test must be a pair (X, y), got {shown(test)}")
    pair = None if test is None else (test[0], test[1])
    tree = readable(view(model))
    training = confusion(model, X, y, sample_weight)
    held_out = None if pair is None else confusion(model, pair[0], pair[1], what="the y of test")
    if stability is not None and not isinstance(stability, Stability):
        raise InvalidInputError(f"stability must be the result of model.stability or None, got {shown(stability)}")
    grouped = _grouped(model, (X, y), pair, groups)
    trees = listed_alternatives(model, X, y, sample_weight, near_optimal)
    sections = [
        tree_section(tree),
        row_section(model, tree),
        proof_section(model, tree),
        certificate_section(model, X, y, sample_weight, certificate),
        performance_section(training, held_out),
        probabilities_section(
            model, scores_on(model, X, y), None if pair is None else scores_on(model, *pair, what="the y of test")
        ),
        groups_section(*grouped),
        constraints_section(model),
        stability_section(stability, trees),
        alternatives_section(model, trees),
        provenance_section(model, X, y, sample_weight, pair),
    ]
    heading = _TITLE if title is None else title
    header = _header(model, heading, training, held_out, same_counts(model, X, sample_weight))
    return _page(
        heading, [header, _navigation(sections), element("main", sections, id="main")], _data(model, tree), tree
    )


def write_report(model: Any, path: str | Path, X: Any, y: Any, **options: Any) -> Path:
    """Write `html_report` to a file and return its path.

    The file is replaced as a whole: if something fails, its previous content is kept.

    Parameters
    ----------
    path : path
    model, X, y, options
        Arguments of `html_report`.
    """
    target = as_path(path)
    text = html_report(model, X, y, **options)
    with replacing(target) as file:
        file.write(text)
    return target


def _grouped(
    model: Any, training: tuple[Any, Any], test: tuple[Any, Any] | None, groups: Any
) -> tuple[list[GroupScore] | None, list[GroupScore] | None]:
    """Return the accuracy by group on the training rows and on the test rows."""
    if groups is None:
        return None, None
    own, other = groups if isinstance(groups, tuple) and len(groups) == 2 else (groups, groups)
    held_out = None if test is None or other is None else group_scores(model, *test, other, what="the y of test")
    return group_scores(model, *training, own), held_out


def _header(model: Any, heading: str, training: Confusion, test: Confusion | None, same: bool) -> Markup:
    figures: list[tuple[str, Content]] = [("correct on training data", percent(training.accuracy))]
    if test is not None:
        figures.append(("correct on test data", percent(test.accuracy)))
    n_leaves, depth = model.get_n_leaves(), model.get_depth()
    figures += [("leaf" if n_leaves == 1 else "leaves", f"{n_leaves}"), ("depth", f"{depth}")]
    figures.append(("gap", gap_of(model)))
    warning = None
    if not same:
        warning = element(
            "p",
            "The data given for this report are not the training data of the tree: the numbers of rows at its nodes "
            "differ. The tree shows the counts of the training data.",
            class_="warning",
        )
    return element(
        "header",
        element(
            "div",
            element("h1", heading, dir="auto"),
            element("button", "Dark or light", type="button", id="theme", class_="screen"),
        ),
        element("p", verdict(model), class_="lead " + ("proven" if model.status_ == "optimal" else "open")),
        warning,
        terms(figures, "cards"),
    )


def _navigation(sections: list[Markup | None]) -> Markup:
    titles = {
        "tree": "Tree",
        "row": "Try a row",
        "proof": "Proof",
        "certificate": "Certificate",
        "performance": "Accuracy",
        "probabilities": "Probabilities",
        "groups": "Groups",
        "constraints": "Constraints",
        "stability": "Stability",
        "alternatives": "Other trees",
        "provenance": "Data and settings",
    }
    present = [name for name, section in zip(titles, sections, strict=True) if section is not None]
    links = [element("li", element("a", titles[name], href=f"#{name}-section")) for name in present]
    return element("nav", element("ul", links), aria_label="Sections", class_="screen")


def _data(model: Any, tree: TreeView) -> Markup:
    nodes = [
        {**data, "condition": condition_data(node.condition)}
        for data, node in zip(node_data(tree), tree.nodes, strict=True)
    ]
    return script_data(
        "data",
        {
            "nodes": nodes,
            "classes": list(tree.class_names),
            "columns": column_data(model, tree),
            "weighted": tree.weighted,
            "explanations": explanation_data(model),
        },
    )


def _page(title: str, body: Content, data: Markup, tree: TreeView) -> str:
    style = _resource("report.css") + _class_colours(len(tree.class_names))
    script = _resource("report.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="generator", content=f"accel_oct {__version__}"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Markup(style)),
    )
    foot = element(
        "footer", element("p", f"Made with accel_oct {__version__}. This file loads nothing and sends nothing.")
    )
    skip = element("a", "To the content", href="#main", class_="skip")
    whole = element("body", skip, body, foot, data, element("script", Markup(script)))
    return joined([Markup("<!doctype html>\n"), element("html", head, whole, lang="en")]) + "\n"


def _resource(name: str) -> str:
    return (resources.files("accel_oct.report") / name).read_text(encoding="utf-8")


def _class_colours(n_classes: int) -> str:
    return "".join(f".k{label}{{fill:{class_hue(label)}}}\n" for label in range(n_classes))


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
