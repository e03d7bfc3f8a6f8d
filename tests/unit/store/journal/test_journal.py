from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cargobike.core.errors import StoreError
from cargobike.core.facts import (
    EXPERIMENT_FACTS,
    AnyFact,
    ExperimentEnded,
    Reported,
    TrialEnded,
    TrialSuggested,
    encode_fact,
    pack_number,
)
from cargobike.store.journal import journal as journal_module
from cargobike.store.journal.journal import JournalReader, JournalWriter, read_journal
from cargobike.store.journal.lines import seal
from cargobike.testing.journals import first_fact

HEADER = first_fact(at=1.0, id="20270101-000000-aaaa", name="digits")
FACTS: list[AnyFact] = [
    HEADER,
    TrialSuggested(at=2.0, trial=0, params={"lr": 0.1, "act": "relu", "ü": [1, 2]}),
    Reported(at=3.0, trial=0, step=1, metrics={"loss": "nan", "accuracy": 0.5}),
    TrialEnded(at=4.0, trial=0, state="failed", error='Traceback\n  "x,"crc":"00000000"}\n'),
    ExperimentEnded(at=5.0, state="completed"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def write(path: Path, facts: list[AnyFact]) -> None:
    with JournalWriter(path) as writer:
        writer.append(facts)


def test_facts_come_back_as_they_were_written(path: Path) -> None:
    write(path, FACTS)
    assert list(read_journal(path, EXPERIMENT_FACTS)) == FACTS


def test_every_line_is_plain_json_with_a_checksum_at_its_end(path: Path) -> None:
    write(path, FACTS)
    for line, fact in zip(path.read_text().splitlines(), FACTS, strict=True):
        value = json.loads(line)
        assert list(value)[-3:] == ["line", "prev", "crc"]
        del value["line"], value["prev"], value["crc"]
        assert value == json.loads(encode_fact(fact))


@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_reader_sees_facts_as_soon_as_they_are_appended(path: Path, durability: str) -> None:
    writer = JournalWriter(path, durability="power" if durability == "power" else "process")
    reader = JournalReader(path, EXPERIMENT_FACTS)
    assert reader.read_new() == []
    writer.append(FACTS[:2])
    assert reader.read_new() == FACTS[:2]
    assert reader.read_new() == []
    writer.append(FACTS[2:])
    other = JournalReader(path, EXPERIMENT_FACTS, reader.offset)
    assert reader.read_new() == other.read_new() == FACTS[2:]
    assert reader.offset == writer.offset == path.stat().st_size
    writer.close()
    writer.close()


def test_a_reader_can_take_small_bites(path: Path) -> None:
    many: list[AnyFact] = [Reported(at=9.0, trial=0, step=n, metrics={"x": n * 0.1}) for n in range(30_000)]
    write(path, [*FACTS, *many])
    reader, bites = JournalReader(path, EXPERIMENT_FACTS), list[list[AnyFact]]()
    while bite := reader.read_new(max_bytes=1):
        bites.append(bite)
    assert len(bites) > 1
    assert [fact for bite in bites for fact in bite] == [*FACTS, *many]


@pytest.mark.parametrize("cut", range(1, len(seal(FACTS[-1])) + len(',"line":5,"prev":"01234567"') + 1))
def test_a_torn_last_line_is_dropped_wherever_it_is_torn(path: Path, cut: int) -> None:
    write(path, FACTS)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - cut)
    assert list(read_journal(path, EXPERIMENT_FACTS)) == FACTS[:-1]
    write(path, [FACTS[-1]])
    assert list(read_journal(path, EXPERIMENT_FACTS)) == FACTS


@settings(max_examples=200, deadline=None)
@given(garbage=st.binary(max_size=300), kept=st.integers(0, len(FACTS)))
def test_garbage_at_the_end_is_never_misread(
    tmp_path_factory: pytest.TempPathFactory, garbage: bytes, kept: int
) -> None:
    path = tmp_path_factory.mktemp("garbage") / "journal.jsonl"
    write(path, FACTS[:kept])
    with path.open("ab") as file:
        file.write(garbage)
    assert list(read_journal(path, EXPERIMENT_FACTS)) == FACTS[:kept]
    write(path, FACTS[kept:])
    assert list(read_journal(path, EXPERIMENT_FACTS)) == FACTS


@given(at=st.integers(0, 10_000), flip=st.integers(1, 255))
@settings(max_examples=200, deadline=None)
def test_a_changed_byte_is_never_misread(tmp_path_factory: pytest.TempPathFactory, at: int, flip: int) -> None:
    path = tmp_path_factory.mktemp("flip") / "journal.jsonl"
    write(path, FACTS)
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= flip
    path.write_bytes(bytes(data))
    got = list[AnyFact]()
    try:
        got.extend(read_journal(path, EXPERIMENT_FACTS))
    except StoreError:
        pass
    assert got != FACTS
    assert all(fact in FACTS for fact in got)


def test_a_bad_line_in_the_middle_names_file_and_line(path: Path) -> None:
    write(path, FACTS)
    path.write_bytes(path.read_bytes().replace(b'"step":1', b'"step":7'))
    with pytest.raises(StoreError, match=r"journal\.jsonl, line 3: damaged"):
        list(read_journal(path, EXPERIMENT_FACTS))
    with pytest.raises(StoreError, match="line 3"):
        JournalWriter(path)
    reader = JournalReader(path, EXPERIMENT_FACTS)
    assert reader.read_new() == FACTS[:2]
    with pytest.raises(StoreError, match="line 3"):
        reader.read_new()


def test_a_bad_line_is_found_far_from_the_good_one_that_follows(path: Path) -> None:
    filler = Reported(at=9.0, trial=0, step=1, metrics={"x" * 1000: 1.0})
    write(path, [HEADER, FACTS[1], *[filler] * 3000])
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    last, start = len(lines[-1]), len(lines[0])
    path.write_bytes(data[:start] + b"\0" * (len(data) - start - last) + b"\n" + data[-last:])
    with pytest.raises(StoreError, match="line 2: damaged"):
        list(read_journal(path, EXPERIMENT_FACTS))


def test_a_journal_that_shrank_is_an_error_for_who_had_read_on(path: Path) -> None:
    write(path, FACTS)
    reader = JournalReader(path, EXPERIMENT_FACTS)
    reader.read_new()
    os.truncate(path, 20)
    with pytest.raises(StoreError, match="shorter than it was"):
        reader.read_new()


def test_a_missing_journal_is_a_store_error(path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        list(read_journal(path, EXPERIMENT_FACTS))


def test_a_newer_journal_version_is_refused(path: Path) -> None:
    write(path, [msgspec.structs.replace(first_fact(at=1.0, id="x", name="n"), version=99, cargobike="9.1")])
    with pytest.raises(StoreError, match=r"written by a newer Cargobike 9\.1 \(journal version 99"):
        list(read_journal(path, EXPERIMENT_FACTS))


def test_an_unknown_fact_is_refused(path: Path) -> None:
    write(path, FACTS[:2])
    first, line = path.read_bytes().splitlines(keepends=True)
    body = line[: line.index(b',"crc"')].replace(b"trial-suggested", b"trial-teleported")
    path.write_bytes(first + b'%b,"crc":"%08x"}\n' % (body, crc32(body)))
    with pytest.raises(StoreError, match=r"line 2: written by a newer Cargobike .*trial-teleported"):
        list(read_journal(path, EXPERIMENT_FACTS))


def test_text_that_utf8_cannot_hold_is_kept_readable(path: Path) -> None:
    write(path, [HEADER, TrialEnded(at=2.0, trial=0, state="failed", error="bad \udcff byte")])
    ended = list(read_journal(path, EXPERIMENT_FACTS))[1]
    assert isinstance(ended, TrialEnded)
    assert ended.error == r"bad \udcff byte"


@given(st.floats())
def test_numbers_survive_exactly(value: float) -> None:
    line = seal(Reported(at=1.0, trial=0, step=0, metrics={"x": pack_number(value)}))
    back = float(json.loads(line)["metrics"]["x"])
    assert back == value or (math.isnan(back) and math.isnan(value))


def test_the_writer_needs_to_look_only_at_what_the_reader_has_not_seen(path: Path) -> None:
    write(path, FACTS[:3])
    reader = JournalReader(path, EXPERIMENT_FACTS)
    reader.read_new()
    with path.open("ab") as file:
        file.write(b'{"fact":"tri')
    with JournalWriter(path, start_at=reader.offset) as writer:
        assert writer.offset == reader.offset
        writer.append(FACTS[3:])
    assert list(read_journal(path, EXPERIMENT_FACTS)) == FACTS


@contextmanager
def file_size_limit(limit_bytes: int) -> Iterator[None]:
    """A disk that is full beyond so many bytes of one file: a short write, then an error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 1, 50, len(seal(FACTS[1])), len(seal(FACTS[1])) + 10])
def test_a_full_disk_leaves_the_journal_as_it_was(path: Path, room: int) -> None:
    with JournalWriter(path) as writer:
        writer.append([HEADER])
        with file_size_limit(writer.offset + room):
            for _ in range(2):
                with pytest.raises(StoreError, match=r"no room left.*Free some space"):
                    writer.append(FACTS[1:])
                assert list(read_journal(path, EXPERIMENT_FACTS)) == [HEADER]
                assert path.stat().st_size == writer.offset
        writer.append(FACTS[1:])
    assert list(read_journal(path, EXPERIMENT_FACTS)) == FACTS


def test_a_tail_that_could_not_be_cut_is_cut_before_the_next_append(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with JournalWriter(path) as writer:
        writer.append([HEADER])

        def refuse(fd: int, size: int) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch, file_size_limit(writer.offset + 40):
            patch.setattr(os, "ftruncate", refuse)
            with pytest.raises(StoreError, match="no room left"):
                writer.append(FACTS[1:])
            with pytest.raises(StoreError, match="torn tail"):
                writer.append(FACTS[1:])
        assert list(read_journal(path, EXPERIMENT_FACTS)) == [HEADER]
        writer.append(FACTS[1:])
    assert list(read_journal(path, EXPERIMENT_FACTS)) == FACTS


def test_power_mode_flushes_once_for_each_batch(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = list[int]()
    monkeypatch.setattr(journal_module, "_flush_to_disk", flushed.append)
    with JournalWriter(path, durability="power") as writer:
        writer.append(FACTS[:3])
        writer.append(FACTS[3:])
        writer.append([])
        assert len(flushed) == 2
    assert len(flushed) == 2


def test_process_mode_flushes_at_most_once_a_second_and_at_the_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = list[int]()
    monkeypatch.setattr(journal_module, "_flush_to_disk", flushed.append)
    writer = JournalWriter(path)
    writer.append(FACTS[:1])
    for now_s in (100.0, 100.1, 100.9):
        writer.append(FACTS[1:2])
        writer.sync_if_due(now_s)
    writer.close()
    assert len(flushed) == 2


def test_a_flush_that_fails_ends_the_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    writer = JournalWriter(path, durability="power")
    monkeypatch.setattr(journal_module, "_flush_to_disk", fail)
    with pytest.raises(StoreError, match="Input/output error"):
        writer.append([HEADER])
    monkeypatch.undo()
    with pytest.raises(StoreError, match="Input/output error"):
        writer.append([HEADER])
    writer.close()


WRITE_FOREVER = """
import sys
from cargobike.core.facts import Reported
from cargobike.store.journal.journal import JournalWriter
from cargobike.testing.journals import first_fact

writer = JournalWriter(sys.argv[1])
writer.append([first_fact(at=0.0, id="x", name="n")])
step = 0
while True:
    batch = [Reported(at=1.0, trial=0, step=step + i, metrics={"x" * 200: 0.5}) for i in range(50)]
    writer.append(batch)
    step += 50
    sys.stdout.write(f"{step}\\n")
    sys.stdout.flush()
"""


def test_what_was_appended_survives_kill_9(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITE_FOREVER, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for _ in range(100):
            child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
        acknowledged = int(([line for line in child.stdout if line.endswith(b"\n")] or [b"5000"])[-1])
    steps = [fact.step for fact in read_journal(path, EXPERIMENT_FACTS) if isinstance(fact, Reported)]
    assert len(steps) >= acknowledged >= 5000
    assert steps == list(range(len(steps)))
    write(path, [ExperimentEnded(at=2.0, state="interrupted")])
    assert isinstance(list(read_journal(path, EXPERIMENT_FACTS))[-1], ExperimentEnded)
