"""Bringing versions in, in virtual time."""

from __future__ import annotations

import pytest

from cargobike.serving.facts import Plan, Share
from cargobike.serving.supervising.policy import events
from cargobike.serving.supervising.policy.release import Figures, judge
from cargobike.serving.wire import VersionLoad
from support.serving_world import World

GOOD = VersionLoad(answered=10, latency_sum_s=0.1)
BAD = VersionLoad(answered=5, failed=5, latency_sum_s=0.05)
SLOW = VersionLoad(answered=10, latency_sum_s=5.0)


def serving(replicas: int = 2, **settings: float) -> World:
    world = World(least=replicas, most=replicas, **settings)  # type: ignore[arg-type]
    world.begin()
    world.pass_time(3.0)
    assert world.ready(1) == replicas
    assert world.is_routed(Share(1))
    return world


def test_a_roll_starts_all_shifts_and_then_drains() -> None:
    world = serving(3)
    ask = world.roll(2)
    world.pass_time(0.9)
    assert world.is_routed(Share(1))
    assert world.ready(1) == 3
    world.pass_time(0.2)
    assert world.is_routed(Share(2))
    assert world.told[ask] == ("", {"version": 2, "phase": "steady"})
    world.pass_time(1.0)
    assert {replica.version for replica in world.running.values()} == {2}
    assert world.ready(2) == 3
    assert world.lost == []
    assert world.outcomes() == [(1, "released"), (2, "released")]


def test_a_version_that_cannot_be_loaded_leaves_the_other_serving_and_says_why() -> None:
    world = serving()
    world.broken[2] = "Traceback (most recent call last):\nOSError: no weights"
    ask = world.roll(2)
    world.pass_time(5.0)
    assert world.told[ask][0].endswith("OSError: no weights")
    assert world.is_routed(Share(1))
    assert world.ready(1) == 2
    assert world.outcomes()[-1] == (2, "failed")
    assert {replica.version for replica in world.running.values()} == {1}


def test_a_version_that_crashes_while_it_loads_gets_three_attempts() -> None:
    world = serving()
    world.broken[2] = ""
    ask = world.roll(2)
    world.pass_time(30.0)
    assert "its replicas died 3 times" in world.told[ask][0]
    assert world.is_routed(Share(1))


def test_a_first_version_that_cannot_be_loaded_ends_the_deployment() -> None:
    world = World()
    world.broken[1] = "OSError: no weights"
    world.begin()
    world.pass_time(5.0)
    assert world.finished == events.Finish("OSError: no weights")
    assert not world.running
    assert not world.front_is_up


def test_a_replica_that_takes_too_long_to_load_is_given_up() -> None:
    world = World(load_s=1e9)
    world.begin()
    world.pass_time(4 * world.limits.load_s + 60)
    assert world.finished is not None
    assert "died 3 times" in world.finished.error


def test_replicas_that_were_killed_in_earlier_rolls_do_not_slow_the_next_one() -> None:
    world = serving(2)
    for number in range(20):
        world.roll(2 - number % 2)
        world.pass_time(0.2)
        world.kill(max(world.running))
        world.pass_time(2.5)
        assert world.is_routed(Share(2 - number % 2))
    assert world.lost == []


def test_a_second_roll_is_refused_while_the_first_goes_on() -> None:
    world = serving()
    world.roll(2)
    ask = world.roll(3)
    assert "version 2 is being brought in" in world.told[ask][0]


def test_rolling_to_what_serves_changes_nothing() -> None:
    world = serving()
    facts = len(world.facts)
    assert world.told[world.roll(1)] == ("", {"version": 1, "already": True})
    assert len(world.facts) == facts


def test_a_rollback_goes_to_the_version_before() -> None:
    world = serving()
    world.roll(2)
    world.pass_time(3.0)
    ask = world.ask(events.RollbackAsked)
    world.pass_time(3.0)
    assert world.told[ask][0] == ""
    assert world.is_routed(Share(1))
    assert world.ready(1) == 2
    assert world.lost == []


def test_a_rollback_of_a_roll_that_goes_on_takes_it_back_at_once() -> None:
    world = serving()
    world.roll(2)
    world.pass_time(0.5)
    ask = world.ask(events.RollbackAsked)
    assert world.told[ask] == ("", {"taken_back": 2})
    world.pass_time(3.0)
    assert {replica.version for replica in world.running.values()} == {1}
    assert world.lost == []


def test_there_is_nothing_to_go_back_to_from_the_first_version() -> None:
    world = serving()
    assert "no version to go back to" in world.told[world.ask(events.RollbackAsked)][0]


def test_a_canary_gets_its_share_and_is_promoted() -> None:
    world = serving(10)
    ask = world.roll(2, Plan(canary=0.1, requests=100, watch_s=5.0))
    world.pass_time(2.0)
    assert world.told[ask] == ("", {"version": 2, "phase": "watched"})
    assert world.is_routed(Share(1, 0.9), Share(2, 0.1))
    assert world.ready(2) == 1
    world.traffic(3.5, v1=GOOD, v2=GOOD)
    assert world.ready(2) == 1
    world.traffic(1.0, v1=GOOD, v2=GOOD)
    assert world.is_routed(Share(1, 0.9), Share(2, 0.1))  # until the others are ready, too
    world.pass_time(3.0)
    assert world.is_routed(Share(2))
    assert world.ready(2) == 10
    assert world.lost == []


@pytest.mark.parametrize(("what", "word"), [(BAD, "50.0% of its requests failed"), (SLOW, "500.0 ms")])
def test_a_canary_that_is_worse_is_taken_back(what: VersionLoad, word: str) -> None:
    world = serving(4)
    world.roll(2, Plan(canary=0.25))
    world.pass_time(2.0)
    world.traffic(2.0, v1=GOOD, v2=what)
    assert world.is_routed(Share(1))
    assert world.outcomes()[-1] == (2, "rolled back")
    assert word in world.policy.release.last_error
    world.pass_time(2.0)
    assert {replica.version for replica in world.running.values()} == {1}
    assert world.lost == []


def test_a_canary_whose_replicas_die_is_taken_back() -> None:
    world = serving(4)
    world.roll(2, Plan(canary=0.25))
    world.pass_time(2.0)
    for _ in range(3):
        world.kill(next(number for number, each in world.running.items() if each.version == 2))
        world.pass_time(2.0)
    assert world.is_routed(Share(1))
    assert world.outcomes()[-1] == (2, "failed")


def test_a_shadow_gets_copies_and_serves_only_when_promoted() -> None:
    world = serving()
    world.roll(2, Plan(shadow=True))
    world.pass_time(2.0)
    assert world.is_routed(Share(1), shadow=2)
    world.traffic(60.0, v1=GOOD, v2=VersionLoad(answered=10, latency_sum_s=0.1, differed=1))
    assert world.shadow == 2
    assert world.policy.release.figures[2].differed == 240
    ask = world.ask(events.PromoteAsked)
    world.pass_time(2.0)
    assert world.told[ask][0] == ""
    assert world.is_routed(Share(2))
    assert world.lost == []


def test_versions_compared_by_a_key_stay_until_a_user_decides() -> None:
    world = serving()
    world.roll(2, Plan(canary=0.5, by="user", decide=False))
    world.pass_time(2.0)
    world.traffic(120.0, v1=GOOD, v2=SLOW)
    assert world.is_routed(Share(1, 0.5), Share(2, 0.5), by="user")
    world.ask(events.RollbackAsked)
    assert world.is_routed(Share(1))


def test_nothing_can_be_promoted_that_is_not_watched() -> None:
    world = serving()
    assert "no version is being watched" in world.told[world.ask(events.PromoteAsked)][0]


def test_few_requests_judge_nothing() -> None:
    plan = Plan(canary=0.1, watch_s=0.0)
    assert judge(plan, Figures(1000), Figures(1, 2), 100.0) == ("wait", "")
    assert judge(plan, Figures(1000), Figures(99), 100.0) == ("wait", "")
    assert judge(plan, Figures(1000), Figures(100), 100.0)[0] == "promote"
    assert judge(plan, Figures(900, 100), Figures(90, 10), 100.0)[0] == "wait"
