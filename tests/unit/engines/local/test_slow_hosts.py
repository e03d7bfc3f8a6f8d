"""A host that imports for long is not one that is stuck."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from cargobike.core.running.hosting import Forked, HostNews, Warm
from cargobike.engines.engine import WorkerSpec
from cargobike.engines.local import engine as local
from cargobike.engines.local.boot import Boot


class SlowBoot:
    """Stands in for a host process whose news the test sends."""

    mark = "slow"

    def __init__(self) -> None:
        self.control, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.is_taken = False
        self.was_killed = False

    def say(self, news: HostNews) -> None:
        self._theirs.send(msgspec.msgpack.encode(news))

    def poll(self) -> int | None:
        return -9 if self.was_killed else None

    def kill(self) -> None:
        self.was_killed = True

    def last_words(self) -> str:
        return ""

    def close(self) -> None:
        self._theirs.close()


class Clock:
    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(local, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


def _close(engine: local.LocalEngine, boot: SlowBoot) -> None:
    assert engine._host is not None
    engine._host.dismiss()
    boot.close()


def test_a_host_has_time_to_fork_after_it_has_imported(clock: Clock) -> None:
    boot = SlowBoot()
    engine = local.LocalEngine(cores=1, gpus=(), boot=cast("Boot", boot))
    handle = engine.start_worker(WorkerSpec(name="w0", module="none", config=b"", payload=b""))
    clock.now_s += 10 * local._FORK_S
    assert handle.poll() is None
    assert not boot.was_killed, "it may import for as long as the driver waits for its workers"
    boot.say(Warm({}))
    assert handle.poll() is None
    assert not boot.was_killed, "it has imported just now, and its word that it forked is on its way"
    clock.now_s += local._FORK_S / 2
    boot.say(Forked("w0", 1))
    assert handle.poll() is None
    assert handle.pid == 1
    handle.close()
    _close(engine, boot)


def test_a_host_that_has_imported_and_does_not_fork_is_ended(clock: Clock) -> None:
    boot = SlowBoot()
    engine = local.LocalEngine(cores=1, gpus=(), boot=cast("Boot", boot))
    handle = engine.start_worker(WorkerSpec(name="w0", module="none", config=b"", payload=b""))
    boot.say(Warm({}))
    assert handle.poll() is None
    clock.now_s += local._FORK_S + 1
    ending = handle.poll()
    assert boot.was_killed
    assert ending is not None
    _close(engine, boot)
