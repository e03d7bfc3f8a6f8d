"""Who works, who is free and who is on the way, without a scheduler around it."""

from __future__ import annotations

from typing import Any

import pytest

from cargobike.core.record import ExperimentRecord
from cargobike.core.running.ending import process_ending
from cargobike.core.running.member import Role
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.events import Outbox
from cargobike.experiments.scheduling.roster import Roster
from support.scheduler_world import HEADER


def made(most: int = 3, max_losses: int = 2, role: Role | None = None) -> tuple[Roster, Outbox]:
    out = Outbox(ExperimentRecord(HEADER))
    return (Roster(out, most, max_losses) if role is None else Roster(out, most, max_losses, role)), out


def join(roster: Roster, *workers: str, host: str = "here") -> None:
    for worker in workers:
        roster.arrived(ev.WorkerArrived(at=0.0, worker=worker, host=host))


def test_it_is_complete_when_as_many_as_may_be_are_there_or_on_their_way() -> None:
    roster, _ = made(most=2)
    complete = [roster.is_complete]
    roster.start_up_to(1)
    complete.append(roster.is_complete)
    roster.start_up_to(5)
    complete.append(roster.is_complete)
    assert (roster.starting, roster.idle, roster.busy) == (2, 0, 0)
    join(roster, "w0", "w1")
    complete.append(roster.is_complete)
    roster.take(1, 7)
    complete.append(roster.is_complete)
    assert (roster.starting, roster.idle, roster.busy) == (0, 1, 1)
    assert complete == [False, False, True, True, True]


def test_names_that_an_earlier_driver_gave_are_not_given_again() -> None:
    roster, _ = made()
    roster.skip_names(["w0", "w3", "s9", "worker", "w"])
    roster.start_up_to(1)
    assert "w4" in roster
    servers, _ = made(role=Role.SERVER)
    servers.skip_names(["w12", "s1"])
    servers.start_up_to(1)
    assert "s2" in servers
    fresh, _ = made()
    fresh.skip_names([])
    fresh.start_up_to(1)
    assert "w0" in fresh


def test_the_one_that_has_been_free_for_longest_comes_first() -> None:
    roster, _ = made()
    roster.start_up_to(3)
    join(roster, "w2", "w0", "w1")
    assert roster.take(1, 0) == ("w2",)
    roster.give_back("w2")
    assert [roster.take(1, 0), roster.take(1, 0), roster.take(1, 0)] == [("w0",), ("w1",), ("w2",)]


def test_the_host_of_a_worker_is_known_while_it_is_there() -> None:
    roster, _ = made()
    roster.start_up_to(1)
    assert roster.host_of("w0") == ""
    join(roster, "w0", host="tower")
    assert roster.host_of("w0") == "tower"


def test_a_worker_that_comes_back_from_a_trial_ends_a_row_of_losses() -> None:
    roster, _ = made(most=3, max_losses=0)
    roster.start_up_to(3)
    join(roster, "w0", "w1")
    roster.take(1, 0)
    roster.gone(ev.WorkerGone(at=1.0, worker="w1", ending=process_ending(-9)))
    roster.gone(ev.WorkerGone(at=1.0, worker="w2", ending=process_ending(-9)))
    assert (roster.losses_in_row, roster.host_of("w1")) == (2, "")
    roster.give_back("w0")
    assert roster.losses_in_row == 0


def commands_of(out: Outbox) -> list[Any]:
    return [command for command in out.take() if not isinstance(command, ev.Record)]


def facts_of(out: Outbox) -> list[Any]:
    return [command.fact for command in out.take() if isinstance(command, ev.Record)]


def lose(roster: Roster, worker: str) -> int | None:
    return roster.gone(ev.WorkerGone(at=2.0, worker=worker, ending=process_ending(-9)))


def test_workers_are_started_up_to_the_number_that_is_wanted_and_allowed() -> None:
    roster, out = made(most=3)
    roster.start_up_to(2)
    assert commands_of(out) == [ev.StartWorker("w0", Role.WORKER), ev.StartWorker("w1", Role.WORKER)]
    join(roster, "w0")
    roster.take(1, 0)
    roster.start_up_to(2)
    roster.start_up_to(1)
    assert commands_of(out) == []
    roster.start_up_to(9)
    assert commands_of(out) == [ev.StartWorker("w2", Role.WORKER)]
    servers, sent = made(role=Role.SERVER)
    servers.start_up_to(1)
    assert commands_of(sent) == [ev.StartWorker("s0", Role.SERVER)]


def test_only_those_that_were_started_can_come_and_only_once() -> None:
    roster, out = made()
    roster.start_up_to(1)
    out.take()
    join(roster, "w9")
    assert ("w9" in roster, roster.has_had_workers, facts_of(out)) == (False, False, [])
    roster.arrived(ev.WorkerArrived(at=3.0, worker="w0", host="tower", pid=7, gpus=("0",)))
    (joined,) = facts_of(out)
    assert (joined.at, joined.worker, joined.host, joined.pid, joined.gpus, joined.role) == (
        3.0,
        "w0",
        "tower",
        7,
        ("0",),
        Role.WORKER,
    )
    join(roster, "w0", host="elsewhere")
    assert (roster.idle, roster.host_of("w0"), roster.has_had_workers, facts_of(out)) == (1, "tower", True, [])


def test_all_that_are_starting_free_or_busy_are_ours() -> None:
    roster, _ = made()
    roster.start_up_to(3)
    join(roster, "w0", "w1")
    roster.take(1, 5)
    assert [name in roster for name in ("w0", "w1", "w2", "w3")] == [True, True, True, False]
    for name in ("w0", "w1", "w2"):
        lose(roster, name)
    assert [name in roster for name in ("w0", "w1", "w2")] == [False] * 3


def test_a_lost_worker_gives_its_trial_back_and_only_one_without_counts() -> None:
    roster, out = made()
    roster.start_up_to(3)
    join(roster, "w0", "w1", host="tower")
    assert roster.take(1, 5) == ("w0",)
    out.take()
    assert lose(roster, "w0") == 5
    assert (roster.losses_in_row, roster.host_of("w0"), roster.busy) == (0, "", 0)
    (lost,) = facts_of(out)
    assert (lost.at, lost.worker, lost.cause) == (2.0, "w0", process_ending(-9).kind)
    assert "SIGKILL" in lost.reason
    assert lose(roster, "w1") is None
    assert lose(roster, "w2") is None
    assert (roster.losses_in_row, roster.idle, roster.starting, len(facts_of(out))) == (2, 0, 0, 2)
    assert lose(roster, "w1") is None
    assert (roster.losses_in_row, facts_of(out)) == (2, []), "it was lost before"


@pytest.mark.parametrize("has_come", [True, False])
def test_a_machine_may_take_all_its_workers_along_unless_none_ever_came(has_come: bool) -> None:
    roster, _ = made(most=4, max_losses=2)
    if has_come:
        roster.start_up_to(1)
        join(roster, "w0")
        roster.take(1, 0)
    allowed = 4 if has_come else 2
    for lost in range(1, 7):
        roster.start_up_to(2)
        lose(roster, f"w{lost - (not has_come)}")
        assert roster.losses_in_row == lost
        assert roster.loses_too_many is (lost > allowed)


def on_hosts(**hosts: int) -> Roster:
    """A roster with so many free workers on each host, which came in turn."""
    roster, _ = made(most=sum(hosts.values()))
    roster.start_up_to(sum(hosts.values()))
    left, number = dict(hosts), 0
    while any(left.values()):
        for host in hosts:
            if left[host]:
                join(roster, f"w{number}", host=host)
                left[host] -= 1
                number += 1
    return roster


def test_several_are_taken_from_the_smallest_host_that_is_large_enough() -> None:
    roster = on_hosts(large=4, small=2, single=1)
    assert [roster.host_of(name) for name in roster.take(2, 1)] == ["small", "small"]
    assert (roster.idle, roster.busy) == (5, 2)
    assert [roster.host_of(name) for name in roster.take(3, 2)] == ["large"] * 3
    assert roster.take(2, 3) == ("w2", "w6"), "from two hosts, as nothing else is left"


def test_a_single_one_is_taken_from_any_host() -> None:
    assert on_hosts(large=3, single=1).take(1, 0) == ("w0",)


def test_where_no_host_is_large_enough_the_largest_come_first() -> None:
    roster = on_hosts(single=1, pair=2, large=3)
    taken = roster.take(4, 1)
    assert [roster.host_of(name) for name in taken] == ["large"] * 3 + ["pair"]
    assert list(taken[:3]) == sorted(taken[:3])


def test_those_of_one_host_follow_each_other_by_number() -> None:
    roster, _ = made(most=12)
    roster.start_up_to(12)
    join(roster, "w10", "w9", "w2", host="here")
    assert roster.take(3, 1) == ("w2", "w9", "w10")


def test_workers_that_are_not_needed_any_more_are_released() -> None:
    roster, out = made()
    roster.start_up_to(3)
    join(roster, "w0", "w1")
    roster.take(1, 0)
    out.take()
    roster.release_idle()
    assert commands_of(out) == [ev.ReleaseWorker("w1")]
    assert (roster.idle, roster.starting, roster.busy) == (0, 1, 1)
    roster.give_back("w0")
    roster.release_all()
    assert commands_of(out) == [ev.ReleaseWorker("w0"), ev.ReleaseWorker("w2")]
    assert (roster.idle, roster.starting, roster.busy) == (0, 0, 0)
