"""Why requests are not answered, in words for people and one word for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cargobike.serving.wire import Failed

GoneBecause = Literal["closed", "hung", "wrong"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request was not answered.

    Attributes:
        status: As HTTP says it.
        kind: One word for programs.
        message: What happened and what to do, for people.
        retry_after_s: When to try again; 0 if that does not help.
        closes: Whether the connection is closed: what the caller still sends is not read.
        mistakes: What is wrong with the rows, one by one.
    """

    status: int
    kind: str
    message: str
    retry_after_s: float = 0.0
    closes: bool = False
    mistakes: tuple[str, ...] = ()


class Refused(Exception):  # noqa: N818 - no error of ours: it is answered
    """Ends the handling of a request."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def no_replica() -> Problem:
    """Return that there is no replica, and none is on its way."""
    return Problem(503, "no-replica", "No replica of the model is running. Try again later.", 2.0)


def lost(why: GoneBecause, losses: int) -> Problem:
    """Return that a request was lost with its replica."""
    words = {
        "closed": "ended while it worked on this request",
        "hung": "did not answer in time and was given up",
        "wrong": "answered nonsense and was given up",
    }[why]
    again = " It was tried at two replicas." if losses > 1 else ""
    return Problem(502, "replica-lost", f"The replica {words}.{again}")


def at_fault(failure: Failed, place: int) -> Problem:
    """Return that a row of a request is at fault."""
    status, kind = (422, "wrong-row") if failure.is_input else (500, "model-failed")
    who = "" if failure.is_input else f"The model raised {failure.error}: "
    return Problem(status, kind, f"row {place}: {who}{failure.message}")


def too_late(waited_s: float, *, is_waiting: bool) -> Problem:
    """Return that a request was not answered by its deadline."""
    place = "in the queue" if is_waiting else "at a replica"
    return Problem(504, "deadline", f"No answer within {waited_s:.1f} s ({place}).")
