"""What ranks agree on, for any order in which their requests arrive."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.training.named.execution import fused, share_of
from cargobike.training.named.negotiation import Coordinator, Decision
from cargobike.training.named.requests import Agreed, Request

worlds = st.integers(2, 5)
orders = st.randoms(use_true_random=False)


def ask(name: str, shape: tuple[int, ...] = (2,), **more: object) -> Request:
    kind = str(more.pop("kind", "allreduce"))
    return Request(f"{kind}.{name}", kind, (shape,), ("float32",), **more)  # type: ignore[arg-type]


def interleave(queues: dict[int, list[Request]], order: random.Random) -> list[tuple[int, Request]]:
    """Return requests of all ranks in some order that keeps each rank's own."""
    left = {rank: list(queue) for rank, queue in queues.items() if queue}
    merged = []
    while left:
        rank = order.choice(sorted(left))
        merged.append((rank, left[rank].pop(0)))
        if not left[rank]:
            del left[rank]
    return merged


def hear(coordinator: Coordinator, arrivals: list[tuple[int, Request]]) -> list[Decision]:
    return [
        decision
        for time, (rank, request) in enumerate(arrivals)
        for decision in coordinator.request(rank, request, time)
    ]


@given(worlds, st.lists(st.sampled_from("abcdef"), min_size=1, unique=True), orders)
def test_every_operation_is_done_once_in_any_order(size: int, names: list[str], order: random.Random) -> None:
    queues = {rank: [ask(name) for name in order.sample(names, len(names))] for rank in range(size)}
    coordinator = Coordinator(size)
    decisions = hear(coordinator, interleave(queues, order))
    assert Counter(one.agreed.request.name for one in decisions) == {f"allreduce.{name}": 1 for name in names}
    assert all(one.ranks == tuple(range(size)) and not one.agreed.error for one in decisions)
    assert coordinator.oldest is None


@given(
    worlds, st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), min_size=1, unique_by=lambda x: x[0]), orders
)
def test_ranks_that_differ_are_all_told_and_the_rest_goes_on(
    size: int, names: list[tuple[str, bool]], order: random.Random
) -> None:
    odd = order.randrange(size)
    queues = {
        rank: [ask(name, (3 if differs and rank == odd else 2,)) for name, differs in order.sample(names, len(names))]
        for rank in range(size)
    }
    decisions = hear(Coordinator(size), interleave(queues, order))
    differing = {f"allreduce.{name}" for name, differs in names if differs}
    assert {one.agreed.request.name for one in decisions if one.agreed.error} == differing
    for one in decisions:
        assert set(one.ranks) == set(range(size))
        if one.agreed.error:
            assert f"rank {odd} has (3,)" in one.agreed.error


@given(worlds, st.lists(st.integers(0, 4), min_size=5, max_size=5), orders)
def test_ranks_that_joined_are_counted_until_all_have(size: int, steps: list[int], order: random.Random) -> None:
    queues = {
        rank: [*(ask(f"step{step}") for step in range(steps[rank])), Request("join.join", "join")]
        for rank in range(size)
    }
    coordinator = Coordinator(size)
    arrivals = interleave(queues, order)
    decisions = hear(coordinator, arrivals)
    joins = [one for one in decisions if one.agreed.request.kind == "join"]
    assert [one.agreed.last for one in joins] == [[rank for rank, each in arrivals if each.kind == "join"][-1]]
    assert decisions[-1] is joins[0]
    for one in decisions[:-1]:
        step = int(one.agreed.request.name.removeprefix("allreduce.step"))
        assert set(one.agreed.joined) == {rank for rank in range(size) if steps[rank] <= step}
        assert one.ranks == tuple(range(size))
    assert len(decisions) - 1 == max(steps[:size])
    assert hear(coordinator, [(rank, ask("after")) for rank in range(size)])[0].agreed.joined == ()


def test_joined_ranks_cannot_be_gathered_from() -> None:
    decisions = hear(Coordinator(2), [(0, Request("join.join", "join")), (1, ask("x", kind="allgather"))])
    assert [one.ranks for one in decisions] == [(1,)]
    assert "rank 0 joined" in decisions[0].agreed.error


def test_who_is_missing_is_named_and_told_when_it_comes_too_late() -> None:
    coordinator = Coordinator(3)
    hear(coordinator, [(0, ask("x")), (2, ask("x")), (1, ask("y"))])
    assert coordinator.stalled(1) == [
        "allreduce.x: ranks 0, 2 wait for rank 1, which did not submit it (rank 1 waits for allreduce.y)"
    ]
    assert coordinator.stalled(1) == []
    (given_up,) = coordinator.give_up(2)
    assert given_up.ranks == (0, 2)
    assert "rank 1" in given_up.agreed.error
    (late,) = coordinator.request(1, ask("x"), 5)
    assert late.ranks == (1,)
    assert "rank 1 came too late" in late.agreed.error
    (again,) = hear(coordinator, [(rank, ask("x")) for rank in range(3)])
    assert not again.agreed.error


def test_what_needs_a_rank_that_is_gone_fails_now_and_later() -> None:
    coordinator = Coordinator(3)
    coordinator.sets[1] = (0, 2)
    hear(coordinator, [(0, ask("x")), (1, ask("x"))])
    (failed,) = coordinator.leave(1, "is gone")
    assert (failed.ranks, failed.agreed.error) == ((0,), "allreduce.x cannot be done: rank 1 is gone")
    assert "rank 1 is gone" in coordinator.request(0, ask("z"), 0)[0].agreed.error
    (without,) = hear(coordinator, [(0, ask("x", of=1)), (2, ask("x", of=1))])
    assert (without.ranks, without.agreed.error) == ((0, 2), "")
    assert "has no process set 7" in coordinator.request(0, ask("x", of=7), 0)[0].agreed.error


def test_sets_are_added_and_removed_by_all() -> None:
    coordinator = Coordinator(2)
    (added,) = hear(coordinator, [(rank, Request("add.1", "add", ranks=(1,))) for rank in (0, 1)])
    assert (added.agreed.last, coordinator.sets[1]) == (1, (1,))
    hear(coordinator, [(rank, Request("remove.1", "remove", root=1)) for rank in (0, 1)])
    assert 1 not in coordinator.sets


def test_rows_of_all_ranks_come_with_a_gathering() -> None:
    arrivals = [(1, ask("x", (5, 2), kind="allgather")), (0, ask("x", (0, 2), kind="allgather"))]
    (decision,) = hear(Coordinator(2), arrivals)
    assert decision.agreed.rows == ((0, 5),)


@given(st.integers(0, 40), st.integers(1, 7))
def test_rows_are_divided_without_rest(rows: int, size: int) -> None:
    shares = [share_of(rows, position, size) for position in range(size)]
    assert [begin for begin, _ in shares[1:]] == [end for _, end in shares[:-1]]
    assert (shares[0][0], shares[-1][1]) == (0, rows)
    lengths = [end - begin for begin, end in shares]
    assert lengths == sorted(lengths, reverse=True)
    assert max(lengths) - min(lengths) <= 1


def test_small_reductions_of_a_kind_travel_as_one() -> None:
    frame = [
        Agreed(ask("a")),
        Agreed(ask("b")),
        Agreed(ask("c", op="max")),
        Agreed(ask("d", op="max"), error="no"),
        Agreed(ask("e", (1 << 22,))),
        Agreed(ask("f")),
        Agreed(ask("g", kind="broadcast")),
        Agreed(ask("h", kind="broadcast")),
    ]
    groups = [[one.request.name[-1] for one in group] for group in fused(frame)]
    assert groups == [["a", "b"], ["c"], ["d"], ["e"], ["f"], ["g"], ["h"]]


@pytest.mark.parametrize("kind", ["broadcast", "alltoall", "reducescatter"])
def test_requests_that_agree_are_passed_on(kind: str) -> None:
    (decision,) = hear(
        Coordinator(2), [(0, ask("x", kind=kind, splits=(1, 1))), (1, ask("x", kind=kind, splits=(2, 0)))]
    )
    assert decision.agreed.error == ""
    assert decision.agreed.splits == (((1, 1), (2, 0)) if kind == "alltoall" else ())
