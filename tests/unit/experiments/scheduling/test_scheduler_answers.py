"""What a driver asks its scheduler: deadlines, milestones, whether it is over; and what it writes down at ends."""

from __future__ import annotations

from cargobike.core import facts
from cargobike.core.ids import derived_seed
from cargobike.core.records import Decision, Suggestion
from cargobike.experiments.scheduling import events as ev
from support.scheduler_world import Story


def last_facts(story: Story, kind: type) -> list[facts.AnyFact]:
    return [fact for fact in story.facts if isinstance(fact, kind)]


def tick(story: Story, at: float) -> None:
    story.at = at
    story.happen(ev.Tick(at=at))


def test_the_next_deadline_is_the_nearest_of_all() -> None:
    assert Story(workers=1, num_trials=1).scheduler.next_deadline is None
    story = Story(workers=1, num_trials=2, timeout_s=50.0, trial_timeout_s=20.0)
    deadlines = [story.scheduler.next_deadline]
    story.suggest_next()
    story.join_all()
    deadlines.append(story.scheduler.next_deadline)
    story.end_on("w0")
    deadlines.append(story.scheduler.next_deadline)
    endings = []
    for at in (49.9, 50.0):
        tick(story, at)
        endings.append(story.scheduler.is_ending)
    assert endings == [False, True]
    assert story.finish == ev.Finish("completed", "time budget of 50 s used up")
    assert [*deadlines, story.scheduler.next_deadline] == [50.0, 20.0, 50.0, None], "the budget ends once"
    assert story.scheduler.handle(ev.Tick(at=60.0)) == []


def test_milestones_and_the_checkpoint_to_begin_with_are_known_while_a_trial_lives() -> None:
    story = Story(workers=1, num_trials=2)
    story.suggest_next()
    story.join_all()
    story.suggest_next(Suggestion(params={"x": 2}, milestones=(1, 3), copy_checkpoint_of=0, info={"why": "better"}))
    scheduler = story.scheduler
    assert (scheduler.milestones(0), scheduler.milestones(1), scheduler.milestones(9)) == ((), (1, 3), ())
    assert (scheduler.start_from(0), scheduler.start_from(1), scheduler.start_from(9)) == (None, 0, None)
    (_, told) = last_facts(story, facts.TrialSuggested)
    assert isinstance(told, facts.TrialSuggested)
    assert (told.milestones, told.copy_checkpoint_of, told.info, told.params) == (
        (1, 3),
        0,
        {"why": "better"},
        {"x": 2},
    )
    story.end_on("w0")
    story.report_from("w0")
    question = story.decide_next(Decision.CONTINUE)
    assert question.step == 1
    assert scheduler.milestones(1) == (3,)
    story.end_on("w0")
    assert (scheduler.milestones(1), scheduler.start_from(1)) == ((), None)
    assert Story(workers=1, every_report_is_milestone=True).scheduler.milestones(5) == "every"


def test_a_trial_has_a_seed_of_its_own_unless_it_is_given_one() -> None:
    story = Story(workers=1, num_trials=3, seed=7)
    story.suggest_next()
    story.join_all()
    story.suggest_next(Suggestion(params={"x": 1}, seed=0))
    seeds = [fact.seed for fact in last_facts(story, facts.TrialSuggested) if isinstance(fact, facts.TrialSuggested)]
    assert seeds == [derived_seed(7, "trial", 0), 0]


def test_a_pause_is_told_with_its_last_step() -> None:
    story = Story(workers=1, num_trials=2, every_report_is_milestone=True)
    story.suggest_next()
    story.join_all()
    story.suggest_next()
    story.report_from("w0")
    story.decide_next(Decision.PAUSE)
    story.end_on("w0", "paused")
    (paused,) = last_facts(story, facts.TrialPaused)
    assert isinstance(paused, facts.TrialPaused)
    assert (paused.trial, paused.step) == (0, story.trials[0].curve.steps[-1])


def test_those_that_wait_at_the_end_are_told_why_they_stopped() -> None:
    story = Story(workers=1, num_trials=2, every_report_is_milestone=True, timeout_s=50.0)
    story.suggest_next()
    story.join_all()
    story.suggest_next()
    story.report_from("w0")
    story.decide_next(Decision.PAUSE)
    story.end_on("w0", "paused")
    assert story.job("w0") == (1, 1)
    tick(story, 50.0)
    story.end_on("w0", "stopped")
    assert story.finish == ev.Finish("completed", "time budget of 50 s used up")
    errors = {trial.number: trial.error for trial in story.trials.values()}
    assert errors == {0: "was not resumed before the end", 1: "time budget of 50 s used up"}


def test_a_trial_between_two_attempts_stops_with_a_budget_and_goes_on_after_an_interruption() -> None:
    for timeout_s in (50.0, None):
        story = Story(workers=2, num_trials=2, timeout_s=timeout_s)
        story.suggest_next()
        story.join_all()
        story.suggest_next()
        for name in ("w0", "w1"):
            story.lose(name)
        assert story.states == ["pending", "pending"]
        if timeout_s is None:
            story.happen(ev.StopRequested(at=3.0, reason="interrupted by the user:\nmore", state="interrupted"))
        else:
            tick(story, timeout_s)
        assert story.states == ["stopped"] * 2
        assert [trial.is_interrupted for trial in story.trials.values()] == [timeout_s is None] * 2
        assert story.finish is not None
        errors = [trial.error for trial in story.trials.values()]
        lost = [fact.reason for fact in last_facts(story, facts.AttemptLost) if isinstance(fact, facts.AttemptLost)]
        if timeout_s is None:
            assert lost[-2:] == ["interrupted by the user"] * 2
        else:
            assert errors == ["time budget of 50 s used up"] * 2


def test_as_many_workers_are_started_as_the_trials_can_use() -> None:
    assert len(Story(workers=5, num_trials=2).workers) == 2
    assert len(Story(workers=5, num_trials=9).workers) == 5
    assert len(Story(workers=5).workers) == 5
    story = Story(workers=3, num_trials=3)
    for _ in range(3):
        story.join_all()
        story.suggest_next()
    story.end_on("w0")
    assert set(story.released) == {"w0"}, "nothing more will come for it"
    story.lose("w1")
    assert set(story.workers) == {"w2", "w3"}, "a trial is to run again"
