"""What is said to an optimizer, in which order, and who waits for whom."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from cargobike.core.records import IDLE, Decision, Direction, Suggestion, Trial, TrialState
from cargobike.experiments.driving.optimizer_thread import OptimizerThread
from cargobike.experiments.scheduling.events import Ask, DecisionMade, Event, Judge, StopRequested, SuggestionMade
from cargobike.experiments.scheduling.optimizer_session import OptimizerSession
from cargobike.search.optimizers.optimizer import AbstractOptimizer, Suggested
from cargobike.search.spaces.space import Searchspace

SPACE = Searchspace(lr=("DOUBLE", [0, 1]))
LONG_S = 20.0


class Scripted(AbstractOptimizer):
    """Answers by a function, and remembers everything that it was told."""

    def __init__(self, answer: Callable[[Scripted], Any] = lambda _: {"lr": 0.5}) -> None:
        self._answer = answer
        self.heard: list[str] = []
        self.compared_with: list[list[int]] = []

    def initialize(self) -> None:
        self.heard = []

    def observe(self, trial: Trial) -> None:
        self.heard.append(f"{trial.number} {trial.state}")

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        self.heard.append(f"ask after {trial.number}" if trial is not None else "ask")
        answer: Suggested = self._answer(self)
        return answer

    def judge(self, trial: Trial, step: int, trials: Sequence[Trial]) -> Decision:
        self.heard.append(f"judge {trial.number}")
        self.compared_with.append([other.number for other in trials])
        return Decision.CONTINUE

    def finalize_experiment(self, trials: Sequence[Trial]) -> None:
        self.heard.append(f"look back at {len(trials)}")


def ended(number: int, state: TrialState = TrialState.COMPLETED) -> Trial:
    return Trial({"lr": 0.1}, number=number, state=state, value=1.0 if state is TrialState.COMPLETED else None)


def session_with(optimizer: AbstractOptimizer, *trials: Trial, **given: Any) -> OptimizerSession:
    optimizer.setup(SPACE, num_trials=given.pop("num_trials", None), direction="max", seed=1)
    optimizer.initialize()
    return OptimizerSession(optimizer, {trial.number: trial for trial in trials}, allowed=SPACE.names, **given)


def answer(session: OptimizerSession, question: Ask | Judge) -> Event:
    return session.answer(question, 1.0, session.show(question))


# -- the session ----------------------------------------------------------------------------------------------------


def test_what_has_ended_is_shown_before_the_question() -> None:
    optimizer = Scripted()
    session = session_with(optimizer, ended(0), ended(1, TrialState.PAUSED), ended(2, TrialState.FAILED))
    said = answer(session, Ask((0, 1, 2), 2))
    assert optimizer.heard == ["0 completed", "1 paused", "2 failed", "ask after 2"]
    assert said == SuggestionMade(at=1.0, suggestion=Suggestion(params={"lr": 0.5}), told=3, after=2)
    assert [trial.number for trial in optimizer.final_store] == [0, 2]


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        ({"lr": 0.25}, Suggestion(params={"lr": 0.25})),
        (Trial({"lr": 0.25}, info={"rung": 1}), Suggestion(params={"lr": 0.25}, info={"rung": 1})),
        (Suggestion(params={"lr": 0.25}, milestones=(3,)), Suggestion(params={"lr": 0.25}, milestones=(3,))),
        (Suggestion(resume=3), Suggestion(resume=3)),
        (IDLE, IDLE),
        (None, None),
    ],
)
def test_every_kind_of_suggestion_is_understood(given: Any, understood: Any) -> None:
    said = answer(session_with(Scripted(lambda _: given)), Ask((), None))
    assert said == SuggestionMade(at=1.0, suggestion=understood)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (42, "get_suggestion returned 42 (int); allowed are"),
        ({"lrr": 1.0}, "unknown parameters ['lrr']; the space has ['lr']. Did you mean 'lr'?"),
        ({"lr": object()}, "must be plain data"),
    ],
)
def test_anything_else_ends_the_experiment_with_a_reason(given: Any, message: str) -> None:
    said = answer(session_with(Scripted(lambda _: given)), Ask((), None))
    assert isinstance(said, StopRequested)
    assert said.state == "failed"
    assert message in said.reason


def test_a_failure_is_shown_with_the_optimizers_own_traceback_alone() -> None:
    def fail(_: Scripted) -> None:
        raise ZeroDivisionError("no luck")

    said = answer(session_with(Scripted(fail)), Ask((), None))
    assert isinstance(said, StopRequested)
    assert said.reason.startswith("the optimizer Scripted failed:\nTraceback")
    assert "in fail" in said.reason
    assert said.reason.endswith("ZeroDivisionError: no luck")
    assert "scheduling/optimizer_session.py" not in said.reason


def test_what_was_shown_does_not_change_when_the_trial_goes_on() -> None:
    paused = ended(0, TrialState.PAUSED)
    paused.curve.add(1, 0.5)
    optimizer = Scripted()
    answer(session_with(optimizer, paused), Ask((0,), 0))
    paused.state = TrialState.RUNNING
    paused.curve.add(2, 0.7)
    shown = optimizer.trials[0]
    assert (shown.state, list(shown.curve)) == (TrialState.PAUSED, [(1, 0.5)])


def test_a_suggestion_beyond_what_was_asked_for_leaves_no_trace() -> None:
    optimizer = Scripted()
    session = session_with(optimizer, num_trials=1)
    answer(session, Ask((), None))
    answer(session, Ask((), None))
    assert list(optimizer.trials) == [0]


def test_the_rest_is_shown_once_before_the_optimizer_looks_back() -> None:
    optimizer = Scripted()
    session = session_with(optimizer, ended(0), ended(1), Trial({"lr": 0.1}, number=2))
    answer(session, Ask((0,), 0))
    session.finish()
    assert optimizer.heard == ["0 completed", "ask after 0", "1 completed", "look back at 3"]


def test_a_decision_may_compare_with_all_trials() -> None:
    optimizer = Scripted()
    running = Trial({"lr": 0.1}, number=2, state=TrialState.RUNNING)
    session = session_with(optimizer, ended(0), ended(1), running)
    answer(session, Ask((0, 1), 1))
    answer(session, Judge(2, 1, 1, None))
    assert sorted(optimizer.compared_with[0]) == [0, 1, 2, 3]


def test_a_decision_with_a_horizon_compares_with_what_was_shown_by_then() -> None:
    optimizer = Scripted()
    running = Trial({"lr": 0.1}, number=3, state=TrialState.RUNNING)
    session = session_with(optimizer, ended(0), ended(1), ended(2), running)
    answer(session, Ask((0, 1, 2), 2))
    said = answer(session, Judge(3, 1, 1, 2))
    assert optimizer.compared_with == [[0, 1, 3]]
    assert isinstance(said, DecisionMade)
    assert said.told == 2


class Strict:
    def judge(self, trial: Trial, step: int, trials: Sequence[Trial], direction: Direction) -> Decision:
        return Decision.STOP


def test_a_stop_rule_decides_when_the_optimizer_lets_a_trial_go_on() -> None:
    running = Trial({"lr": 0.1}, number=0, state=TrialState.RUNNING)
    said = answer(session_with(Scripted(), running, stop_rules=[Strict()]), Judge(0, 1, 1, None))
    assert isinstance(said, DecisionMade)
    assert (said.decision, said.by) == (Decision.STOP, "Strict")


# -- the conversation ------------------------------------------------------------------------------------------------


class Slow(Scripted):
    """Takes its time for two questions, and for each one after that until `go` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.asked = 0

    def get_suggestion(self, trial: Trial | None = None) -> Suggested:
        self.asked += 1
        if self.asked <= 2:
            time.sleep(0.02)
        else:
            assert self.go.wait(LONG_S)
        return super().get_suggestion(trial)


@pytest.fixture
def slow() -> Iterator[Slow]:
    optimizer = Slow()
    yield optimizer
    optimizer.go.set()


def moved_beside(optimizer: Slow, *trials: Trial) -> OptimizerThread:
    thread = OptimizerThread(session_with(optimizer, *trials))
    for _ in range(2):
        assert thread.put(Ask((), None), 1.0) is not None
    assert thread.is_beside
    return thread


def hear(thread: OptimizerThread, count: int, at: float) -> list[Event]:
    found: list[Event] = []
    while len(found) < count:
        readable, _, _ = select.select([thread.wake_fd], [], [], LONG_S)
        assert readable
        found += thread.answers(at)
    return found


def test_a_quick_optimizer_answers_at_once() -> None:
    thread = OptimizerThread(session_with(Scripted()))
    said = [thread.put(Ask((), None), 1.0) for _ in range(5)]
    thread.close()
    assert [event.at for event in said if event is not None] == [1.0] * 5


def test_an_answer_that_took_long_has_the_time_when_it_was_given() -> None:
    thread = OptimizerThread(session_with(Slow()))
    said = thread.put(Ask((), None), 1.0)
    thread.close()
    assert said is not None
    assert 1.02 <= said.at < 1.0 + LONG_S


def test_a_slow_optimizer_answers_later_in_the_order_of_the_questions(slow: Slow) -> None:
    running = Trial({"lr": 0.1}, number=0, state=TrialState.RUNNING)
    thread = moved_beside(slow, running)
    assert thread.put(Ask((), None), 1.0) is None
    assert thread.put(Judge(0, 1, 1, None), 2.0) is None
    assert thread.answers(3.0) == []
    slow.go.set()
    said = hear(thread, 2, 9.0)
    thread.close()
    assert [type(event) for event in said] == [SuggestionMade, DecisionMade]
    assert [event.at for event in said] == [9.0, 9.0]


def test_an_announcement_without_an_answer_does_not_wake_the_loop_for_ever(slow: Slow) -> None:
    thread = moved_beside(slow)
    os.eventfd_write(thread.wake_fd, 1)
    assert thread.answers(1.0) == []
    assert select.select([thread.wake_fd], [], [], 0)[0] == []
    thread.close()


def test_an_optimizer_that_still_thinks_is_neither_waited_for_nor_disturbed(slow: Slow) -> None:
    thread = moved_beside(slow, ended(0))
    thread.put(Ask((), None), 1.0)
    thread.finish()
    thread.close()
    assert not slow.go.is_set()
    assert not any("look back" in word for word in slow.heard)
    slow.go.set()
    hear(thread, 1, 2.0)
    thread.close()


def test_an_optimizer_beside_the_loop_is_shown_the_rest_too(slow: Slow) -> None:
    thread = moved_beside(slow, ended(0))
    thread.finish()
    thread.close()
    assert slow.heard[-2:] == ["0 completed", "look back at 1"]
