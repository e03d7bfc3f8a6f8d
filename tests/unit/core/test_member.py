"""Which rank a process is, and where it learns that from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cargobike import trial
from cargobike.core.errors import WaitError
from cargobike.core.running import member
from cargobike.core.running.member import Alone, Launched, read_environment

BY_TORCHRUN = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in BY_TORCHRUN:
        monkeypatch.delenv(name, raising=False)
    yield
    member.enter(None)


def test_outside_everything_a_process_is_rank_0_of_1() -> None:
    here = member.current()
    assert (here.rank, here.world_size, here.local_rank, here.role) == (0, 1, 0, "worker")
    assert here.gang is not None
    assert here.gang.exchange("x", b"1") == [b"1"]


def test_a_launcher_is_believed_and_every_door_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in BY_TORCHRUN.items():
        monkeypatch.setenv(name, value)
    here = member.current()
    assert (here.rank, here.world_size, here.local_rank) == (1, 2, 1)
    assert here.gang is None, "its ranks can only talk through their framework"
    assert (trial.rank, trial.world_size, trial.local_rank, trial.is_distributed) == (1, 2, 1, True)


def test_a_trial_knows_better_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in BY_TORCHRUN.items():
        monkeypatch.setenv(name, value)
    member.enter(Launched(rank=3, world_size=4))
    assert (trial.rank, trial.world_size) == (3, 4)
    member.enter(None)
    assert trial.rank == 1


def test_gangs_of_one_process_are_told_apart() -> None:
    first = read_environment({**BY_TORCHRUN, "TORCHELASTIC_RESTART_COUNT": "0"})
    second = read_environment({**BY_TORCHRUN, "TORCHELASTIC_RESTART_COUNT": "1"})
    assert first.meeting != second.meeting


def test_alone_what_was_published_is_gathered_and_nothing_else() -> None:
    gang = Alone()
    gang.publish("x", b"1")
    assert gang.gather("x", of="workers") == [b"1"]
    assert gang.gather("x", of="servers") == []
    with pytest.raises(WaitError, match="nobody has published 'y'"):
        gang.gather("y")
    gang.barrier()
