"""Who is let into a queue that fills up: a busy client cannot keep the others out."""

from __future__ import annotations

from typing import Final

from cargobike.serving.front.desk.problems import Problem

OPEN_SHARE: Final = 0.75
"""The part of the queue that is open to all; the rest is for clients that have less than their share in it."""


def why_full(rows: int, limit: int, *, waiting: int, own: int, clients: int) -> Problem | None:
    """Say why rows do not fit into the queue; `None` if they do.

    Args:
        rows: How many come.
        limit: How many may wait.
        waiting: How many wait already.
        own: How many of them are of this client.
        clients: How many clients there are in the queue, with this one.
    """
    if rows > limit:
        return Problem(413, "too-many-rows", f"{rows} rows were sent; at most {limit} fit at once. Send fewer.")
    total = waiting + rows
    if total <= limit * OPEN_SHARE or not waiting:
        return None
    if total <= limit and own + rows <= limit // (clients + 1):
        return None
    return Problem(429, "queue-full", f"{waiting} rows are waiting, {limit} may. Try again later.", 1.0)
