"""Fixtures for every test: a project of its own, nothing left running, nothing written into the repository."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support import left_running
from support.left_running import PROJECT_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
STRAYS = frozenset({"project-key", "experiments", "index.sqlite", "resources", ".cargobike", ".schemathesis"})
"""What tests would leave in the repository if they took its folder for their project."""


@pytest.fixture(scope="session", autouse=True)
def _signals_of_a_terminal() -> Iterator[None]:
    """Let scripts that tests start hear what `nohup`, or a start in the background, would keep from them."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="session", autouse=True)
def _no_test_writes_beside_the_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give fixtures that live longer than a test a project too, and see that no test writes into the repository."""
    before = STRAYS & set(os.listdir(ROOT))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PROJECT_VARIABLE, str(tmp_path_factory.mktemp("session-project")))
        yield
    if strays := STRAYS & set(os.listdir(ROOT)) - before:
        pytest.fail(f"the tests wrote beside the code: {', '.join(sorted(strays))}")


@pytest.fixture(autouse=True)
def _own_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test a project folder of its own, and fail it if it leaves a process behind."""
    monkeypatch.setenv(PROJECT_VARIABLE, str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])  # a file whose function is launched leaves its folder there
    births, before = left_running.births.count, left_running.children()
    yield
    if door := sys.modules.get("cargobike.store.files.project"):
        door.use(None)  # what a test chose must not reach the next one
    if outside := sys.modules.get("cargobike.experiments.trial.context"):
        vars(outside)["_outside"] = outside.Context()  # nor what it saved without a trial
    if left_running.births.count == births and left_running.children() <= before:
        return
    left = left_running.wait_for_end(before | left_running.shared, tmp_path)
    descriptions = [left_running.describe(process) for process in left]
    for process in left:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            pass
    if left:
        pytest.fail("left running after the test:\n  " + "\n  ".join(descriptions))
