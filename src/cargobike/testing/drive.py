"""A driver without processes: runs an optimizer against a function, with as many virtual workers as you like."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from cargobike.core.errors import OptimizerError
from cargobike.core.records import IDLE, Decision, Direction, Params, Suggestion, Trial, TrialState
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.spaces.space import Searchspace


class Fate(Enum):
    """What may become of a trial besides a result; an objective returns one instead of a number."""

    STOPPED = "stopped"
    """It reports once and is then stopped from outside."""
    NEVER_ENDS = "never ends"
    """It holds its worker for good."""


Outcome = float | Sequence[float] | Fate
Objective = Callable[[Params], Outcome]
"""Returns a score, a learning curve whose last value is the score, or a `Fate`; raising means a failed trial."""


@dataclass(slots=True)
class Drive:
    """What came of running an optimizer.

    Attributes:
        trials: All trials, in the order of suggestion.
        answers: Everything that `get_suggestion` returned: parameters, `("resume", number)`, `IDLE` or `None`.
        exhausted: Whether the optimizer said `None`.
        stuck: Whether it answered `IDLE` while nothing ran, so that nothing would ever have changed.
    """

    trials: list[Trial] = field(default_factory=list)
    answers: list[Params | tuple[str, int] | str | None] = field(default_factory=list)
    exhausted: bool = False
    stuck: bool = False

    @property
    def suggestions(self) -> list[Params]:
        """The parameters of all trials, in the order of suggestion."""
        return [trial.params for trial in self.trials]


@dataclass(slots=True)
class _Running:
    suggestion: Suggestion
    curve: Sequence[float]
    score: float | None
    error: str | None = None
    fate: Fate | None = None
    position: int = 0


def drive(
    optimizer: AbstractOptimizer,
    objective: Objective,
    *,
    space: Searchspace,
    num_trials: int | None = None,
    at_most: int = 100,
    direction: Direction = "max",
    seed: int = 0,
    workers: int = 1,
    order_seed: int = 0,
    past: Sequence[Trial] = (),
) -> Drive:
    """Set an optimizer up, run it to its end in this process, and return what happened.

    Virtual workers take one step at a time, in an order that `order_seed` decides, so trials end out of order as they
    do in reality, and the same way every time. The optimizer is shown copies of trials, as by the real driver.

    Args:
        optimizer: What to run.
        objective: What to try the suggestions on.
        space: Handed to the optimizer.
        num_trials: Handed to the optimizer, and not exceeded.
        at_most: Not exceeded either, for optimizers that never end.
        direction: `"max"` or `"min"`.
        seed: Handed to the optimizer.
        workers: How many trials run at a time.
        order_seed: Decides whose turn it is.
        past: Trials of earlier experiments that it may learn from.

    Raises:
        OptimizerError: If the optimizer returns something else than a suggestion, or changes a trial that it was shown.
    """
    optimizer.setup(space, num_trials=num_trials, direction=direction, seed=seed)
    optimizer.initialize()
    if past:
        optimizer.learn_from(past)
    limit = at_most if num_trials is None else min(num_trials, at_most)
    return _Loop(optimizer, objective, limit, workers, random.Random(order_seed)).run()


class _Loop:
    def __init__(
        self, optimizer: AbstractOptimizer, objective: Objective, limit: int, workers: int, order: random.Random
    ) -> None:
        self.optimizer = optimizer
        self.objective = objective
        self.limit = limit
        self.workers = workers
        self.order = order
        self.result = Drive()
        self.running: dict[int, _Running] = {}
        self.paused: dict[int, _Running] = {}
        self.resting = False
        self.after: Trial | None = None

    def run(self) -> Drive:
        while True:
            while self._may_ask():
                self._ask()
            ready = [number for number, run in self.running.items() if run.fate is not Fate.NEVER_ENDS]
            if not ready:
                break
            self._advance(self.order.choice(ready))
        self.result.stuck = self.resting and not self.running and not self.result.exhausted
        for number in (*self.paused, *self.running):
            self.result.trials[number].state = TrialState.STOPPED
        self._shown(self.optimizer.finalize_experiment, [copy.copy(trial) for trial in self.result.trials])
        return self.result

    def _may_ask(self) -> bool:
        if self.result.exhausted or self.resting or len(self.running) >= self.workers:
            return False
        return len(self.result.trials) < self.limit or bool(self.paused)

    def _ask(self) -> None:
        answer = self._shown(self.optimizer.get_suggestion, self.after)
        self.after = None
        if isinstance(answer, Trial):
            answer = Suggestion(params=answer.params, info=answer.info)
        elif isinstance(answer, dict):
            answer = Suggestion(params=answer)
        if answer is None or answer == IDLE:
            self.result.exhausted = answer is None
            self.resting = answer is not None
            self.result.answers.append(answer)
        elif not isinstance(answer, Suggestion):
            raise OptimizerError(f"get_suggestion returned {answer!r}, which is not a suggestion")
        elif answer.resume is not None:
            self._resume(answer, answer.resume)
        elif len(self.result.trials) < self.limit:
            self._start(answer)
        else:
            self.resting = True  # it offers more than was asked for

    def _start(self, suggestion: Suggestion) -> None:
        number = len(self.result.trials)
        # Copied, because an objective may do with its parameters what it likes.
        params = copy.deepcopy(suggestion.params)
        self.result.answers.append(copy.deepcopy(params))
        self.result.trials.append(
            Trial(params, number=number, state=TrialState.RUNNING, attempts=1, info=suggestion.info)
        )
        self.optimizer.trials[number] = Trial(copy.deepcopy(params), number=number, info=suggestion.info)
        self.running[number] = self._evaluate(suggestion, copy.deepcopy(params))

    def _resume(self, suggestion: Suggestion, number: int) -> None:
        if number not in self.paused:
            raise OptimizerError(f"get_suggestion wants to resume trial {number}, which is not paused")
        self.result.answers.append(("resume", number))
        self.result.trials[number].state = TrialState.RUNNING
        run = self.paused.pop(number)
        run.suggestion = suggestion
        self.running[number] = run

    def _evaluate(self, suggestion: Suggestion, params: Params) -> _Running:
        try:
            outcome = self.objective(params)
        except Exception as error:  # noqa: BLE001 - an objective may raise anything
            return _Running(suggestion, (), None, error=f"{type(error).__name__}: {error}")
        if isinstance(outcome, Fate):
            return _Running(suggestion, (0.0,) if outcome is Fate.STOPPED else (), None, fate=outcome)
        if isinstance(outcome, Sequence):
            return _Running(suggestion, outcome, float(outcome[-1]))
        return _Running(suggestion, (), float(outcome))

    def _advance(self, number: int) -> None:
        trial, run = self.result.trials[number], self.running[number]
        if run.position < len(run.curve):
            trial.curve.add(run.position, run.curve[run.position])
            run.position += 1
            decision = self._judge(trial, run)
            if decision is Decision.STOP:
                self._end(trial, TrialState.STOPPED)
            elif decision is Decision.PAUSE:
                self.paused[number] = run
                self._end(trial, TrialState.PAUSED)
        elif run.error is not None:
            trial.error = run.error
            self._end(trial, TrialState.FAILED)
        elif run.fate is Fate.STOPPED:
            self._end(trial, TrialState.STOPPED)
        else:
            trial.value = run.score
            self._end(trial, TrialState.COMPLETED)

    def _judge(self, trial: Trial, run: _Running) -> Decision:
        step, milestones = run.position - 1, run.suggestion.milestones
        if not (self.optimizer.wants_every_report or milestones == "every" or step in milestones):
            return Decision.CONTINUE
        shown = self._show(trial)
        decision: Decision = self._shown(self.optimizer.judge, shown, step, list(self.optimizer.trials.values()))
        return decision

    def _end(self, trial: Trial, state: TrialState) -> None:
        del self.running[trial.number]
        trial.state = state
        shown = self._show(trial)
        if state.is_final:
            self.optimizer.final_store.append(shown)
        self._shown(self.optimizer.observe, shown)
        self.after, self.resting = shown, False

    def _show(self, trial: Trial) -> Trial:
        shown = copy.copy(trial)
        shown.params, shown.curve = copy.deepcopy(trial.params), copy.deepcopy(trial.curve)
        self.optimizer.trials[trial.number] = shown
        return shown

    def _shown(self, method: Callable[..., Any], *args: object) -> Any:
        """Call the optimizer, and make sure that every trial it can see is afterwards what it was before."""
        seen = list(self.optimizer.trials.values())
        before = [repr(trial) for trial in seen]
        answer = method(*args)
        for was, now in zip(before, seen, strict=True):
            if was != repr(now):
                name = f"{type(self.optimizer).__name__}.{method.__name__}"
                raise OptimizerError(f"{name} changed a trial that it was shown:\n  from {was}\n  to   {now}")
        return answer
