"""The conversation with the optimizer: one question at a time, beside the loop when it takes long.

A quick optimizer is asked where the question arises. One that has been seen to take its time moves to a thread of its
own, so that reports, results and decisions of others do not wait for it.
"""

from __future__ import annotations

import contextlib
import copy
import os
import queue
import threading
import time
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Literal

from cargobike.core.errors import OptimizerError, nearest
from cargobike.core.records import IDLE, Decision, Params, Suggestion, Trial
from cargobike.driver.events import Ask, DecisionMade, Event, Judge, StopRequested, SuggestionMade
from cargobike.driver.plain import check_plain
from cargobike.search.optimizer import AbstractOptimizer
from cargobike.search.stop_rule import StopRule

_SLOW_S = 0.005


class Conversation:
    """Asks, tells and judges, strictly one after the other, in the order in which the scheduler wants it.

    The optimizer sees copies of trials, made when it is told: what it sees never changes behind its back, which is
    also what makes the conversation repeatable from the journal.
    """

    def __init__(
        self,
        optimizer: AbstractOptimizer,
        trials: Mapping[int, Trial],
        *,
        allowed: Sequence[str],
        stop_rules: Sequence[StopRule] = (),
    ) -> None:
        self._optimizer = optimizer
        self._trials = trials
        self._allowed = frozenset(allowed)
        self._stop_rules = tuple(stop_rules)
        self._told = 0
        self._next_number = len(trials)
        self._answers: deque[Event] = deque()
        self._questions: queue.SimpleQueue[tuple[Ask | Judge, float, tuple[Trial, ...]] | None] | None = None
        self._was_slow = False
        self._thread: threading.Thread | None = None
        self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    @property
    def is_beside(self) -> bool:
        """Whether the optimizer has moved to a thread of its own, so that answers come later."""
        return self._questions is not None

    def put(self, question: Ask | Judge, at: float) -> Event | None:
        """Ask; returns the answer, or `None` if it will be in `answers` later."""
        if isinstance(question, Ask):
            shown = tuple(copy.copy(self._trials[number]) for number in question.tell)
        else:
            shown = (copy.copy(self._trials[question.trial]),)
        if self._questions is not None:
            self._questions.put((question, at, shown))
            return None
        started = time.perf_counter()
        answer = self._answer(question, at, shown)
        is_slow = time.perf_counter() - started > _SLOW_S
        if is_slow and self._was_slow:
            self._questions = queue.SimpleQueue()
            self._thread = threading.Thread(target=self._serve, name="cargobike-optimizer", daemon=True)
            self._thread.start()
        self._was_slow = is_slow
        return answer

    def answers(self) -> list[Event]:
        """Return the answers that have come from the optimizer's own thread."""
        if not self._answers:
            return []
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.wake_fd)
        found: list[Event] = []
        while self._answers:
            found.append(self._answers.popleft())
        return found

    def close(self) -> None:
        """End the conversation; an optimizer that is still thinking is not waited for."""
        if self._questions is not None:
            self._questions.put(None)
        if self._thread is not None:
            self._thread.join(timeout=1.0)
        if self._thread is None or not self._thread.is_alive():
            os.close(self.wake_fd)

    def _serve(self) -> None:
        assert self._questions is not None
        while (item := self._questions.get()) is not None:
            self._answers.append(self._answer(*item))
            os.eventfd_write(self.wake_fd, 1)

    def _answer(self, question: Ask | Judge, at: float, shown: tuple[Trial, ...]) -> Event:
        try:
            if isinstance(question, Ask):
                return self._ask(question, at, shown)
            return self._judge(question, at, shown[0])
        except Exception as error:  # noqa: BLE001 - an optimizer may be anybody's code
            what = "".join(traceback.format_exception(error)).rstrip()
            name = type(self._optimizer).__name__
            return StopRequested(at=at, reason=f"the optimizer {name} failed:\n{what}", state="failed")

    def _ask(self, question: Ask, at: float, shown: tuple[Trial, ...]) -> SuggestionMade:
        optimizer = self._optimizer
        for trial in shown:
            self._tell(trial)
        after = optimizer.trials.get(question.after) if question.after is not None else None
        suggestion = self._checked(optimizer.get_suggestion(after))
        if isinstance(suggestion, Suggestion) and suggestion.resume is None:
            number = self._next_number
            self._next_number += 1
            optimizer.trials[number] = Trial(suggestion.params, number=number, info=suggestion.info)
        return SuggestionMade(at=at, suggestion=suggestion, told=self._told, after=question.after)

    def _tell(self, trial: Trial) -> None:
        self._told += 1
        self._optimizer.trials[trial.number] = trial
        if trial.state.is_final:
            self._optimizer.final_store.append(trial)
        self._optimizer.observe(trial)

    def _judge(self, question: Judge, at: float, trial: Trial) -> DecisionMade:
        optimizer = self._optimizer
        horizon = question.horizon
        optimizer.trials[trial.number] = trial
        others = [
            other for other in optimizer.trials.values() if horizon is None or other.number < horizon
        ]
        decision = optimizer.judge(trial, question.step, others)
        by = type(optimizer).__name__
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
            told=self._told,
        )

    def _checked(self, given: object) -> Suggestion | Literal["IDLE"] | None:
        if given is None or given == IDLE:
            return IDLE if given is not None else None
        if isinstance(given, Trial):
            given = Suggestion(params=given.params, info=given.info)
        elif isinstance(given, Mapping):
            given = Suggestion(params=dict(given))
        if not isinstance(given, Suggestion):
            raise OptimizerError(
                f"get_suggestion returned {given!r} ({type(given).__name__}); allowed are a dict of parameters, a "
                f"Trial, a Suggestion, IDLE, or None when there is nothing more to try"
            )
        if given.resume is None:
            self._check_params(given.params)
        return given

    def _check_params(self, params: Params) -> None:
        unknown = [name for name in params if name not in self._allowed]
        if unknown and self._allowed:
            hints = "".join(nearest(name, self._allowed) for name in unknown[:1])
            raise OptimizerError(
                f"get_suggestion returned the unknown parameters {unknown}; "
                f"the space has {sorted(self._allowed)}.{hints}"
            )
        check_plain(params, OptimizerError)
