"""The process of a scheduler: turns until it is told to end, whatever the storage does."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final

from cargobike.core.errors import CargobikeError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.triggers import Seen, Trigger, look_of
from cargobike.pipelines.scheduling.keeping.book import Book
from cargobike.pipelines.scheduling.keeping.lease import Lease
from cargobike.pipelines.scheduling.process.clock import RealClock
from cargobike.pipelines.scheduling.process.looking import LOOK_S, LookingThreads, Looks
from cargobike.pipelines.scheduling.process.run_processes import RunProcesses
from cargobike.pipelines.scheduling.process.scheduler import BELL_S, Say, Scheduler
from cargobike.store.files.shared import shared_url
from cargobike.store.files.storages import storage_of

_SHARED_BELL_S: Final = 10.0
"""Each look at shared storage is paid for."""
_LONGEST_PAUSE_S: Final = 60.0


def serve(project: ProjectFolder, say: Say, *, look_s: float = LOOK_S, most_runs: int = 0) -> None:
    """Be a scheduler of a project until this process is told to end (Ctrl-C, SIGTERM); runs go on.

    Args:
        project: The project.
        say: Told what happens.
        look_s: So long after a look at a trigger comes the next.
        most_runs: So many runs at once; by default four for each processor.
    """
    storage, clock = storage_of(project), RealClock()
    ended, wake = threading.Event(), threading.Event()
    looker = LookingThreads(functools.partial(_look, project), wake.set)
    scheduler = Scheduler(
        book=Book(storage),
        lease=Lease(storage),
        runs=RunProcesses(project, clock),
        looker=looker,
        clock=clock,
        say=say,
        looks=Looks(look_s),
        most_runs=most_runs or 4 * (os.cpu_count() or 1),
        bell_s=_SHARED_BELL_S if shared_url(project) else BELL_S,
    )
    with _ended_by_signals(ended, wake):
        failures = 0
        while not ended.is_set():
            try:
                pause_s = scheduler.turn()
            except StoreError as error:
                if not failures:
                    say("", f"{error} Trying again.")
                failures += 1
                pause_s = min(_LONGEST_PAUSE_S, 2.0**failures)
            else:
                if failures:
                    say("", "the project's storage answers again")
                failures = 0
            wake.wait(pause_s)
            wake.clear()
        with contextlib.suppress(CargobikeError):
            scheduler.end()
    looker.close()


def _look(project: ProjectFolder, trigger: Trigger, mark: str) -> Seen:
    return look_of(trigger)(trigger, mark, project)


@contextlib.contextmanager
def _ended_by_signals(ended: threading.Event, wake: threading.Event) -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        ended.set()
        wake.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
