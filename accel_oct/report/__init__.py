"""Reports on fitted trees: one self-contained HTML file, see ``docs/report.md``.

Modules build the sections as markup, `page` joins them with ``report.css`` and ``report.js``. Markup is built by
`markup.element`, which escapes all text, instead of a template language.
"""

from accel_oct.report.card import model_card, write_card
from accel_oct.report.page import html_report, write_report

__all__ = ["html_report", "model_card", "write_card", "write_report"]
