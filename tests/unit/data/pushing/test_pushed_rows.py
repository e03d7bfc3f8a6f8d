"""Rows are pushed over real connections: to nodes that have room, for results, and not without the secret."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cargobike.core.errors import AuthenticationError, InvalidInputError, PredictionError, WaitError
from cargobike.data.pushing.chunks import MOST_ROWS, in_chunks, unpack
from cargobike.data.pushing.receiving import Receiver
from cargobike.data.pushing.sending import Node, push, push_for_results, tell_end_of_feed, tell_to_end

PATIENCE_S = 20.0


class Nodes:
    """Nodes whose functions are threads of this process."""

    def __init__(self) -> None:
        self.receivers: list[Receiver] = []
        self.threads: list[threading.Thread] = []
        self.taken: list[list[Any]] = []

    def add(self, function: Callable[[Receiver, list[Any]], None] | None = None) -> Node:
        receiver, taken = Receiver(), []  # type: ignore[var-annotated]
        self.receivers.append(receiver)
        self.taken.append(taken)
        if function is not None:
            self.threads.append(threading.Thread(target=function, args=[receiver, taken]))
            self.threads[-1].start()
        return Node(f"worker:{len(self.receivers) - 1}", receiver.address, receiver.secret)

    def finish(self) -> None:
        for thread in self.threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    nodes = Nodes()
    yield nodes
    for receiver in nodes.receivers:
        receiver.close()
    nodes.finish()


def take_all(receiver: Receiver, taken: list[Any]) -> None:
    has_ended = False
    while not has_ended:
        rows, has_ended = receiver.inbox("input").take(10)
        taken += rows


def square_all(receiver: Receiver, taken: list[Any]) -> None:
    has_ended = False
    while not has_ended:
        rows, has_ended = receiver.inbox("input").take(10)
        taken += rows
        receiver.inbox("input").answer([row * row for row in rows])


def test_all_nodes_get_rows_and_each_row_goes_to_one(nodes: Nodes) -> None:
    fed = [nodes.add(take_all), nodes.add(take_all)]
    for turn in range(6):
        rows = range(turn * 100, turn * 100 + 100)
        pushed = push(fed, rows, turn=turn, queue="input", patience_s=PATIENCE_S)
        assert (pushed.rows, pushed.is_wanted, pushed.problems) == (100, True, ())
    for node in fed:
        tell_end_of_feed(node)
    nodes.finish()
    assert sorted(itertools.chain.from_iterable(nodes.taken)) == list(range(600))
    assert [len(taken) for taken in nodes.taken] == [300, 300]


def test_rows_that_no_node_wants_are_not_drawn(nodes: Nodes) -> None:
    def take_some(receiver: Receiver, taken: list[Any]) -> None:
        taken += receiver.inbox("input").take(10)[0]
        receiver.inbox("input").close()

    drawn = 0

    def endless() -> Iterator[int]:
        nonlocal drawn
        while True:
            yield drawn
            drawn += 1

    fed = [nodes.add(take_some), nodes.add(take_some)]
    pushed = push(fed, endless(), turn=0, queue="input", patience_s=PATIENCE_S)
    assert not pushed.is_wanted
    assert drawn < 20 * MOST_ROWS
    before = drawn
    assert not push(fed, endless(), turn=1, queue="input", patience_s=PATIENCE_S).is_wanted
    assert drawn == before
    assert [len(taken) for taken in nodes.taken] == [10, 10]


def test_a_node_that_is_gone_is_passed_by(nodes: Nodes) -> None:
    fed = [nodes.add(take_all), nodes.add(take_all)]
    nodes.receivers[0].close()
    pushed = push(fed, range(1000), turn=0, queue="input", patience_s=PATIENCE_S)
    assert (pushed.rows, pushed.is_wanted) == (1000, True)
    tell_end_of_feed(fed[0])
    tell_end_of_feed(fed[1])
    nodes.finish()
    assert sorted(nodes.taken[1]) == list(range(1000))


def test_a_node_that_takes_nothing_is_named(nodes: Nodes) -> None:
    idle = nodes.add()
    with pytest.raises(WaitError, match=r"No row was taken for 0\.2 s by worker:0\. Does the function still call"):
        push([idle], range(10), turn=0, queue="input", patience_s=0.2)


def test_results_come_in_the_order_of_rows_however_many_ask_at_once(nodes: Nodes) -> None:
    node = nodes.add(square_all)
    results: dict[int, list[int]] = {}

    def ask(number: int) -> None:
        rows = range(number * 1000, number * 1000 + 700)
        results[number] = list(push_for_results(node, rows, queue="input", patience_s=PATIENCE_S))

    threads = [threading.Thread(target=ask, args=[number]) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    tell_end_of_feed(node)
    for number in range(3):
        assert results[number] == [row * row for row in range(number * 1000, number * 1000 + 700)]
    assert list(push_for_results(node, [], queue="input", patience_s=PATIENCE_S)) == []


def test_fewer_results_than_rows_are_an_error_that_says_so(nodes: Nodes) -> None:
    def give_half(receiver: Receiver, taken: list[Any]) -> None:
        rows, _ = receiver.inbox("input").take(10)
        receiver.inbox("input").answer(rows[:5])
        receiver.inbox("input").close()

    def never_answer(receiver: Receiver, taken: list[Any]) -> None:
        taken += receiver.inbox("input").take(10)[0]

    with pytest.raises(PredictionError, match="worker:0 gave 5 results for 10 rows and takes no more"):
        list(push_for_results(nodes.add(give_half), range(10), queue="input", patience_s=PATIENCE_S))
    with pytest.raises(WaitError, match=r"worker:1 gave 0 results for 10 rows, and nothing more for 0\.3 s"):
        list(push_for_results(nodes.add(never_answer), range(10), queue="input", patience_s=0.3))


def test_a_function_that_failed_says_why(nodes: Nodes) -> None:
    node = nodes.add()
    nodes.receivers[0].inbox("input").close("ValueError: no")
    with pytest.raises(PredictionError, match="worker:0 has failed: ValueError: no"):
        list(push_for_results(node, range(10), queue="input", patience_s=PATIENCE_S))
    pushed = push([node], range(10), turn=0, queue="input", patience_s=PATIENCE_S)
    assert pushed.problems == ("worker:0: ValueError: no",)
    assert not pushed.is_wanted


def test_an_unknown_queue_is_named(nodes: Nodes) -> None:
    node = nodes.add()
    pushed = push([node], range(10), turn=0, queue="inptu", patience_s=PATIENCE_S)
    assert pushed.problems[0].startswith("worker:0: There is no queue 'inptu'; there are input.")
    with pytest.raises(InvalidInputError, match="Did you mean"):
        nodes.receivers[0].inbox("inptu")


def test_a_node_can_be_told_that_it_is_not_needed(nodes: Nodes) -> None:
    node = nodes.add()
    assert not nodes.receivers[0].end_wanted.is_set()
    tell_to_end(node)
    assert nodes.receivers[0].end_wanted.wait(PATIENCE_S)


def test_without_the_secret_nothing_is_said(nodes: Nodes) -> None:
    node = nodes.add()
    stranger = Node(node.name, node.address, bytes(32))
    with pytest.raises(AuthenticationError):
        push([stranger], range(10), turn=0, queue="input", patience_s=PATIENCE_S)
    assert node.secret.hex() not in repr(node)
    assert str(node.secret) not in repr(node)


def test_rows_arrive_as_they_were_and_tables_as_tuples() -> None:
    rows: list[Any] = [(1, "a"), [2, None], {"x": 1.5}, np.arange(3), b"z"]
    (chunk,) = in_chunks(rows)
    back = unpack(chunk.form, chunk.body)
    assert [type(row) for row in back] == [type(row) for row in rows]
    assert back[:3] == rows[:3]
    assert back[3].tolist() == [0, 1, 2]
    table = pa.table({"a": list(range(3000)), "b": [[float(i), 1.0] for i in range(3000)]})
    chunks = list(in_chunks([table]))
    assert [chunk.form for chunk in chunks] == ["table"] * len(chunks)
    assert len(chunks) == 3
    came = [row for chunk in chunks for row in unpack(chunk.form, chunk.body)]
    assert came == [(i, [float(i), 1.0]) for i in range(3000)]


def test_large_rows_travel_in_small_chunks() -> None:
    chunks = list(in_chunks(bytes(100_000) for _ in range(200)))
    assert [chunk.rows for chunk in chunks[:3]] == [128, 10, 10]
    assert sum(chunk.rows for chunk in chunks) == 200


def test_what_cannot_be_pickled_is_named() -> None:
    with pytest.raises(InvalidInputError, match="Rows of type lock cannot be sent"):
        list(in_chunks([threading.Lock()]))
