"""What the scheduler needs to know about an experiment before it starts."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import Trial


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler's instructions.

    Attributes:
        workers: How many workers to keep.
        gang: How many of them run one trial together, at most.
        least_gang: The smallest number of them that may run an elastic gang; `None` if gangs are not elastic.
        elastic_wait_s: How long such a gang waits for workers that are on their way.
        servers: How many parameter servers each gang has besides.
        roles: The role of each member of a gang, if they are not all `worker`.
        is_distributed: Whether ranks meet before the function is called; always so in gangs of more than one.
        stall_timeout_s: How long a rank may keep the others waiting, `None` for as long as it likes.
        num_trials: How many new trials to accept from the optimizer, `None` for as many as it suggests.
        seed: Seed of the experiment, from which each trial's own follows.
        ask_ahead: How many suggestions to keep ready beyond the free workers, so that these need not wait for them.
        ahead: How many trials a worker may be given before it needs them, where suggestions do not depend on results.
        deterministic: Whether what the optimizer sees must not depend on timing.
        every_report_is_milestone: Whether each report waits for a decision.
        max_attempts: How many attempts of a trial may be lost, since its start or its last pause, before it fails; a
            gang counts anew when it has saved progress.
        max_failures: How many failed trials are too many, `None` for no limit.
        fail_fast: How many first trials failing alike end the experiment at once.
        trial_timeout_s: How long one attempt may take.
        timeout_s: How long the whole experiment may take.
        reason_to_end: Called with each trial that ended or paused; returns why the search may end now, if it may.
        max_worker_losses: How many workers may be lost in a row while they have no trial, without any attempt ending in
            between. Once a worker has come, at least as many as there are workers: one dying machine may take them all.
    """

    workers: int
    gang: int = 1
    least_gang: int | None = None
    elastic_wait_s: float = 5.0
    servers: int = 0
    roles: tuple[str, ...] = ()
    is_distributed: bool = False
    stall_timeout_s: float | None = None
    num_trials: int | None = None
    seed: int = 0
    ask_ahead: int = 1
    ahead: int = 0
    deterministic: bool = False
    every_report_is_milestone: bool = False
    max_attempts: int = 3
    max_failures: int | None = None
    fail_fast: int = 3
    trial_timeout_s: float | None = None
    timeout_s: float | None = None
    reason_to_end: Callable[[Trial], str | None] | None = None
    max_worker_losses: int = 6

    def __post_init__(self) -> None:
        if self.gang > self.workers:
            raise InvalidInputError(
                f"gang={self.gang} workers run one trial together, but there are only workers={self.workers}; "
                "ask for more workers or a smaller gang."
            )

    @property
    def meets(self) -> bool:
        """Whether the ranks of a gang meet before the function is called."""
        return self.is_distributed or self.gang > 1

    @property
    def most_gangs(self) -> int:
        """How many trials can run at once."""
        return max(1, self.workers // self.gang)

    @property
    def deciding(self) -> int | None:
        """How many members of a gang must return for the trial to be complete; `None` for all that train.

        Where TensorFlow has parameter servers, its workers are servers too: only the chief ever returns.
        """
        return 1 if "ps" in self.roles else None

    @property
    def horizon(self) -> int:
        """How far suggestions may run ahead of what the optimizer has seen in a deterministic search.

        Twice the number of gangs: with less, one slow trial would keep all other workers waiting.
        """
        return 2 * self.most_gangs
