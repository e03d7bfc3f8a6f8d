"""What came of an attempt: one rule after the other, the first that applies decides.

Causes come before what follows from them. A verdict comes before a loss, because workers that are made to end look
lost. A lost worker comes before a failure: when one member of a gang dies, the others fail because it is missing. That
a rank missed another one says only that the cause is elsewhere, and comes after all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec

from cargobike.core.facts import Number, TrialEnded, pack_number, pack_numbers
from cargobike.experiments.scheduling.attempt import Attempt
from cargobike.experiments.scheduling.blame import Stand, all_wait, blame, describe
from cargobike.experiments.scheduling.events import AttemptEnded


class Conclusion(msgspec.Struct, frozen=True):
    """What came of an attempt, the worker's end that it rests on, and why."""

    state: Literal["completed", "stopped", "interrupted", "paused", "failed", "lost"]
    end: AttemptEnded | None
    why: str | None
    values: list[Number | dict[str, Number] | None] = []

    @property
    def failed_worker(self) -> str:
        """The worker whose error made it fail; empty if it did not fail, or not because of a single worker."""
        has_failed = self.state == "failed" and self.end is not None and self.end.outcome == "failed"
        return self.end.worker if has_failed and self.end is not None else ""

    @property
    def final_state(self) -> Literal["completed", "stopped", "failed"]:
        """The final state of its trial; only for a conclusion that ends the trial."""
        assert self.state not in ("paused", "interrupted", "lost")
        return self.state  # type: ignore[return-value] # the assertion has just made sure of it

    def as_fact(self, trial: int, at: float) -> TrialEnded:
        """Return what is recorded about the end of its trial."""
        end = self.end
        result = end if self.state == "completed" else None
        value = result.value if result is not None else None
        return TrialEnded(
            at=at,
            trial=trial,
            state=self.final_state,
            value=None if value is None else pack_number(value),
            metrics=pack_numbers(result.metrics) if result is not None else {},
            error=self.why,
            peak_memory_bytes=end.peak_memory_bytes if end is not None else None,
            values=self.values,
            worker=self.failed_worker,
            extras=result.extras if result is not None else {},
        )


def conclude(attempt: Attempt) -> Conclusion:
    """Say what came of an attempt, once all of its workers are done with it."""
    for rule in RULES:
        conclusion = rule(attempt)
        if conclusion is not None:
            return conclusion
    raise AssertionError(f"no rule applies to {attempt}")


def _returned(attempt: Attempt) -> Conclusion | None:
    """Rank 0 returned a value, and nothing is wrong with the others; only a stop at a milestone overrules that."""
    if not attempt.is_complete or attempt.was_judged or attempt.lost is not None or attempt.stall is not None:
        return None
    return Conclusion("completed", _first(attempt), None, _values(attempt) if attempt.hosts else [])


def _decided(attempt: Attempt) -> Conclusion | None:
    """It was stopped, interrupted, paused or timed out, and ended for that; a rank that failed cannot have paused."""
    if attempt.verdict is None or (attempt.verdict[0] == "paused" and _failed_end(attempt) is not None):
        return None
    # A timeout is a failure by decision: what the function said when it was ended is added to it.
    state, why = attempt.verdict
    first = _first(attempt)
    own_error = first.error if state == "failed" and first is not None else None
    return Conclusion(state, first, "\n".join(filter(None, (why, own_error))) or None)


def _lost_a_worker(attempt: Attempt) -> Conclusion | None:
    """A worker is gone, or the gang is formed again."""
    return None if attempt.lost is None else Conclusion("lost", _first(attempt), attempt.lost)


def _stalled(attempt: Attempt) -> Conclusion | None:
    """It stood still for too long, and its ranks were asked for their stacks."""
    if attempt.stall is None:
        return None
    stands = _stands(attempt, *attempt.early)
    if attempt.early and all_wait(stands):
        return Conclusion("failed", _first(attempt), f"{_left_early(attempt, attempt.early)}\n{describe(stands)}")
    return Conclusion("lost", _first(attempt), blame(attempt.stall, stands or _stands(attempt)))


def _lost_a_process(attempt: Attempt) -> Conclusion | None:
    """The process of a rank died, while its worker lives."""
    dead = next((end for end in attempt.ends.values() if end.outcome == "lost" and not end.is_symptom), None)
    return None if dead is None else Conclusion("lost", _first(attempt), _words_of(attempt, dead))


def _failed(attempt: Attempt) -> Conclusion | None:
    """A rank raised an error of its own."""
    failed = _failed_end(attempt)
    return None if failed is None else Conclusion("failed", failed, _words_of(attempt, failed))


def _missed_another(attempt: Attempt) -> Conclusion | None:
    """A rank waited in vain for another one, which has returned or was doing something else."""
    symptom = next((end for end in attempt.ends.values() if end.is_symptom), None)
    if symptom is None:
        return None
    # A rank that has returned will never come: trying again would end alike. Otherwise the next attempt may work.
    words = _words_of(attempt, symptom)
    early = [worker for worker, end in attempt.ends.items() if end.outcome == "completed"]
    if early:
        return Conclusion("failed", symptom, f"{_left_early(attempt, early)}\n{words}")
    return Conclusion("lost", symptom, "\n".join(filter(None, (words, describe(_stands(attempt, symptom.worker))))))


def _left_early(attempt: Attempt, early: Sequence[str]) -> str:
    names = ", ".join(map(attempt.name_of, early))
    return (
        f"{names} returned while others were still waiting for it; every rank must take part in the same "
        "collective operations."
    )


def _ended_itself(attempt: Attempt) -> Conclusion | None:
    """The function ended itself as stopped or paused, although no decision asked for that."""
    end = next((end for end in attempt.ends.values() if end.outcome in ("stopped", "paused")), None)
    return None if end is None else Conclusion("stopped", _first(attempt), end.error)


Rule = Callable[[Attempt], Conclusion | None]

# The first rule that applies decides, so the order matters; the top of this file says why it is this one.
RULES: Final[tuple[Rule, ...]] = (
    _returned,
    _decided,
    _lost_a_worker,
    _stalled,
    _lost_a_process,
    _failed,
    _missed_another,
    _ended_itself,
)


def _first(attempt: Attempt) -> AttemptEnded | None:
    """Return how rank 0 ended: its result is the trial's."""
    return attempt.ends.get(attempt.workers[0])


def _failed_end(attempt: Attempt) -> AttemptEnded | None:
    return next((end for end in attempt.ends.values() if end.outcome == "failed"), None)


def _values(attempt: Attempt) -> list[Number | dict[str, Number] | None]:
    """Return what each rank returned, as named numbers if it named them; `None` for a rank that returned nothing."""
    values: list[Number | dict[str, Number] | None] = []
    for end in map(attempt.ends.get, attempt.ranks):
        if end is not None and end.metrics:
            values.append(pack_numbers(end.metrics))
        else:
            values.append(None if end is None or end.value is None else pack_number(end.value))
    return values


def _stands(attempt: Attempt, *besides: str) -> list[Stand]:
    """Return what the ranks were doing when they were asked."""
    return [
        Stand(attempt.name_of(worker), attempt.steps.get(worker, -1), attempt.ends[worker].stack)
        for worker in attempt.ranks
        if worker in attempt.ends and worker not in besides
    ]


def _words_of(attempt: Attempt, end: AttemptEnded) -> str:
    error = end.error or "the attempt was lost"
    return f"{attempt.name_of(end.worker)}: {error}" if attempt.is_gang else error
