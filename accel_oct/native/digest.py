"""Digest of the kernel sources: ``hatch_build.py`` compiles it in, `library` compares it."""

from __future__ import annotations

import hashlib
from pathlib import Path


def source_digest(folder: Path) -> str:
    """Return the digest of the names and contents of all sources in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.[ch]pp")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
