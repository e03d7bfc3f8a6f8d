"""A search whose driver died goes on as if nothing had happened, wherever its journal breaks off."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_scheduler_deterministic import SPACE, Moody, run, suggestions, timed

from cargobike.core import facts
from cargobike.core.record import ExperimentRecord, fold
from cargobike.core.records import Milestones, TrialState
from cargobike.engines.simulated.engine import SimulatedEngine
from cargobike.experiments.scheduling.optimizer_session import OptimizerSession
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.scheduling.replay import Replay
from cargobike.experiments.scheduling.scheduler import Scheduler
from cargobike.experiments.scheduling.simulation import SimulationResult, _Simulation


@cache
def whole_search(milestones: bool) -> SimulationResult:
    return run(timed(0), optimizer=Moody(milestones), workers=4)


def take_up(past: list[facts.AnyFact], milestones: bool, salt: int) -> list[facts.AnyFact]:
    """Go on after a part of a journal, with a fresh optimizer and another timing; return the whole journal."""
    header = past[0]
    assert isinstance(header, facts.ExperimentStarted)
    plan = Plan(workers=4, num_trials=20, seed=3, deterministic=True)
    optimizer = Moody(milestones)
    optimizer.setup(SPACE, num_trials=20, direction="max", seed=3)
    optimizer.initialize()
    record = ExperimentRecord(header)
    session = OptimizerSession(optimizer, record.trials, allowed=SPACE.names)
    replay = Replay(plan, record, session)
    replay.run(past[1:])
    scheduler = Scheduler(plan, record)
    scheduler.take_up(replay, at=0.0)
    engine = SimulatedEngine(timed(salt))
    engine._saved = checkpoints(past)
    result = _Simulation(scheduler, session, engine, 0.0, keep_facts=True).run()
    return [*past, *result.facts[1:]]


def checkpoints(past: list[facts.AnyFact]) -> dict[int, int]:
    """Return the last step of each trial that a checkpoint was saved after; at milestones the decision comes first."""
    saved: dict[int, int] = {}
    milestones: dict[int, Milestones] = {}
    for fact in past:
        if isinstance(fact, facts.TrialSuggested):
            milestones[fact.trial] = fact.milestones
        elif isinstance(fact, facts.Judged) or (
            isinstance(fact, facts.Reported) and fact.step not in milestones[fact.trial]
        ):
            saved[fact.trial] = fact.step
    return saved


@settings(max_examples=50)
@given(milestones=st.booleans(), share=st.floats(0, 1), salt=st.integers(0, 10**6))
def test_it_suggests_the_same_and_comes_to_the_same_results(milestones: bool, share: float, salt: int) -> None:
    whole = whole_search(milestones)
    cut = 1 + int(share * (len(whole.facts) - 2))
    journal = take_up(whole.facts[:cut], milestones, salt)
    assert suggestions(journal) == suggestions(whole.facts)
    before, after = whole.record.trials, fold(journal).trials
    assert [trial.state for trial in after.values()] == [trial.state for trial in before.values()]
    assert [trial.value for trial in after.values()] == [trial.value for trial in before.values()]


@pytest.mark.parametrize("milestones", [False, True])
def test_what_has_ended_does_not_run_again(milestones: bool) -> None:
    whole = whole_search(milestones)
    past = whole.facts[: len(whole.facts) * 2 // 3]
    ended = {fact.trial for fact in past if isinstance(fact, facts.TrialEnded)}
    assert ended
    journal = take_up(past, milestones, salt=1)
    started_later = {fact.trial for fact in journal[len(past) :] if isinstance(fact, facts.AttemptStarted)}
    assert not ended & started_later
    assert fold(journal).counts[TrialState.RUNNING] == 0
