"""When gangs are put together, of how many workers, and when they grow; without a scheduler around it."""

from __future__ import annotations

from typing import Any

import pytest

from cargobike.core.facts import TrialSuggested
from cargobike.core.record import ExperimentRecord
from cargobike.experiments.scheduling import events as ev
from cargobike.experiments.scheduling.attempt import Attempt
from cargobike.experiments.scheduling.gangs import Gangs
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.scheduling.running import Running
from support.scheduler_world import HEADER


class Setting:
    """Gangs and the attempts that run."""

    def __init__(self, **plan: Any) -> None:
        self.plan = Plan(**plan)
        self.out = ev.Outbox(ExperimentRecord(HEADER))
        for trial in range(3):
            self.out.fact(TrialSuggested(at=0.0, trial=trial, params={"x": trial}))
        self.gangs = Gangs(self.plan, self.out)
        self.running = Running(self.out, self.out.record.trials, None)

    def start(self, gangs: int = 1) -> list[str]:
        """Start workers for so many gangs and return their names."""
        self.out.take()
        self.gangs.start_up_to(gangs, self.running)
        return [command.worker for command in self.out.take() if isinstance(command, ev.StartWorker)]

    def deadline(self) -> float | None:
        return self.gangs.next_deadline

    def join(self, *workers: str, host: str = "here") -> None:
        for worker in workers:
            self.gangs.arrived(ev.WorkerArrived(at=0.0, worker=worker, host=host))

    def run(self, size: int, trial: int = 0) -> Attempt:
        attempt = self.gangs.form(trial, 1, size, None)
        self.running.start(attempt, 0.0)
        return attempt

    def enlarged(self) -> list[str]:
        """Enlarge what can be, and return the workers that are made to end for it."""
        self.out.take()
        self.gangs.enlarge(self.running)
        return [command.worker for command in self.out.take() if isinstance(command, ev.StopAttempt)]


def test_a_gang_waits_until_it_is_complete() -> None:
    setting = Setting(workers=4, gang=2)
    assert not setting.gangs.is_elastic
    assert setting.start() == ["w0", "w1"]
    sizes = [setting.gangs.size_now(0.0)]
    for worker in ("w0", "w1"):
        setting.join(worker)
        sizes.append(setting.gangs.size_now(0.0))
    assert sizes == [0, 0, 2]
    assert setting.deadline() is None
    setting.run(2)
    assert setting.start() == ["w2", "w3"], "besides those that are busy"
    setting.join("w2", "w3")
    assert setting.gangs.size_now(0.0) == 2, "never more than a gang"


def test_a_gang_waits_for_its_servers() -> None:
    setting = Setting(workers=4, gang=2, servers=1)
    assert setting.start() == ["w0", "w1", "s0"]
    setting.join("w0", "w1", host="a")
    assert setting.gangs.size_now(0.0) == 0
    assert not setting.gangs.is_complete
    setting.join("s0", host="b")
    assert setting.gangs.size_now(0.0) == 2
    attempt = setting.run(2)
    assert (attempt.workers, attempt.hosts, attempt.servers) == (("w0", "w1", "s0"), ("a", "a", "b"), 1)
    assert setting.gangs.roster_of("s0") is setting.gangs.servers
    assert setting.gangs.roster_of("w0") is setting.gangs.roster
    assert setting.start() == ["w2", "w3", "s1"]
    assert setting.gangs.is_complete


@pytest.mark.parametrize("late", ["w", "s"])
def test_all_workers_and_all_servers_make_it_complete(late: str) -> None:
    setting = Setting(workers=1, servers=1, is_distributed=True)
    assert setting.start() == ["w0", "s0"]
    assert setting.gangs.is_complete
    setting.join("w0", "s0")
    roster = setting.gangs.roster_of(f"{late}0")
    roster.take(1, 0)
    roster.give_back(f"{late}0")
    roster.release_idle()
    assert not setting.gangs.is_complete


def test_one_worker_needs_no_hosts_and_no_servers() -> None:
    setting = Setting(workers=1)
    setting.start()
    setting.join("w0", host="a")
    attempt = setting.gangs.form(2, 4, 1, 9)
    assert (attempt.trial, attempt.number, attempt.workers, attempt.horizon) == (2, 4, ("w0",), 9)
    assert (attempt.hosts, attempt.servers) == ((), 0)


def test_names_of_workers_and_servers_that_were_given_are_skipped() -> None:
    setting = Setting(workers=2, gang=2, servers=1)
    setting.gangs.skip_names(iter(["w4", "s2"]))
    assert setting.start() == ["w5", "w6", "s3"]


def test_an_elastic_gang_waits_so_long_for_workers_on_their_way() -> None:
    setting = Setting(workers=3, gang=3, least_gang=2, elastic_wait_s=5.0)
    gangs = setting.gangs
    assert gangs.is_elastic
    setting.start()
    setting.join("w0")
    assert (gangs.size_now(100.0), setting.deadline()) == (0, None), "too few to begin with"
    setting.join("w1")
    assert [gangs.size_now(at) for at in (100.0, 103.0, 104.9)] == [0, 0, 0]
    assert setting.deadline() == 105.0
    assert gangs.size_now(105.0) == 2
    setting.run(2)
    assert setting.deadline() is None
    for worker in ("w0", "w1"):
        gangs.roster.give_back(worker)
    assert gangs.size_now(200.0) == 0, "each gang waits anew"
    assert setting.deadline() == 205.0
    setting.join("w2")
    assert gangs.size_now(201.0) == 3


def test_an_elastic_gang_waits_only_if_others_are_on_their_way() -> None:
    setting = Setting(workers=3, gang=3, least_gang=1)
    setting.gangs.roster.start_up_to(1)
    setting.join("w0")
    assert setting.gangs.size_now(0.0) == 1


def test_a_gang_that_is_too_small_has_more_workers_started_for_it() -> None:
    setting = Setting(workers=3, gang=3, least_gang=1)
    setting.gangs.roster.start_up_to(1)
    setting.join("w0")
    setting.run(1)
    assert setting.gangs.keeps_idle(setting.running)
    assert setting.start(0) == ["w1", "w2"]


def test_no_more_are_started_where_no_gang_can_grow() -> None:
    whole = Setting(workers=4, gang=2, least_gang=1)
    whole.start()
    whole.join("w0", "w1")
    whole.run(2)
    assert not whole.gangs.keeps_idle(whole.running)
    assert whole.start(0) == []
    fixed = Setting(workers=4, gang=2)
    fixed.start()
    fixed.join("w0", "w1")
    attempt = fixed.run(2)
    assert not fixed.gangs.keeps_idle(fixed.running)
    attempt.lost = "a worker was lost"
    assert fixed.gangs.keeps_idle(fixed.running), "it needs its workers when it starts again"
    assert fixed.start(0) == []


def test_single_workers_keep_no_others_idle() -> None:
    setting = Setting(workers=2)
    setting.start()
    setting.join("w0")
    setting.run(1).lost = "it was lost"
    assert not setting.gangs.keeps_idle(setting.running)


def test_a_gang_grows_only_after_a_checkpoint_and_with_free_workers() -> None:
    setting = Setting(workers=3, gang=3, least_gang=1, servers=1)
    setting.gangs.servers.start_up_to(1)
    setting.gangs.roster.start_up_to(3)
    setting.join("s0", "w0")
    attempt = setting.run(1)
    assert setting.enlarged() == [], "nothing was saved"
    attempt.saved_step = 7
    assert setting.enlarged() == [], "no worker is free"
    setting.join("w1", "w2")
    attempt.saved_step = None
    assert setting.enlarged() == [], "much would be lost"
    attempt.saved_step = 7
    assert setting.enlarged() == ["w0", "s0"]
    assert attempt.re_forms
    assert attempt.lost == "re-formed at step 7: 2 more came to join it"
    assert setting.enlarged() == [], "it is being ended"
    assert setting.gangs.keeps_idle(setting.running)


def test_a_gang_takes_no_more_than_it_lacks() -> None:
    setting = Setting(workers=6, gang=3, least_gang=1, servers=1)
    setting.gangs.servers.start_up_to(1)
    setting.gangs.roster.start_up_to(6)
    setting.join("s0", "w0", "w1")
    attempt = setting.run(2)
    setting.join("w2", "w3", "w4")
    attempt.saved_step = 0
    assert setting.enlarged() == ["w0", "w1", "s0"]
    assert attempt.lost == "re-formed at step 0: 1 more came to join it"


@pytest.mark.parametrize(("gang", "least"), [(2, None), (2, 1)])
def test_gangs_that_are_whole_or_fixed_never_grow(gang: int, least: int | None) -> None:
    setting = Setting(workers=4, gang=gang, least_gang=least)
    setting.gangs.roster.start_up_to(4)
    setting.join("w0", "w1", "w2", "w3")
    setting.run(2).saved_step = 3
    assert setting.enlarged() == []


def test_free_workers_are_released_and_in_the_end_all() -> None:
    setting = Setting(workers=3, gang=2, servers=1)
    setting.gangs.servers.start_up_to(1)
    setting.gangs.roster.start_up_to(3)
    setting.join("w0", "s0")

    def released(release: Any) -> list[str]:
        setting.out.take()
        release()
        return [command.worker for command in setting.out.take() if isinstance(command, ev.ReleaseWorker)]

    assert released(setting.gangs.release_idle) == ["w0", "s0"]
    setting.gangs.servers.start_up_to(1)
    assert released(setting.gangs.release_all) == ["w1", "w2", "s1"]
