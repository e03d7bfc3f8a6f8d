"""The inference log of a project on real storage servers, and on a disk that is full."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cargobike import serving
from cargobike.serving.inference_log.places import log_folder
from cargobike.serving.inference_log.upkeep import tidy
from cargobike.store.files.storages import open_storage
from support.logged_requests import logging_to, take_some

FULL_DISK = """
import shutil, sys
from pathlib import Path
from support.logged_requests import logging_to, take_some
from cargobike.core.layout import ProjectFolder
from cargobike.serving.inference_log.reading import read_log
project = Path(sys.argv[1])
with logging_to(project) as log:
    take_some(log, 10)
    while not log.counts.failures:
        pass
    (project / "filler").unlink()
    while log.counts.written < 10:
        pass
rows = read_log("digits", project=ProjectFolder(project))
print(rows.num_rows, log.counts.dropped)
"""


def test_the_log_lives_on_the_storage(project_url: str, tmp_path: Path) -> None:
    for turn in range(3):
        with logging_to(project_url) as log:
            take_some(log, 20, start=20 * turn)
        assert log.counts.written == 20
    before = serving.read_log("digits")
    assert before["request_id"].to_pylist() == [f"r{number}" for number in range(60)]
    assert serving.read_log("digits", "2026-05-01 12:00:10", "2026-05-01 12:00:12").num_rows == 2
    assert tidy(open_storage(project_url), log_folder("digits"), whole=True).merged == 3
    assert serving.read_log("digits").equals(before)
    assert not [*tmp_path.rglob("*.parquet")], "nothing stays on this host"


def test_a_full_disk_fails_no_request_and_loses_none_when_there_is_room_again(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    fill = 'dd if=/dev/zero of="$0/filler" 2> /dev/null;'
    mount = f'mount -t tmpfs -o size=1m tmpfs "$0" || exit 77; {fill} exec "$@"'
    mounted = ["unshare", "--mount", "sh", "-c", mount, str(disk)]
    if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let us mount")
    tests = str(Path(__file__).parents[1])
    program = f"import sys; sys.path.insert(0, {tests!r})\n{FULL_DISK}"
    done = subprocess.run(
        [*mounted, sys.executable, "-c", program, str(disk)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "10 0\n", done
    assert "No space left on device" in done.stderr
