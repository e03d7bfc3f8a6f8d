"""An experiment travels in one file, and no file does harm."""

from __future__ import annotations

import hashlib
import stat
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.experiments.reading import read_record
from cargobike.store.history import archive as archives
from cargobike.store.history.annotations import annotate, read_annotations
from cargobike.store.history.archive import MANIFEST, read_manifest, take_in, write_archive
from cargobike.testing.stores import JournalBuilder

ID = "20270101-000000-aaaa"


@pytest.fixture
def folder(tmp_path: Path) -> ExperimentFolder:
    journal = JournalBuilder(ProjectFolder(tmp_path / "here"), ID, name="digits")
    journal.complete(0.5, lr=0.1)
    journal.end()
    folder = journal.folder
    annotate(folder, add=["good"])
    for name in ("trials/0000/checkpoints/1/state.bin", "files/0000/a b.txt", "tensorboard/0000/events", "code/x.py"):
        (folder.root / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.root / name).write_text(name)
    (folder.root / "files" / "0000" / "link").symlink_to("/etc/passwd")
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path) -> ProjectFolder:
    return ProjectFolder(tmp_path / "elsewhere")


def test_what_is_taken_in_equals_what_was_exported(
    folder: ExperimentFolder, elsewhere: ProjectFolder, tmp_path: Path
) -> None:
    write_archive(folder, tmp_path / "x.zip")
    taken = take_in(tmp_path / "x.zip", elsewhere)
    assert taken.id == ID
    assert repr(read_record(taken)) == repr(read_record(folder))
    assert read_annotations(taken).tags == ("good",)
    names = {path.relative_to(taken.root).as_posix() for path in taken.root.rglob("*") if path.is_file()}
    assert names == {
        "journal.jsonl",
        "annotations.jsonl",
        "trials/0000/checkpoints/1/state.bin",
        "files/0000/a b.txt",
        "code/x.py",
    }
    assert [entry.name for entry in elsewhere.experiments.iterdir()] == [ID]
    with pytest.raises(InvalidInputError, match="already"):
        take_in(tmp_path / "x.zip", elsewhere)


def test_checkpoints_can_stay_at_home(folder: ExperimentFolder, elsewhere: ProjectFolder, tmp_path: Path) -> None:
    manifest = write_archive(folder, tmp_path, with_checkpoints=False)
    assert not any("checkpoints" in name for name in manifest.files)
    assert "files/0000/a b.txt" in manifest.files
    take_in(tmp_path / f"{ID}.zip", elsewhere)


def test_a_running_experiment_is_not_exported(tmp_path: Path) -> None:
    journal = JournalBuilder(ProjectFolder(tmp_path), ID).hold()
    with pytest.raises(StoreError, match="being run by"):
        write_archive(journal.folder, tmp_path / "x.zip")
    journal.let_go()
    assert not (tmp_path / "x.zip").exists()


def hostile(path: Path, files: dict[str, bytes], /, *, entries: Any = None, **changes: Any) -> Path:
    """Write an archive by hand, with a manifest that fits unless told otherwise."""
    listed = {name: (hashlib.sha256(data).hexdigest(), len(data)) for name, data in files.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(MANIFEST, msgspec.json.encode({"id": ID, "files": listed, **changes}))
        for name, data in files.items() if entries is None else entries:
            packed.writestr(name, data)
    return path


@pytest.mark.parametrize(
    "name",
    [
        "../../evil",
        "/etc/evil",
        "a/../../../evil",
        "a\\..\\evil",
        "./x",
        "a//b",
        "driver.lock",
        "tensorboard/x",
        "a\nb",
    ],
)
def test_names_that_lead_elsewhere_are_refused(name: str, elsewhere: ProjectFolder, tmp_path: Path) -> None:
    path = hostile(tmp_path / "x.zip", {"journal.jsonl": b"", name: b"evil"})
    with pytest.raises(InvalidInputError, match="refused"):
        take_in(path, elsewhere)
    assert not elsewhere.root.exists()
    assert not list(tmp_path.rglob("evil*"))


def test_links_are_refused(elsewhere: ProjectFolder, tmp_path: Path) -> None:
    link = zipfile.ZipInfo("files/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    target = b"/etc/passwd"
    path = hostile(tmp_path / "x.zip", {"files/link": target}, entries=[(link, target)])
    with pytest.raises(InvalidInputError, match="not a plain file"):
        take_in(path, elsewhere)


def test_a_bomb_is_not_unpacked(elsewhere: ProjectFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = {"journal.jsonl": b"\0" * 5_000_000}
    with pytest.raises(InvalidInputError, match="at most"):
        take_in(hostile(tmp_path / "x.zip", bomb), elsewhere, most_bytes=1_000_000)
    many = {f"files/{number}": b"" for number in range(20)}
    monkeypatch.setattr(archives, "MOST_FILES", 10)
    with pytest.raises(InvalidInputError, match="more than 10"):
        take_in(hostile(tmp_path / "y.zip", many), elsewhere)


def test_an_archive_that_lies_about_a_size_is_refused(elsewhere: ProjectFolder, tmp_path: Path) -> None:
    """The directory of a zip file says how large things are; what follows may be larger."""
    data = b"\0" * 100_000
    path = hostile(tmp_path / "x.zip", {"journal.jsonl": data})
    raw = path.read_bytes().replace((100_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    path.write_bytes(raw)
    with pytest.raises(InvalidInputError, match=r"refused|damaged"):
        take_in(path, elsewhere)
    assert not elsewhere.experiments.exists() or list(elsewhere.experiments.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"id": "../../x"}, "not an id"),
        ({"id": "20270101-000000-bbbb"}, "not what it claims"),
        ({"format": 99, "cargobike": "9.9"}, "newer Cargobike"),
        ({"files": {}}, "does not hold what it lists"),
        ({"files": {"journal.jsonl": ("0" * 64, 3)}}, "damaged"),
        ({"files": "x"}, "not an archive"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused(
    changes: dict[str, Any], match: str, elsewhere: ProjectFolder, tmp_path: Path
) -> None:
    path = hostile(tmp_path / "x.zip", {"journal.jsonl": b"abc"}, **changes)
    with pytest.raises(InvalidInputError, match=match):
        take_in(path, elsewhere)
    assert not elsewhere.experiments.exists() or list(elsewhere.experiments.iterdir()) == []


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_that_is_there_twice_is_refused(elsewhere: ProjectFolder, tmp_path: Path) -> None:
    entries = [("journal.jsonl", b"abc"), ("journal.jsonl", b"abc")]
    path = hostile(tmp_path / "x.zip", {"journal.jsonl": b"abc"}, entries=entries)
    with pytest.raises(InvalidInputError, match="twice"):
        read_manifest(path)


@pytest.mark.parametrize("cut", [0, 10, 200])
def test_what_is_no_archive_is_refused(cut: int, folder: ExperimentFolder, tmp_path: Path) -> None:
    write_archive(folder, tmp_path / "x.zip")
    (tmp_path / "y.zip").write_bytes((tmp_path / "x.zip").read_bytes()[:cut])
    with pytest.raises(InvalidInputError, match="not an archive"):
        read_manifest(tmp_path / "y.zip")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_manifest(tmp_path / "missing.zip")
