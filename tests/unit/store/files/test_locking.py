from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cargobike.core.errors import StoreError
from cargobike.core.layout import ExperimentFolder
from cargobike.store.files.locking import DriverLock, holder, is_held

HOLD = """
import sys
from pathlib import Path
from cargobike.core.layout import ExperimentFolder
from cargobike.store.files.locking import DriverLock

DriverLock(ExperimentFolder(Path(sys.argv[1]))).acquire()
print("held", flush=True)
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
