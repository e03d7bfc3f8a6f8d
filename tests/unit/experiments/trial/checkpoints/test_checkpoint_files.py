"""Files on their way into a checkpoint: what is noted about them, what is copied, and what is refused."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from cargobike.core.errors import InvalidInputError
from cargobike.experiments.trial.checkpoints import files
from cargobike.experiments.trial.checkpoints.files import HashingFile, StoredState, copy_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder, as a checkpoint begins."""
    folder = tmp_path / "checkpoints" / ".saving"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A user's folder."""
    model = tmp_path / "model"
    (model / "deep").mkdir(parents=True)
    (model / "deep" / "w.bin").write_bytes(b"weights")
    (model / "config").write_bytes(b"")
    return model


def open_files() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def mistakes_of(source: Path, folder: Path) -> tuple[str, ...]:
    with pytest.raises(InvalidInputError) as caught:
        copy_path(source, folder)
    assert list(folder.iterdir()) == []
    return caught.value.mistakes


# -- what is written -------------------------------------------------------------------------------------------------


def test_a_file_learns_its_size_and_checksum(folder: Path) -> None:
    stored = StoredState("bytes", "state.bin")
    before = open_files()
    with HashingFile(stored, folder, "state.bin") as file:
        assert file.write(b"abc") == 3
        assert file.write(memoryview(b"defg")) == 4
        file.flush()
        assert (folder / "state.bin").read_bytes() == b"abcdefg"
        assert stored.sizes == {}, "it is not whole yet"
    assert open_files() == before
    assert stored.sizes == {"state.bin": 7}
    assert stored.sha256 == {"state.bin": hashlib.sha256(b"abcdefg").hexdigest()}


def test_an_existing_file_is_not_written_over(folder: Path) -> None:
    (folder / "state.bin").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        HashingFile(StoredState("bytes", "state.bin"), folder, "state.bin")
    assert (folder / "state.bin").read_bytes() == b"mine"


class Full:
    """A file on a disk without room, which refuses to be closed too."""

    def __init__(self) -> None:
        self.error = OSError(errno.ENOSPC, "No space left on device")
        self.was_closed = False

    def write(self, data: bytes) -> int:
        raise self.error

    def close(self) -> None:
        self.was_closed = True
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("answer", [None, RuntimeError("the zip archive is broken")])
def test_a_full_disk_is_named_whatever_the_library_makes_of_it(folder: Path, answer: Exception | None) -> None:
    stored, full = StoredState("torch", "state.pt"), Full()
    file = HashingFile(stored, folder, "state.pt")
    file._file.close()
    file._file = full  # type: ignore[assignment]

    def save() -> None:
        with file:
            with pytest.raises(OSError, match="No space left"):
                file.write(b"abc")
            if answer is not None:
                raise answer

    with pytest.raises(OSError, match="No space left") as caught:
        save()
    assert caught.value is full.error
    assert full.was_closed
    assert stored.sizes == {}


def test_an_error_of_the_disk_is_not_raised_twice(folder: Path) -> None:
    full = Full()
    file = HashingFile(StoredState("bytes", "state.bin"), folder, "state.bin")
    file._file.close()
    file._file = full  # type: ignore[assignment]
    full.close = lambda: None  # type: ignore[method-assign]
    with pytest.raises(OSError, match="No space left") as caught, file:
        file.write(b"abc")
    assert caught.value is full.error
    assert caught.value.__context__ is None


def test_an_error_of_the_one_that_writes_is_its_own(folder: Path) -> None:
    def save() -> None:
        with HashingFile(StoredState("bytes", "x"), folder, "x") as file:
            file.write(b"abc")
            raise RuntimeError("mine")

    before = open_files()
    with pytest.raises(RuntimeError, match="mine"):
        save()
    assert open_files() == before


# -- what is copied --------------------------------------------------------------------------------------------------


def test_a_file_is_copied_piece_by_piece(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_CHUNK_BYTES", 3)
    (tmp_path / "w.bin").write_bytes(b"0123456789")
    stored = copy_path(tmp_path / "w.bin", folder)
    assert (stored.kind, stored.entry, stored.sizes, stored.links) == (
        "file",
        "files/w.bin",
        {"files/w.bin": 10},
        {},
    )
    assert (folder / "files" / "w.bin").read_bytes() == b"0123456789"


def test_a_folder_is_copied_in_order_with_links_made_relative(folder: Path, model: Path) -> None:
    (model / "deep" / "absolute").symlink_to(model / "config")
    (model / "deep" / "up").symlink_to(model)
    stored = copy_path(model, folder)
    assert (stored.kind, stored.entry) == ("folder", "files/model")
    assert list(stored.sizes.items()) == [("files/model/config", 0), ("files/model/deep/w.bin", 7)]
    assert list(stored.sha256) == list(stored.sizes)
    assert stored.links == {"files/model/deep/absolute": "../config", "files/model/deep/up": ".."}
    assert {name: os.readlink(folder / name) for name in stored.links} == stored.links
    assert (folder / "files" / "model" / "deep" / "w.bin").read_bytes() == b"weights"


def test_a_link_to_a_file_or_folder_is_saved_as_what_it_leads_to(folder: Path, model: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(model)
    assert copy_path(tmp_path / "latest", folder).entry == "files/model"


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["missing", "dangling", "/", "/dev/null"])
def test_what_is_no_file_or_folder_is_refused(folder: Path, tmp_path: Path, source: str) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    with pytest.raises(InvalidInputError, match="it is not an existing file or folder") as caught:
        copy_path(tmp_path / source, folder)
    assert caught.value.mistakes == ()
    assert list(folder.iterdir()) == []


def test_a_name_that_is_not_text_is_refused(folder: Path, tmp_path: Path, model: Path) -> None:
    bad = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff"))
    bad.write_bytes(b"")
    expected = ("the name 'bad\\udcff' is not valid UTF-8; rename it",)
    assert mistakes_of(bad, folder) == expected
    bad.unlink()
    model.rename(bad)
    assert mistakes_of(bad, folder) == expected


def test_all_that_is_wrong_in_a_folder_is_listed_in_order(folder: Path, model: Path, tmp_path: Path) -> None:
    os.mkfifo(model / "deep" / "pipe")
    (model / "a link").symlink_to(tmp_path)
    (model / "good link").symlink_to("deep")
    (model / os.fsdecode(b"z\xff")).touch()
    assert mistakes_of(model, folder) == (
        f"'a link' is a link to {tmp_path}, outside of the folder; copy the file in",
        "the name 'z\\udcff' is not valid UTF-8; rename it",
        "'deep/pipe' is neither a file nor a folder; leave it out",
    )


def test_a_folder_that_holds_the_checkpoints_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=f"it contains {folder.parent}, where checkpoints are kept"):
        copy_path(tmp_path, folder)
    (tmp_path / "way").symlink_to(folder.parent)
    with pytest.raises(InvalidInputError, match="where checkpoints are kept"):
        copy_path(folder.parent, tmp_path / "way" / folder.name)
