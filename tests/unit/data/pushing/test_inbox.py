"""Rows wait in an inbox until a function takes them: batches, ends of partitions and of the feed, results."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cargobike.core.errors import InvalidInputError
from cargobike.data.pushing.inbox import Inbox


class Told:
    """A feeder that remembers what it was told."""

    def __init__(self) -> None:
        self.chunks = 0
        self.got: list[Any] = []
        self.problem: str | None = None
        self.times_alive = 0

    def taken(self, chunks: int) -> None:
        self.chunks += chunks

    def results(self, results: Sequence[Any]) -> None:
        self.got += results

    def alive(self) -> None:
        self.times_alive += 1

    def closed(self, problem: str) -> None:
        self.problem = problem


def filled(*partitions: list[list[int]], wants_results: bool = False) -> tuple[Inbox, list[Told]]:
    inbox, feeders = Inbox(), []
    for chunks in partitions:
        feeder = Told()
        delivery = inbox.open(feeder, wants_results=wants_results)
        for chunk in chunks:
            inbox.put(delivery, chunk)
        inbox.complete(delivery)
        feeders.append(feeder)
    inbox.end()
    return inbox, feeders


def all_batches(inbox: Inbox, size: int, *, whole_partitions: bool = False) -> list[list[int]]:
    batches = []
    while True:
        rows, has_ended = inbox.take(size, whole_partitions=whole_partitions)
        batches.append(rows)
        if has_ended:
            return batches


def test_batches_span_chunks_and_partitions_and_the_last_is_short() -> None:
    inbox, feeders = filled([[0, 1, 2], [3]], [[4, 5]])
    batches = all_batches(inbox, 4)
    assert [len(batch) for batch in batches] == [4, 2]
    assert sorted(itertools.chain.from_iterable(batches)) == [0, 1, 2, 3, 4, 5]
    assert [feeder.chunks for feeder in feeders] == [2, 1]


def test_batches_end_with_a_partition_if_that_is_wanted() -> None:
    inbox, _ = filled([[0, 1, 2]], [[3, 4]])
    assert all_batches(inbox, 2, whole_partitions=True) == [[0, 1], [2], [3, 4], []]


@given(
    partitions=st.lists(st.lists(st.lists(st.integers(), max_size=7), max_size=5), max_size=5),
    size=st.integers(1, 9),
)
def test_every_row_gets_its_own_result_in_order(partitions: list[list[list[int]]], size: int) -> None:
    inbox, feeders = filled(*partitions, wants_results=True)
    taken = 0
    while True:
        rows, has_ended = inbox.take(size)
        taken += len(rows)
        inbox.answer([("result", row) for row in rows])
        if has_ended:
            break
    assert taken == sum(len(chunk) for chunks in partitions for chunk in chunks)
    for chunks, feeder in zip(partitions, feeders, strict=True):
        assert feeder.got == [("result", row) for chunk in chunks for row in chunk]


@given(
    partitions=st.lists(st.lists(st.lists(st.integers(), max_size=7), max_size=5), max_size=5),
    size=st.integers(1, 9),
    whole_partitions=st.booleans(),
)
def test_every_row_is_taken_once(partitions: list[list[list[int]]], size: int, whole_partitions: bool) -> None:
    inbox, feeders = filled(*partitions)
    batches = all_batches(inbox, size, whole_partitions=whole_partitions)
    assert all(len(batch) <= size for batch in batches)
    if not whole_partitions:
        assert all(len(batch) == size for batch in batches[:-1])
    assert sorted(itertools.chain.from_iterable(batches)) == sorted(
        row for chunks in partitions for chunk in chunks for row in chunk
    )
    for chunks, feeder in zip(partitions, feeders, strict=True):
        assert feeder.chunks == sum(bool(chunk) for chunk in chunks)


def test_results_may_be_gathered_over_batches_and_given_one_by_one() -> None:
    inbox, (feeder,) = filled([[1, 2, 3, 4]], wants_results=True)
    first, _ = inbox.take(2)
    second, _ = inbox.take(2)
    for row in first + second:
        inbox.answer([row])
    assert inbox.take(1) == ([], True)
    assert feeder.got == [1, 2, 3, 4]


def test_too_many_results_are_refused() -> None:
    inbox, (feeder,) = filled([[1, 2]], wants_results=True)
    inbox.take(2)
    with pytest.raises(InvalidInputError, match="3 results for 2 rows: there must be one for each row"):
        inbox.answer([1, 2, 3])
    assert feeder.got == []


def test_too_few_results_are_refused_before_the_next_rows() -> None:
    inbox, _ = filled([[1, 2, 3, 4]], wants_results=True)
    rows, _ = inbox.take(2)
    inbox.answer(rows[:1])
    with pytest.raises(InvalidInputError, match=r"1 result for 2 rows(.|\n)*before the next rows are taken"):
        inbox.take(2)


def test_another_thread_may_be_behind_with_its_results() -> None:
    inbox, (feeder,) = filled([[1, 2, 3, 4]], wants_results=True)
    rows, _ = inbox.take(2)
    thread = threading.Thread(target=inbox.answer, args=[rows[:1]])
    thread.start()
    thread.join()
    assert inbox.take(2) == ([3, 4], False)
    inbox.answer([2, 3, 4])
    assert feeder.got == [1, 2, 3, 4]


def test_results_that_none_wants_are_ignored() -> None:
    inbox, (feeder,) = filled([[1, 2]])
    inbox.take(2)
    inbox.answer([1, 2, 3])
    assert feeder.got == []


def test_a_closed_inbox_drops_what_waits_and_tells_those_that_feed() -> None:
    inbox, late = Inbox(), Told()
    first = Told()
    delivery = inbox.open(first)
    inbox.put(delivery, [1, 2])
    inbox.close("it broke")
    assert first.problem == "it broke"
    assert inbox.take(1) == ([], True)
    inbox.open(late)
    assert late.problem == "it broke"
    inbox.close("again")
    assert first.problem == "it broke"


def test_those_that_wait_for_a_turn_hear_that_there_is_work() -> None:
    inbox, (first, second) = filled([[1]], [[2]], wants_results=True)
    inbox.take(1)
    assert second.times_alive == 1
    assert first.chunks == 1


def test_a_partition_whose_feeder_is_gone_does_not_hold_up_the_others() -> None:
    inbox, other = Inbox(), Told()
    lost = inbox.open(Told(), wants_results=True)
    inbox.put(lost, [1, 2])
    assert inbox.take(1) == ([1], False)
    inbox.lose(lost)
    delivery = inbox.open(other, wants_results=True)
    inbox.put(delivery, [7])
    inbox.complete(delivery)
    assert inbox.take(5) == ([7], False)
    inbox.answer([-1, -7])
    assert other.got == [-7]


def test_waiting_ends_when_the_function_is_asked_to_end() -> None:
    asked = threading.Event()
    inbox = Inbox(asked.is_set)
    asked.set()
    assert inbox.take(3) == ([], True)
