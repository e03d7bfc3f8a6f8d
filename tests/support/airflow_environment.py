"""An environment with Airflow, our provider and Cargobike, made once in the checkout: `.venvs/airflow`."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROVIDER = ROOT / "providers" / "airflow"
FOLDER = ROOT / ".venvs" / "airflow"
HOME = FOLDER / "home"
"""A home of Airflow with a fresh database, to be copied: making one takes as long as a test."""

_PINS = PROVIDER / "tests" / "environment.txt"


def airflow_python() -> Path:
    """Return the interpreter of the environment, made first if it is not there or was made from other pins."""
    FOLDER.parent.mkdir(exist_ok=True)
    with (FOLDER.parent / "airflow.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        mark = FOLDER / "made-from"
        wanted = _fingerprint()
        if not mark.is_file() or mark.read_text() != wanted:
            _make()
            mark.write_text(wanted)
    return FOLDER / "bin" / "python"


def _fingerprint() -> str:
    """Return what the environment follows from: pins, the provider's entry points, the Python, the place."""
    parts = [_PINS, PROVIDER / "pyproject.toml"]
    text = "".join(part.read_text() for part in parts) + sys.version + str(ROOT)
    return hashlib.sha256(text.encode()).hexdigest()


def _make() -> None:
    _run([sys.executable, "-m", "venv", "--without-pip", "--clear", str(FOLDER)])
    python = str(FOLDER / "bin" / "python")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-deps",
    ]
    _run([*pip, "-r", str(_PINS)])
    _run([*pip, "--no-build-isolation", "-e", str(ROOT), "-e", str(PROVIDER)])
    HOME.mkdir()
    _run([str(FOLDER / "bin" / "airflow"), "db", "migrate"], {**os.environ, **surroundings(HOME)})


def surroundings(home: Path) -> dict[str, str]:
    """Return variables for an Airflow that keeps everything in a folder and sends nothing anywhere."""
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }


def _run(command: list[str], env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=380, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
