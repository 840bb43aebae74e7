"""``accel-oct show``: print a tree as text, table, picture or code, or write it for other programs."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from accel_oct.cli.codes import Code
from accel_oct.cli.commands.models import read_model
from accel_oct.cli.commands.output import check_output, emit, writing
from accel_oct.cli.options import DisplayOptions, DrawingOptions, ModelFile, OutputOptions
from accel_oct.errors import InvalidInputError
from accel_oct.export import to_dot, to_html, to_onnx, to_pmml, to_python, to_sql, to_table, to_text

_TEXTS: dict[str, Callable[[Any], str]] = {
    "text": to_text,
    "dot": to_dot,
    "html": to_html,
    "table": lambda model: to_table(model).to_text(),
    "table-csv": lambda model: to_table(model).to_csv(),
    "table-html": lambda model: to_table(model).to_html(),
    "python": to_python,
    "pmml": to_pmml,
}
_BINARY = ("png", "onnx")
_ENDINGS = {
    ".txt": "text",
    ".dot": "dot",
    ".gv": "dot",
    ".svg": "svg",
    ".png": "png",
    ".html": "html",
    ".py": "python",
    ".sql": "sql",
    ".onnx": "onnx",
    ".pmml": "pmml",
    ".csv": "table-csv",
}


def show(file: ModelFile, drawing: DrawingOptions, output: OutputOptions, display: DisplayOptions) -> int:
    """Write the tree in the given format, or in that of the file extension."""
    check_output(output, display)
    target = output.output
    ending = next((name for end, name in _ENDINGS.items() if target and target.lower().endswith(end)), "text")
    form = drawing.format or ending
    if form in _BINARY and target is None:
        raise InvalidInputError(f"--format {form} needs --output")
    for option, value, only in (
        ("--dialect", drawing.dialect, "sql"),
        ("--missing-text", drawing.missing_text, "onnx"),
    ):
        if value is not None and form != only:
            raise InvalidInputError(f"{option} belongs to --format {only}, not to {form}")
    content = _content(read_model(file).model, form, drawing)
    if target is not None or not display.json:
        with writing(target, binary=isinstance(content, bytes)) as written:
            written.write(content)
    return emit(
        display,
        "show",
        Code.DONE,
        format=form,
        content=None if isinstance(content, bytes) else content,
        output=target,
    )


def _content(model: Any, form: str, drawing: DrawingOptions) -> str | bytes:
    if form in ("svg", "png"):
        return _picture(model, form)
    if form == "onnx":
        return to_onnx(model, missing_text=drawing.missing_text or "")
    text = to_sql(model, dialect=drawing.dialect or "ansi") if form == "sql" else _TEXTS[form](model)
    return text.rstrip("\n") + "\n"


def _picture(model: Any, form: str) -> str | bytes:
    from accel_oct.plotting import plot_tree  # matplotlib is optional

    drawn = io.BytesIO()
    plot_tree(model).figure.savefig(drawn, format=form, dpi=150)
    return drawn.getvalue().decode("utf-8") if form == "svg" else drawn.getvalue()
