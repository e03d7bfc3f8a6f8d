"""What goes to a storage goes there file by file, keeps within its bound on this disk, and is given from there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.sharing.getting import front
from cargobike.sharing.network.membership import Membership
from cargobike.sharing.pieces.arriving import Arriving
from cargobike.store.files.storages import open_storage
from support.swarm import PIECE, Seeder, fill, lab, project_at, publish, read_folder, seeding

FILES = {f"part-{number}.bin": 3 * PIECE for number in range(8)}


@pytest.fixture
def seeder(tmp_path: Path) -> Iterator[Seeder]:
    with seeding(tmp_path / "seed") as seeder:
        yield seeder


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"memory://{tmp_path.name}/higgs"


def begin(seeder: Seeder, to: str, tmp_path: Path, **options: Any) -> Any:
    project = project_at(tmp_path / "getter")
    return front.get(
        "higgs", network=lab(), peers=[seeder.address], to=to, project=project, quiet=True, timeout_s=20.0, **options
    )


def test_files_go_to_the_storage_and_nothing_stays_here(tmp_path: Path, seeder: Seeder, url: str) -> None:
    contents = fill(tmp_path / "source", {"a.bin": 3 * PIECE + 1, "sub/b.txt": 10, "empty": 0, "twin": 0})
    (tmp_path / "source/twin").write_bytes(contents["a.bin"])
    publish(seeder.membership, tmp_path / "source")
    arrival = begin(seeder, url, tmp_path)
    assert arrival.result == arrival.place == url
    storage = open_storage(url)
    assert {path: storage.read(path) for path in contents} == {**contents, "twin": contents["a.bin"]}
    assert not arrival.folder.exists()
    assert sorted(arrival.addresses()) == [f"{url}/a.bin", f"{url}/sub/b.txt", f"{url}/twin"]
    with pytest.raises(InvalidInputError, match="ask for addresses"):
        arrival.files()


class _Watched(Arriving):
    """Counts the files that are on this disk when one is sent; after some the storage is gone."""

    most = 0
    left = 10_000

    def finish_file(self, index: int) -> list[str]:
        _Watched.most = max(_Watched.most, len(list(self.staging.glob("0*"))))
        _Watched.left -= 1
        if _Watched.left < 0:
            raise StoreError("The storage is gone.")
        return super().finish_file(index)


def test_few_files_are_here_at_once_and_what_was_sent_is_not_fetched_again(
    tmp_path: Path, seeder: Seeder, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = fill(tmp_path / "source", FILES)
    publish(seeder.membership, tmp_path / "source")
    monkeypatch.setattr(front, "MOST_STAGED", 6 * PIECE)
    monkeypatch.setattr(front, "Arriving", _Watched)
    monkeypatch.setattr(_Watched, "left", 4)
    with pytest.raises(StoreError, match="The storage is gone"):
        begin(seeder, url, tmp_path)
    storage, given = open_storage(url), seeder.pieces_given
    sent = {entry.path for entry in storage.list()}
    assert len(sent) == 4
    assert sent <= {f"part-{number}.bin" for number in range(6)}, "two come at a time, and either may be whole first"
    assert given <= 6 * 3, "files whose turn has not come are not asked for"
    monkeypatch.setattr(_Watched, "left", 4)
    arrival = begin(seeder, url, tmp_path)
    assert arrival.progress.size_found >= 4 * 3 * PIECE
    assert arrival.progress.size_found + arrival.progress.size_fetched == 24 * PIECE
    assert (seeder.pieces_given - given) * PIECE == arrival.progress.size_fetched
    assert {path: storage.read(path) for path in contents} == contents
    assert _Watched.most == 2
    assert begin(seeder, url, tmp_path).progress.size_fetched == 0
    root = next(file.root for file in arrival.manifest.files if file.path == "part-3.bin")
    with Membership(project_at(tmp_path / "getter"), lab()) as membership:
        assert membership.holdings.read(root, PIECE, 1) == contents["part-3.bin"][PIECE : 2 * PIECE]


def test_a_file_that_has_changed_on_the_storage_is_fetched_again(tmp_path: Path, seeder: Seeder, url: str) -> None:
    contents = fill(tmp_path / "source", FILES)
    publish(seeder.membership, tmp_path / "source")
    begin(seeder, url, tmp_path)
    open_storage(url).write("part-2.bin", b"something else")
    assert begin(seeder, url, tmp_path).progress.size_fetched == 3 * PIECE
    assert open_storage(url).read("part-2.bin") == contents["part-2.bin"]


def test_a_reader_gets_bytes_of_files_whose_turn_has_not_come(
    tmp_path: Path, seeder: Seeder, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = fill(tmp_path / "source", FILES)
    publish(seeder.membership, tmp_path / "source")
    monkeypatch.setattr(front, "MOST_STAGED", PIECE)
    with begin(seeder, url, tmp_path, wait=False) as arrival:
        assert arrival.read("part-7.bin", PIECE, 5) == contents["part-7.bin"][PIECE : PIECE + 5]
        arrival.wait(20)
        assert arrival.read("part-0.bin", 1, 5) == contents["part-0.bin"][1:6], "it is on the storage"


def test_a_file_that_was_moved_to_its_place_and_changed_is_not_mixed_with_what_comes(
    tmp_path: Path, seeder: Seeder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt that was interrupted has left whole files; a user has changed one of them since."""
    contents = fill(tmp_path / "source", FILES)
    publish(seeder.membership, tmp_path / "source")
    monkeypatch.setattr(front, "Arriving", _Watched)
    monkeypatch.setattr(_Watched, "left", 4)
    with pytest.raises(StoreError, match="The storage is gone"):
        begin(seeder, str(tmp_path / "to"), tmp_path, in_order=True)
    changed = next((tmp_path / "to").glob("part-*"))
    with changed.open("r+b") as file:
        file.write(b"something else")
    monkeypatch.setattr(_Watched, "left", 100)
    begin(seeder, str(tmp_path / "to"), tmp_path)
    assert read_folder(tmp_path / "to") == contents
