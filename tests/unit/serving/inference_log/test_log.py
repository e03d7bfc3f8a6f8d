from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.serving.inference_log import file_sink as file_sink_module
from cargobike.serving.inference_log import log as log_module
from cargobike.serving.inference_log.columns import Columns
from cargobike.serving.inference_log.file_sink import FileSink
from cargobike.serving.inference_log.log import InferenceLog
from cargobike.serving.inference_log.messages import Requests
from cargobike.serving.inference_log.parquet import DROPPED
from cargobike.serving.inference_log.places import log_folder
from cargobike.serving.inference_log.reading import read_log
from cargobike.serving.inference_log.sink import Counts, Entry
from cargobike.serving.specification import Logging, Specification
from cargobike.store.files.storages import open_storage
from support.logged_requests import NOON, VECTORS, Faulty, logging_to, take_some


def read(project: Path) -> pa.Table:
    return read_log("digits", project=ProjectFolder(project))


def dropped(rows: pa.Table) -> int:
    return int(rows.schema.metadata[DROPPED])


class Blocked:
    """A sink that takes nothing until it may."""

    def __init__(self) -> None:
        self.may_go = threading.Event()
        self.entries: list[Entry] = []

    def put(self, entries: Sequence[Entry]) -> None:
        assert self.may_go.wait(30)
        self.entries.extend(entries)

    def put_packed(self, requests: Requests) -> None:
        raise AssertionError("these tests take requests one by one")

    def flush(self) -> bool:
        return True

    def tend(self) -> None: ...

    def close(self) -> None: ...


def test_what_is_taken_is_read_back(tmp_path: Path) -> None:
    with logging_to(tmp_path) as log:
        take_some(log, 2500)
        log.take("bad", NOON, 0.001, 1, 400, None, None)
    rows = read(tmp_path)
    assert rows.num_rows == 2501
    assert {f"r{number}" for number in range(2500)} | {"bad"} == set(rows.column("request_id").to_pylist())
    wanted = rows.filter(pa.compute.equal(rows.column("request_id"), "r77")).to_pylist()
    assert [(row["input.x"], row["output.score"], row["status"]) for row in wanted] == [([77.0, 0.5, -1.0], 38.5, 200)]
    assert log.counts == Counts(taken=2501, written=2501)
    assert dropped(rows) == 0


def test_versions_with_other_signatures_have_files_of_their_own(tmp_path: Path) -> None:
    with logging_to(tmp_path, {1: VECTORS}) as log:
        take_some(log, 3)
        log.take("new", NOON, 0.001, 2, 200, [{"a": 1}], [True])
    rows = read(tmp_path)
    (new,) = rows.filter(pa.compute.equal(rows.column("version"), 2)).to_pylist()
    assert json.loads(new["input"]) == {"a": 1}
    assert new["input.x"] is None


def test_a_request_at_midnight_lies_in_its_own_day(tmp_path: Path) -> None:
    with logging_to(tmp_path) as log:
        take_some(log, 4, at=NOON + 12 * 3600 - 2)
    days = sorted(path.name for path in (tmp_path / log_folder("digits")).iterdir())
    assert days == ["2026-05-01", "2026-05-02"]
    assert read(tmp_path).num_rows == 4


def test_sampling_keeps_a_share_and_always_the_same_requests(tmp_path: Path) -> None:
    kept = []
    for turn in range(2):
        with logging_to(tmp_path / str(turn), sample=0.1) as log:
            take_some(log, 20_000)
        kept.append(set(read(tmp_path / str(turn)).column("request_id").to_pylist()))
    assert kept[0] == kept[1]
    assert 1700 < len(kept[0]) < 2300
    assert log.counts.dropped == 0, "what is not sampled is not dropped"


def test_nothing_is_kept_of_a_sample_of_none(tmp_path: Path) -> None:
    before = threading.active_count()
    with logging_to(tmp_path, sample=0) as log:
        take_some(log, 10)
        assert threading.active_count() == before
    assert not list(tmp_path.iterdir())


def test_a_request_does_not_wait_for_a_sink_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row_bytes = Columns("digits", 1, VECTORS).row_bytes
    monkeypatch.setattr(log_module, "MOST_BYTES", 100 * row_bytes)
    sink = Blocked()
    with logging_to(tmp_path, sink=sink) as log:
        take_some(log, 5000)  # returns, though nothing is taken away
        assert log.counts.refused == 4900
        sink.may_go.set()
    assert len(sink.entries) == 100
    assert log.counts.dropped == 4900


def test_a_storage_that_comes_back_gets_everything_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_sink_module, "_FIRST_PAUSE_S", 0.0)
    storage, counts = Faulty(open_storage(tmp_path)), Counts()
    sink = FileSink(storage, log_folder("digits"), lambda version: Columns("digits", version, VECTORS), counts)
    entries: list[Entry] = [(f"r{number}", NOON, 0.0, 1, 200, [[1, 2, 3]], [0.5]) for number in range(10)]
    storage.is_gone = True
    sink.put(entries[:4])
    assert not sink.flush()
    sink.put(entries[4:])
    assert not sink.flush()
    storage.is_gone, storage.fails_after_writing = False, True
    assert not sink.flush()
    storage.fails_after_writing = False
    assert sink.flush()
    assert sorted(read(tmp_path).column("request_id").to_pylist()) == [f"r{number}" for number in range(10)]
    assert (counts.written, counts.lost) == (10, 0)
    assert counts.failures >= 3


def test_while_a_storage_is_gone_memory_is_bounded_and_drops_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(file_sink_module, "_FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(file_sink_module, "MOST_BYTES", 20_000)
    storage, counts = Faulty(open_storage(tmp_path)), Counts()
    sink = FileSink(storage, log_folder("digits"), lambda version: Columns("digits", version, VECTORS), counts)
    storage.is_gone = True
    for turn in range(200):
        sink.put([(f"r{turn}.{number}", NOON, 0.0, 1, 200, [[1, 2, 3]], [0.5]) for number in range(20)])
        sink.flush()
    assert 0 < counts.lost < 4000
    storage.is_gone = False
    assert sink.flush()
    sink.put([("last", NOON, 0.0, 1, 200, [[1, 2, 3]], [0.5])])
    assert sink.flush()
    rows = read(tmp_path)
    assert rows.num_rows == counts.written == 4001 - counts.lost
    assert dropped(rows) == counts.lost
    told = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 2, "one warning when it begins, one when it ends"


def test_closing_while_the_storage_is_gone_ends_and_counts(tmp_path: Path) -> None:
    counts = Counts()
    storage = Faulty(open_storage(tmp_path))
    storage.is_gone = True
    sink = FileSink(storage, log_folder("digits"), lambda version: Columns("digits", version, VECTORS), counts)
    specification = Specification(name="digits", model="digits", logging=Logging(flush_s=0.05))
    log = InferenceLog(specification, str(tmp_path), "digits", {1: VECTORS}, sink=sink)
    take_some(log, 7)
    log.close(within_s=0.2)
    assert counts.lost == 7
    assert "inference-log" not in {thread.name for thread in threading.enumerate()}


def test_a_sink_that_breaks_its_promise_does_not_end_the_log(tmp_path: Path) -> None:
    class Broken(Blocked):
        def put(self, entries: Sequence[Entry]) -> None:
            super().put(entries)
            if any(entry[0] == "r0" for entry in entries):
                raise RuntimeError("broken")

        def flush(self) -> bool:
            raise RuntimeError("broken too")

    sink = Broken()
    sink.may_go.set()
    specification = Specification(name="digits", model="digits", logging=Logging(flush_s=0.05))
    log = InferenceLog(specification, str(tmp_path), "digits", {1: VECTORS}, sink=sink)
    take_some(log, 1)
    log.close(within_s=0.1)
    assert log.counts.lost == 1
    assert log.counts.failures >= 1


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"sample": 1.5}, r"sample is a share between 0 and 1; 1.5 was given"),
        ({"flush_s": 0.0}, r"flush_s is between 0.05 and 3600 seconds; 0.0 was given"),
        ({"keep_days": -1.0}, r"keep_days is a number of days"),
        ({"topic": "digits"}, r"topic='digits' needs kafka='host:port'"),
    ],
)
def test_what_cannot_be_done_is_refused_at_the_start(tmp_path: Path, chosen: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words), logging_to(tmp_path, **chosen):
        pass


def test_a_name_that_leads_out_of_the_project_is_refused(tmp_path: Path) -> None:
    specification = Specification(name="../digits", model="digits")
    with pytest.raises(InvalidInputError, match=r"'\.\./digits' was given as the name of a deployment"):
        InferenceLog(specification, str(tmp_path), "digits", {})
