"""What tests of the provider share: a project, a connection, the context of a task. They run beside Airflow."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

HERE = Path(__file__).parent
OTHER_PYTHON = os.environ.get("CARGOBIKE_PYTHON", sys.executable)
"""The Python with all extras of Cargobike; the one that runs the tests has Airflow, and of Cargobike only the least."""


class Context(dict[str, Any]):
    """The context of a task, as far as operators look at it."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty project that the default connection leads to, with the Python that Airflow runs in."""
    folder = tmp_path / "project"
    (folder / "experiments").mkdir(parents=True)
    connect(monkeypatch, folder)
    return folder


@pytest.fixture
def full_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty project whose connection names the Python that has all extras."""
    connect(monkeypatch, project, python=OTHER_PYTHON)
    return project


def connect(
    monkeypatch: pytest.MonkeyPatch, host: Path | str, conn_id: str = "cargobike_default", **extra: Any
) -> None:
    """Make a connection, as environment variable."""
    connection = {"conn_type": "cargobike", "host": str(host), "extra": extra}
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))


def use_dags(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have Airflow look for DAGs in a folder."""
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(folder))
    monkeypatch.setattr("airflow.settings.DAGS_FOLDER", str(folder))


@pytest.fixture
def context() -> Context:
    """Return the context of a task."""
    instance = SimpleNamespace(
        dag_id="retrain", run_id="manual__2026-01-01T00:00:00+00:00", task_id="one", map_index=-1, try_number=1
    )
    events: dict[Any, Any] = {}

    class Events(dict[Any, Any]):
        def __missing__(self, asset: Any) -> Any:
            return events.setdefault(asset.uri, SimpleNamespace(extra={}))

    made = Context(ti=instance, dag=SimpleNamespace(fileloc=str(HERE / "dag.py")), outlet_events=Events())
    made["events"] = events
    return made


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """Return a function that returns what was logged so far, which Airflow prints outside of a worker."""
    so_far: list[str] = []

    def read() -> str:
        so_far.append(capsys.readouterr().out)
        return "".join(so_far)

    return read


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Fail if a process of the program outlives its test."""
    yield
    assert running_programs() == []


def running_programs() -> list[int]:
    """Return the processes that run the program of this checkout."""
    program = str(HERE.parent / "src" / "cargobike_provider" / "program").encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                command = (folder / "cmdline").read_bytes()
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if program in command and state != "Z" and f"{os.getpid()}" == _ancestor(folder):
                found.append(int(folder.name))
    return found


def _ancestor(folder: Path) -> str:
    """Return which test process has started one, as it was told in the environment."""
    try:
        entries = (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next(
        (entry.partition(b"=")[2].decode() for entry in entries if entry.startswith(b"CARGOBIKE_TESTED_BY=")), ""
    )


os.environ["CARGOBIKE_TESTED_BY"] = str(os.getpid())
