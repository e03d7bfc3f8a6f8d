"""A session with an optimizer, without a clock or a thread: a question in, its answer out."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import msgspec

from cargobike.core.errors import OptimizerError, nearest
from cargobike.core.records import IDLE, Curve, Decision, Params, Suggestion, Trial
from cargobike.core.values.plain import check_plain
from cargobike.experiments.scheduling.events import Ask, DecisionMade, Event, Judge, StopRequested, SuggestionMade
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.rules.stop_rule import StopRule
from cargobike.search.spaces.space import Searchspace
from cargobike.search.spaces.values import from_json

Question = Ask | Judge


class OptimizerSession:
    """Puts one question after the other to an optimizer, in the order in which the scheduler asks them.

    Trials that the optimizer was shown never change afterwards; this also makes the session repeatable from the
    journal. With a `horizon` in a `Judge`, what a decision is based on does not depend on timing either.

    Args:
        optimizer: The optimizer to ask.
        trials: All trials of the experiment, kept up to date by the owner.
        allowed: Names that suggested parameters may have; any if empty.
        stop_rules: Rules that decide at milestones, after the optimizer.
        start_points: Parameters of the first trials, tried in place of the optimizer's own first suggestions.
        settings: Those of the trials that count as suggestions, if some are repeats of others; all by default.
    """

    def __init__(
        self,
        optimizer: AbstractOptimizer,
        trials: Mapping[int, Trial],
        *,
        allowed: Sequence[str],
        stop_rules: Sequence[StopRule] = (),
        start_points: Sequence[Params] = (),
        settings: Mapping[int, Trial] | None = None,
    ) -> None:
        self._optimizer = optimizer
        self._trials = trials
        self._allowed = frozenset(allowed)
        self._stop_rules = tuple(stop_rules)
        self._start_points = tuple(start_points)
        self._settings = trials if settings is None else settings
        self._shown: list[Trial] = []
        self._has_failed = False
        kind = type(optimizer)
        self._optimizer_judges = (
            kind.judge is not AbstractOptimizer.judge or kind.early_check is not AbstractOptimizer.early_check
        )

    def show(self, question: Question) -> tuple[Trial, ...]:
        """Return the trials that a question is about, as they are now; they will not change any more."""
        numbers = question.tell if isinstance(question, Ask) else (question.trial,)
        return tuple([_still(self._trials[number]) for number in numbers])

    def needs_optimizer(self, question: Question) -> bool:
        """Tell whether a question must wait for a busy optimizer; stop rules alone can decide meanwhile.

        Not in a deterministic search: there they may compare only with trials that the optimizer has been shown.
        """
        return isinstance(question, Ask) or self._optimizer_judges or question.horizon is not None

    def answer(self, question: Question, at: float, shown: tuple[Trial, ...]) -> Event:
        """Put a question about the trials that `show` returned; an optimizer that fails ends the experiment."""
        try:
            if isinstance(question, Ask):
                return self._ask(question, at, shown)
            return self._judge(question, at, shown[0])
        except Exception as error:  # noqa: BLE001 - the optimizer may be the user's own code
            name = type(self._optimizer).__name__
            self._has_failed = True
            return StopRequested(at=at, reason=f"the optimizer {name} failed:\n{_traceback(error)}", state="failed")

    def limit(self, num_trials: int | None) -> None:
        """Tell the optimizer how many trials there may be, if that changes on the way."""
        self._optimizer.num_trials = num_trials

    def change_space(self, description: list[dict[str, Any]], defaults: Params) -> None:
        """Let the optimizer go on in another space."""
        change = getattr(self._optimizer, "change", None)  # as `Extended` has it, and `Repeated` around one
        if change is None:
            raise OptimizerError(f"{type(self._optimizer).__name__} cannot go on in another space")
        space = Searchspace.from_description(description)
        clean = {name: space[name].clean(from_json(value)) for name, value in defaults.items()}
        change(space, clean)

    def finish(self) -> None:
        """Show the optimizer the remaining trials, and call `finalize_experiment`."""
        if self._has_failed:  # it would only fail again
            return
        numbers = {trial.number for trial in self._shown if trial.state.is_final}
        for trial in self._trials.values():
            if trial.state.is_final and trial.number not in numbers:
                self._tell(trial)
        self._optimizer.finalize_experiment(list(self._trials.values()))

    def _ask(self, question: Ask, at: float, shown: tuple[Trial, ...]) -> SuggestionMade:
        optimizer = self._optimizer
        for trial in shown:
            self._tell(trial)
        after = optimizer.trials.get(question.after) if question.after is not None else None
        suggestion = self._checked(optimizer.get_suggestion(after))
        if isinstance(suggestion, Suggestion) and suggestion.resume is None:
            number = len(self._trials)  # the next one, as long as one question is asked at a time
            count, is_repeat = len(self._settings), suggestion.repeat_of is not None
            if count < len(self._start_points) and not is_repeat:
                suggestion = msgspec.structs.replace(suggestion, params=self._start_points[count])
            if optimizer.num_trials is None or count < optimizer.num_trials or is_repeat:
                optimizer.trials[number] = Trial(suggestion.params, number=number, info=suggestion.info)
        return SuggestionMade(at=at, suggestion=suggestion, told=len(self._shown), after=question.after)

    def _tell(self, trial: Trial) -> None:
        self._shown.append(trial)
        self._optimizer.trials[trial.number] = trial
        if trial.state.is_final:
            self._optimizer.final_store.append(trial)
        self._optimizer.observe(trial)

    def _judge(self, question: Judge, at: float, trial: Trial) -> DecisionMade:
        optimizer = self._optimizer
        horizon = question.horizon
        if horizon is not None:
            others = _Lazy(lambda: _known_at(horizon, self._shown, trial))
        elif self._optimizer_judges:
            optimizer.trials[trial.number] = trial
            others = _Lazy(lambda: list(optimizer.trials.values()))
        else:
            others = _Lazy(lambda: list(self._trials.values()))
        decision = optimizer.judge(trial, question.step, others)
        by = optimizer.judged_by or type(optimizer).__name__
        for rule in self._stop_rules:
            if decision is not Decision.CONTINUE:
                break
            decision = rule.judge(trial, question.step, others, optimizer.direction)
            by = type(rule).__name__
        return DecisionMade(
            at=at,
            trial=question.trial,
            attempt=question.attempt,
            step=question.step,
            decision=decision,
            by=by if decision is not Decision.CONTINUE else "",
            told=len(self._shown) if horizon is None else horizon,
        )

    def _checked(self, answer: object) -> Suggestion | Literal["IDLE"] | None:
        if answer is None or answer == IDLE:
            return IDLE if answer is not None else None
        if isinstance(answer, Trial):
            answer = Suggestion(params=answer.params, info=answer.info)
        elif isinstance(answer, Mapping):
            answer = Suggestion(params=dict(answer))
        if not isinstance(answer, Suggestion):
            raise OptimizerError(
                f"get_suggestion returned {answer!r} ({type(answer).__name__}); allowed are a dict of parameters, a "
                f"Trial, a Suggestion, IDLE, or None when there is nothing more to try"
            )
        if answer.resume is None:
            self._check_params(answer.params)
        return answer

    def _check_params(self, params: Params) -> None:
        unknown = [name for name in params if name not in self._allowed]
        if unknown and self._allowed:
            hints = "".join(nearest(name, self._allowed) for name in unknown[:1])
            raise OptimizerError(
                f"get_suggestion returned the unknown parameters {unknown}; "
                f"the space has {sorted(self._allowed)}.{hints}"
            )
        check_plain(params, OptimizerError)


def _still(trial: Trial) -> Trial:
    """Return a trial that will not change any more: itself if it has ended, else a copy."""
    if trial.state.is_final:
        return trial
    still = copy.copy(trial)
    still.curve = Curve()
    still.curve.steps = trial.curve.steps[:]
    still.curve.values = trial.curve.values[:]
    still.curve.rewinds = trial.curve.rewinds
    return still


def _traceback(error: Exception) -> str:
    """Return an error's traceback from where the optimizer's own code begins."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip()


def _known_at(horizon: int, shown: Sequence[Trial], judged: Trial) -> list[Trial]:
    """Return the trials among the first `horizon` that were shown, as they were then, and the one that is judged."""
    latest = {trial.number: trial for trial in shown[:horizon]}
    latest[judged.number] = judged
    return [latest[number] for number in sorted(latest)]


class _Lazy(Sequence[Trial]):
    """A list of trials that is made only when it is read: most decisions need no more than the trial itself."""

    def __init__(self, make: Callable[[], list[Trial]]) -> None:
        self._make = make
        self._made: list[Trial] | None = None

    def _list(self) -> list[Trial]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __len__(self) -> int:
        return len(self._list())

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._list())

    @overload
    def __getitem__(self, index: int) -> Trial: ...

    @overload
    def __getitem__(self, index: slice) -> list[Trial]: ...

    def __getitem__(self, index: int | slice) -> Trial | list[Trial]:
        return self._list()[index]
