from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cargobike.core.errors import StoreError
from cargobike.core.layout import ExperimentFolder
from cargobike.core.running.process_names import _numbering, has_ended, name_of_this_process
from cargobike.store.files.locking import DriverLock, holder, is_held

HOLD = """
import ctypes, os, sys, time
from pathlib import Path
from cargobike.core.layout import ExperimentFolder
from cargobike.store.files.locking import DriverLock

lock = DriverLock(ExperimentFolder(Path(sys.argv[1])))
lock.acquire()
if sys.argv[2:]:
    child = ctypes.PyDLL(None).fork() if sys.argv[2] == "C" else os.fork()
    if child == 0:
        while True:
            time.sleep(1)
    print(child, flush=True)
print("held", flush=True)
sys.stdin.readline()
lock.release()
print("released", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> ExperimentFolder:
    return ExperimentFolder(tmp_path / "20270101-000000-aaaa")


def test_a_lock_is_held_until_it_is_released(folder: ExperimentFolder) -> None:
    assert not is_held(folder)
    lock = DriverLock(folder)
    with lock:
        assert is_held(folder)
        assert holder(folder).startswith(f"process {os.getpid()} on host ")
    assert not is_held(folder)
    lock.release()


def test_a_second_driver_is_told_who_has_it(folder: ExperimentFolder) -> None:
    with DriverLock(folder), pytest.raises(StoreError, match=f"being run by process {os.getpid()} on host"):
        DriverLock(folder).acquire()
    with DriverLock(folder):
        pass


def test_the_lock_vanishes_with_its_process(folder: ExperimentFolder) -> None:
    folder.root.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert is_held(folder)
        assert holder(folder).startswith(f"process {child.pid} ")
        child.kill()
        child.wait()
        assert not is_held(folder)


@pytest.mark.parametrize("end", ["release", "kill"])
@pytest.mark.parametrize("way", ["Python", "C"])
def test_a_copy_of_the_process_does_not_keep_the_lock(folder: ExperimentFolder, way: str, end: str) -> None:
    folder.root.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder.root), way], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        copy = int(process.stdout.readline())
        try:
            assert process.stdout.readline() == b"held\n"
            assert is_held(folder)
            with pytest.raises(StoreError, match=f"being run by process {process.pid} on host"):
                DriverLock(folder).acquire()
            if end == "kill":
                process.kill()
                process.wait()
            else:
                process.stdin.write(b"\n")
                process.stdin.flush()
                assert process.stdout.readline() == b"released\n"
            assert not is_held(folder)
            with DriverLock(folder), pytest.raises(StoreError, match=f"being run by process {os.getpid()} on host"):
                DriverLock(folder).acquire()
            assert not is_held(folder)
        finally:
            os.kill(copy, signal.SIGKILL)
    assert os.listdir(folder.root) == [folder.lock.name]


def test_only_one_of_many_takes_the_lock_of_a_copy(folder: ExperimentFolder) -> None:
    folder.root.mkdir()
    fd = os.open(folder.lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.write(fd, name_of_this_process().replace(str(os.getpid()), str(2**22), 1).encode())
    locks = [DriverLock(folder) for _ in range(8)]
    taken: list[DriverLock] = []

    def take(lock: DriverLock) -> None:
        with contextlib.suppress(StoreError):
            lock.acquire()
            taken.append(lock)

    threads = [threading.Thread(target=take, args=[lock]) for lock in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1
    assert is_held(folder)
    taken[0].release()
    os.close(fd)
    assert not is_held(folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (str(os.getpid()), str(os.getpid())),
        (_numbering(), "other-boot/1"),
        (name_of_this_process(), f"{2**22} tower\n"),
        (name_of_this_process(), ""),
        (name_of_this_process(), "lots of nonsense here\n"),
    ],
    ids=["same", "after another boot", "in another place", "without a name", "with nonsense"],
)
def test_a_process_whose_end_cannot_be_seen_has_not_ended(old: str, new: str) -> None:
    assert not has_ended(name_of_this_process().replace(old, new, 1))


def test_a_number_that_was_given_again_is_another_process() -> None:
    pid, host, start, place = name_of_this_process().split()
    assert has_ended(f"{pid} {host} {int(start) - 1} {place}")
    assert has_ended(f"{2**22} {host} {start} {place}")


def test_looking_does_not_disturb_who_takes_it(folder: ExperimentFolder) -> None:
    folder.root.mkdir()
    folder.lock.touch()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            is_held(folder)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(200):
            with DriverLock(folder):
                pass
    finally:
        done.set()
        watcher.join()


def test_nobody_is_named_where_nobody_wrote(folder: ExperimentFolder) -> None:
    assert holder(folder) == "another process"
