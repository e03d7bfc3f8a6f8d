"""Replacing replicas, scaling and stopping, in virtual time; and everything at once in random orders."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.serving.facts import DeploymentStopped, Plan, ReplicaEnded, Scaled, Share
from cargobike.serving.record import DeploymentRecord
from cargobike.serving.specification import Limits, Scaling, Specification
from cargobike.serving.supervising.policy import events
from cargobike.serving.supervising.policy.supervisor import Supervisor
from support.serving_world import World


def serving(replicas: int = 2, **settings: object) -> World:
    world = World(least=replicas, most=replicas, **settings)  # type: ignore[arg-type]
    world.begin()
    world.pass_time(3.0)
    return world


def test_a_replica_that_died_is_replaced_at_once() -> None:
    world = serving()
    world.kill(1)
    assert len(world.running) == 2
    world.pass_time(1.5)
    assert world.ready(1) == 2
    ended = [fact for fact in world.facts if isinstance(fact, ReplicaEnded)]
    assert [(fact.replica, fact.reason, fact.wanted) for fact in ended] == [(1, "was ended by SIGKILL", False)]


def test_replicas_that_keep_dying_are_started_after_pauses() -> None:
    world = serving(1)
    world.broken[1] = ""
    world.kill(1)
    world.pass_time(120.0)
    started = world.policy.fleet.last_number
    assert 5 <= started <= 15
    assert world.expected is not None
    assert world.expected.refuse
    del world.broken[1]
    world.pass_time(40.0)
    assert world.ready(1) == 1
    assert not world.expected.refuse


def test_a_replica_that_hangs_is_killed_and_replaced() -> None:
    world = serving()
    world.hear(events.ReplicaLost(at=world.now, replica=1, why="hung"))
    assert 1 not in world.running
    world.pass_time(2.0)
    assert world.ready(1) == 2


def test_a_replica_that_lost_its_connection_and_does_not_come_back_is_killed() -> None:
    world = serving()
    world.running[1].is_connected = False
    world.hear(events.ReplicaLost(at=world.now, replica=1, why="closed"))
    world.pass_time(5.0)
    assert 1 in world.running
    world.pass_time(8.0)
    assert 1 not in world.running
    assert world.ready(1) == 2


def test_a_replica_that_has_grown_is_drained_after_another_is_ready() -> None:
    world = serving(1, limits=Limits(memory_bytes=1000))
    world.hear(events.ReplicaGrew(at=world.now, replica=1, memory_bytes=2000))
    world.pass_time(0.9)
    assert world.ready(1) == 1
    assert len(world.running) == 2
    world.pass_time(1.0)
    assert list(world.running) == [2]
    assert world.ready(1) == 1
    assert world.lost == []


def test_a_front_that_died_is_started_again_and_told_everything() -> None:
    world = serving()
    world.routes, world.expected = (), None
    world.kill_front()
    world.pass_time(1.0)
    assert world.front_is_up
    assert world.is_routed(Share(1))
    assert world.ready(1) == 2
    assert len(world.running) == 2


def test_a_front_that_keeps_dying_is_started_after_pauses() -> None:
    world = serving()
    for _ in range(20):
        world.kill_front()
        world.pass_time(0.6)
    world.pass_time(60.0)
    assert world.front_is_up
    assert world.ready(1) == 2


def test_load_brings_replicas_and_idleness_ends_them() -> None:
    world = World(scaling=Scaling(least=0, most=4, target=8, idle_s=60, window_s=10))
    world.begin()
    world.pass_time(3.0)
    assert world.ready(1) == 1
    world.load(at_work=8, waiting=24)
    assert len(world.running) == 4
    world.pass_time(70.0)
    assert world.running == {}
    assert world.expected == events.Expect(1)  # the first request waits for it
    world.load(waiting=1)
    world.pass_time(1.2)
    assert world.ready(1) == 1
    assert world.lost == []
    assert [fact.replicas for fact in world.facts if isinstance(fact, Scaled)] == [4, 0, 1]


def test_a_roll_of_a_deployment_that_sleeps_wakes_it() -> None:
    world = World(scaling=Scaling(least=0, most=4, idle_s=10))
    world.begin()
    world.pass_time(30.0)
    assert world.running == {}
    ask = world.roll(2)
    world.pass_time(5.0)
    assert world.told[ask][0] == ""
    assert world.is_routed(Share(2))


def test_other_bounds_hold_at_once() -> None:
    world = serving(1)
    world.ask(events.ScaleAsked, least=3, most=5)
    world.pass_time(2.0)
    assert world.ready(1) == 3
    world.ask(events.ScaleAsked, least=1, most=1)
    world.pass_time(2.0)
    assert world.ready(1) == 1
    assert world.lost == []


def test_a_stop_lets_the_front_answer_first_and_leaves_nothing() -> None:
    world = serving(3)
    ask = world.ask(events.StopAsked, reason="enough")
    assert world.front_is_up
    assert len(world.running) == 3
    world.pass_time(2.0)
    assert world.finished == events.Finish()
    assert world.running == {}
    assert world.told[ask] == ("", None)
    assert world.facts[-1] == DeploymentStopped(at=world.facts[-1].at, reason="enough")


@pytest.mark.parametrize(("limits", "within_s"), [(Limits(), 30.0), (Limits(deadline_s=120, leave_s=3), 123.0)])
def test_requests_that_are_there_have_until_their_deadline_when_everything_ends(
    limits: Limits, within_s: float
) -> None:
    specification = Specification(name="m", model="m", version=1, limits=limits)
    policy = Supervisor(DeploymentRecord(specification, least=1, most=1, current=1), 0.0)
    policy.handle(events.FrontUp(at=1.0))
    assert events.EndFront(within_s) in policy.handle(events.StopAsked(at=10.0))
    assert policy.handle(events.Ticked(at=10.0 + within_s)) == []
    assert events.EndFront(kill=True) in policy.handle(events.Ticked(at=11.0 + within_s))


def test_what_is_asked_of_a_deployment_that_ends_is_refused() -> None:
    world = serving(1)
    world.ask(events.StopAsked)
    assert "being stopped" in world.told[world.roll(2)][0]


def record(**fields: object) -> DeploymentRecord:
    specification = Specification(name="m", model="m", version=1, scaling=Scaling(least=2, most=2))
    return DeploymentRecord(specification, least=2, most=2, **fields)  # type: ignore[arg-type]


def test_a_new_supervisor_adopts_what_runs_and_replaces_what_does_not() -> None:
    world = World(record=record(current=1, last_replica=7))
    world.begin(version=0, found={6: 1, 9: 1})
    world.pass_time(2.0)
    assert sorted(world.running) == [6, 9]
    assert world.is_routed(Share(1))
    world.kill(6)
    world.pass_time(2.0)
    assert sorted(world.running) == [9, 10]


def test_a_new_supervisor_goes_on_with_a_release() -> None:
    world = World(record=record(current=1, candidate=2, plan=Plan(canary=0.5), last_replica=3))
    world.begin(version=0, found={1: 1, 2: 1, 3: 2})
    world.pass_time(2.0)
    assert world.is_routed(Share(1, 0.5), Share(2, 0.5))
    assert sorted(world.running) == [1, 2, 3]


def test_a_replica_of_a_stranger_is_sent_away() -> None:
    world = serving(1)
    commands = world.policy.handle(events.ReplicaUp(at=world.now, replica=99, version=1))
    assert events.EndReplica(99, kill=True) in commands


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_no_request_is_lost_by_us_and_everything_ends(seed: int) -> None:
    draw = random.Random(seed)
    world = World(least=draw.randint(0, 2), most=draw.randint(2, 4), load_s=draw.choice([0.05, 1.0, 5.0]))
    world.begin()
    world.pass_time(8.0)
    version = 1
    for _ in range(40):
        world.pass_time(draw.choice([0.0, 0.05, 0.3, 1.0, 6.0]))
        deed = draw.randrange(10)
        if deed == 0 and world.running:
            world.kill(draw.choice(list(world.running)))
        elif deed == 1 and world.front_is_up:
            world.kill_front()
        elif deed in {2, 3}:
            version += 1
            if draw.random() < 0.3:
                world.broken[version] = draw.choice(["", "ValueError: no"])
            plan = draw.choice([Plan(), Plan(canary=0.3, requests=5, watch_s=1.0), Plan(shadow=True)])
            world.roll(version, plan)
        elif deed == 4:
            world.ask(draw.choice([events.RollbackAsked, events.PromoteAsked]))
        elif deed == 5:
            least = draw.randint(0, 2)
            world.ask(events.ScaleAsked, least=least, most=draw.randint(max(1, least), 4))
        elif deed == 6 and world.front_is_up:
            world.load(arrived=draw.randint(0, 9), waiting=draw.randint(0, 200), at_work=draw.randint(0, 64))
    world.broken.clear()
    world.pass_time(90.0)
    release, scaler = world.policy.release, world.policy.scaler
    assert world.front_is_up
    if not release.candidate:
        assert {each.version for each in world.running.values()} <= {release.current}
    assert world.ready(release.current) == scaler.replicas
    assert world.routes == release.routes()[0]
    assert world.lost == []
    world.ask(events.StopAsked)
    world.pass_time(60.0)
    assert world.finished == events.Finish()
    assert world.running == {}


@pytest.mark.parametrize("least", [0, 1])
def test_a_stop_before_anything_is_ready_ends_too(least: int) -> None:
    world = World(least=least, most=2)
    world.begin()
    world.ask(events.StopAsked)
    world.pass_time(60.0)
    assert world.finished is not None
    assert world.running == {}
