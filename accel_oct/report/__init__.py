"""A report on a fitted tree: one HTML file that needs nothing else, see ``docs/report.md``.

Each section is a small module that turns values into markup; `page` puts them together. Style and script are files of
their own (``report.css``, ``report.js``), since they are languages of their own with readers and tools of their own.
There is no template language: it would be a dependency, and markup that is built by `markup.element` cannot forget to
escape a name.
"""

from accel_oct.report.page import html_report, write_report

__all__ = ["html_report", "write_report"]
