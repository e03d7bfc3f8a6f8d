"""Deadlines as Horovod's users give them: as an argument, or in a variable."""

from __future__ import annotations

import os


def read_seconds(given: float | None, variable: str, default: float) -> float:
    """Return how many seconds were given, or what a variable says, or the default if that is no number."""
    if given is not None:
        return float(given)
    try:
        return float(os.environ[variable])
    except (KeyError, ValueError):
        return default
