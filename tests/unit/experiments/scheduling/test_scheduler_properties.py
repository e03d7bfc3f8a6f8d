"""Whatever the order of joins, losses, reports, answers and ends: nothing is lost, doubled or left hanging."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.records import IDLE, Suggestion
from cargobike.experiments.scheduling.plan import Plan
from support.scheduler_world import World


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    gang = draw(st.integers(1, 4))
    servers = draw(st.sampled_from([0, 0, 0, 1, 2]))
    deterministic = draw(st.booleans())
    may_give_ahead = gang == 1 and not servers and not deterministic
    return Plan(
        workers=draw(st.integers(gang, 8)),
        gang=gang,
        least_gang=draw(st.none() | st.none() | st.integers(1, gang)),
        servers=servers,
        is_distributed=servers > 0,
        stall_timeout_s=draw(st.none() | st.just(3.0)),
        num_trials=draw(st.none() | st.integers(1, 12)),
        ask_ahead=draw(st.integers(0, 3)),
        ahead=draw(st.integers(0, 4)) if may_give_ahead else 0,
        deterministic=deterministic,
        every_report_is_milestone=draw(st.booleans()),
        max_attempts=draw(st.integers(1, 4)),
        max_failures=draw(st.none() | st.integers(0, 3)),
        fail_fast=draw(st.integers(0, 3)),
        trial_timeout_s=draw(st.none() | st.just(5.0)),
        timeout_s=draw(st.none() | st.just(40.0)),
        max_worker_losses=draw(st.integers(1, 12)),
    )


LAST_ANSWERS: list[Any] = [None, IDLE, Suggestion(params={"x": 0}), Suggestion(resume=0)]


def long_stories(seed: int, length: int) -> list[int]:
    source = random.Random(seed)
    return [source.randrange(10_000) for _ in range(length)]


# Lists shrink to the shortest story that fails; the others are longer than any list would grow.
stories = st.lists(st.integers(0, 10_000)) | st.builds(long_stories, st.integers(0, 2**32), st.integers(20, 400))


@settings(max_examples=300)
@given(plan=plans(), choices=stories, last_answer=st.integers(0, 3))
def test_every_order_of_events_ends_well(plan: Plan, choices: list[int], last_answer: int) -> None:
    world = World(plan)
    for choice in choices:
        possible = world.choices()
        world.happen(possible[choice % len(possible)](choice // len(possible)))
    answer = LAST_ANSWERS[last_answer]
    # Without a number of trials it is the optimizer that must come to an end.
    unending = plan.num_trials is None and isinstance(answer, Suggestion) and answer.resume is None
    world.settle(None if unending else answer)
