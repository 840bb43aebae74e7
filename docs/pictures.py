"""Draws the pictures of a page by running its code.

`python docs/pictures.py tutorial` writes docs/images/tutorial-1.svg and so on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

DOCS = Path(__file__).parent


def draw(page: str) -> None:
    """One file for each figure that the page's code leaves open, in the order in which they were made."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    code = "\n".join(part.split("```")[0] for part in text.split("```python\n")[1:])
    plt.rcParams["svg.hashsalt"] = page  # the same picture is the same file
    exec(compile(code, page, "exec"), {})
    for number in plt.get_fignums():
        path = DOCS / "images" / f"{Path(page).name}-{number}.svg"
        plt.figure(number).savefig(path, bbox_inches="tight", metadata={"Date": None})
        print(path.relative_to(DOCS))


if __name__ == "__main__":
    for name in sys.argv[1:] or ["tutorial"]:
        draw(name)
