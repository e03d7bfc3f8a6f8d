from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.serving.inference_log import upkeep
from cargobike.serving.inference_log.columns import Columns
from cargobike.serving.inference_log.file_sink import FileSink
from cargobike.serving.inference_log.parquet import DROPPED
from cargobike.serving.inference_log.places import log_folder
from cargobike.serving.inference_log.reading import read_log
from cargobike.serving.inference_log.sink import Counts
from cargobike.serving.inference_log.upkeep import Tidied, tidy
from cargobike.store.files.storages import open_storage
from support.logged_requests import NOON, VECTORS, Faulty

FOLDER = log_folder("digits")


def fill(project: Path, files: int, *, at: float = NOON, version: int = 1, lost: int = 0) -> None:
    """Write small files of two requests each."""
    counts = Counts()
    sink = FileSink(open_storage(project), FOLDER, lambda number: Columns("digits", number, VECTORS), counts)
    for number in range(files):
        counts.lost += lost
        name = f"v{version}.{number}"
        sink.put([(f"{name}.{turn}", at + number, 0.0, version, 200, [[1, 2, number]], [0.5]) for turn in range(2)])
        assert sink.flush()


def ids(project: Path) -> list[str]:
    names: list[str] = read_log("digits", project=ProjectFolder(project))["request_id"].to_pylist()
    return sorted(names)


def names(project: Path) -> list[str]:
    return [path.name for path in sorted((project / FOLDER).rglob("*.parquet"))]


def test_small_files_become_one_and_nothing_changes_for_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, 20, lost=3)
    fill(tmp_path, 3, version=2)
    before = read_log("digits", project=ProjectFolder(tmp_path))
    assert tidy(open_storage(tmp_path), FOLDER, whole=True) == Tidied(merged=23, written=2)
    after = read_log("digits", project=ProjectFolder(tmp_path))
    assert after.equals(before)
    assert after.schema.metadata[DROPPED] == b"60"
    assert len(names(tmp_path)) == 25, "readers that have listed the old ones go on"
    assert tidy(open_storage(tmp_path), FOLDER, whole=True) == Tidied()
    monkeypatch.setattr(upkeep, "GRACE_S", -1.0)
    assert tidy(open_storage(tmp_path), FOLDER, whole=True).deleted == 23
    assert len(names(tmp_path)) == 2
    assert read_log("digits", project=ProjectFolder(tmp_path)).equals(before)


def test_today_is_merged_when_there_are_many_of_one_size(tmp_path: Path) -> None:
    now = datetime.now(UTC).replace(hour=12, minute=0).timestamp()
    fill(tmp_path, 15, at=now)
    assert tidy(open_storage(tmp_path), FOLDER) == Tidied()
    fill(tmp_path, 1, at=now + 60)
    assert tidy(open_storage(tmp_path), FOLDER) == Tidied(merged=16, written=1)
    fill(tmp_path, 3, at=now + 120)
    assert tidy(open_storage(tmp_path), FOLDER) == Tidied()
    assert len(ids(tmp_path)) == 38


def test_merged_files_are_merged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "GRACE_S", -1.0)
    for turn in range(4):
        fill(tmp_path, 4, at=NOON + 60 * turn)
        tidy(open_storage(tmp_path), FOLDER, whole=True)
    tidy(open_storage(tmp_path), FOLDER, whole=True)
    assert len(names(tmp_path)) == 1
    assert len(ids(tmp_path)) == 32
    records = sorted(path.name for path in (tmp_path / FOLDER).rglob("merges/*"))
    assert records == ["3.json", "4.json"], "older records are of no use"


def test_several_that_merge_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    fill(tmp_path, 12)
    before = ids(tmp_path)
    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(lambda _: tidy(open_storage(tmp_path), FOLDER, whole=True), range(4)))
    assert ids(tmp_path) == before
    assert sum(one.written for one in done) >= 1


def test_whoever_is_killed_while_merging_leaves_the_log_as_it_was_or_as_it_will_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "GRACE_S", -1.0)
    fill(tmp_path, 4)
    before, steps = ids(tmp_path), 0
    for _ in range(100):
        storage = Faulty(open_storage(tmp_path))
        storage.fails_at = steps % 12
        try:
            tidy(storage, FOLDER, whole=True)
        except StoreError:
            assert ids(tmp_path) == before, f"after {storage.calls}"
            steps += 1
            continue
        steps += 1
        fill(tmp_path, 2, at=NOON + 100 * steps, version=1)
        before = ids(tmp_path)
        if steps > 36:
            break
    assert steps > 36
    storage = Faulty(open_storage(tmp_path))
    tidy(storage, FOLDER, whole=True)
    tidy(storage, FOLDER, whole=True)
    assert ids(tmp_path) == before
    assert len(names(tmp_path)) == 1, "what the killed have left is swept"


def test_what_was_left_today_is_not_swept_since_it_may_be_at_work(tmp_path: Path) -> None:
    now = datetime.now(UTC).replace(hour=12).timestamp()
    fill(tmp_path, 3, at=now)
    storage = Faulty(open_storage(tmp_path))
    storage.fails_at = 5  # after a list, three reads and a write: the record is not created
    with pytest.raises(StoreError):
        tidy(storage, FOLDER, whole=True)
    assert storage.calls[-1][0] == "write"
    assert len(names(tmp_path)) == 4
    assert len(ids(tmp_path)) == 6
    tidy(open_storage(tmp_path), FOLDER, whole=True)
    assert len(names(tmp_path)) == 5


def test_days_that_are_too_old_are_deleted(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    for days in (0, 3, 9, 40):
        fill(tmp_path, 1, at=(now - timedelta(days=days)).replace(hour=1).timestamp(), version=1 + days)
    assert tidy(open_storage(tmp_path), FOLDER, keep_days=7).days_deleted == 2
    assert [name.split(".")[0] for name in ids(tmp_path)] == ["v1", "v1", "v4", "v4"]
    assert tidy(open_storage(tmp_path), FOLDER).days_deleted == 0


def test_a_record_that_is_damaged_is_named(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    tidy(open_storage(tmp_path), FOLDER, whole=True)
    (record,) = (tmp_path / FOLDER).rglob("merges/1.json")
    record.write_bytes(b"{")
    with pytest.raises(StoreError, match=r"merges/1\.json is damaged"):
        ids(tmp_path)


def test_the_log_tends_its_files_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, 4)
    sink = FileSink(open_storage(tmp_path), FOLDER, lambda number: Columns("digits", number, VECTORS), Counts(), 1.0)
    sink.tend()
    assert len(names(tmp_path)) == 4, "it is not time yet"
    monkeypatch.setattr(sink, "_tend_at", 0.0)
    sink.tend()
    assert not names(tmp_path)
