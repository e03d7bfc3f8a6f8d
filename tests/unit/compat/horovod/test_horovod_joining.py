"""Joining and leaving a job."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cargobike.compat.horovod.common import basics, collectives
from cargobike.compat.horovod.common.process_sets import ProcessSet, add_process_set, remove_process_set
from cargobike.compat.horovod.common.starting import place_on_hosts
from support.rank_host import RankHost


@pytest.fixture(autouse=True)
def leaving() -> Iterator[None]:
    yield
    basics.shutdown()


def test_a_process_alone_is_one_rank() -> None:
    with pytest.raises(ValueError, match=r"use hvd\.init"):
        basics.rank()
    for _ in range(2):
        basics.init()
        assert (basics.rank(), basics.size(), basics.local_rank(), basics.cross_size()) == (0, 1, 0, 1)
        assert collectives.allreduce(np.array([3.0])).tolist() == [3.0]
        basics.shutdown()
        assert not basics.is_initialized()


def test_a_timeline_is_kept_from_beginning_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = tmp_path / "trace.json"
    monkeypatch.setenv("HOROVOD_TIMELINE", str(trace))
    basics.init()
    collectives.allreduce(np.array([3.0]), "x")
    basics.shutdown()
    assert [event["name"] for event in json.loads(trace.read_text())][-2:] == ["NEGOTIATE_ALLREDUCE"] * 2


def join_twice() -> Any:
    seen: list[Any] = []
    for turn in range(2):
        os.environ["HOROVOD_HOSTNAME"] = f"host{int(os.environ['RANK']) * turn}"
        basics.init()
        seen.append((basics.rank(), basics.size(), basics.local_rank(), basics.local_size(), basics.cross_rank()))
        seen.append(collectives.allreduce(torch.tensor([1.0 + basics.rank()])).tolist())
        seen.append(collectives.allgather(np.ones((basics.rank() + 1, 2))).shape)
        seen.append(collectives.broadcast_object({"from": basics.rank()}, 1))
        basics.shutdown()
    return seen


def test_ranks_join_again_after_they_have_left(host: RankHost) -> None:
    first, second = host.ranks(join_twice)
    assert first == [(0, 2, 0, 2, 0), [1.5], (3, 2), {"from": 1}, (0, 2, 0, 1, 0), [1.5], (3, 2), {"from": 1}]
    assert second[0] == (1, 2, 1, 2, 0)
    assert second[4] == (1, 2, 0, 1, 1)


def work_in_a_set() -> Any:
    basics.init()
    alone = add_process_set([1])
    inside = alone.included()
    value = collectives.allreduce(np.array([7.0]), process_set=alone).tolist() if inside else None
    same = ProcessSet([0, 1])
    with pytest.raises(ValueError, match="already"):
        add_process_set(same)
    removed = remove_process_set(alone), remove_process_set(alone)
    basics.shutdown()
    return inside, value, removed


def test_some_ranks_do_operations_among_themselves(host: RankHost) -> None:
    assert host.ranks(work_in_a_set) == [(False, None, (True, False)), (True, [7.0], (True, False))]


def test_places_follow_from_hosts() -> None:
    hosts = ["a", "b", "a", "b", "a"]
    places = [place_on_hosts(rank, hosts) for rank in range(5)]
    assert [place.local_rank for place in places] == [0, 0, 1, 1, 2]
    assert [place.local_size for place in places] == [3, 2, 3, 2, 3]
    assert [(place.cross_rank, place.cross_size) for place in places] == [(0, 2), (1, 2), (0, 2), (1, 2), (0, 1)]
    assert not places[0].is_homogeneous
