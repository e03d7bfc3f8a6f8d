"""One checkpoint as a folder: it appears whole or not at all, is checked whole, and is swept up after a crash."""

from __future__ import annotations

import errno
import json
import math
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cargobike.experiments.trial.checkpoints import folder as module
from cargobike.experiments.trial.checkpoints.files import SavedCheckpoint, StoredState
from cargobike.experiments.trial.checkpoints.folder import (
    DamagedError,
    Meta,
    delete_folder,
    force_folder,
    is_checkpoint,
    list_folders,
    number_of,
    read_meta,
    sweep,
    verify,
    write_folder,
)
from cargobike.experiments.trial.checkpoints.forcing import Forcing


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A user's folder, with a link in it."""
    tree = tmp_path / "model"
    (tree / "deep").mkdir(parents=True)
    (tree / "deep" / "w.bin").write_bytes(b"weights")
    (tree / "config").write_bytes(b"{}")
    (tree / "link").symlink_to("config")
    return tree


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was forced to disk, by its path; nothing of an earlier test waits for it."""
    module._unforced.clear()
    paths: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: paths.append(os.readlink(f"/proc/self/fd/{fd}")))
    yield paths
    module._unforced.clear()


def open_files() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


class Failing:
    """A state that cannot be written, and looks at what is there meanwhile."""

    def __init__(self, look: Callable[[Path], object] = lambda folder: None) -> None:
        self.look = look

    def write_into(self, folder: Path) -> StoredState:
        (folder / "half").write_bytes(b"1")
        self.look(folder)
        raise OSError(errno.EIO, "Input/output error")


# -- saving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [None, 0.5, math.inf])
def test_a_checkpoint_describes_itself(root: Path, metric: float | None) -> None:
    before = time.time()
    folder, meta = write_folder(root, b"state", 12, metric)
    assert folder == root / "000001-step12"
    assert read_meta(folder) == verify(folder) == meta
    assert (meta.kind, meta.step, meta.entry, meta.size_bytes, meta.sizes) == (
        "bytes",
        12,
        "state.bin",
        5,
        {"state.bin": 5},
    )
    assert before <= meta.created_at <= time.time()
    assert meta.describe(folder) == SavedCheckpoint(12, folder, 5, metric)
    assert json.loads((folder / "meta.json").read_text())["step"] == 12
    assert b"\n " in (folder / "meta.json").read_bytes(), "one may read it"
    assert (is_checkpoint(folder), is_checkpoint(root)) == (True, False)


def test_checkpoints_are_numbered_in_the_order_of_saving(root: Path) -> None:
    first, _ = write_folder(root, b"1", 9, None)
    second, _ = write_folder(root, b"2", -4, None, after=first)
    third, _ = write_folder(root, b"3", -4, None, after=first)
    assert [path.name for path in (first, second, third)] == ["000001-step9", "000002-step-4", "000003-step-4"]
    late = root / "999999-step1"
    third.rename(late)
    fourth, _ = write_folder(root, b"4", 0, None, after=late)
    assert [number_of(path) for path in list_folders(root)] == [1, 2, 999999, 1000000]
    assert list_folders(root) == [first, second, late, fourth]


def test_what_is_no_checkpoint_is_not_listed(root: Path) -> None:
    assert list_folders(root) == []
    write_folder(root, b"1", 1, None)
    for name in ("000002", "2-step2", "000002-step2.old", "notes"):
        (root / name).mkdir()
    (root / "file").touch()
    assert [path.name for path in list_folders(root)] == ["000001-step1"]
    assert list_folders(root / "file") == []


def test_nothing_is_left_of_a_save_that_fails(root: Path) -> None:
    seen: list[Path] = []
    with pytest.raises(OSError, match="Input/output"):
        write_folder(root, Failing(seen.append), 1, None)
    (building,) = seen
    assert building.name.startswith(f".saving.{os.getpid()}.")
    assert building.name.endswith(f".{platform.node()}")
    assert list(root.iterdir()) == []
    assert not module._being_saved


def test_a_save_that_is_under_way_is_not_swept_up(root: Path) -> None:
    kept: list[bool] = []
    with pytest.raises(OSError, match="Input/output"):
        write_folder(root, Failing(lambda folder: kept.append(sweep(root) == [] and folder.is_dir())), 1, None)
    assert kept == [True]
    names: set[str] = set()
    for number in range(2):
        with pytest.raises(OSError, match="Input/output"):
            write_folder(root, Failing(lambda folder: names.add(folder.name)), number, None)
    assert len(names) == 2, "two saves of a process never share a name"


def test_the_error_of_a_save_is_told_though_its_folder_is_gone(root: Path) -> None:
    with pytest.raises(OSError, match="Input/output"):
        write_folder(root, Failing(shutil.rmtree), 1, None)


def test_another_process_may_make_the_root_meanwhile(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir, calls = os.mkdir, list[Path]()

    def too_early(path: Any, *mode: int) -> None:
        calls.append(Path(path))
        if len(calls) == 1:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        mkdir(path, *mode)

    root.mkdir()
    monkeypatch.setattr(os, "mkdir", too_early)
    folder, _ = write_folder(root, b"1", 1, None)
    assert folder.is_dir()
    assert calls[0] == calls[-1]


def test_a_disk_that_refuses_the_name_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def refuse(source: Any, target: Any) -> None:
        nonlocal calls
        calls += 1
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(OSError, match="Input/output"):
        write_folder(root, b"1", 1, None)
    assert calls == 1
    assert list(root.iterdir()) == []


# -- on disk ---------------------------------------------------------------------------------------------------------


def test_all_of_a_checkpoint_and_the_way_to_it_is_forced(tmp_path: Path, forced: list[str], tree: Path) -> None:
    root = tmp_path / "not" / "there" / "yet"
    before = open_files()
    folder, _ = write_folder(root, tree, 1, None)
    assert open_files() == before
    building = str(Path(forced[0]).parent)
    assert Path(building).name.startswith(".saving."), "forced before it gets its name"
    inside = [path.removeprefix(building) for path in forced if path.startswith(building)]
    model = ["/files/model", "/files/model/config", "/files/model/deep", "/files/model/deep/w.bin"]
    assert sorted(inside) == ["", "/files", *model, "/meta.json"]
    way = forced[len(inside) :]
    assert way[0] == str(root)
    assert sorted(way[1:]) == sorted(map(str, [tmp_path / "not" / "there", tmp_path / "not", tmp_path]))
    forced.clear()
    write_folder(root, b"2", 2, None, after=folder)
    assert forced[-1] == str(root)
    assert not set(forced) & {str(tmp_path), str(root.parent)}, "they were forced once"


def test_what_need_not_be_forced_is_forced_later_with_its_way(root: Path, forced: list[str]) -> None:
    folder, _ = write_folder(root, b"1", 1, None, is_forced=False)
    assert forced == []
    force_folder(folder)
    assert sorted(forced[:2]) == [str(folder / "meta.json"), str(folder / "state.bin")]
    assert forced[2:] == [str(folder), str(root), str(root.parent)]
    with pytest.raises(FileNotFoundError):
        force_folder(root / "000009-step9")


def test_a_checkpoint_that_is_gone_does_not_take_the_place_of_the_last_one_on_disk(root: Path) -> None:
    there, _ = write_folder(root, b"1", 1, None)
    forcing = Forcing(every_s=1e-9)
    forcing.trust(there)
    forcing.begin_if_due(root / "000002-step2")
    assert forcing.wait()
    assert forcing.kept == {there}
    assert not forcing.must_be_at_once, "another attempt has replaced it, which is no failure"


def test_a_folder_that_is_gone_need_not_be_forced(root: Path, forced: list[str], tmp_path: Path) -> None:
    module._unforced.add(tmp_path / "gone")
    write_folder(root, b"1", 1, None)
    assert not module._unforced
    assert forced[-1] == str(tmp_path)


def test_a_disk_that_cannot_force_folders_is_no_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def only_files(fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", only_files)
    before = open_files()
    folder, meta = write_folder(root, b"1", 1, None)
    assert verify(folder) == meta
    assert open_files() == before


# -- damage ----------------------------------------------------------------------------------------------------------


def rewrite(folder: Path, **changes: Any) -> None:
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, **changes}))


@pytest.mark.parametrize(
    ("name", "is_outside"),
    [("/etc/passwd", True), ("../x", True), ("a/../../x", True), ("..", True), ("a..b", False), ("a/x", False)],
)
@pytest.mark.parametrize("field", ["entry", "sizes", "links"])
def test_names_that_lead_out_of_the_checkpoint_are_damage(root: Path, name: str, is_outside: bool, field: str) -> None:
    folder, _ = write_folder(root, b"state", 1, None)
    rewrite(folder, **{field: {"entry": name, "sizes": {name: 1}, "links": {name: "x"}}[field]})
    if is_outside:
        with pytest.raises(DamagedError, match="lies outside of the checkpoint"):
            read_meta(folder)
    else:
        assert isinstance(read_meta(folder), Meta)


def test_a_description_must_be_there_and_readable(root: Path) -> None:
    folder, _ = write_folder(root, b"state", 1, None)
    rewrite(folder, step=2)
    with pytest.raises(DamagedError, match=r"meta\.json says step 2"):
        read_meta(folder)
    elsewhere = folder.rename(root / "a copy")
    assert read_meta(elsewhere).step == 2, "under any other name"
    for content in (b"", b"{}", b"\xff", b'{"kind": "soup"}'):
        (elsewhere / "meta.json").write_bytes(content)
        with pytest.raises(DamagedError, match=r"meta\.json cannot be read"):
            read_meta(elsewhere)
    (elsewhere / "meta.json").unlink()
    with pytest.raises(DamagedError, match=r"meta\.json is missing"):
        read_meta(elsewhere)
    (elsewhere / "meta.json").mkdir()
    with pytest.raises(DamagedError, match=r"meta\.json cannot be read: .*directory"):
        read_meta(elsewhere)


def test_everything_in_a_checkpoint_is_compared(root: Path, tree: Path) -> None:
    folder, _ = write_folder(root, tree, 1, None)
    file, link = folder / "files/model/config", folder / "files/model/link"
    verify(folder)
    file.write_bytes(b"{")
    with pytest.raises(DamagedError, match="config has 1 bytes instead of 2"):
        verify(folder)
    file.write_bytes(b"[]")
    with pytest.raises(DamagedError, match=r"the checksum of files/model/config does not match"):
        verify(folder)
    file.unlink()
    with pytest.raises(DamagedError, match="files/model/config is missing"):
        verify(folder)
    file.write_bytes(b"{}")
    verify(folder)
    link.unlink()
    with pytest.raises(DamagedError, match="files/model/link is missing"):
        verify(folder)
    link.symlink_to("deep")
    with pytest.raises(DamagedError, match="the link files/model/link points elsewhere"):
        verify(folder)
    link.unlink()
    link.touch()
    with pytest.raises(DamagedError, match="files/model/link cannot be read"):
        verify(folder)


def test_what_is_to_be_read_must_be_there(root: Path) -> None:
    folder, _ = write_folder(root, b"state", 1, None)
    rewrite(folder, entry="other.bin")
    with pytest.raises(DamagedError, match=r"other\.bin is missing"):
        verify(folder)
    rewrite(folder, entry="\0")
    with pytest.raises(DamagedError, match="cannot be read"):
        verify(folder)
    rewrite(folder, entry="state.bin", sha256={})
    with pytest.raises(DamagedError, match="the checksum"):
        verify(folder)


# -- deleting --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_described", [True, False])
def test_a_checkpoint_is_deleted_whole(root: Path, tree: Path, is_described: bool) -> None:
    for state in (b"plain", tree):
        folder, meta = write_folder(root, state, 1, None)
        delete_folder(folder, meta if is_described else None)
        assert list(root.iterdir()) == []
    delete_folder(folder, meta)
    assert list(root.iterdir()) == []


def test_it_is_gone_before_its_first_file_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[set[str]] = []
    unlink = os.unlink

    def watched(path: Any, **options: Any) -> None:
        names.append({entry.name for entry in root.iterdir()})
        unlink(path, **options)

    folder, meta = write_folder(root, b"state", 1, None)
    monkeypatch.setattr(os, "unlink", watched)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: pytest.fail("its files are known"))
    delete_folder(folder, meta)
    assert len(names) == 2
    ((name,),) = {frozenset(there) for there in names}
    assert name.startswith(f".deleting.{os.getpid()}.")


# -- sweeping --------------------------------------------------------------------------------------------------------


def test_only_what_is_abandoned_is_swept_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(pid: int, number: int) -> None:
        assert number == 0
        if pid != 1:
            raise {2: ProcessLookupError, 3: PermissionError}[pid]

    monkeypatch.setattr(os, "kill", kill)
    host = platform.node()
    saved, _ = write_folder(root, b"state", 1, None)
    kept = [f".saving.1.0.{host}", f".saving.3.0.{host}", ".saving.2.0.elsewhere", ".saving.2.1.elsewhere.org"]
    doomed = [f".saving.2.7.{host}", f".saving.{os.getpid()}.99.{host}", ".saving.2.2.elsewhere", ".deleting.1.0.x"]
    for name in (*kept, *doomed):
        (root / name / "files").mkdir(parents=True)
    day_s = 24 * 3600
    os.utime(root / kept[2], (time.time() - day_s + 600,) * 2)
    os.utime(root / doomed[2], (time.time() - day_s - 600,) * 2)
    assert sweep(root) == [saved]
    assert sorted(path.name for path in root.iterdir()) == sorted([saved.name, *kept])


def test_what_another_machine_has_finished_meanwhile_is_left_to_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.mkdir()
    monkeypatch.setattr(os, "listdir", lambda _: [".saving.2.0.elsewhere"])
    removed: list[Path] = []
    monkeypatch.setattr(shutil, "rmtree", lambda path, **_: removed.append(path))
    assert sweep(root) == []
    assert removed == []


def test_what_another_process_sweeps_up_first_is_no_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.mkdir()
    monkeypatch.setattr(os, "listdir", lambda _: [".deleting.1.0.x"])
    assert sweep(root) == []


def test_there_is_nothing_to_sweep_where_nothing_is(root: Path) -> None:
    assert sweep(root) == []
    assert not root.exists()
