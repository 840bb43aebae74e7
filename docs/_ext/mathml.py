"""Formulas as MathML, made while the site is built: browsers draw it themselves, so no page needs a script or a font.

Docutils has the translator; what it does not know is a warning that names the formula.
"""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def _translated(node: nodes.Element, *, as_block: bool) -> str:
    try:
        return str(tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        logger.warning("%s in the formula %r", error, node.astext(), location=node)
        return f"<code>{html.escape(node.astext())}</code>"


def visit_math(translator: Any, node: nodes.math) -> None:
    """A formula within a line."""
    translator.body.append(_translated(node, as_block=False))
    raise nodes.SkipNode


def visit_math_block(translator: Any, node: nodes.math_block) -> None:
    """A formula by itself; a wide one scrolls."""
    translator.body.append(f'<div class="math-block">{_translated(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
