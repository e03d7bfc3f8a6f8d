"""Numbers of versions: no gaps, found by a few looks."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from cargobike.core.errors import StoreError
from cargobike.store.assets import numbering
from cargobike.store.assets.numbering import create_next, newest_number
from cargobike.store.files.storage import Entry, Storage
from cargobike.store.files.storages import open_storage


def path_of(number: int) -> str:
    return f"things/{number}.json"


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 9, 100])
def test_the_newest_number_is_found(tmp_path: Path, count: int) -> None:
    storage = open_storage(tmp_path)
    for number in range(1, count + 1):
        storage.create(path_of(number), b"")
    assert newest_number(storage, path_of) == count
    assert newest_number(storage, path_of, at_least=count) == count


def test_few_looks_find_one_of_many() -> None:
    looks: list[int] = []

    class Full:
        def stat(self, path: str) -> Entry | None:
            number = int(path.removeprefix("things/").removesuffix(".json"))
            looks.append(number)
            return Entry(path, 0, "") if number <= 10_000 else None

    assert newest_number(Full(), path_of) == 10_000  # type: ignore[arg-type]
    assert len(looks) < 40


def test_a_storage_that_has_everything_is_not_believed() -> None:
    class Endless:
        def stat(self, path: str) -> Entry | None:
            return Entry(path, 0, "")

        def __str__(self) -> str:
            return "endless"

    with pytest.raises(StoreError, match="endless has more than 1000000000 versions"):
        newest_number(Endless(), path_of)  # type: ignore[arg-type]


def test_writers_at_once_get_numbers_without_gaps(tmp_path: Path) -> None:
    numbers: list[int] = []

    def write(storage: Storage) -> None:
        for _ in range(10):
            numbers.append(create_next(storage, path_of, lambda number: str(number).encode(), 1))

    threads = [threading.Thread(target=write, args=(open_storage(tmp_path),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(numbers) == list(range(1, 41))
    assert open_storage(tmp_path).read(path_of(7)) == b"7"


def test_there_is_a_last_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "MOST", 3)
    storage = open_storage(tmp_path)
    for _ in range(2):
        create_next(storage, path_of, lambda _: b"", 1)
    with pytest.raises(StoreError, match="more than 3 versions"):
        create_next(storage, path_of, lambda _: b"", 1)
