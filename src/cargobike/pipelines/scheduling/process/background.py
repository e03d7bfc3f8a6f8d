"""Schedulers in the background: start one, find the one at work, end it."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

from cargobike.core.errors import EngineError, WaitError
from cargobike.core.layout import ProjectFolder
from cargobike.core.package import PACKAGE_PARENT
from cargobike.core.running.process_names import has_ended, name_of_this_process
from cargobike.pipelines.scheduling.keeping.lease import SILENT_S, Holder, holder_of, newest_term
from cargobike.store.files.shared import shared_url
from cargobike.store.files.storages import storage_of

_PATIENCE_S: Final = 30.0
_LOOK_S: Final = 0.05
_PROGRAM: Final = (
    f"import sys; sys.path.append({PACKAGE_PARENT!r}); "
    "from cargobike.pipelines.scheduling.__main__ import main; sys.exit(main())"
)

_running: list[subprocess.Popen[bytes]] = []
"""Schedulers that this process has started: kept, so that it reaps them."""


@atexit.register
def _leave_running() -> None:
    """Leave what was detached to itself: no warning that it still runs."""
    for process in _running:
        if process.poll() is None:
            process.returncode = 0


class At(NamedTuple):
    """The scheduler that was last at work.

    Attributes:
        pid: Its process.
        host: Where.
        since: Since when, by its own clock.
        last: When it last said so.
        is_alive: Whether it is still at work, as far as can be seen from here.
    """

    pid: int
    host: str
    since: float
    last: float
    is_alive: bool


def scheduler_at(project: ProjectFolder) -> At | None:
    """Return the scheduler that was last at work; `None` if there was never one."""
    holder = _holder(project)
    if holder is None:
        return None
    is_silent = time.time() - holder.at > 2 * SILENT_S and not _is_here(holder)
    is_alive = not holder.has_left and not has_ended(holder.process) and not is_silent
    return At(holder.pid, holder.host, holder.since, holder.at, is_alive)


def start_scheduler(project: ProjectFolder, *, look_s: float, most_runs: int) -> tuple[At, Path]:
    """Start a scheduler that outlives this process; returns it when it is at work, and the file that it writes to.

    Raises:
        EngineError: If it ends at once; says what it wrote last.
        WaitError: If it does not begin to work.
    """
    log = project.root / "pipelines" / "scheduler" / "log.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    place = shared_url(project) or str(project.root)
    options = ["--look-every-s", str(look_s), "--most-runs", str(most_runs)]
    with open(log, "ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, place, *options],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _running[:] = [*(other for other in _running if other.poll() is None), process]
    give_up_at = time.monotonic() + _PATIENCE_S
    while time.monotonic() < give_up_at:
        if process.poll() is not None:
            last = log.read_bytes()[-2000:].decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise EngineError(f"The scheduler ended with code {process.returncode}: {last} (all of it is in {log})")
        holder = _holder(project)
        if holder is not None and holder.pid == process.pid and not holder.has_left:
            return At(holder.pid, holder.host, holder.since, holder.at, is_alive=True), log
        time.sleep(_LOOK_S)
    raise WaitError(
        f"The scheduler (process {process.pid}) is not at work after {_PATIENCE_S:.0f} s; another may hold the lease. "
        f"{log} has what it wrote.",
        missing=[f"process {process.pid}"],
    )


def end_scheduler(project: ProjectFolder) -> str:
    """End the scheduler that is at work; returns what became of it, in words.

    Raises:
        WaitError: If it does not end.
    """
    holder = _holder(project)
    if holder is None or holder.has_left or has_ended(holder.process):
        return "No scheduler is at work."
    if not _is_here(holder):
        return f"The scheduler is process {holder.pid} on {holder.host}; end it there."
    with contextlib.suppress(ProcessLookupError):
        os.kill(holder.pid, signal.SIGTERM)
    give_up_at = time.monotonic() + _PATIENCE_S
    while not has_ended(holder.process):
        if time.monotonic() > give_up_at:
            raise WaitError(
                f"The scheduler (process {holder.pid}) has not ended after {_PATIENCE_S:.0f} s; `kill -9 {holder.pid}` "
                "ends it, and does no harm.",
                missing=[f"process {holder.pid}"],
            )
        time.sleep(_LOOK_S)
    return f"The scheduler (process {holder.pid}) has ended."


def _holder(project: ProjectFolder) -> Holder | None:
    storage = storage_of(project)
    term = newest_term(storage)
    return holder_of(storage, term) if term else None


def _is_here(holder: Holder) -> bool:
    """Tell whether the process of a holder can be seen from here."""
    words = holder.process.split()
    return len(words) == 4 and words[3] == name_of_this_process().split()[3]
