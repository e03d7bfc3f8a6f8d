"""Rungs: who got how far, how good they were there, and who may go on."""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Callable, Iterable

from cargobike.core.records import Curve, Direction, Trial

_Place = tuple[int, float, int]
"""Sorts the better trial first: not a finite number last, then by score, the earlier trial first among equals."""

MOST_LEVELS = 20


def levels_of(resource_min: int, reduction_factor: float, resource_max: int | None, most: int) -> list[int]:
    """Return the amounts of training at which trials are compared: each `reduction_factor` times the one before.

    Args:
        resource_min: The first.
        reduction_factor: How many of them compete for one place on the next.
        resource_max: All of them are below this: a trial that gets there is done.
        most: How many at most.
    """
    found: list[int] = []
    level = float(resource_min)
    while len(found) < min(most, MOST_LEVELS) and (resource_max is None or round(level) < resource_max):
        found.append(max(round(level), found[-1] + 1 if found else resource_min))
        level *= reduction_factor
    return found


def useful_levels(num_trials: int | None, reduction_factor: float) -> int:
    """Return on how many rungs enough of `num_trials` can meet for one of them to be chosen.

    A trial that gets beyond these has no rivals left and runs to the end, so that every search completes one.
    """
    if num_trials is None:
        return MOST_LEVELS
    count = 0
    while num_trials >= reduction_factor and count < MOST_LEVELS:
        num_trials = int(num_trials / reduction_factor)
        count += 1
    return count


class Rung:
    """One level: the trials that reached it, best first, and those of them that wait there.

    Args:
        level: The amount of training.
        reduction_factor: One in so many may go on.
        direction: `"max"` or `"min"`.
    """

    def __init__(self, level: int, reduction_factor: float, direction: Direction) -> None:
        self.level = level
        self._factor = reduction_factor
        self._sign = -1.0 if direction == "max" else 1.0
        self._places: dict[int, _Place] = {}
        self._order: list[_Place] = []
        self._waiting: list[_Place] = []
        self._gone_on: set[int] = set()

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, trial: int) -> bool:
        return trial in self._places

    def add(self, trial: int, value: float) -> None:
        """Record that a trial got here; only the first time counts."""
        if trial not in self._places:
            self._places[trial] = self._place(trial, value)
            bisect.insort(self._order, self._places[trial])

    def admit(self, share: float) -> None:
        """Let another share of those that get here go on from now on."""
        self._factor = 1 / share

    def rank_again(self, value_of: Callable[[int], float]) -> None:
        """Order the trials anew, by what is known about them now."""
        self._places = {trial: self._place(trial, value_of(trial)) for trial in self._places}
        self._order = sorted(self._places.values())
        self._waiting = [self._places[trial] for _, _, trial in self._waiting if trial not in self._gone_on]
        heapq.heapify(self._waiting)

    def _place(self, trial: int, value: float) -> _Place:
        return (0, self._sign * value, trial) if math.isfinite(value) else (1, 0.0, trial)

    def wait(self, trial: int) -> None:
        """Record that a trial is paused here and could be resumed."""
        heapq.heappush(self._waiting, self._places[trial])

    def go_on(self, trial: int) -> None:
        """Record that a trial leaves, for the next level or for good; it never does so twice."""
        self._gone_on.add(trial)

    def has_gone_on(self, trial: int) -> bool:
        """Tell whether a trial has left already."""
        return trial in self._gone_on

    def is_promotable(self, trial: int) -> bool:
        """Tell whether a trial is among the best `1 / reduction_factor` of those that got here."""
        return self._is_among(trial, int(len(self._order) / self._factor))

    def survives(self, trial: int) -> bool:
        """Tell whether a trial need not stop here: as `is_promotable`, but the best one always goes on."""
        place = self._places[trial]
        if place[0]:
            return self._order[0][0] == 1  # there is no number to compare with
        return self._is_among(trial, math.ceil(len(self._order) / self._factor))

    def cutoff(self) -> float | None:
        """Return the score that the next trial here must beat in order not to stop; `None` if there is none."""
        index = math.ceil((len(self._order) + 1) / self._factor) - 1
        if index >= len(self._order) or self._order[index][0]:
            return None
        return self._sign * self._order[index][1]

    def best_waiting(self) -> int | None:
        """Return the best trial that stands still here."""
        while self._waiting and self._waiting[0][2] in self._gone_on:
            heapq.heappop(self._waiting)
        return self._waiting[0][2] if self._waiting else None

    def waiting(self) -> list[int]:
        """Return the trials that stand still here, best first."""
        return [trial for _, _, trial in sorted(self._waiting) if trial not in self._gone_on]

    def share_of_best_waiting(self) -> float | None:
        """Return which share of those that got here is better than the best one that stands still here."""
        trial = self.best_waiting()
        return None if trial is None else bisect.bisect_left(self._order, self._places[trial]) / len(self._order)

    def _is_among(self, trial: int, count: int) -> bool:
        place = self._places[trial]
        return place[0] == 0 and bisect.bisect_left(self._order, place) < count


class Pace:
    """Which workers keep up with the others, told by nothing but how many steps each has done: no clock is needed."""

    def __init__(self) -> None:
        self._done: dict[str, int] = {}
        self._most = 0  # of all in _done, which never become less: no decision has to look at every worker
        self._seen: dict[int, int] = {}

    def count(self, trial: Trial) -> None:
        """Count the steps that a trial has done since the last call, for the worker that runs it."""
        if trial.worker is not None:
            # A worker that joins late starts level with the quickest, and does not count as slow.
            before = self._done.get(trial.worker, self._most)
            # A later attempt that goes back to a checkpoint has fewer steps at first.
            done = before + max(0, len(trial.curve) - self._seen.get(trial.number, 0))
            self._done[trial.worker] = done
            self._most = max(self._most, done)
        self._seen[trial.number] = len(trial.curve)

    def keeps_up(self, worker: str | None) -> bool:
        """Tell whether a worker has done at least half as many steps as the quickest one."""
        return worker is None or 2 * self._done.get(worker, 0) >= self._most


class StepCount:
    """How steps relate to training: a function that counts from 0 has trained once when it reports step 0.

    One that counts from anything else, say 1 or 500, means by a step what it has done by then.
    """

    def __init__(self) -> None:
        self._shift: int | None = None

    def learn(self, trial: Trial) -> None:
        """Find out from a trial's first report where the function starts to count."""
        if self._shift is None and len(trial.curve):
            self._shift = _shift(trial)

    def resource(self, trial: Trial, step: int) -> int:
        """Return how much a trial has been trained when it reports a step."""
        return step + (_shift(trial) if self._shift is None else self._shift)

    def step(self, trial: Trial, resource: int) -> int:
        """Return the step that a trial reports when it has been trained so much."""
        return resource - (_shift(trial) if self._shift is None else self._shift)

    def milestones(self, levels: Iterable[int]) -> tuple[int, ...]:
        """Return the steps that a function must be asked to wait at so that it meets the levels."""
        shifts = (0, 1) if self._shift is None else (self._shift,)
        return tuple(sorted({level - shift for level in levels for shift in shifts}))


def _shift(trial: Trial) -> int:
    return 1 if len(trial.curve) and trial.curve.steps[0] == 0 else 0


def first_point_from(curve: Curve, step: int) -> tuple[int, float] | None:
    """Return the first point that was reported at a step or later, `None` if the trial never got there."""
    return next(((at, value) for at, value in curve if at >= step), None)


def value_at(curve: Curve, step: int) -> float | None:
    """Return what was last reported for a step; looks from the end, where it is nearly always found at once."""
    for index in range(len(curve) - 1, -1, -1):
        if curve.steps[index] == step:
            return curve.values[index]
    return None
