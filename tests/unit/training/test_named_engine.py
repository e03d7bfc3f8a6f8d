"""Engines of several ranks, as threads of this process: real connections, real process groups."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import torch.distributed as dist

from cargobike.core.errors import AuthenticationError
from cargobike.training.named.engine import Engine
from cargobike.training.named.handles import CollectiveError
from cargobike.training.named.requests import Request

SIZE = 4


@pytest.fixture(scope="module")
def engines() -> Iterator[list[Engine]]:
    store = dist.HashStore()
    with ThreadPoolExecutor(SIZE) as pool:
        made = list(pool.map(lambda rank: Engine(store, rank, SIZE, stall_s=20.0), range(SIZE)))
        yield made
        for engine in made[1:] + made[:1]:
            engine.close()


def everybody(engines: list[Engine], act: Callable[[Engine], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(engines)) as pool:
        return list(pool.map(act, engines))


def reduce(engine: Engine, name: str, values: list[float], **more: Any) -> list[float]:
    tensor = torch.tensor(values)
    more = {"op": "sum", **more}
    request = Request(f"allreduce.{name}", "allreduce", (tuple(tensor.shape),), ("float32",), **more)
    engine.run(request, [tensor])
    result: list[float] = tensor.tolist()
    return result


def test_many_at_once_in_every_order(engines: list[Engine]) -> None:
    names = [f"n{index}" for index in range(20)]

    def act(engine: Engine) -> dict[str, float]:
        order = names[engine.rank * 3 :] + names[: engine.rank * 3]
        pending = {}
        for name in order:
            tensor = torch.tensor([float(engine.rank + int(name[1:]))])
            request = Request(f"allreduce.{name}", "allreduce", ((1,),), ("float32",), op="sum")
            pending[name] = (engine.submit(request, [tensor]), tensor)
        for handle, _ in reversed(pending.values()):
            engine.wait(handle)
        return {name: pending[name][1].item() for name in names}

    expected = {name: 6.0 + 4 * int(name[1:]) for name in names}
    assert everybody(engines, act) == [expected] * SIZE


def test_kinds_that_are_on_their_way_together_are_not_mixed_up(engines: list[Engine]) -> None:
    """A backend matches what ranks do by order: all must hand it to them in the order that was decided."""

    kinds = ["allreduce", "allgather", "broadcast", "reducescatter"]

    def act(engine: Engine) -> list[Any]:
        pending: list[Any] = []
        for turn in range(15):
            for kind in [*kinds[engine.rank :], *kinds[: engine.rank]]:
                tensor = torch.full((4 + turn,), float(engine.rank))
                request = Request(f"{kind}.{turn}", kind, ((4 + turn,),), ("float32",), op="sum", root=2)
                pending.append((kind, turn, engine.submit(request, [tensor]), tensor))
        done = {(kind, turn): (engine.wait(handle)[0], tensor) for kind, turn, handle, tensor in pending}
        return [(result.sum().item(), tensor.sum().item(), len(result)) for _, (result, tensor) in sorted(done.items())]

    for rank, seen in enumerate(everybody(engines, act)):
        turns = range(15)
        assert seen[:15] == [(6.0 * (4 + turn), rank * (4.0 + turn), 4 * (4 + turn)) for turn in turns]
        assert [one[0] for one in seen[15:30]] == [6.0 * (4 + turn) for turn in turns]
        assert [one[0] for one in seen[30:45]] == [2.0 * (4 + turn) for turn in turns]
        assert [one[0] for one in seen[45:]] == [6.0 * one[2] for one in seen[45:]]


def test_sets_that_overlap_do_not_wait_for_each_other(engines: list[Engine]) -> None:
    def add(engine: Engine, ranks: tuple[int, ...]) -> int:
        handle = engine.submit(Request(f"add.{ranks}", "add", ranks=ranks), [])
        engine.wait(handle)
        return handle.answer.last

    def act(engine: Engine) -> list[Any]:
        sets = {ranks: add(engine, ranks) for ranks in ((0, 1), (1, 2, 3), (2, 3))}
        return [
            reduce(engine, "x", [float(engine.rank)], of=number)
            for ranks, number in sets.items()
            if engine.rank in ranks
        ]

    assert everybody(engines, act) == [[[1.0]], [[1.0], [6.0]], [[6.0], [5.0]], [[6.0], [5.0]]]


def test_adasum_of_orthogonal_gradients_is_their_sum_and_of_equal_ones_their_mean(engines: list[Engine]) -> None:
    axis = everybody(engines, lambda engine: reduce(engine, "a", torch.eye(4)[engine.rank].tolist(), op="adasum"))
    same = everybody(engines, lambda engine: reduce(engine, "b", [2.0, 1.0], op="adasum"))
    assert axis == [[1.0] * 4] * 4
    assert same == [pytest.approx([2.0, 1.0])] * 4


def test_threads_of_one_rank_share_its_engine(engines: list[Engine]) -> None:
    def act(engine: Engine) -> list[Any]:
        with ThreadPoolExecutor(3) as pool:
            return list(pool.map(lambda i: reduce(engine, f"thread{i}", [float(i)]), range(3)))

    assert everybody(engines, act) == [[[0.0], [4.0], [8.0]]] * SIZE


def test_one_that_disagrees_is_named_among_several(engines: list[Engine]) -> None:
    def act(engine: Engine) -> str:
        with pytest.raises(CollectiveError) as caught:
            reduce(engine, "odd", [1.0] * (3 if engine.rank == 2 else 2))
        return str(caught.value)

    text = "allreduce.odd: ranks disagree on the shape: ranks 0, 1, 3 have (2,); rank 2 has (3,)"
    assert everybody(engines, act) == [text] * SIZE


def test_a_rank_that_leaves_is_named_and_threads_end() -> None:
    before = threading.active_count()
    store = dist.HashStore()
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda rank: Engine(store, rank, 2, stall_s=20.0), range(2))
    second.close()
    with pytest.raises(CollectiveError, match=r"rank 1 has left the job|rank 1 is gone"):
        reduce(first, "x", [1.0])
    first.close()
    first.close()
    with pytest.raises(CollectiveError, match="shut down"):
        reduce(first, "x", [1.0])
    assert threading.active_count() == before


def test_strangers_are_not_let_in() -> None:
    store = dist.HashStore()
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(Engine, store, 0, 2, secret=b"right", stall_s=10.0)
        host, _, port = bytes(store.get("coordinator")).decode().rpartition(":")
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(b"\0" * 200)
            assert len(stranger.recv(32)) == 32
        with pytest.raises(AuthenticationError, match="does not know"):
            Engine(store, 1, 2, secret=b"wrong", stall_s=10.0)
        second = Engine(store, 1, 2, secret=b"right", stall_s=10.0)
        first = making.result()
        with ThreadPoolExecutor(2) as ranks:
            assert list(ranks.map(lambda engine: reduce(engine, "x", [1.0]), (first, second))) == [[2.0]] * 2
    second.close()
    first.close()
