"""The provider for Airflow, in an environment of its own: its whole suite is one test of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.airflow_environment import HOME, PROVIDER, airflow_python, surroundings


@pytest.mark.timeout(900)
def test_the_provider_passes_its_tests_beside_airflow(tmp_path: Path) -> None:
    python = airflow_python()
    home = tmp_path / "home"
    shutil.copytree(HOME, home)
    # The provider runs in one Python, Cargobike in another: this one, which has all its extras.
    variables = {**os.environ, **surroundings(home), "CARGOBIKE_PYTHON": sys.executable}
    variables.pop("CARGOBIKE_PROJECT", None)
    variables.pop("PYTHONPATH", None)
    command = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--basetemp",
        str(tmp_path / "tests"),
        "tests",
    ]
    done = subprocess.run(
        command, cwd=PROVIDER, env=variables, capture_output=True, text=True, timeout=600, check=False
    )
    print(done.stdout[-20000:])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout.splitlines()[-1]
