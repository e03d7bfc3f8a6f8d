"""Ending what a supervisor has left behind that was killed."""

from __future__ import annotations

import time
from typing import Final

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.serving.facts import DeploymentStopped
from cargobike.serving.record import folder_of, read_record
from cargobike.serving.supervising.crew import Crew
from cargobike.serving.supervising.runtime import prepare_folder, remove_folder, runtime_folder, secret_of
from cargobike.store.files.locking import DriverLock
from cargobike.store.journal.journal import JournalWriter

_DRAIN_S: Final = 30.0


def end_left_behind(project: ProjectFolder, name: str) -> None:
    """End front and hosts whose supervisor is gone, and record that the deployment was stopped."""
    folder, runtime = folder_of(project, name), runtime_folder(project, name)
    record = read_record(folder)
    if record is None or (record.is_stopped and not runtime.exists()):
        return
    lock = DriverLock(folder)
    try:
        lock.acquire()
    except StoreError:
        return  # a new supervisor has taken it over meanwhile
    try:
        prepare_folder(runtime)
        crew = Crew(runtime, folder, secret_of(runtime), 0.0)
        crew.adopt()
        if crew.front is not None:
            crew.end_front(_DRAIN_S, kill=False)
            crew.front.process.wait(_DRAIN_S + 1.0)
        crew.close()
        remove_folder(runtime)
        if not record.is_stopped:
            with JournalWriter(folder.journal) as journal:
                journal.append([DeploymentStopped(at=time.time(), reason="a user ended what a lost supervisor left")])
    finally:
        lock.release()
