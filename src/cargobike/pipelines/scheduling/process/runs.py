"""What the scheduler needs to know and to do about runs; the real ones are processes (`run_processes.py`)."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

from cargobike.pipelines.scheduling.policy.state import Firing, Outcome, State

Now = Literal["absent", "running", "over"]


class RunSeen(NamedTuple):
    """How a run does.

    Attributes:
        now: `absent` if it was never begun, as far as can be seen.
        outcome: How it ended, if it is over.
        note: Why.
    """

    now: Now
    outcome: Outcome = ""
    note: str = ""


class Runs(Protocol):
    """Runs of pipelines, each with an id that only one run can have."""

    def look(self, state: State, firing: Firing) -> RunSeen:
        """Return how a run does."""
        ...

    def start(self, state: State, firing: Firing) -> None:
        """Begin a run; if there is one of that id, this begins none.

        Raises:
            CargobikeError: If it cannot be begun; it is not tried again.
        """
        ...

    def cancel(self, firing: Firing) -> None:
        """Ask a run to end; may be asked twice."""
        ...
