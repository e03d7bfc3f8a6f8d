"""How a worker ended: a kind that programs decide by, and words for people."""

from __future__ import annotations

import signal
from enum import StrEnum

import msgspec


class EndKind(StrEnum):
    """Why a worker is not there any more."""

    LEFT = "left"
    """Its process ended in good order."""
    CRASHED = "crashed"
    """Its process exited with an error."""
    KILLED = "killed"
    """A signal ended its process."""
    PLACE_LOST = "place-lost"
    """What it ran in is gone: the host process, the executor, the job."""
    ENDED = "ended"
    """Its engine ended it."""
    NOT_STARTED = "not-started"
    """It could not be started, or found no place."""
    HOPELESS = "hopeless"
    """It could not be started, for a reason that holds for every other one as well."""
    NEVER_CAME = "never-came"
    """It was started and did not connect in time."""
    DISCONNECTED = "disconnected"
    """Its connection closed and did not come back."""
    SILENT = "silent"
    """It is connected, and has said nothing for too long."""
    STUCK = "stuck"
    """It is connected, and has not ended its trial although it was told to."""


class Ending(msgspec.Struct, frozen=True):
    """How a worker ended; as text it is the sentence for people.

    Attributes:
        kind: What programs decide by.
        text: What goes after the name of the worker, such as `was ended by SIGKILL`.
    """

    kind: EndKind
    text: str

    def __str__(self) -> str:
        return self.text


def process_ending(code: int) -> Ending:
    """Return how a process ended, from its exit code; a negative one is the signal that ended it.

    Example:
        >>> str(process_ending(-9))
        'was ended by SIGKILL'
    """
    if code >= 0:
        return Ending(EndKind.CRASHED if code else EndKind.LEFT, f"exited with code {code}")
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return Ending(EndKind.KILLED, f"was ended by {name}")
