"""What the scheduler needs to know about an experiment before it starts."""

from __future__ import annotations

import msgspec


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler's instructions.

    Attributes:
        workers: How many workers to keep.
        gang: How many of them run one trial together.
        num_trials: How many new trials to accept from the optimizer, `None` for as many as it has.
        seed: Seed of the experiment, from which each trial's own follows.
        ask_ahead: How many suggestions to keep ready beyond the free workers, so that none waits for the optimizer.
        deterministic: Whether what the optimizer sees may depend on nothing but trial numbers.
        every_report_is_milestone: Whether each report waits for a decision.
        max_attempts: How often a trial may be started before a lost worker counts as its failure.
        max_failures: How many failed trials are too many, `None` for no limit.
        fail_fast: How many first trials failing alike end the experiment at once.
        trial_timeout_s: How long one attempt may take.
        timeout_s: How long the whole experiment may take.
        max_worker_losses: How many workers may be lost in a row, without any attempt ending in between.
    """

    workers: int
    gang: int = 1
    num_trials: int | None = None
    seed: int = 0
    ask_ahead: int = 1
    deterministic: bool = False
    every_report_is_milestone: bool = False
    max_attempts: int = 3
    max_failures: int | None = None
    fail_fast: int = 3
    trial_timeout_s: float | None = None
    timeout_s: float | None = None
    max_worker_losses: int = 6

    @property
    def horizon(self) -> int:
        """How far suggestions may run ahead of what the optimizer has seen in a deterministic search.

        Twice the number of gangs: with less, one slow trial would keep all other workers waiting.
        """
        return 2 * max(1, self.workers // self.gang)
