"""The operations of `horovod.torch` between two ranks: each in all its forms, with gradients."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch

import cargobike.compat.horovod.torch as hvd
from cargobike.compat.horovod.common import world
from cargobike.compat.horovod.common.exceptions import HorovodInternalError
from support.rank_host import RankHost, gang


def every_form() -> Any:
    hvd.init()
    rank = hvd.rank()
    seen: dict[str, Any] = {}
    own = torch.tensor([1.0, 2.0]) + rank
    seen["mean"] = hvd.allreduce(own).tolist()
    seen["unchanged"] = own.tolist()
    for op in (hvd.Sum, hvd.Min, hvd.Max, hvd.Product, hvd.Adasum):
        seen[op.name] = hvd.allreduce(own, op=op).tolist()
    seen["scaled"] = hvd.allreduce(own, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5).tolist()
    seen["old"] = hvd.allreduce(own, average=False).tolist()
    seen["whole"] = hvd.allreduce(torch.tensor([-1 - rank, 2 + rank])).tolist()
    seen["half"] = [hvd.allreduce(own, compression=kind).dtype for kind in (hvd.Compression.fp16, hvd.Compression.bf16)]
    changed = own.clone()
    assert hvd.allreduce_(changed) is changed
    handle = hvd.allreduce_async(own, name="later")
    other = own.t().clone()
    assert hvd.synchronize(hvd.allreduce_async_(other)) is other
    seen["later"] = hvd.synchronize(handle).tolist(), other.tolist(), hvd.poll(handle)
    seen["group"] = [one.tolist() for one in hvd.grouped_allreduce([own, own.double()])]
    pair = [own.clone(), own.clone()]
    hvd.grouped_allreduce_(pair, op=hvd.Sum)
    seen["pair"] = [one.tolist() for one in pair]
    seen["gathered"] = hvd.allgather(torch.full((rank * 2, 2), rank)).tolist()
    seen["gathered_two"] = [one.shape for one in hvd.grouped_allgather([torch.ones(1 + rank), torch.ones(2, 3)])]
    seen["from_1"] = hvd.broadcast(own, 1).tolist()
    copy = own.clone()
    seen["in_place"] = hvd.broadcast_(copy, 0).tolist(), hvd.synchronize(hvd.broadcast_async_(copy, 1)).tolist()
    seen["exchanged"] = hvd.alltoall(torch.tensor([10, 20]) + rank).tolist()
    rows, counts = hvd.alltoall(torch.arange(3) + 10 * rank, splits=torch.tensor([1 + rank, 2 - rank]))
    seen["exchanged_uneven"] = rows.tolist(), counts.tolist()
    seen["scattered"] = hvd.reducescatter(torch.arange(6.0).reshape(3, 2), op=hvd.Sum).tolist()
    seen["scattered_two"] = [one.shape[0] for one in hvd.grouped_reducescatter([torch.ones(5), torch.ones(2)])]
    seen["objects"] = hvd.allgather_object({"rank": rank}), hvd.broadcast_object([rank], 1)
    sparse = torch.sparse_coo_tensor([[0, 1 + rank]], [1.0, 2.0], (3,), check_invariants=True)
    seen["sparse"] = hvd.sparse_allreduce_async(sparse, "sparse", hvd.Sum)().to_dense().tolist()
    hvd.barrier()
    hvd.shutdown()
    return seen


def test_every_operation_in_every_form(host: RankHost) -> None:
    first, second = host.ranks(every_form)
    assert first["mean"] == second["mean"] == [1.5, 2.5]
    assert second["unchanged"] == [2.0, 3.0]
    assert (first["SUM"], first["MIN"], first["MAX"], first["PRODUCT"]) == (
        [3.0, 5.0],
        [1.0, 2.0],
        [2.0, 3.0],
        [2.0, 6.0],
    )
    assert first["ADASUM"] == pytest.approx([x * (1 - 8 / 10) + y * (1 - 8 / 26) for x, y in ((1, 2), (2, 3))])
    assert (first["scaled"], first["old"], first["whole"]) == ([3.0, 5.0], [3.0, 5.0], [-1, 2])
    assert first["half"] == [torch.float32] * 2
    assert first["later"] == ([1.5, 2.5], [1.5, 2.5], True)
    assert first["group"] == [[1.5, 2.5]] * 2
    assert first["pair"] == [[3.0, 5.0]] * 2
    assert first["gathered"] == [[1, 1], [1, 1]]
    assert first["gathered_two"] == [(3,), (4, 3)]
    assert first["from_1"] == [2.0, 3.0]
    assert second["in_place"] == ([1.0, 2.0], [1.0, 2.0])
    assert (first["exchanged"], second["exchanged"]) == ([10, 11], [20, 21])
    assert first["exchanged_uneven"] == ([0, 10, 11], [1, 2])
    assert second["exchanged_uneven"] == ([1, 2, 12], [2, 1])
    assert (first["scattered"], second["scattered"]) == ([[0.0, 2.0], [4.0, 6.0]], [[8.0, 10.0]])
    assert (first["scattered_two"], second["scattered_two"]) == ([3, 1], [2, 1])
    assert second["objects"] == ([{"rank": 0}, {"rank": 1}], [1])
    assert first["sparse"] == [2.0, 2.0, 2.0]


TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16]
TYPES += [torch.float32, torch.float64, torch.bool, torch.complex64]


def every_type() -> Any:
    hvd.init()
    rank = hvd.rank()
    seen: dict[str, Any] = {}
    for dtype in TYPES:
        own = torch.tensor([[0, 1, rank], [rank, 0, 1]]).to(dtype)
        gathered, sent = hvd.allgather(own), hvd.broadcast(own, 1)
        exchanged, _ = hvd.alltoall(own, splits=torch.tensor([rank, 2 - rank]))
        kinds = [gathered.dtype, sent.dtype, exchanged.dtype]
        seen[str(dtype)] = kinds, gathered.int().tolist(), sent.int().tolist(), exchanged.int().tolist()
        if dtype not in (torch.bool, torch.complex64):
            seen[str(dtype)] += (hvd.allreduce(own, op=hvd.Sum).int().tolist(),)
    seen["scalar"] = hvd.broadcast(torch.tensor(rank, dtype=torch.int16), 1).item()
    hvd.shutdown()
    return seen


def test_every_type_of_numbers_is_moved(host: RankHost) -> None:
    first, second = host.ranks(every_type)
    for dtype in TYPES:
        kinds, gathered, sent, exchanged, *summed = first[str(dtype)]
        assert kinds == [dtype] * 3
        assert gathered == [[0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1]]
        assert sent == [[0, 1, 1], [1, 0, 1]]
        assert (exchanged, second[str(dtype)][3]) == ([[0, 1, 1]], [[0, 1, 0], [0, 0, 1], [1, 0, 1]])
        assert summed in ([], [[[0, 2, 1], [1, 0, 2]]])
    assert first["scalar"] == 1


def gradients() -> Any:
    hvd.init()
    rank = hvd.rank()
    seen = {}
    calls: dict[str, Any] = {
        "allreduce": lambda x: hvd.allreduce(x, op=hvd.Sum),
        "allgather": hvd.allgather,
        "broadcast": lambda x: hvd.broadcast(x, 0),
        "alltoall": hvd.alltoall,
        "reducescatter": hvd.reducescatter,
        "grouped": lambda x: torch.cat(hvd.grouped_allreduce([x, 2 * x])),
    }
    for name, call in calls.items():
        x = torch.ones(2, requires_grad=True)
        weight = torch.arange(4.0)[: call(torch.ones(2)).shape[0]] + rank
        (call(x) * weight).sum().backward()
        seen[name] = x.grad.tolist()
    hvd.shutdown()
    return seen


def test_autograd_goes_through_each(host: RankHost) -> None:
    first, second = host.ranks(gradients)
    assert first["allreduce"] == second["allreduce"] == [1.0, 3.0]
    assert (first["allgather"], second["allgather"]) == ([0.5, 1.5], [2.5, 3.5])
    assert (first["broadcast"], second["broadcast"]) == ([0.5, 1.5], [0.0, 0.0])
    assert (first["alltoall"], second["alltoall"]) == ([0.0, 1.0], [1.0, 2.0])
    assert first["reducescatter"] == second["reducescatter"] == [0.0, 1.0]
    assert first["grouped"] == [5.5, 8.5]


def mistakes() -> Any:
    hvd.init()
    rank = hvd.rank()
    messages = []
    disagreeing: list[Any] = [
        lambda: hvd.allreduce(torch.ones(2 + rank), name="a"),
        lambda: hvd.allreduce(torch.ones(2, dtype=(torch.float32, torch.int64)[rank]), name="a"),
        lambda: hvd.allreduce(torch.ones(2), op=(hvd.Sum, hvd.Max)[rank], name="a"),
        lambda: hvd.broadcast(torch.ones(2), rank, name="a"),
        lambda: hvd.allgather(torch.ones(2, 2 + rank), name="a"),
    ]
    for one in disagreeing:
        with pytest.raises(HorovodInternalError) as caught:
            one()
        messages.append(str(caught.value))
    alone: list[Any] = [
        lambda: hvd.allreduce(torch.ones(1), average=True, op=hvd.Sum),
        lambda: hvd.alltoall(torch.ones(3)),
        lambda: hvd.alltoall(torch.ones(3), splits=[1, 1]),
        lambda: hvd.reducescatter(torch.tensor(1.0)),
        lambda: hvd.reducescatter(torch.ones(4), op=hvd.Adasum),
        lambda: hvd.broadcast(torch.ones(1), 7),
    ]
    for one in alone:
        with pytest.raises(ValueError, match=r"op or the older|evenly|add up|scalar|Adasum|root_rank"):
            one()
    first = hvd.allreduce_async(torch.ones(1), name="twice") if rank == 0 else None
    if rank == 0:
        with pytest.raises(ValueError, match="on its way already"):
            hvd.allreduce_async(torch.ones(1), name="twice")
    after = hvd.synchronize(first or hvd.allreduce_async(torch.ones(1), name="twice")).tolist()
    hvd.shutdown()
    return messages, after


def test_ranks_that_disagree_are_named_on_every_rank_and_go_on(host: RankHost) -> None:
    first, second = host.ranks(mistakes)
    assert first == second
    messages, after = first
    assert after == [1.0]
    assert messages[0] == "allreduce.a: ranks disagree on the shape: rank 0 has (2,); rank 1 has (3,)"
    assert "the data type: rank 0 has float32; rank 1 has int64" in messages[1]
    assert "the reduction (op): rank 0 has sum; rank 1 has max" in messages[2]
    assert "the root rank: rank 0 has 0; rank 1 has 1" in messages[3]
    assert "the shape: rank 0 has ('any', 2); rank 1 has ('any', 3)" in messages[4]


def in_any_order() -> Any:
    hvd.init()
    rank = hvd.rank()
    names = ["a", "b", "c", "d"][:: 1 - 2 * rank]
    handles = {name: hvd.allreduce_async(torch.tensor([float(ord(name) + rank)]), name=name) for name in names}
    values = {name: hvd.synchronize(handles[name]).item() for name in names}
    # Rank 1 waits for "y" before it submits "x"; rank 0 submits "x" first.
    if rank == 0:
        x, y = hvd.allreduce_async(torch.ones(1), name="x"), hvd.allreduce_async(torch.ones(1), name="y")
        crossed = hvd.synchronize(y).item(), hvd.synchronize(x).item()
    else:
        crossed = hvd.allreduce(torch.ones(1), name="y").item(), hvd.allreduce(torch.ones(1), name="x").item()
    hvd.shutdown()
    return values, crossed


def test_operations_are_matched_by_name(host: RankHost) -> None:
    expected = {name: ord(name) + 0.5 for name in "abcd"}
    assert host.ranks(in_any_order) == [(expected, (1.0, 1.0))] * 2


def join_early() -> Any:
    hvd.init()
    rank = hvd.rank()
    values = [hvd.allreduce(torch.tensor([4.0])).item() for _ in range(1 + 2 * rank)]
    refused = ""
    if rank == 1:
        with pytest.raises(HorovodInternalError) as caught:
            hvd.allgather(torch.ones(1))
        refused = str(caught.value)
    last = hvd.join()
    together = hvd.allreduce(torch.tensor([4.0])).item()
    assert hvd.allgather_object(rank) == [0, 1]
    hvd.shutdown()
    return values, refused, last, together


def test_ranks_without_data_give_zeros_until_all_have_joined(host: RankHost) -> None:
    first, second = host.ranks(join_early)
    assert first == ([4.0], "", 1, 4.0)
    assert second[0] == [4.0, 2.0, 2.0]
    assert "rank 0 joined" in second[1]
    assert second[2:] == (1, 4.0)


def miss_one(path: str) -> Any:
    os.environ["HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"] = "1"
    hvd.init()
    store = world.here().engine._store
    if hvd.rank() == 0:
        hvd.start_timeline(path)
    message = ""
    if hvd.rank() == 0:
        with pytest.raises(HorovodInternalError) as caught:
            hvd.allreduce(torch.ones(1), name="alone")
        message = str(caught.value)
        store.set("given up", "yes")
    store.get("given up")
    value = hvd.allreduce(torch.ones(1), name="both").item()
    if hvd.rank() == 1:
        with pytest.raises(HorovodInternalError, match="came too late"):
            hvd.allreduce(torch.ones(1), name="alone")
    hvd.barrier()
    if hvd.rank() == 0:
        hvd.stop_timeline()
    again = hvd.allreduce(torch.ones(1), name="alone").item()
    hvd.shutdown()
    return message, value, again


def test_a_rank_that_does_not_submit_is_named(host: RankHost, tmp_path: Path) -> None:
    trace = tmp_path / "timeline.json"
    first, second = host.ranks(miss_one, path=str(trace))
    assert first[0] == "allreduce.alone: rank 0 waits for rank 1, which did not submit it"
    assert first[1:] == second[1:] == (1.0, 1.0)
    events = json.loads(trace.read_text())
    phases = {event["name"] for event in events}
    assert {"NEGOTIATE_ALLREDUCE", "ALLREDUCE", "NEGOTIATE_BARRIER", "process_name"} <= phases
    assert sum(event["ph"] == "B" for event in events) == sum(event["ph"] == "E" for event in events) > 3


def die() -> Any:
    hvd.init()
    if hvd.rank() == 1:
        os._exit(3)
    with pytest.raises(HorovodInternalError) as caught:
        hvd.allreduce(torch.ones(10), name="x")
    return str(caught.value)


def test_a_rank_that_dies_is_named(host: RankHost) -> None:
    outcome = host.run(*gang(die))[0]
    assert "rank 1 is gone" in outcome.value or "has probably died" in outcome.value, outcome
