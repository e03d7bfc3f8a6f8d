"""Finds the processes that a test has left behind."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

import psutil

PROJECT_VARIABLE = "CARGOBIKE_PROJECT"
GRACE_S = float(os.environ.get("CARGOBIKE_TESTS_GRACE_S", "5"))

shared: set[int] = set()
"""Processes that were started during a test, for all that follow."""


class Births:
    """Counts the processes that this one starts, through the interpreter's own announcements."""

    EVENTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})

    def __init__(self) -> None:
        self.count = 0
        sys.addaudithook(self._notice)

    def _notice(self, event: str, _: tuple[object, ...]) -> None:
        if event in self.EVENTS:
            self.count += 1


births = Births()


def children() -> set[int]:
    """Return the ids of our direct children; psutil would read every process there is for that."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found.update(int(word) for word in (task / "children").read_text().split())
        except OSError:  # the thread ended, or this kernel keeps no such list
            continue
    return found


def wait_for_end(before: set[int], project: Path | str) -> list[psutil.Process]:
    """Return those processes of the test that do not end by themselves within the grace period."""
    deadline = time.monotonic() + GRACE_S
    while True:
        left = [process for process in _ours(project, before) if _runs(process)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


def _ours(project: Path | str, before: set[int]) -> list[psutil.Process]:
    """Return our descendants, and orphans that carry the test's project in their environment.

    What is below a process that was there before the test (a cluster that many tests share) is not the test's.
    """
    found: dict[int, psutil.Process] = {}
    for child in psutil.Process().children():
        if child.pid in before:
            continue
        found[child.pid] = child
        with contextlib.suppress(psutil.NoSuchProcess):
            found.update((process.pid, process) for process in child.children(recursive=True))
    for process in psutil.process_iter():
        if process.pid in found or process.pid in before or process.pid == os.getpid():
            continue
        try:
            if process.environ().get(PROJECT_VARIABLE) == str(project):
                found[process.pid] = process
        except (psutil.Error, OSError):
            continue
    return list(found.values())


def _runs(process: psutil.Process) -> bool:
    """Tell whether a process is alive and not one that Python keeps for itself until it exits."""
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return "multiprocessing.resource_tracker" not in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {process.status()} {' '.join(process.cmdline()) or process.name()}"
    except psutil.Error:
        return f"{process.pid} (gone meanwhile)"
