"""``accel-oct show``: print a tree as text, picture or code."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from accel_oct.cli.codes import Code
from accel_oct.cli.commands.models import read_model
from accel_oct.cli.commands.output import check_output, emit, writing
from accel_oct.cli.options import DisplayOptions, DrawingOptions, ModelFile, OutputOptions
from accel_oct.errors import InvalidInputError
from accel_oct.export import to_dot, to_html, to_python, to_sql, to_text

_TEXTS: dict[str, Callable[[Any], str]] = {
    "text": to_text,
    "dot": to_dot,
    "html": to_html,
    "python": to_python,
    "sql": to_sql,
}
_ENDINGS = {
    ".txt": "text",
    ".dot": "dot",
    ".gv": "dot",
    ".svg": "svg",
    ".png": "png",
    ".html": "html",
    ".py": "python",
    ".sql": "sql",
}


def show(file: ModelFile, drawing: DrawingOptions, output: OutputOptions, display: DisplayOptions) -> int:
    """Write the tree in the given format, or in that of the file extension."""
    check_output(output, display)
    target = output.output
    ending = next((name for end, name in _ENDINGS.items() if target and target.lower().endswith(end)), "text")
    form = drawing.format or ending
    if form == "png" and target is None:
        raise InvalidInputError("--format png needs --output")
    model = read_model(file).model
    content = _picture(model, form) if form in ("svg", "png") else _TEXTS[form](model).rstrip("\n") + "\n"
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


def _picture(model: Any, form: str) -> str | bytes:
    from accel_oct.plotting import plot_tree  # matplotlib is optional

    drawn = io.BytesIO()
    plot_tree(model).figure.savefig(drawn, format=form, dpi=150)
    return drawn.getvalue().decode("utf-8") if form == "svg" else drawn.getvalue()
