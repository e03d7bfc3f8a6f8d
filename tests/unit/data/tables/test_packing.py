"""Packing small files: what is packed, in which order, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cargobike import data
from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.store.files.storages import open_storage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "photos"
    for number in range(50):
        place = root / ("cats" if number % 2 else "dogs") / f"{number:02d}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(bytes([number]) * (number * 100))
    (root / "readme.txt").write_text("photos")
    (root / ".hidden").write_text("x")
    return root


def test_files_become_rows_in_the_order_of_their_paths(folder: Path) -> None:
    table = data.pack(folder, "photos")

    rows = table.read().to_pylist()
    assert [row["file"] for row in rows] == sorted(row["file"] for row in rows)
    assert len(rows) == 51
    for row in rows:
        assert row["bytes"] == (folder / row["file"]).read_bytes()
        assert row["label"] == (row["file"].partition("/")[0] if "/" in row["file"] else None)
    assert data.pack(folder, "photos", threads=1).fingerprint == table.fingerprint


def test_a_glob_and_a_function_choose(folder: Path) -> None:
    table = data.pack(f"{folder}/*/*.jpg", "cats", label=lambda path: path[-6:-4])

    assert table.num_rows == 50
    assert table.head(1).to_pylist()[0]["label"] == "01"
    assert data.pack(f"{folder}/**/1?.jpg", "some", label=None).num_rows == 10
    assert data.open("some").read().column("label").null_count == 10


def test_files_on_a_storage_are_packed_as_local_ones_are(folder: Path) -> None:
    storage = open_storage("memory://packing/photos")
    for path in folder.rglob("*.*"):
        storage.write(str(path.relative_to(folder)), path.read_bytes())

    assert data.pack("memory://packing/photos", "stored").fingerprint == data.pack(folder, "local").fingerprint
    assert data.pack("memory://packing/photos/cats/*.jpg", "stored").num_rows == 25


def test_strange_names_are_kept_and_impossible_ones_listed(folder: Path, tmp_path: Path) -> None:
    (folder / "cats" / "line\nbreak 'quoted' ünï \u202e.jpg").write_bytes(b"x")
    assert data.pack(folder, "strange").num_rows == 52
    (folder / "inside").symlink_to(folder / "cats" / "01.jpg")
    assert data.pack(folder, "strange").num_rows == 53

    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    Path(os.fsdecode(bytes(folder) + b"/\xff")).write_bytes(b"x")
    with pytest.raises(InvalidInputError, match=r"(?s)cannot be packed.*'link' is a link that leads out") as caught:
        data.pack(folder, "strange")
    assert len(caught.value.mistakes) == 4
    assert data.open("strange").version == 2


def test_mistakes(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(NotFoundError, match="There is no folder"):
        data.pack(tmp_path / "nowhere", "photos")
    with pytest.raises(NotFoundError, match="There are no files at"):
        data.pack(f"{folder}/*.png", "photos")
    with pytest.raises(InvalidInputError, match="label='x' was given"):
        data.pack(folder, "photos", label="x")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"label gave 3 for 'cats/01\.jpg'"):
        data.pack(folder, "photos", label=lambda path: 3)  # type: ignore[arg-type, return-value]


def test_a_file_that_cannot_be_read_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> bytes:
        if path.name == "07.jpg":
            raise OSError(5, "Input/output error")
        return path.read_bytes()

    monkeypatch.setattr("cargobike.data.tables.rows.small_files.read_plain", read)
    with pytest.raises(StoreError, match=r"cats/07.jpg cannot be read: Input/output error"):
        data.pack(folder, "photos")
    with pytest.raises(NotFoundError):
        data.open("photos")
