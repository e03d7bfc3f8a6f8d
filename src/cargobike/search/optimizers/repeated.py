"""Repeated: every setting that another optimizer suggests is run several times, and judged by the mean."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cargobike.core.errors import OptimizerError
from cargobike.core.ids import derived_seed
from cargobike.core.records import IDLE, Decision, Direction, Suggestion, Trial, TrialState
from cargobike.core.repeats import has_failed, mean_curve, summarize
from cargobike.search.optimizers.extended import Extended
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested, as_suggestion
from cargobike.search.rules.stop_rule import StopRule
from cargobike.search.spaces.space import Searchspace


@dataclass(slots=True)
class _Setting:
    """What the inner optimizer calls a trial.

    Attributes:
        index: Its number there.
        suggestion: What the inner optimizer suggested.
        seed: The seed of its first run; those of the others follow from it.
        runs: Numbers of its runs.
        open: Those of them that were started or resumed, and have not been shown since.
        waiting: How many repeats or resumes of it are still to be suggested.
        is_given_up: Whether no further run is worth starting.
        is_over: Whether its end was shown.
    """

    index: int
    suggestion: Suggestion
    seed: int
    runs: list[int] = field(default_factory=list)
    open: set[int] = field(default_factory=set)
    waiting: int = 0
    is_given_up: bool = False
    is_over: bool = False


class Repeated(AbstractOptimizer):
    """Runs each setting of another optimizer several times, with other seeds, and shows it one trial: their mean.

    The inner optimizer is asked as in a deterministic search: what it decides about a trial depends on what it knew
    when it suggested it, because the runs of a setting get to the same step at different times. Where it pauses trials,
    each run pauses, and the setting is compared by its mean once all have got there. Where it stops them, and for stop
    rules, a run is judged by the mean of the runs of its setting that have got to its step; if one is stopped, all are:
    no more of them are started, and those that run stop at their next milestone.

    Args:
        inner: Suggests the settings.
        repeats: How many runs each of them gets.
        stop_rules: Rules that judge settings after the optimizer.
    """

    name: ClassVar[str] = "repeated"

    def __init__(self, inner: AbstractOptimizer, repeats: int, stop_rules: Sequence[StopRule] = ()) -> None:
        self.inner = inner
        self.repeats = repeats
        self.stop_rules = tuple(stop_rules)
        self.judged_by = ""

    def setup(self, space: Searchspace, *, num_trials: int | None, direction: Direction, seed: int) -> None:
        """Set up the inner optimizer as it would be without repeats; `num_trials` counts settings."""
        super().setup(space, num_trials=num_trials, direction=direction, seed=seed)
        self._seed = seed
        self.inner.deterministic = True
        self.inner.objectives = self.objectives
        self.inner.setup(space, num_trials=num_trials, direction=direction, seed=seed)

    def initialize(self) -> None:
        """Start afresh."""
        self._settings: list[_Setting] = []
        self._of_run: dict[int, _Setting] = {}
        self._queue: deque[tuple[_Setting, Suggestion]] = deque()
        self._count = 0
        self.inner.initialize()

    def learn_from(self, trials: Sequence[Trial]) -> None:
        """Show trials of earlier experiments to the inner optimizer."""
        self.inner.learn_from(trials)

    def change(self, space: Searchspace, defaults: Mapping[str, Any]) -> None:
        """Go on in another space, if the inner optimizer can; repeats that are missing come first."""
        if not isinstance(self.inner, Extended):
            raise OptimizerError(f"{type(self.inner).__name__} cannot go on in another space")
        self._notice()
        self.space = space
        self.inner.change(space, defaults)

    def finalize_experiment(self, trials: Sequence[Trial]) -> None:
        """Let the inner optimizer look back at the settings."""
        self.inner.finalize_experiment(list(self.inner.trials.values()))

    @property
    def wants_every_report(self) -> bool:
        """Whether the inner optimizer wants to see each report."""
        return self.inner.wants_every_report

    # -- what next -----------------------------------------------------------------------------------------------

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        """Return the next run of a setting that lacks some, or the first run of a new setting."""
        self._notice()
        while self._queue:
            setting, suggestion = self._queue.popleft()
            setting.waiting -= 1
            if suggestion.resume is not None:
                setting.open.add(suggestion.resume)
                return suggestion
            if not setting.is_given_up:
                return self._run(setting, len(setting.runs))
        self.inner.num_trials = self.num_trials
        after = self._of_run.get(trial.number) if trial is not None else None
        answer = self.inner.get_suggestion(None if after is None else self.inner.trials.get(after.index))
        if answer is None or answer == IDLE:
            return answer
        answer = as_suggestion(answer)
        if answer.resume is not None:
            return self._resume(answer)
        # An optimizer that does not count may suggest more than was asked for: that is treated as no suggestion.
        has_enough = self.num_trials is not None and len(self._settings) >= self.num_trials
        return IDLE if has_enough else self._begin(answer)

    def _begin(self, answer: Suggestion) -> Suggestion:
        index = len(self._settings)
        seed = derived_seed(self._seed, "trial", index) if answer.seed is None else answer.seed
        setting = _Setting(index, answer, seed, waiting=self.repeats - 1)
        self._settings.append(setting)
        self._queue.extend([(setting, answer)] * setting.waiting)
        return self._run(setting, 0)

    def _run(self, setting: _Setting, repeat: int) -> Suggestion:
        number, self._count = self._count, self._count + 1
        answer, donor = setting.suggestion, setting.suggestion.copy_checkpoint_of
        first = setting.runs[0] if setting.runs else None
        setting.runs.append(number)
        setting.open.add(number)
        self._of_run[number] = setting
        donors = [] if donor is None else self._settings[donor].runs
        return Suggestion(
            # What was tried first: it may be a point given to start with.
            params=dict(answer.params if first is None else self.trials[first].params),
            milestones=answer.milestones,
            copy_checkpoint_of=donors[min(repeat, len(donors) - 1)] if donors else None,
            seed=setting.seed if repeat == 0 else derived_seed(setting.seed, "repeat", repeat),
            info={**answer.info, "repeat": repeat},
            repeat_of=first,
        )

    def _resume(self, answer: Suggestion) -> Suggestion:
        assert answer.resume is not None
        setting = self._settings[answer.resume]
        resumes = [
            Suggestion(resume=run, milestones=answer.milestones, info=answer.info)
            for run in setting.runs
            if self.trials[run].state is TrialState.PAUSED
        ]
        setting.waiting = len(resumes) - 1
        setting.open.add(resumes[0].resume)  # type: ignore[arg-type] # each of them resumes a run
        self._queue.extend((setting, resume) for resume in resumes[1:])
        return resumes[0]

    def _notice(self) -> None:
        """Show the inner optimizer the settings that were begun, with the parameters that are tried."""
        for setting in self._settings[len(self.inner.trials) :]:
            first = self.trials.get(setting.runs[0])
            if first is not None:
                self.inner.trials[setting.index] = Trial(
                    first.params, number=setting.index, info=setting.suggestion.info, seed=setting.seed
                )

    # -- what came of it -----------------------------------------------------------------------------------------

    def observe(self, trial: Trial) -> None:
        """Learn how a run ended or that it paused, and show the setting when all of its runs have."""
        self._notice()
        setting = self._of_run[trial.number]
        setting.open.discard(trial.number)
        runs = [self.trials[number] for number in setting.runs]
        if trial.state is TrialState.STOPPED or has_failed(runs, self.repeats):
            setting.is_given_up = True
        waits = setting.waiting and not (setting.is_given_up and len(setting.runs) < self.repeats)
        if setting.open or waits or setting.is_over:
            return
        view = self._view(setting, runs)
        setting.is_over = view.state.is_final
        self.inner.trials[setting.index] = view
        if setting.is_over:
            self.inner.final_store.append(view)
        self.inner.observe(view)

    def _view(self, setting: _Setting, runs: Sequence[Trial]) -> Trial:
        """Return a setting as one trial, numbered and annotated as the inner optimizer knows it."""
        first = runs[0]
        view = Trial(first.params, number=setting.index, seed=first.seed)
        summarize(view, runs, self.repeats)
        view.info = {**setting.suggestion.info, **_resumed_info(first)}
        view.curve = mean_curve(runs, (step for run in runs for step in run.curve.steps))
        view.violation = _mean_violation(runs)
        return view

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        """Judge a run by the mean of the runs of its setting that have got as far."""
        self._notice()
        self.judged_by = type(self.inner).__name__
        setting = self._of_run[trial.number]
        if setting.is_given_up and not self.deterministic:
            return Decision.STOP
        runs = [trial]
        if not self.deterministic:  # how far the other runs have come depends on timing
            runs += [self.trials[run] for run in setting.runs if run != trial.number and run in self.trials]
        view = Trial(
            trial.params, number=setting.index, state=TrialState.RUNNING, attempts=trial.attempts, seed=trial.seed
        )
        view.info = {**setting.suggestion.info, **_resumed_info(trial)}
        view.worker, view.has_checkpoint, view.started_at = trial.worker, trial.has_checkpoint, trial.started_at
        view.curve = mean_curve(runs, trial.curve.steps)
        others = self._others(view, trials)
        decision = self.inner.judge(view, step, others)
        for rule in self.stop_rules:
            if decision is not Decision.CONTINUE:
                break
            decision, self.judged_by = rule.judge(view, step, others, self.direction), type(rule).__name__
        if decision is Decision.STOP and not self.deterministic:
            setting.is_given_up = True
        return decision

    def _others(self, view: Trial, trials: Sequence[Trial]) -> list[Trial]:
        """Return the settings to compare with."""
        if not self.deterministic:
            return list({**self.inner.trials, view.number: view}.values())
        known: dict[int, list[Trial]] = {}
        for run in trials:
            known.setdefault(self._of_run[run.number].index, []).append(run)
        seen = {index: self._view(self._settings[index], runs) for index, runs in known.items()}
        return list({**seen, view.number: view}.values())


def _resumed_info(run: Trial) -> dict[str, object]:
    """Return what was noted about a run since it was suggested, as when it was promoted."""
    return {name: value for name, value in run.info.items() if name != "repeat"}


def _mean_violation(runs: Sequence[Trial]) -> float:
    completed = [run.violation for run in runs if run.state is TrialState.COMPLETED]
    return sum(completed) / len(completed) if completed else 0.0
