"""ASHA: many trials start, only the best of each level of training go on, and no trial waits for another."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.records import IDLE, Decision, Params, Suggestion, Trial, TrialState, better
from cargobike.core.values.kinds import is_number
from cargobike.search.models.rungs import Pace, Rung, StepCount, first_point_from, levels_of, useful_levels, value_at
from cargobike.search.models.sampler import RandomSampler, Sampler
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.spaces.space import Searchspace

log = logging.getLogger(__name__)

Variant = Literal["auto", "promotion", "stopping"]
Ladder = list[Rung]

_SCOUTED_FROM = 2
"""From this rung on the first trial to arrive goes on at once as long as it is not known where the function ends."""


class ASHA(AbstractOptimizer):
    """Asynchronous successive halving.

    Trials are compared at *rungs*: after `resource_min` units of training, after `reduction_factor` times that, and so
    on. A unit is what lies between two steps of the reports: usually an epoch.

    - *promotion*: at a rung a trial goes on at once if it is among the best `1 / reduction_factor` of all that got
      there. Otherwise it pauses and gives its worker away; it is resumed, from its checkpoint, as soon as enough worse
      ones have come for it to be among the best. One that could go on, but runs on a worker less than half as fast as
      the fastest, pauses too: the first free worker goes on with it.
    - *stopping*: a trial that is not among the best at its arrival is stopped for good. Needs no checkpoints.

    A trial that leaves the last rung runs to the end. A function that never reports is searched at random.

    Args:
        reduction_factor: One in so many goes on from each rung.
        resource_min: Where the first rung is. A function that counts its steps from 0 has done one unit at step 0; one
            that counts from anything else has done `n` units at step `n`.
        resource_max: Where the function ends; there is no rung from there on. Learned from the first trial that
            completes if not given.
        variant: `"promotion"`, `"stopping"`, or `"auto"`: promotion if the function saves checkpoints.
        sampler: Where new parameters come from; random draws by default.
        num_trials: Used if the experiment gives no number itself.
        searchspace: Used if the experiment gives no space itself.

    Raises:
        InvalidInputError: If arguments cannot be used; lists all mistakes.
    """

    name: ClassVar[str] = "asha"
    is_endless: ClassVar[bool] = True
    needs_reports: ClassVar[bool] = True

    def __init__(
        self,
        reduction_factor: float = 3,
        resource_min: int = 1,
        resource_max: int | None = None,
        *,
        variant: Variant = "auto",
        sampler: Sampler | None = None,
        num_trials: int | None = None,
        searchspace: Searchspace | None = None,
    ) -> None:
        check_halving(reduction_factor, resource_min, resource_max, variant)
        self.reduction_factor = reduction_factor
        self.resource_min = resource_min
        self.resource_max = resource_max
        self.variant: Variant = variant
        self.sampler: Sampler = sampler or RandomSampler()
        self.preset_num_trials = num_trials
        self.preset_space = searchspace

    @property
    def settings(self) -> Mapping[str, object]:
        """What it was made with; random draws are what it does without a sampler."""
        settings = dict(super().settings)
        if type(settings.get("sampler")) is RandomSampler:
            settings["sampler"] = None
        return settings

    def initialize(self) -> None:
        """Forget everything seen before."""
        self.sampler.setup(self.space, direction=self.direction, rng=self.rng)
        self._ladders = self._build_ladders()
        rungs = ((rung, ladder) for ladder in self._ladders for rung in ladder)
        self._from_the_top = sorted(rungs, key=lambda pair: -pair[0].level)
        self._steps = StepCount()
        self._pace = Pace()
        self._longest = self.resource_max
        self._started = 0
        self._active = 0
        self._paused: set[int] = set()
        self._has_completed = False
        self._saves = False
        self._to_the_end: set[int] = set()
        self._said: set[str] = set()

    def learn_from(self, trials: Sequence[Trial]) -> None:
        """Show trials of earlier experiments to the sampler; trials are compared with none but those of this one."""
        steps = StepCount()  # of its own: today's function may count otherwise
        for trial in trials:
            for rung in self._ladders[0]:
                arrival = first_point_from(trial.curve, steps.step(trial, rung.level))
                if arrival is None:
                    break
                self.sampler.observe(trial, rung.level, arrival[1])
            if trial.state is TrialState.COMPLETED and trial.value is not None:
                end = max(trial.curve.steps, default=None)
                resource = self.resource_min if end is None else steps.resource(trial, end)
                self.sampler.observe(trial, resource, trial.value)

    # -- what next -----------------------------------------------------------------------------------------------

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Resume the best trial that may go on, highest rung first; else start a new one.

        Where a finite space is used up before the number of trials or the time is, paused trials go on, best first.
        """
        for rung, ladder in self._from_the_top:
            number = rung.best_waiting()
            if number is not None and (self._is_beyond(rung) or self._may_resume(number, rung)):
                return self._resume(number, rung, ladder)
        if (rather := self._rather_than_new()) is not None:
            return self._resume(*rather)
        params = self.sampler.suggest() if self._may_start else None
        if params is not None:
            return self._start(params)
        if self._may_start and (found := self._best_left()) is not None:
            return self._resume(*found)
        if self._active:
            return IDLE
        return None if self._has_completed else self._finish_one()

    @property
    def _may_start(self) -> bool:
        # Looked up each time: an experiment that is taken up again may be given more trials.
        return self.num_trials is None or self._started < self.num_trials

    def _start(self, params: Params) -> Suggestion:
        self._started += 1
        self._active += 1
        bracket = self._next_bracket()
        ladder = self._ladders[bracket]
        info: dict[str, Any] = {"bracket": bracket} if len(self._ladders) > 1 else {}
        if self.deterministic and self.variant != "promotion":
            info["cutoffs"] = {str(rung.level): cutoff for rung in ladder if (cutoff := rung.cutoff()) is not None}
            info["saves"] = self._saves
        return Suggestion(params=params, milestones=self._milestones(ladder), info=info)

    def _resume(self, number: int, rung: Rung, ladder: Ladder) -> Suggestion:
        rung.go_on(number)
        self._active += 1
        self._paused.remove(number)
        above = self._milestones(other for other in ladder if other.level > rung.level)
        return Suggestion(resume=number, milestones=above, info={"promoted_from": rung.level})

    def _rather_than_new(self) -> tuple[int, Rung, Ladder] | None:
        """Return a trial that waits and promises more than a new one, although it is not among the best."""
        return None

    def _best_left(self) -> tuple[int, Rung, Ladder] | None:
        """Return who comes next where nothing new is left to try, but the budget allows more: the one best placed."""
        found = [(share, pair) for pair in self._from_the_top if (share := pair[0].share_of_best_waiting()) is not None]
        if not found:
            return None
        rung, ladder = min(found, key=lambda one: one[0])[1]
        number = rung.best_waiting()
        return None if number is None else (number, rung, ladder)

    def _finish_one(self) -> Suggestion | None:
        """Resume the best of the furthest trials to its end: a search without a completed trial has no result."""
        for rung, ladder in self._from_the_top:
            number = rung.best_waiting()
            if number is not None:
                self._to_the_end.add(number)
                return self._resume(number, rung, ladder)
        return None

    def _milestones(self, rungs: Iterable[Rung]) -> tuple[int, ...]:
        return self._steps.milestones(rung.level for rung in rungs if not self._is_beyond(rung))

    # -- decisions -----------------------------------------------------------------------------------------------

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        """Decide at a rung; in a deterministic search by what was known when the trial was suggested."""
        value = value_at(trial.curve, step)
        if value is None:
            self._say("the reports lack the objective, so that no trial can be judged by them; name it with metric=…")
            return Decision.CONTINUE
        ladder = self._ladder_of(trial)
        reached = [rung for rung in ladder if rung.level <= self._steps.resource(trial, step)]
        if not reached or trial.number in self._to_the_end:
            return Decision.CONTINUE
        rung = reached[-1]
        if self.deterministic:
            return self._judge_by_the_past(trial, step, rung)
        self._pace.count(trial)
        for lower in reached[:-1]:
            self._enter(trial, lower, value)
            lower.go_on(trial.number)
        self._enter(trial, rung, value)
        if rung.has_gone_on(trial.number) or self._is_beyond(rung) or self._is_scout(rung, ladder):
            decision = Decision.CONTINUE
        elif self._pauses(trial, known_to_save=self._saves):
            # A slow worker leaves a long way to others: the first free worker resumes the trial.
            goes_on = self._may_go_on(trial.number, rung) and self._pace.keeps_up(trial.worker)
            decision = Decision.CONTINUE if goes_on else Decision.PAUSE
        else:
            decision = Decision.CONTINUE if self._survives(trial.number, rung) else Decision.STOP
        if decision is Decision.CONTINUE:
            rung.go_on(trial.number)
        return decision

    def _judge_by_the_past(self, trial: Trial, step: int, rung: Rung) -> Decision:
        """Decide by nothing that depends on which of the running trials is faster."""
        arrival = first_point_from(trial.curve, self._steps.step(trial, rung.level))
        if arrival is None or arrival[0] != step:
            return Decision.CONTINUE
        if self._pauses(trial, known_to_save=bool(trial.info.get("saves"))):
            return Decision.PAUSE
        cutoff = trial.info.get("cutoffs", {}).get(str(rung.level))
        passes = cutoff is None or better(arrival[1], cutoff, self.direction)
        return Decision.CONTINUE if passes else Decision.STOP

    def _pauses(self, trial: Trial, *, known_to_save: bool) -> bool:
        if self.variant != "auto":
            return self.variant == "promotion"
        return known_to_save or trial.has_checkpoint

    def _may_go_on(self, number: int, rung: Rung) -> bool:
        """Tell whether a trial that could be resumed goes on from a rung."""
        return rung.is_promotable(number)

    def _may_resume(self, number: int, rung: Rung) -> bool:
        """Tell whether a trial that waits at a rung goes on from there."""
        return self._may_go_on(number, rung)

    def _survives(self, number: int, rung: Rung) -> bool:
        """Tell whether a trial that could not be resumed goes on from a rung."""
        return rung.survives(number)

    def _is_scout(self, rung: Rung, ladder: Ladder) -> bool:
        is_unknown = self._longest is None and not self._has_completed
        return is_unknown and len(rung) == 1 and ladder.index(rung) >= _SCOUTED_FROM

    def _is_beyond(self, rung: Rung) -> bool:
        """Tell whether a trial that got to a rung has nothing left to do but to return."""
        return self._longest is not None and rung.level >= self._longest

    # -- what came of it -----------------------------------------------------------------------------------------

    def observe(self, trial: Trial) -> None:
        """Learn from a trial that ended or paused."""
        if (
            trial.number in self._paused
        ):  # it was given up while it waited, at the end of an experiment that goes on now
            self._paused.remove(trial.number)
        else:
            self._active -= 1
        self._steps.learn(trial)
        self._saves = self._saves or trial.has_checkpoint
        last: Rung | None = None
        for rung in self._ladder_of(trial):
            if trial.number not in rung:
                arrival = first_point_from(trial.curve, self._steps.step(trial, rung.level))
                if arrival is None:
                    break
                self._enter(trial, rung, arrival[1])
            if last is not None:
                last.go_on(trial.number)
            last = rung
        if trial.state is TrialState.PAUSED:
            self._paused.add(trial.number)
            if last is not None:
                last.wait(trial.number)
            return
        if last is not None:
            last.go_on(trial.number)
        if trial.state is TrialState.COMPLETED:
            self._completed(trial)

    def _completed(self, trial: Trial) -> None:
        self._has_completed = True
        resource = self._longest or self.resource_min
        if len(trial.curve):
            resource = self._steps.resource(trial, max(trial.curve.steps))
            if self.resource_max is None:
                self._longest = max(self._longest or 0, resource)
        else:
            self._say("the train function does not report, so that no trial can be stopped early; see trial.report")
        if trial.value is not None:
            self.sampler.observe(trial, resource, trial.value)

    def _enter(self, trial: Trial, rung: Rung, value: float) -> None:
        if trial.number not in rung:
            rung.add(trial.number, value)
            self.sampler.observe(trial, rung.level, value)

    def _say(self, what: str) -> None:
        if what not in self._said:
            self._said.add(what)
            log.warning("%s: %s", self.name, what)

    # -- rungs ---------------------------------------------------------------------------------------------------

    def _build_ladders(self) -> list[Ladder]:
        """Return the rungs of each bracket, lowest first."""
        most = useful_levels(self.num_trials, self.reduction_factor)
        levels = levels_of(self.resource_min, self.reduction_factor, self.resource_max, most)
        return [[Rung(level, self.reduction_factor, self.direction) for level in levels]]

    def _next_bracket(self) -> int:
        """Return the bracket that the next new trial belongs to."""
        return 0

    def _ladder_of(self, trial: Trial) -> Ladder:
        return self._ladders[int(trial.info.get("bracket", 0))]


def check_halving(reduction_factor: float, resource_min: int, resource_max: int | None, variant: str = "auto") -> None:
    """Refuse arguments of successive halving that make no sense, all at once."""
    mistakes = []
    if not is_number(reduction_factor, lambda number: number > 1):
        mistakes.append(f"reduction_factor={reduction_factor!r}: give a number above 1, such as 3")
    if not (type(resource_min) is int and resource_min >= 1):
        mistakes.append(f"resource_min={resource_min!r}: give a whole number of at least 1")
    elif resource_max is not None and not is_number(resource_max, lambda number: number >= resource_min):
        mistakes.append(f"resource_max={resource_max!r}: give a number of at least resource_min={resource_min}")
    if variant not in get_args(Variant):
        allowed = ", ".join(map(repr, get_args(Variant)))
        mistakes.append(f"variant={variant!r}; allowed are {allowed}.{nearest(str(variant), get_args(Variant))}")
    if mistakes:
        raise InvalidInputError("Trials cannot be halved like this:", mistakes)
