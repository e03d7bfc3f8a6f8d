"""Opening storage by its address, and what only one kind of storage does."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cargobike import project
from cargobike.core.errors import InvalidInputError, MissingLibraryError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.store.files.access.access import STALE_S, TEMPORARY
from cargobike.store.files.access.disk import DiskAccess
from cargobike.store.files.access.hdfs import HdfsAccess
from cargobike.store.files.storages import open_storage, storage_of
from support.storage_servers import KILLED_WRITER


def test_a_folder_is_named_in_several_ways(tmp_path: Path) -> None:
    open_storage(tmp_path / "a b").write("x", b"1")
    for place in (str(tmp_path / "a b"), f"file://{tmp_path}/a%20b", f"local://{tmp_path}/a b", f"{tmp_path}/a b/"):
        assert open_storage(place).read("x") == b"1", place


def test_what_is_no_address_is_said() -> None:
    for wrong in ("", "s3://", "hdfs://"):
        with pytest.raises(InvalidInputError, match="names no storage"):
            open_storage(wrong)
    with pytest.raises((InvalidInputError, MissingLibraryError)) as caught:
        open_storage("nonsense://me:hunter2@host/x")
    assert "hunter2" not in str(caught.value)


def test_a_missing_library_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'cargobike\[s3\]'"):
        open_storage("s3://bucket/x")


def test_the_storage_of_a_project_is_its_folder_or_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = storage_of(ProjectFolder(tmp_path / "project"))
    here.write("data/x", b"1")
    assert (tmp_path / "project/data/x").read_bytes() == b"1"
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CARGOBIKE_PROJECT", f"memory://{tmp_path.name}/team")
    assert storage_of(project.current()).url == f"memory://{tmp_path.name}/team"


def test_what_a_killed_writer_left_is_not_seen_and_goes_after_a_day(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    new, old = tmp_path / f".x.1234{TEMPORARY}", tmp_path / f".y.1234{TEMPORARY}"
    for path in (new, old):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - STALE_S - 1,) * 2)
    assert list(storage.list("", deep=True)) == []
    assert (new.exists(), old.exists()) == (True, False)


def test_several_delete_the_same_folder(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    for number in range(300):
        (tmp_path / f"folder/{number % 10}").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"folder/{number % 10}/{number}").write_bytes(b"x")
    errors: list[Exception] = []

    def delete() -> None:
        try:
            storage.delete("folder")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=delete) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert list(storage.list("", deep=True)) == []


def test_nothing_stays_beside_a_file_that_was_written(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    storage.write("a/x", b"1")
    assert storage.create("a/y", b"2")
    assert not storage.create("a/y", b"3")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["x", "y"]
    storage.delete("a/x", "a/y")
    assert list(tmp_path.iterdir()) == [], "a folder without files is no folder"


def test_a_pipe_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match=r"cannot be read \(pipe\).*not a plain file"):
        open_storage(tmp_path).read("pipe")
    assert list(open_storage(tmp_path).list()) == []


def test_a_link_that_a_network_disk_made_and_denied_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def lost_answer(source: Path, target: Path) -> None:
        link(source, target)
        raise FileExistsError(errno.EEXIST, "it is there")

    monkeypatch.setattr("cargobike.store.files.access.disk.os.link", lost_answer)
    assert open_storage(tmp_path).create("x", b"1")


def test_a_file_that_is_too_large_leaves_the_old_one(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    storage.write("file", b"old")
    program = f"""
import resource
from cargobike.store.files.storages import open_storage
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
storage = open_storage({str(tmp_path)!r})
for call in (lambda: storage.write("file", bytes(200_000)), lambda: storage.create("new", bytes(200_000))):
    try:
        call()
    except OSError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    first, second = done.stdout.splitlines()
    assert f"{tmp_path} cannot be written to (file)" in first
    assert "ulimit -f" in first
    assert "(new)" in second
    assert storage.read("file") == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], check=False).returncode
    if mounted != 0:
        pytest.skip("this machine does not let us mount")
    try:
        storage = open_storage(tmp_path)
        storage.write("file", b"old")
        with pytest.raises(StoreError, match=r"cannot be written to \(file\).*The disk is full: make room"):
            storage.write("file", bytes(2 << 20))
        with pytest.raises(StoreError, match="The disk is full"):
            storage.create("new", bytes(2 << 20))
        assert storage.read("file") == b"old"
        assert [path.name for path in tmp_path.iterdir()] == ["file"]
        storage.write("file", b"new")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_writer_that_is_killed_leaves_whole_files(tmp_path: Path) -> None:
    for turn in range(3):
        url = str(tmp_path / str(turn))
        with subprocess.Popen([sys.executable, "-c", KILLED_WRITER, url], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(turn + 2):
                last = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().split()
            last = int(rest[-1]) if rest else last
        assert_whole(url, last)


def assert_whole(url: str, acknowledged: int) -> None:
    """Check what a killed writer left: all that it was told of, at most one file more, and nothing in part."""
    storage = open_storage(url)
    replaced = storage.read("replaced")
    assert replaced is not None
    assert (len(replaced), len(set(replaced))) == (3_000_000, 1)
    created = {entry.path: storage.read(entry.path) for entry in storage.list("created")}
    assert created == {f"created/{number}": b"%d" % number * 1000 for number in range(len(created))}
    assert acknowledged + 1 <= len(created) <= acknowledged + 2
    assert {entry.path for entry in storage.list("", deep=True)} == {"replaced", *created}


def test_hdfs_says_what_is_worth_trying_again() -> None:
    access = HdfsAccess("hdfs://127.0.0.1:1/x")
    safe = 'RPCError("org.apache.hadoop.hdfs.SafeModeException", "Cannot create. Wait.\\n\\tat a.b(C:1)")'
    judgement = access.judge(OSError(safe))
    assert judgement.may_pass
    assert judgement.text == "SafeModeException: Cannot create. Wait."
    assert "safe mode" in judgement.advice
    assert access.judge(OSError("Connection refused (os error 111)")).may_pass
    assert not access.judge(PermissionError("no")).may_pass
    quota = 'RPCError("org.apache.hadoop.hdfs.protocol.NSQuotaExceededException", "The quota is 3")'
    assert not access.judge(OSError(quota)).may_pass
    assert "quota" in access.judge(OSError(quota)).advice


def test_a_disk_says_what_is_worth_trying_again(tmp_path: Path) -> None:
    access = DiskAccess(tmp_path)
    assert access.judge(OSError(errno.ESTALE, "stale file handle")).may_pass
    for number in (errno.ENOSPC, errno.EACCES, errno.EROFS):
        judgement = access.judge(OSError(number, "no"))
        assert not judgement.may_pass
        assert judgement.advice
