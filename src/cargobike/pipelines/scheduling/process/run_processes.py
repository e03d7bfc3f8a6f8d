"""Runs as processes of their own: they go on when the scheduler ends, and the next scheduler finds them again."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import msgspec

from cargobike.core.errors import CargobikeError, FunctionError, NotFoundError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.pipelines.facts import RunState
from cargobike.pipelines.record import RunFolder, folder_of, read_run, state_of
from cargobike.pipelines.running import start
from cargobike.pipelines.scheduling.plan import Target
from cargobike.pipelines.scheduling.policy.state import Firing, Outcome, State
from cargobike.pipelines.scheduling.process.clock import Clock
from cargobike.pipelines.scheduling.process.runs import RunSeen
from cargobike.store.files.locking import is_held
from cargobike.store.files.mirror import refresh, share_stop
from cargobike.store.files.shared import shared_url

REFRESH_S: Final = 10.0
MOST_CAUSE_BYTES: Final = 100_000
"""Linux gives a process no argument of more than 128 KiB."""
_LONGEST_NOTE: Final = 500
_OUTCOMES: Final[dict[RunState, Outcome]] = {
    RunState.COMPLETED: "completed",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "cancelled",
    RunState.INTERRUPTED: "interrupted",
}


class RunProcesses:
    """The runs of a project; those that this scheduler began are its children, the others are told by their locks."""

    def __init__(self, project: ProjectFolder, clock: Clock) -> None:
        self._project = project
        self._clock = clock
        self._is_shared = bool(shared_url(project))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._refreshed = float("-inf")

    def look(self, state: State, firing: Firing) -> RunSeen:
        """Return how a run does."""
        process = self._processes.get(firing.run)
        if process is not None and process.poll() is None:
            return RunSeen("running")
        folder = folder_of(self._project, firing.run)
        self._refresh()
        if is_held(folder):
            return RunSeen("running")
        seen = _told_by_journal(folder)
        if seen is not None:
            self._processes.pop(firing.run, None)
            return seen
        if process is None:
            return RunSeen("absent")
        self._processes.pop(firing.run)
        return RunSeen("over", "not started", _last_words(folder) or f"it ended with code {process.returncode}")

    def start(self, state: State, firing: Firing) -> None:
        """Begin a run in a process of its own."""
        target = state.plan.target
        cause = {name: value for name, value in firing.cause.items() if name != "trigger"}
        if check_target(target):
            cause["code"] = "changed since it was scheduled"
        cause = fitting(cause)
        try:
            started = start(
                str(target),
                params=state.plan.arguments,
                run_id=firing.run,
                cause=cause,
                project=self._project,
                folder=target.folder if os.path.isdir(target.folder) else "",
            )
        except OSError as error:
            raise StoreError(f"its process cannot be started: {error.strerror or error}") from error
        self._processes[firing.run] = started.process

    def cancel(self, firing: Firing) -> None:
        """Ask a run to end."""
        folder = folder_of(self._project, firing.run)
        if folder.root.is_dir():
            folder.stop_request.touch()
            share_stop(folder)

    def wait(self, timeout_s: float) -> None:
        """Wait until the runs that were begun here are over, for tests; a scheduler leaves them alone."""
        for process in self._processes.values():
            process.wait(timeout_s)

    def _refresh(self) -> None:
        """Bring what other hosts have told shared storage about their runs."""
        stopwatch = self._clock.stopwatch()
        if self._is_shared and stopwatch - self._refreshed >= REFRESH_S:
            self._refreshed = stopwatch
            refresh(self._project)


def fitting(cause: dict[str, Any]) -> dict[str, Any]:
    """Return a cause that fits into the command of a process: of long lists only the beginning."""
    while len(msgspec.json.encode(cause)) > MOST_CAUSE_BYTES:
        longest = max(cause, key=lambda name: len(msgspec.json.encode(cause[name])))
        value = cause[longest]
        cut = value[: len(value) // 2] if isinstance(value, list | str) and len(value) > 1 else None
        cause = {**cause, longest: cut, "is_cut": True}
    return cause


def fingerprint_of(file: str) -> str:
    """Return the fingerprint of a file's code; empty if it cannot be read."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
    except OSError:
        return ""


def check_target(target: Target) -> bool:
    """Tell whether the code of a schedule has changed since.

    Raises:
        FunctionError: If it is not there.
    """
    if not os.path.isfile(target.where):
        where = f"; it was scheduled on {target.host}" if target.host else ""
        raise FunctionError(
            f"there is no file {target.where} here{where}. Run the scheduler where it is, put it back, or schedule the "
            "pipeline again from where it is now"
        )
    return fingerprint_of(target.where) != target.fingerprint


def _told_by_journal(folder: RunFolder) -> RunSeen | None:
    try:
        if not folder.journal.is_file() or not folder.journal.stat().st_size:
            return None
        record = read_run(folder)
        state = state_of(record)
    except (NotFoundError, OSError):
        return None
    except CargobikeError as error:
        return RunSeen("over", "failed", str(error)[:_LONGEST_NOTE])
    if state is RunState.RUNNING:
        return RunSeen("running")  # it was begun in the meantime
    return RunSeen("over", _OUTCOMES[state], _in_short(record.error))


def _last_words(folder: RunFolder) -> str:
    """Return what the process of a run said last, before it could begin."""
    try:
        text = (folder.root / "driver.log").read_bytes()[-20_000:].decode("utf-8", "replace")
    except OSError:
        return ""
    return _in_short(text)


def _in_short(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_LONGEST_NOTE] if lines else ""
