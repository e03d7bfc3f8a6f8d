"""How a journal is written: short writes, flushes of files and folders, and what others do to it meanwhile."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from cargobike.core.errors import StoreError
from cargobike.core.facts import EXPERIMENT_FACTS, AnyFact, ExperimentEnded, Reported
from cargobike.store.journal import journal as journal_module
from cargobike.store.journal.journal import JournalReader, JournalWriter, read_header, read_journal
from cargobike.testing.journals import first_fact

HEADER = first_fact(at=1.0, id="20270101-000000-aaaa", name="digits")
FACTS: list[AnyFact] = [
    HEADER,
    Reported(at=3.0, trial=0, step=1, metrics={"loss": 0.5}),
    Reported(at=4.0, trial=0, step=2, metrics={"loss": 0.4}),
    ExperimentEnded(at=5.0, state="completed"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The files that were flushed, instead of flushing them."""
    seen: list[int] = []
    monkeypatch.setattr(journal_module, "_flush_to_disk", seen.append)
    return seen


# -- writes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 7, 100])
def test_what_a_write_leaves_over_is_written_by_the_next(
    path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    write = os.write
    sizes: list[int] = []

    def short(fd: int, data: Any) -> int:
        sizes.append(write(fd, memoryview(data)[:most]))
        return sizes[-1]

    with JournalWriter(path) as writer:
        monkeypatch.setattr(os, "write", short)
        writer.append(FACTS[:2])
        writer.append(FACTS[2:])
        monkeypatch.undo()
        assert sum(sizes) == writer.offset == path.stat().st_size
    assert max(sizes) == most
    assert list(read_journal(path, EXPERIMENT_FACTS)) == FACTS


def test_a_write_that_fails_halfway_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def breaks(fd: int, data: Any) -> int:
        if isinstance(data, memoryview):
            raise OSError(errno.EIO, "Input/output error")
        return write(fd, data[:40])

    with JournalWriter(path) as writer:
        writer.append(FACTS[:1])
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", breaks)
            with pytest.raises(StoreError, match=r"Input/output error\. Everything recorded until now is safe"):
                writer.append(FACTS[1:])
        assert path.stat().st_size == writer.offset
        writer.append(FACTS[1:])
    assert list(read_journal(path, EXPERIMENT_FACTS)) == FACTS


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_disk_without_room_is_called_full(path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(fd: int, data: Any) -> int:
        raise OSError(number, "no")

    with JournalWriter(path) as writer:
        monkeypatch.setattr(os, "write", refuse)
        with pytest.raises(StoreError, match="there is no room left"):
            writer.append(FACTS)


def test_folders_are_made_for_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "journal.jsonl"
    JournalWriter(path).close()
    assert path.read_bytes() == b""
    assert path.stat().st_mode & 0o777 == 0o644 & ~_umask()
    JournalWriter(path).close()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_place_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="Cannot write to the journal"):
        JournalWriter(tmp_path / "file" / "journal.jsonl")


def test_nothing_stays_open_if_it_cannot_be_opened(path: Path) -> None:
    with JournalWriter(path) as writer:
        writer.append(FACTS)
    path.write_bytes(path.read_bytes().replace(b'"step":1', b'"step":7'))
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(StoreError, match="damaged"):
        JournalWriter(path)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_two_appends_are_chained_and_a_closed_writer_closes_again(path: Path) -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    writer = JournalWriter(path)
    for fact in FACTS:
        writer.append([fact])
    writer.close()
    assert writer._fd < 0
    assert sorted(os.listdir("/proc/self/fd")) == before
    writer.close()
    with JournalWriter(path, start_at=path.stat().st_size) as again:
        again.append([FACTS[-1]])
    assert list(read_journal(path, EXPERIMENT_FACTS)) == [*FACTS, FACTS[-1]]


# -- flushes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["power", "process"])
def test_the_three_folders_above_are_flushed_where_power_may_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: Any
) -> None:
    path = tmp_path / "experiments" / "20270101" / "journal.jsonl"
    synced: list[Path] = []

    def fsync(fd: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{fd}")))

    monkeypatch.setattr(os, "fsync", fsync)
    before = len(os.listdir("/proc/self/fd"))
    with JournalWriter(path, durability=durability):
        assert len(os.listdir("/proc/self/fd")) == before + 1
    folders = [path.parent, path.parent.parent, tmp_path]
    assert synced == (folders if durability == "power" else [])


def test_facts_that_need_not_settle_are_flushed_with_the_next(path: Path, flushed: list[int]) -> None:
    with JournalWriter(path, durability="power") as writer:
        assert writer.is_settled
        writer.append(FACTS[:1], settle=False)
        assert (writer.is_settled, flushed) == (False, [])
        writer.settle()
        assert (writer.is_settled, len(flushed)) == (True, 1)
        writer.settle()
        assert len(flushed) == 1
        writer.append(FACTS[1:2], settle=False)
        writer.append(FACTS[2:])
        assert (writer.is_settled, len(flushed)) == (True, 2)


def test_where_only_the_process_may_die_all_is_settled(path: Path, flushed: list[int]) -> None:
    with JournalWriter(path) as writer:
        writer.append(FACTS)
        assert (writer.is_settled, flushed) == (True, [])
    assert len(flushed) == 1, "at the end"


def test_it_is_flushed_behind_at_most_once_a_second_and_only_if_written(path: Path, flushed: list[int]) -> None:
    def flushes(now_s: float) -> int:
        writer.sync_if_due(now_s)
        if writer._syncing is not None:
            writer._syncing.join(30)
        return len(flushed)

    with JournalWriter(path) as writer:
        assert flushes(50.0) == 0
        writer.append(FACTS[:1])
        assert flushes(100.0) == 1
        assert flushes(102.0) == 1, "nothing was written since"
        writer.append(FACTS[1:2])
        assert [flushes(now_s) for now_s in (100.5, 100.99, 101.0, 103.0)] == [1, 1, 2, 2]
    assert len(flushed) == 2


def test_one_flush_at_a_time_runs_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on, flushes = threading.Event(), list[str]()

    def slow(fd: int) -> None:
        flushes.append(threading.current_thread().name)
        assert may_go_on.wait(30)

    monkeypatch.setattr(journal_module, "_flush_to_disk", slow)
    writer = JournalWriter(path)
    for now_s in (100.0, 102.0, 104.0):
        writer.append(FACTS[1:2])
        writer.sync_if_due(now_s)
    first = writer._syncing
    assert first is not None
    assert first.daemon
    may_go_on.set()
    first.join(30)
    assert flushes == ["cargobike-journal-sync"]
    writer.sync_if_due(104.5)
    writer.close()
    assert len(flushes) == 2


def test_closing_waits_for_the_flush_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on, done = threading.Event(), list[bool]()

    def slow(fd: int) -> None:
        done.append(may_go_on.wait(30))

    monkeypatch.setattr(journal_module, "_flush_to_disk", slow)
    writer = JournalWriter(path)
    writer.append(FACTS)
    writer.sync_if_due(100.0)
    flush = writer._syncing
    assert flush is not None
    join = flush.join

    def watched() -> None:
        may_go_on.set()
        join(30)

    flush.join = watched  # type: ignore[method-assign, assignment]
    writer.close()
    done_at_the_end = list(done)
    may_go_on.set()
    join(30)
    assert done_at_the_end == [True]


def test_a_flush_behind_that_fails_ends_the_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    writer = JournalWriter(path)
    writer.append(FACTS[:1])
    monkeypatch.setattr(journal_module, "_flush_to_disk", fail)
    writer.sync_if_due(100.0)
    assert writer._syncing is not None
    writer._syncing.join(30)
    monkeypatch.undo()
    with pytest.raises(StoreError, match="Input/output error"):
        writer.append(FACTS[1:])
    writer.close()
    assert list(read_journal(path, EXPERIMENT_FACTS)) == FACTS[:1]


# -- what others do to it --------------------------------------------------------------------------------------------


def _delete(path: Path) -> None:
    path.unlink()


def _move_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def _replace_by_less(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"my thesis\n")


def _replace_by_a_copy(path: Path) -> None:
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def _lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


def _change(path: Path) -> None:
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(data.replace(data[-11:-3], b"00000000"))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_delete, "was deleted or moved while"),
        (_move_folder, "was deleted or moved while"),
        (_replace_by_less, "was replaced by another while"),
        (_replace_by_a_copy, "was replaced by another while"),
        (_cut, "was cut short by another program while"),
        (_lengthen, "was written to by another program while"),
        (_change, "was changed by another program while"),
    ],
)
def test_what_others_do_to_it_is_noticed_once_a_second(tmp_path: Path, harm: Any, said: str) -> None:
    path = tmp_path / "folder" / "journal.jsonl"
    writer = JournalWriter(path)
    writer.check_place()
    writer.append(FACTS)
    writer.check_place()
    writer.sync_if_due(100.0)
    harm(path)
    writer.sync_if_due(100.9)
    with pytest.raises(StoreError, match=said):
        writer.sync_if_due(101.0)
    with pytest.raises(StoreError, match=said):
        writer.check_place()
    writer.sync_if_due(101.5)
    writer.close()


@pytest.mark.parametrize(("number", "is_gone"), [(errno.ESTALE, True), (errno.EACCES, False)])
def test_a_disk_that_does_not_answer_is_no_proof(
    path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_gone: bool
) -> None:
    def refuse(fd: int) -> Any:
        raise OSError(number, "no")

    with JournalWriter(path) as writer:
        writer.append(FACTS)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fstat", refuse)
            if is_gone:
                with pytest.raises(StoreError, match="was deleted while"):
                    writer.check_place()
            else:
                writer.check_place()


def test_a_file_that_is_numbered_anew_is_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JournalWriter(path) as writer:
        writer.append(FACTS)
        monkeypatch.setattr(os.path, "samestat", lambda ours, there: False)
        writer.check_place()


def test_a_tail_of_our_own_is_no_harm(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def breaks(fd: int, data: Any) -> int:
        if isinstance(data, memoryview):
            raise OSError(errno.EIO, "Input/output error")
        return write(fd, data[:40])

    def refuse(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with JournalWriter(path) as writer:
        writer.append(FACTS[:1])
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", breaks)
            patch.setattr(os, "ftruncate", refuse)
            with pytest.raises(StoreError, match="Input/output"):
                writer.append(FACTS[1:])
            writer.check_place()
            with pytest.raises(StoreError, match="torn tail that could not be cut off"):
                writer.append(FACTS[1:])
        assert path.stat().st_size == writer.offset + 40
        writer.append(FACTS[1:])
        writer.check_place()
    assert list(read_journal(path, EXPERIMENT_FACTS)) == FACTS


# -- readers ---------------------------------------------------------------------------------------------------------


def test_a_reader_refuses_the_journal_of_another(path: Path) -> None:
    with JournalWriter(path) as writer:
        writer.append(FACTS)
    assert JournalReader(path, EXPERIMENT_FACTS, of=HEADER.id).read_new() == FACTS
    other = JournalReader(path, EXPERIMENT_FACTS, of="20270101-000000-bbbb")
    for _ in range(2):
        with pytest.raises(StoreError, match=f"is the journal of {HEADER.id}, not of 20270101-000000-bbbb"):
            other.read_new()
    beyond = path.read_bytes().index(b"\n") + 1
    assert JournalReader(path, EXPERIMENT_FACTS, beyond, of="any").read_new() == FACTS[1:]


def test_only_a_whole_first_fact_is_a_header(path: Path) -> None:
    assert read_header(path, EXPERIMENT_FACTS) is None
    with JournalWriter(path) as writer:
        writer.append(FACTS)
    assert read_header(path, EXPERIMENT_FACTS) == HEADER
    data = path.read_bytes()
    first = data.index(b"\n") + 1
    path.write_bytes(data[: first - 1])
    assert read_header(path, EXPERIMENT_FACTS) is None
    path.write_bytes(data.replace(b"digits", b"digitz", 1))
    assert read_header(path, EXPERIMENT_FACTS) is None
    path.unlink()
    with JournalWriter(path) as writer:
        writer.append(FACTS[1:])
    assert read_header(path, EXPERIMENT_FACTS) is None


def test_the_product_of_a_journal_is_found_by_its_first_line(path: Path) -> None:
    with JournalWriter(path) as writer:
        writer.append(FACTS)
    assert list(read_journal(path)) == FACTS
    path.unlink()
    with JournalWriter(path) as writer:
        writer.append(FACTS[1:])
    with pytest.raises(StoreError, match="is not a journal of a product that is installed here"):
        list(read_journal(path))
