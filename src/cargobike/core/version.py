"""The version of this package, where every room can read it."""

from __future__ import annotations

import sys

__version__ = "0.1.0"


def version_line() -> str:
    """Return the versions that a report of a problem should name."""
    return f"cargobike {__version__} (Python {sys.version.partition(' ')[0]})"
