"""One value of all ranks, over a gang that needs no framework."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cargobike import trial
from cargobike.core.errors import InvalidInputError
from cargobike.core.running import member
from cargobike.core.running.member import Launched, Of
from cargobike.training import collectives


class Table:
    """Where the ranks of a gang in this process put their values."""

    def __init__(self, world_size: int) -> None:
        self.values: list[bytes] = [b""] * world_size
        self.all_here = threading.Barrier(world_size)
        self.names: list[set[str]] = [set() for _ in range(world_size)]


class Seat:
    """A gang as one of its ranks sees it."""

    address = "127.0.0.1"

    def __init__(self, table: Table, rank: int) -> None:
        self._table, self._rank = table, rank
        self._numbers = 0

    def publish(self, name: str, value: bytes) -> None:
        raise NotImplementedError

    def gather(self, name: str, *, of: Of = "all", timeout_s: float | None = None) -> list[bytes]:
        raise NotImplementedError

    def exchange(self, name: str, value: bytes, *, of: Of = "all", timeout_s: float | None = None) -> list[bytes]:
        assert of == "workers"
        assert name not in self._table.names[self._rank], "a name is published once"
        self._table.names[self._rank].add(name)
        self._table.values[self._rank] = value
        self._table.all_here.wait(10)
        answer = list(self._table.values)
        self._table.all_here.wait(10)
        return answer

    def barrier(self, name: str = "barrier", *, timeout_s: float | None = None) -> None:
        self._table.names[self._rank].add(f"{name} {timeout_s}")
        self._table.all_here.wait(10)

    def numbered(self, name: str) -> str:
        self._numbers += 1
        return f"{name}#{self._numbers}"


@pytest.fixture(autouse=True)
def nowhere() -> Iterator[None]:
    yield
    member.enter(None)


def in_ranks(function: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch, world_size: int = 2) -> tuple[Any, Table]:
    """Call a function in every rank, each in a thread that takes itself for it."""
    table = Table(world_size)
    here = threading.local()
    monkeypatch.setattr(collectives, "current", lambda: here.member)
    results: list[Any] = [None] * world_size

    def run(rank: int) -> None:
        here.member = Launched(rank, world_size)
        here.member.gang = Seat(table, rank)
        try:
            results[rank] = function(rank)
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=[rank]) for rank in range(world_size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return results, table


@pytest.mark.parametrize(
    ("op", "expected"), [("mean", 2.0), ("sum", 4.0), ("min", 1.0), ("max", 3.0)], ids=["mean", "sum", "min", "max"]
)
def test_numbers_are_combined(op: Any, expected: float, monkeypatch: pytest.MonkeyPatch) -> None:
    results, _ = in_ranks(lambda rank: collectives.all_reduce(1 + 2 * rank, op), monkeypatch)
    assert results == [expected, expected]


def test_a_mean_is_weighted_and_names_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    results, _ = in_ranks(lambda rank: collectives.all_reduce({"b": rank, "a": 1.0}, weight=1 + 2 * rank), monkeypatch)
    assert results[0] == results[1] == {"a": 1.0, "b": 0.75}


def test_a_mean_of_no_examples_is_not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    results, _ = in_ranks(lambda _: collectives.all_reduce(1.0, weight=0), monkeypatch)
    assert [math.isnan(value) for value in results] == [True, True]


def test_it_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    results, _ = in_ranks(
        lambda rank: [collectives.all_reduce(rank, "sum"), collectives.all_reduce(rank, "max")], monkeypatch
    )
    assert results == [[1.0, 1.0]] * 2


def test_ranks_that_give_different_numbers_of_values_learn_it(monkeypatch: pytest.MonkeyPatch) -> None:
    results, _ = in_ranks(
        lambda rank: collectives.all_reduce({"a": 1.0} if rank else {"a": 1.0, "b": 2.0}), monkeypatch
    )
    assert [isinstance(error, InvalidInputError) and "[2, 1]" in str(error) for error in results] == [True, True]


def test_a_barrier_goes_through_the_gang(monkeypatch: pytest.MonkeyPatch) -> None:
    _, table = in_ranks(lambda _: collectives.barrier("here", 3.0), monkeypatch)
    assert table.names == [{"here 3.0"}, {"here 3.0"}]


def test_alone_a_value_stays_what_it_is() -> None:
    assert trial.all_reduce(3, "sum") == 3.0
    assert trial.all_reduce({"loss": 0.5}) == {"loss": 0.5}
    trial.barrier()


def test_what_cannot_be_combined_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"op must be one of mean, sum, min, max, not 'avg'"):
        trial.all_reduce(1.0, "avg")  # type: ignore[call-overload]
    with pytest.raises(InvalidInputError, match="value must be a number"):
        trial.all_reduce("one")
