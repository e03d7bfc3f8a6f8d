"""The worker timeline: which worker was busy with which trial when, what was lost, and how much time was idle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cargobike.core.record import Attempt, ExperimentRecord

Outcome = Literal["completed", "stopped", "failed", "paused", "lost", "running"]
OUTCOMES: tuple[Outcome, ...] = ("completed", "stopped", "paused", "running", "failed", "lost")


@dataclass(frozen=True)
class Busy:
    """A time during which a worker ran something; `trials` are several where short ones were drawn together."""

    worker: str
    start_s: float
    end_s: float
    outcome: Outcome
    trials: tuple[int, ...]
    attempt: int = 1
    reason: str = ""


@dataclass(frozen=True)
class WorkerTime:
    """One worker's time, in seconds since the experiment began."""

    name: str
    host: str
    joined_s: float
    left_s: float
    busy_s: float
    lost_because: str = ""

    @property
    def idle_s(self) -> float:
        """How long it had nothing to do."""
        return max(0.0, self.left_s - self.joined_s - self.busy_s)


@dataclass(frozen=True)
class Timeline:
    """What all workers did.

    Attributes:
        workers: The workers, in the order in which they joined.
        busy: What they ran, by start.
        utilisation: Which share of the workers' time was used.
    """

    workers: list[WorkerTime]
    busy: list[Busy]
    utilisation: float


def timeline(record: ExperimentRecord, *, most_workers: int = 60, most_bars: int = 3000) -> Timeline:
    """Return the workers' times, short bars drawn together where there are very many.

    Args:
        record: The experiment.
        most_workers: How many workers are listed; those with the most idle time stay, they are the ones to look at.
        most_bars: About how many bars are listed.
    """
    start, end = record.started_at, (record.last_at if record.ended_at is None else record.ended_at)
    busy = [
        _busy(worker, number, attempt, start, end)
        for number, attempts in record.attempts.items()
        for attempt in attempts
        for worker in attempt.workers
    ]
    busy.sort(key=lambda each: (each.start_s, each.worker))
    spent: dict[str, float] = {}
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    for each in busy:
        spent[each.worker] = spent.get(each.worker, 0.0) + each.end_s - each.start_s
        first.setdefault(each.worker, each.start_s)
        last[each.worker] = max(last.get(each.worker, 0.0), each.end_s)
    workers = []
    for name in dict.fromkeys([*record.workers, *first]):
        seen = record.workers.get(name)
        joined_s = first[name] if seen is None else seen.joined_at - start
        left_s = end - start if seen is None or seen.lost_at is None else seen.lost_at - start
        workers.append(
            WorkerTime(
                name,
                "" if seen is None else seen.host,
                min(joined_s, first.get(name, joined_s)),
                max(left_s, last.get(name, left_s)),
                spent.get(name, 0.0),
                "" if seen is None else seen.reason,
            )
        )
    available = sum(worker.left_s - worker.joined_s for worker in workers)
    utilisation = sum(spent.values()) / available if available > 0 else 0.0
    if len(workers) > most_workers:
        idlest = sorted(workers, key=lambda worker: -worker.idle_s)[:most_workers]
        workers = [worker for worker in workers if worker in idlest]
        names = {worker.name for worker in workers}
        busy = [each for each in busy if each.worker in names]
    return Timeline(workers, _together(busy, most_bars, end - start), min(1.0, utilisation))


def _busy(worker: str, number: int, attempt: Attempt, start: float, end: float) -> Busy:
    ended = attempt.ended_at if attempt.ended_at is not None else end
    outcome: Outcome = "lost"
    if attempt.ended is None:
        outcome = "running"
    else:
        outcome = next((known for known in OUTCOMES if known == attempt.ended), "lost")
    reason = attempt.ended or "" if outcome == "lost" else ""
    return Busy(worker, attempt.started_at - start, ended - start, outcome, (number,), attempt.number, reason)


def _together(busy: Sequence[Busy], most: int, span_s: float) -> list[Busy]:
    """Join bars of one outcome that are too short and too close to be told apart; the gaps between them are filled."""
    if len(busy) <= most:
        return list(busy)
    width_s = span_s * len({each.worker for each in busy}) / most
    joined: dict[tuple[str, Outcome], list[Busy]] = {}
    for each in busy:
        row = joined.setdefault((each.worker, each.outcome), [])
        if row and each.end_s - row[-1].start_s <= width_s:
            row[-1] = replace(row[-1], end_s=each.end_s, trials=row[-1].trials + each.trials)
        else:
            row.append(each)
    return sorted((each for row in joined.values() for each in row), key=lambda each: (each.start_s, each.worker))
