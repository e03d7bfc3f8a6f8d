from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cargobike.core.layout import ProjectFolder
from cargobike.core.signatures import Signature
from cargobike.serving.front import keeping
from cargobike.serving.front.desk.tickets import Ticket
from cargobike.serving.front.keeping import LogKeeper
from cargobike.serving.front.protocols.rows import RowCodec
from cargobike.serving.inference_log.reading import read_log
from cargobike.serving.specification import Logging, Specification
from support.logged_requests import RECORDS, VECTORS


def keeper_of(project: Path, signature: Signature, **chosen: Any) -> LogKeeper:
    chosen = {"flush_s": 0.05, **chosen}
    specification = Specification(name="digits", model="digits", logging=Logging(**chosen))
    return LogKeeper(specification, str(project), "digits", {1: signature})


def ended(rows: list[Any], answers: list[Any]) -> Ticket:
    ticket = Ticket(rows, arrived_s=1.0)
    ticket.status, ticket.version, ticket.answers, ticket.ended_s = 200, 1, answers, 1.5
    return ticket


def take_some(keeper: LogKeeper, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        keeper.take(f"r{number}".encode(), ended([[float(number), 0.5, -1.0]], [number / 2]))


def pid_of(keeper: LogKeeper) -> int:
    assert keeper._process is not None
    return keeper._process.pid


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


def test_what_is_taken_is_kept_by_another_process(tmp_path: Path) -> None:
    async def run() -> None:
        keeper = keeper_of(tmp_path, VECTORS)
        await keeper.start()
        take_some(keeper, 1000)
        pid = pid_of(keeper)
        await keeper.close()
        assert (keeper.counts.written, keeper.counts.dropped) == (1000, 0)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    asyncio.run(run())
    rows = read_log("digits", project=ProjectFolder(tmp_path))
    assert sorted(rows["request_id"].to_pylist()) == sorted(f"r{number}" for number in range(1000))
    assert {round(value) for value in rows["latency_ms"].to_pylist()} == {500}


def test_a_batch_is_kept_as_its_requests_are(tmp_path: Path) -> None:
    async def run() -> None:
        keeper = keeper_of(tmp_path, VECTORS)
        await keeper.start()
        take_some(keeper, 3)
        tickets = [ended([[float(number), 0.5, -1.0]], [number / 2]) for number in range(3, 43)]
        for number, ticket in enumerate(tickets, 3):
            ticket.request_id = f"r{number}".encode()
        rows = msgspec.msgpack.encode([ticket.rows[0] for ticket in tickets])
        keeper.take_batch(tickets, rows, [ticket.answers[0] for ticket in tickets])
        await keeper.close()
        assert (keeper.counts.taken, keeper.counts.written, keeper.counts.dropped) == (43, 43, 0)

    asyncio.run(run())
    kept = read_log("digits", project=ProjectFolder(tmp_path)).to_pylist()
    for row in kept:
        number = int(row["request_id"][1:])
        assert row["input.x"] == [float(number), 0.5, -1.0]
        assert (row["output.score"], row["latency_ms"], row["status"], row["row"]) == (number / 2, 500.0, 200, 0)
    assert sorted(int(row["request_id"][1:]) for row in kept) == list(range(43))
    assert len({row["at"] for row in kept}) == 1


def test_rows_of_several_fields_become_columns(tmp_path: Path) -> None:
    async def run() -> None:
        keeper = keeper_of(tmp_path, RECORDS, redact=("town",))
        await keeper.start()
        rows, _ = RowCodec(RECORDS).read_rows(b'[{"age": 3, "town": "Kista"}, {"age": 4}]')
        keeper.take(b"r", ended(rows, [0.5, 0.25]))
        await keeper.close()

    asyncio.run(run())
    rows = read_log("digits", project=ProjectFolder(tmp_path))
    assert rows["input.age"].to_pylist() == [3, 4]
    assert rows["input.town"].to_pylist() == [None, None]
    assert rows["output.score"].to_pylist() == [0.5, 0.25]


def test_a_log_whose_process_is_killed_goes_on_and_counts_what_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_FIRST_PAUSE_S", 0.01)

    async def run() -> None:
        keeper = keeper_of(tmp_path, VECTORS)
        await keeper.start()
        take_some(keeper, 100)
        await until(lambda: keeper.counts.written == 100)
        killed = pid_of(keeper)
        os.kill(killed, signal.SIGKILL)
        take_some(keeper, 100, start=100)  # handed to a process that reads no more, or to none
        await until(lambda: pid_of(keeper) != killed)
        await until(lambda: keeper._link is not None)
        take_some(keeper, 100, start=200)
        await keeper.close()
        assert keeper.counts.failures == 1
        assert keeper.counts.taken == 300 == keeper.counts.written + keeper.counts.dropped

    asyncio.run(run())
    names = read_log("digits", project=ProjectFolder(tmp_path))["request_id"].to_pylist()
    assert {f"r{number}" for number in (*range(100), *range(200, 300))} <= set(names)


def test_a_process_that_stands_still_costs_no_more_than_so_much_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "MOST_BYTES", 1000)

    async def run() -> None:
        keeper = keeper_of(tmp_path, VECTORS)
        await keeper.start()
        os.kill(pid_of(keeper), signal.SIGSTOP)
        try:
            take_some(keeper, 20_000)
            await asyncio.sleep(0)
            assert keeper.counts.refused
        finally:
            os.kill(pid_of(keeper), signal.SIGCONT)
        await keeper.close()
        assert keeper.counts.written
        assert keeper.counts.taken == 20_000 == keeper.counts.written + keeper.counts.dropped

    asyncio.run(run())


def test_a_sample_leaves_requests_out(tmp_path: Path) -> None:
    async def run() -> None:
        keeper = keeper_of(tmp_path, VECTORS, sample=0.25)
        await keeper.start()
        take_some(keeper, 1000)
        await keeper.close()
        assert 150 < keeper.counts.taken == keeper.counts.written < 350

    asyncio.run(run())


def test_one_that_cannot_be_kept_costs_no_other(tmp_path: Path) -> None:
    class Unspeakable:
        def __str__(self) -> str:
            raise RuntimeError("no words")

    async def run() -> None:
        keeper = keeper_of(tmp_path, VECTORS)
        await keeper.start()
        take_some(keeper, 10)
        keeper.take(b"bad", ended([[Unspeakable(), 0.5, -1.0]], [1.0]))
        take_some(keeper, 10, start=10)
        keeper.take(b"several", ended([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [1.0, 2.0]))
        await keeper.close()
        assert (keeper.counts.taken, keeper.counts.written, keeper.counts.dropped) == (22, 21, 1)

    asyncio.run(run())
    rows = read_log("digits", project=ProjectFolder(tmp_path)).to_pylist()
    assert {row["request_id"] for row in rows} == {*(f"r{number}" for number in range(20)), "several"}
    assert [row["input.x"] for row in rows if row["request_id"] == "several"] == [[1, 2, 3], [4, 5, 6]]
