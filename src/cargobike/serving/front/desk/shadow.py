"""Copies of requests for a version whose answers are compared and not served."""

from __future__ import annotations

import math
from typing import Any

from cargobike.serving.front.desk.tickets import Ticket


def shadow_of(ticket: Ticket, version: int) -> Ticket:
    """Return a copy of a request for another version; the two know each other until both are answered."""
    copy = Ticket(
        ticket.rows, client="\0shadow", arrived_s=ticket.arrived_s, deadline_s=ticket.deadline_s, pinned=version
    )
    ticket.twin, copy.twin, copy.is_shadow = copy, ticket, True
    return copy


def has_differed(ticket: Ticket, twin: Ticket) -> bool:
    """Part two requests that have ended, and tell whether both were answered, and not alike."""
    ticket.twin = twin.twin = None
    return ticket.status == twin.status == 200 and not same_answers(ticket.answers, twin.answers)


def same_answers(left: Any, right: Any) -> bool:
    """Tell whether two answers mean the same: numbers may differ in the seventh digit, as those of two builds do."""
    if isinstance(left, bool) or isinstance(right, bool) or left is None or right is None:
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return math.isclose(left, right, rel_tol=1e-6, abs_tol=1e-9) or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_answers, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_answers(left[key], right[key]) for key in left)
    return bool(left == right)
