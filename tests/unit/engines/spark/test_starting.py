"""What Spark needs while it starts is removed: by the process that made it, or by the next after its death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import pytest

from cargobike.core import settings
from cargobike.engines.spark.starting import folder_for_starting, temporary_files_in

STARTS_AND_WAITS = """
import sys, time
from cargobike.engines.spark.starting import folder_for_starting
with folder_for_starting() as folder:
    (folder / "something").mkdir()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def start() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", STARTS_AND_WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_there_for_the_length_of_a_start(cache: Path) -> None:
    with folder_for_starting() as folder:
        assert folder.is_dir()
        assert cache in folder.parents
        (folder / "file").touch()
    assert not folder.exists()


def test_the_next_start_removes_what_a_killed_process_left_and_nothing_else(cache: Path) -> None:
    living, folder_of_living = start()
    killed, folder_of_killed = start()
    with living, killed:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert folder_of_killed.is_dir()
        with folder_for_starting():
            assert not folder_of_killed.exists()
            assert folder_of_living.is_dir()
        living.communicate("")
    assert not folder_of_living.exists()


def test_without_a_cache_the_folder_for_temporary_files_serves(cache: Path) -> None:
    cache.touch()
    with folder_for_starting() as folder:
        assert folder.parent == Path(tempfile.gettempdir())
    assert not folder.exists()


def test_a_module_makes_its_temporary_folders_there(tmp_path: Path) -> None:
    module = types.SimpleNamespace(tempfile=tempfile)
    with temporary_files_in(module, tmp_path):
        folder = Path(module.tempfile.mkdtemp())
        descriptor, file = module.tempfile.mkstemp(dir=folder)
        os.close(descriptor)
    assert folder.parent == tmp_path
    assert Path(file).parent == folder
    assert module.tempfile is tempfile
