"""How long a search waits for executors: by clocks that cannot be set, and longer where they come slowly."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cargobike.engines.spark.cluster import Cluster, Need

CORE = Need(cpus=1, gpus=0)


class Clock:
    """Time that passes only while there is waiting, and a calendar that may be wrong."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        a_day_ahead_of_java = SimpleNamespace(
            monotonic=lambda: self.now_s, sleep=self.sleep, time=lambda: 1e9 + 86_400.0
        )
        monkeypatch.setattr("cargobike.engines.spark.cluster.time", a_day_ahead_of_java)

    def sleep(self, wait_s: float) -> None:
        self.now_s += wait_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def context(cores: Callable[[], int], age_s: float) -> Any:
    """Return as much of a Spark context as a cluster asks, on a master without a word about its executors."""
    java = SimpleNamespace(
        isStopped=lambda: False,
        resourceProfileManager=lambda: SimpleNamespace(defaultResourceProfile=lambda: None),
        maxNumConcurrentTasks=lambda _: cores(),
    )
    system = SimpleNamespace(currentTimeMillis=lambda: int((1e9 + age_s) * 1000))
    return SimpleNamespace(
        master="spark://there:7077",
        startTime=int(1e9 * 1000),
        getConf=lambda: SimpleNamespace(get=lambda _, default=None: default),
        _jsc=SimpleNamespace(sc=lambda: java),
        _jvm=SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system))),
    )


def arriving(clock: Clock, *at_s: float) -> Callable[[], int]:
    """Return how many cores there are: two more at each of these times."""
    start = clock.now_s
    return lambda: 2 * sum(clock.now_s - start >= moment for moment in at_s)


@pytest.mark.parametrize("is_new", [True, False])
def test_a_wrong_calendar_does_not_make_a_new_context_old(clock: Clock, is_new: bool) -> None:
    cluster = Cluster(context(arriving(clock, 0.0, 2.0), age_s=1.0), 300.0, is_new=is_new)
    assert cluster.most(CORE) == 4


def test_executors_that_come_slowly_are_waited_for_longer(clock: Clock) -> None:
    cluster = Cluster(context(arriving(clock, 8.0, 14.0), age_s=1.0), 300.0, is_new=True)
    assert cluster.most(CORE) == 4


def test_an_old_context_has_what_it_has(clock: Clock) -> None:
    before_s = clock.now_s
    assert Cluster(context(arriving(clock, 0.0, 9.0), age_s=600.0), 300.0).most(CORE) == 2
    assert clock.now_s == before_s


def test_enough_is_enough(clock: Clock) -> None:
    before_s = clock.now_s
    assert Cluster(context(arriving(clock, 0.0, 9.0), age_s=1.0), 300.0, is_new=True).most(CORE, enough=2) == 2
    assert clock.now_s == before_s
