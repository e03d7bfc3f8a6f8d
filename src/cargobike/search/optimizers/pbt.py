"""Population based training: a few trials train side by side, and the worst go on from what the best have learned."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from cargobike.core.errors import InvalidInputError
from cargobike.core.records import IDLE, Decision, Params, Suggestion, Trial, TrialState
from cargobike.core.values.kinds import unfit
from cargobike.search.models.population import Ranking, Slot, Waiting
from cargobike.search.models.rungs import StepCount, first_point_from
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.spaces.parameter import Parameter
from cargobike.search.spaces.space import Searchspace

log = logging.getLogger(__name__)

_MOST_MILESTONES = 256
_BROKEN = 20
"""Moves that may break constraints before the nearest place that keeps them is taken."""


class PopulationBasedTraining(AbstractOptimizer):
    """Population based training, asynchronous.

    Every `interval` units of training a trial is compared with the others of its age. One of the worst is stopped, and
    a new trial takes its place: it starts from the checkpoint of one of the best, with that one's parameters changed a
    little. What is found is therefore a schedule of parameters rather than a single set; `Trial.info` tells each
    trial's `parent`, whom it `replaces`, its `generation` and its `slot` in the population.

    The train function must save checkpoints and go on from them; if it does not, no trial is replaced. If there are
    fewer workers than trials in the population, trials take turns, an interval at a time.

    Args:
        population: How many trials train side by side.
        interval: After how much training trials are compared; see `ASHA` for the unit.
        resource_max: Where the function ends: no trial is replaced there, when there is nothing left to learn. Learned
            from the first trial that completes if not given.
        quantile: The worst of this share are replaced, by copies of the best of this share.
        perturbation: How far a parameter moves, as a share of its range (on its scale).
        resample: How likely a parameter is drawn anew instead.
        num_trials: Used if the experiment gives no number itself: how many trials there are in all. When they are used
            up, no trial is replaced any more.
        searchspace: Used if the experiment gives no space itself.

    Raises:
        InvalidInputError: If arguments cannot be used; lists all mistakes.
    """

    name: ClassVar[str] = "pbt"
    needs_reports: ClassVar[bool] = True

    def __init__(
        self,
        population: int = 8,
        *,
        interval: int = 5,
        resource_max: int | None = None,
        quantile: float = 0.25,
        perturbation: float = 0.15,
        resample: float = 0.25,
        num_trials: int | None = None,
        searchspace: Searchspace | None = None,
    ) -> None:
        mistakes = unfit(
            ("population", population, lambda number: number >= 2, "give at least 2"),
            ("interval", interval, lambda number: number >= 1, "give at least 1"),
            ("quantile", quantile, lambda number: 0 < number <= 0.5, "give a number above 0 and up to 0.5"),
            ("perturbation", perturbation, lambda number: 0 < number <= 1, "give a number above 0 and up to 1"),
            ("resample", resample, lambda number: 0 <= number <= 1, "give a probability, from 0 to 1"),
        )
        if mistakes:
            raise InvalidInputError("There can be no such population:", mistakes)
        self.population = population
        self.interval = interval
        self.resource_max = resource_max
        self.quantile = quantile
        self.perturbation = perturbation
        self.resample = resample
        self.preset_num_trials = num_trials
        self.preset_space = searchspace

    def initialize(self) -> None:
        """Forget everything seen before."""
        size = self.population if self.num_trials is None else min(self.population, self.num_trials)
        self._slots = [Slot(index) for index in range(size)]
        self._begun = 0
        self._waiting = Waiting(self._slots)
        self._started = 0
        self._rankings: dict[int, Ranking] = {}
        self._to_replace: deque[int] = deque()
        self._active = 0
        self._paused: set[int] = set()
        self._steps = StepCount()
        self._longest = self.resource_max
        self._warned = False

    # -- what next -----------------------------------------------------------------------------------------------

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Replace who was stopped, complete the population, or let go on who is furthest behind."""
        while self._to_replace:
            index = self._to_replace.popleft()
            donors = list(self._donors(index)) or self._substitutes(index)
            if donors and self._left > 0:
                return self._replace(index, self.rng.choice(donors))
            self._spare(self._slots[index])
        if self._may_begin:
            new = self._slots[self._begun]
            return self._begin(new, self.space.sample(self.rng), {"slot": new.index, "generation": 0})
        slot = self._waiting.youngest()
        if slot is None:
            return IDLE if self._active else None
        slot.is_waiting = False
        assert slot.number is not None
        if self._is_poor(slot):  # others of its age have come meanwhile
            self._to_replace.append(slot.index)
            return self.get_suggestion()
        self._active += 1
        self._paused.remove(slot.number)
        return Suggestion(resume=slot.number, milestones=self._milestones())

    def _spare(self, slot: Slot) -> None:
        """Let a trial that should have been replaced go on if it can: it need not end for others that are done."""
        slot.is_over = slot.number not in self._paused
        slot.is_waiting = False
        if not slot.is_over:
            self._waiting.add(slot)

    @property
    def _may_begin(self) -> bool:
        """Whether the population is not complete, and may be."""
        return self._begun < len(self._slots) and self._left > 0

    @property
    def _left(self) -> float:
        return math.inf if self.num_trials is None else self.num_trials - self._started

    def _replace(self, index: int, donor: Slot) -> Suggestion:
        slot = self._slots[index]
        slot.generation += 1
        slot.age = slot.born_at = donor.age
        info = {
            "slot": index,
            "generation": slot.generation,
            "parent": donor.number,
            "parent_generation": donor.generation,
            "replaces": slot.number,
        }
        return self._begin(slot, self._explore(donor.params), info, copy_of=donor.number)

    def _begin(self, slot: Slot, params: Params, info: dict[str, Any], copy_of: int | None = None) -> Suggestion:
        self._begun += not slot.has_begun
        slot.has_begun, slot.params, slot.has_checkpoint, slot.has_failed = True, params, False, False
        self._started += 1
        self._active += 1
        return Suggestion(params=params, milestones=self._milestones(), copy_checkpoint_of=copy_of, info=info)

    def _milestones(self) -> tuple[int, ...]:
        ages = (self.interval * count for count in range(1, _MOST_MILESTONES + 1))
        return self._steps.milestones(age for age in ages if self._longest is None or age < self._longest)

    def _explore(self, params: Params) -> Params:
        pairs = list(zip(self.space.parameters.values(), self.space.to_unit(params), strict=True))
        for _ in range(_BROKEN):
            moved = [self._moved(parameter, unit) for parameter, unit in pairs]
            explored = self.space.try_unit(moved)
            if explored is not None:
                return explored
        return self.space.from_unit(moved)

    def _moved(self, parameter: Parameter, unit: float | None) -> float:
        if unit is None or self.rng.random() < self.resample:
            return self.rng.random()
        if parameter.type == "CATEGORICAL":
            return unit
        # A value that can be counted moves to its neighbour at least.
        step = self.perturbation if parameter.count is None else max(self.perturbation, 1 / parameter.count)
        return unit + (step if self.rng.random() < 0.5 else -step)

    # -- decisions -----------------------------------------------------------------------------------------------

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        """Decide at the end of an interval; in a deterministic search not before the trial's turn has come."""
        score = self._score_at(trial, step)
        slot = self._slot_of(trial)
        if score is None or slot is None or not trial.has_checkpoint:
            return Decision.CONTINUE
        if self.deterministic:
            return Decision.PAUSE
        self._steps.learn(trial)
        self._note(slot, trial, *score)
        if self._is_poor(slot):
            self._to_replace.append(slot.index)
            return Decision.STOP
        youngest = self._waiting.youngest()
        others_wait = self._may_begin or (youngest is not None and youngest.age < slot.age)
        return Decision.PAUSE if others_wait else Decision.CONTINUE

    def _score_at(self, trial: Trial, step: int) -> tuple[int, float] | None:
        """Return a trial's age in intervals and its value, if this report is the first one of that age."""
        resource = self._steps.resource(trial, step)
        age = resource // self.interval
        point = first_point_from(trial.curve, self._steps.step(trial, age * self.interval))
        if age < 1 or point is None or point[0] != step:
            return None
        is_first_of_a_copy = "parent" in trial.info and trial.curve.steps[0] == step
        if not self.deterministic and self._longest is not None and resource >= self._longest:
            return None  # it is done anyway
        if is_first_of_a_copy and resource % self.interval:
            return None  # its parent was here already: the copy has not trained for an interval yet
        return age, point[1]

    def _slot_of(self, trial: Trial) -> Slot | None:
        """Return a trial's place in the population, `None` if it has lost it."""
        index = int(trial.info.get("slot", -1))
        if not 0 <= index < len(self._slots) or self._slots[index].generation != trial.info.get("generation"):
            return None
        slot = self._slots[index]
        slot.number, slot.params = (
            trial.number,
            trial.params,
        )  # what was tried, which may be a point given to start with
        return slot

    def _note(self, slot: Slot, trial: Trial, age: int, value: float) -> None:
        sign = -1.0 if self.direction == "max" else 1.0
        score = (0, sign * value, trial.number) if math.isfinite(value) else (1, 0.0, trial.number)
        slot.age, slot.has_checkpoint = age, trial.has_checkpoint
        self._rankings.setdefault(age, Ranking()).note(slot.index, score)

    def _is_poor(self, slot: Slot) -> bool:
        promised = len(self._to_replace) + len(self._slots) - self._begun
        ranking = self._ranking(slot)
        is_one_of_the_worst = ranking.is_among_last(slot.index, int(len(ranking) * self.quantile))
        return self._left > promised and is_one_of_the_worst and any(self._donors(slot.index))

    def _donors(self, index: int) -> Iterator[Slot]:
        """Yield the best of a slot's age that still train and have something to copy."""
        ranking = self._ranking(self._slots[index])
        for other in ranking.best(int(len(ranking) * self.quantile)):
            if other != index and self._slots[other].can_be_copied:
                yield self._slots[other]

    def _substitutes(self, index: int) -> list[Slot]:
        """Return whom a stopped trial's place goes on from if its donors have ended before the copy was made.

        That is the best of the others that still train; if there are none, the stopped trial itself, so that what it
        has learned is not lost.
        """
        slot = self._slots[index]
        if slot.has_failed or slot.number in self._paused:
            return []
        others = (self._slots[other] for other in self._ranking(slot).best() if other != index)
        training = next((other for other in others if other.can_be_copied), None)
        if training is not None:
            return [training]
        return [slot] if slot.has_checkpoint else []

    def _ranking(self, slot: Slot) -> Ranking:
        """Return the slots to compare a slot with: those at its age, or the one before if they are few."""
        for age in (slot.age, slot.age - 1):
            ranking = self._rankings.get(age)
            if ranking is not None and age > slot.born_at and len(ranking) * self.quantile >= 1:
                return ranking
        return Ranking()

    # -- what came of it -----------------------------------------------------------------------------------------

    def observe(self, trial: Trial) -> None:
        """Learn from a trial that ended or paused."""
        if (
            trial.number in self._paused
        ):  # it was given up while it waited, at the end of an experiment that goes on now
            self._paused.remove(trial.number)
        else:
            self._active -= 1
        if "parent" not in trial.info:
            self._steps.learn(trial)
        if trial.state is TrialState.PAUSED:
            self._paused.add(trial.number)
        slot = self._slot_of(trial)
        if slot is None:
            return
        if trial.state is TrialState.PAUSED:
            self._settle_pause(slot, trial)
        elif trial.state is TrialState.FAILED and self.num_trials is not None and any(self._donors(slot.index)):
            slot.has_failed = True
            self._to_replace.append(slot.index)
        elif slot.index not in self._to_replace:
            slot.is_over, slot.is_waiting = True, False
        if trial.state is TrialState.COMPLETED:
            self._completed(trial)

    def _completed(self, trial: Trial) -> None:
        if self.resource_max is None and len(trial.curve):
            self._longest = max(self._longest or 0, self._steps.resource(trial, max(trial.curve.steps)))
        if not trial.has_checkpoint and "parent" not in trial.info and not self._warned:
            self._warned = True
            log.warning("pbt: the train function saves no checkpoints, so that no trial can go on from another's")

    def _settle_pause(self, slot: Slot, trial: Trial) -> None:
        score = self._score_at(trial, trial.curve.steps[-1]) if self.deterministic and len(trial.curve) else None
        if score is not None:
            self._note(slot, trial, *score)
        if score is not None and self._is_poor(slot):
            self._to_replace.append(slot.index)
        else:
            self._waiting.add(slot)
