"""A project that cannot be written to is refused before anything starts, and can be read all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.watching import SOURCES

SCRIPT = """
import os
from cargobike import experiment
print(len(experiment.list()), experiment.load("last").value)
try:
    experiment.launch(lambda x: x, params={"x": 1.0}, quiet=True)
except Exception as error:
    print(type(error).__name__, error)
"""


def read_only(project: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that sees the project as a read-only mount; even root may not write there."""
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount, str(project), *command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "CARGOBIKE_PROJECT": str(project), "PYTHONPATH": SOURCES},
    )


def test_a_read_only_project_can_be_read_and_is_not_written_to(tmp_path: Path) -> None:
    from cargobike import experiment

    if read_only(tmp_path, "true").returncode != 0:
        pytest.skip("this machine does not let us mount")
    experiment.launch(lambda x: x, params={"x": 2.0}, quiet=True)
    done = read_only(tmp_path, sys.executable, "-c", SCRIPT)
    first, *said = done.stdout.splitlines()
    assert first == "1 2.0", done
    assert "Read-only file system" in "".join(said)
    assert str(tmp_path) in "".join(said)
    listed = read_only(tmp_path, sys.executable, "-m", "cargobike.cli", "ls")
    assert listed.returncode == 0, listed
    assert "completed" in listed.stdout
