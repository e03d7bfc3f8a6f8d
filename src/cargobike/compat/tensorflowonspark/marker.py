"""Marks among the items of a queue. Rows travel in chunks here, and these are never seen; the names remain."""

from __future__ import annotations

__all__ = ["EndPartition", "Marker"]


class Marker:
    """Anything in a queue that is no row."""


class EndPartition(Marker):
    """The end of a partition."""
