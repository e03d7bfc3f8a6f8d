"""Trials that are given to workers before they need them."""

from __future__ import annotations

import pytest

from cargobike.core import facts
from cargobike.core.records import Suggestion
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.ahead import HELD_S, Ahead
from support.scheduler_world import Story


def held(story: Story, name: str) -> list[int]:
    return [job.trial for job in story.workers[name].line]


def started(workers: int = 1, ahead: int = 3, num_trials: int = 12) -> Story:
    """A search whose workers have shown that they are fast, and hold as many trials as they may."""
    story = Story(workers=workers, ahead=ahead, num_trials=num_trials)
    story.join_all()
    story.suggest_next()
    while any(worker.job is None for worker in story.workers.values()):
        story.suggest_next()
    for name in list(story.workers):
        story.end_on(name)
    while story.questions:
        story.suggest_next()
    return story


class TestWhoGetsThem:
    def test_a_worker_holds_some_once_it_is_known_to_be_fast(self) -> None:
        story = started()
        assert story.job("w0") == (1, 1)
        assert held(story, "w0") == [2, 3, 4]
        assert story.states == ["completed", "running", "pending", "pending", "pending", "pending"]

    def test_it_goes_on_by_itself_and_is_given_more_when_half_of_them_are_left(self) -> None:
        story = started()
        story.end_on("w0")
        assert (story.job("w0"), held(story, "w0")) == ((2, 1), [3, 4])
        story.end_on("w0")
        while story.questions and len(held(story, "w0")) < 3:
            story.suggest_next()
        assert (story.job("w0"), held(story, "w0")) == ((3, 1), [4, 5, 6])
        starts = [fact.trial for fact in story.facts if isinstance(fact, facts.AttemptStarted)]
        assert starts == [0, 1, 2, 3]

    def test_several_workers_share_them(self) -> None:
        story = started(workers=2)
        assert len(held(story, "w0")) == len(held(story, "w1")) == 3

    def test_a_slow_worker_gets_none(self) -> None:
        story = Story(workers=1, ahead=3, num_trials=12)
        story.join_all()
        story.suggest_next()
        story.suggest_next()
        story.at += 60.0
        story.end_on("w0")
        story.suggest_next()
        assert held(story, "w0") == []

    def test_where_a_trial_may_be_stopped_there_are_none(self) -> None:
        story = started()
        story.end_on("w0")
        story.end_on("w0")
        assert held(story, "w0") == [4, 5]
        story.suggest_next(Suggestion(params={"x": 1}, milestones=(1,)))
        story.end_on("w0")
        assert held(story, "w0") == [5], "those that it has stay"


class TestLosses:
    def test_only_what_was_begun_has_lost_an_attempt(self) -> None:
        story = started(workers=2)
        line, (trial, _) = held(story, "w0"), story.job("w0") or (-1, 0)
        story.lose("w0")
        lost = [fact.trial for fact in story.facts if isinstance(fact, facts.AttemptLost)]
        assert lost == [trial]
        assert [story.trials[number].attempts for number in line] == [0, 0, 0]
        story.settle(Suggestion(params={"x": 2}))
        ends = [fact.trial for fact in story.facts if isinstance(fact, facts.TrialEnded)]
        assert sorted(ends) == list(range(12))
        assert story.trials[trial].attempts == 2
        assert all(story.trials[number].attempts == 1 for number in line)

    def test_what_a_worker_was_lost_with_is_not_given_ahead_again(self) -> None:
        story = started(workers=2)
        line = held(story, "w0")
        story.lose("w0")
        assert not set(line) & set(held(story, "w1"))

    def test_what_a_worker_returns_comes_next(self) -> None:
        story = started(workers=2)
        line = held(story, "w0")
        story.happen(story.give_back(story.workers["w0"]))
        while held(story, "w1"):
            story.end_on("w1")
            if story.job("w1") == (line[0], 1):
                break
        assert story.job("w1") == (line[0], 1)


class TestTheEnd:
    def test_what_was_not_begun_stays_pending(self) -> None:
        story = started()
        story.happen(ev.StopRequested(at=story.at, reason="interrupted by the user"))
        assert story.workers["w0"].is_recalled
        story.happen(story.give_back(story.workers["w0"]))
        story.end_on("w0", "stopped")
        assert story.finish is not None
        assert story.states[2:] == ["pending"] * 4

    def test_what_was_begun_meanwhile_is_ended_like_the_others(self) -> None:
        story = started()
        story.happen(ev.StopRequested(at=story.at, reason="interrupted by the user"))
        story.end_on("w0")
        assert story.states[1:3] == ["completed", "pending"], "it has gone on, but has not said so"
        story.happen(story.give_back(story.workers["w0"]))
        job = story.workers["w0"].job
        assert job is not None
        assert (job.trial, job.halted) == (2, True)
        story.end_on("w0", "stopped")
        assert story.finish is not None

    def test_a_worker_that_is_lost_before_it_answers_is_not_waited_for(self) -> None:
        story = started()
        story.happen(ev.StopRequested(at=story.at, reason="interrupted by the user"))
        story.end_on("w0")
        story.lose("w0")
        assert story.finish is not None


@pytest.mark.parametrize(("pace_s", "most"), [(HELD_S / 1000, 8), (HELD_S / 4, 4), (HELD_S, 1), (2 * HELD_S, 0)])
def test_a_worker_holds_what_it_needs_for_a_moment(pace_s: float, most: int) -> None:
    ahead = Ahead(8)
    ahead.joined("w0")
    ahead.began("w0", 0.0)
    ahead.ended("w0", pace_s * 0.999)
    count = 0
    while (worker := ahead.roomy) is not None:
        ahead.put(worker, count)
        count += 1
    assert count == most


def test_what_a_worker_holds_is_filled_up_in_one_go() -> None:
    ahead = Ahead(8)
    ahead.joined("w0")
    ahead.ended("w0", 0.0)
    for trial in range(8):
        ahead.put("w0", trial)
    for left in (7, 6, 5):
        ahead.pop("w0")
        ahead.ended("w0", 0.0)
        assert (ahead.roomy, len(ahead)) == (None, left)
    ahead.pop("w0")
    assert ahead.roomy == "w0"
    for trial in range(8, 12):
        ahead.put("w0", trial)
    assert ahead.roomy is None
