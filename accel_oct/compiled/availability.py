"""Whether compiled code can be used at all."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)


def can_be_used(load: Callable[[], object]) -> bool:
    """Whether numba is installed, may compile, and `load` imports some kernels; loads numba."""
    if importlib.util.find_spec("numba") is None:
        return False
    try:
        import numba  # optional, and half a second to load

        if numba.config.DISABLE_JIT:
            logger.warning("NUMBA_DISABLE_JIT is set: the NumPy reference is used, same results, slower")
            return False
        load()
    except Exception as error:  # an installation that does not fit together may raise anything
        logger.warning(
            "numba is installed but cannot be used, so the NumPy reference is, same results, slower: %s: %s",
            type(error).__name__,
            error,
        )
        return False
    return True
