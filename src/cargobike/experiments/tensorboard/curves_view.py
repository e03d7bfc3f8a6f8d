"""An experiment as TensorBoard shows it: event files made from its journal, beside what its trials wrote themselves.

```
<experiment>/tensorboard/
  0003/events.out.tfevents…         what trial 3 reported and returned, and its hyperparameters
  0003/own → trials/0003/logs       what its train function wrote into tensorboard.logdir()
```

All of it is derived from the journal: it is made when TensorBoard is opened, never by the driver, and may be deleted.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cargobike.core.errors import StoreError
from cargobike.core.facts import (
    AnyFact,
    AttemptStarted,
    ExperimentStarted,
    Reported,
    TrialEnded,
    TrialSuggested,
    unpack_number,
    unpack_numbers,
)
from cargobike.core.layout import ExperimentFolder
from cargobike.core.records import Params
from cargobike.experiments.reading import journal_reader
from cargobike.experiments.tensorboard.event_files import file_start, scalars, session_end, session_start

BYTES_AT_ONCE: Final = 4 << 20
_FILE: Final = "events.out.tfevents.0000000000.cargobike"
_STATE: Final = ".journal-bytes"
_LOCK: Final = ".lock"
_OWN: Final = "own"


class CurvesView:
    """Keeps the event files of one experiment up to date; one process at a time writes, the others only read.

    Args:
        folder: The experiment.
    """

    def __init__(self, folder: ExperimentFolder) -> None:
        self.folder = folder
        self.root = folder.tensorboard
        self._reader = journal_reader(folder)
        self._params: dict[int, Params] = {}
        self._started: set[int] = set()
        self._steps: dict[int, int] = {}
        self._unlinked: set[int] = set()
        self._objective = "value"
        self._lock = -1
        self._is_current = False

    def open(self) -> bool:
        """Become the process that writes; returns whether that worked."""
        try:
            self.root.mkdir(exist_ok=True)
            fd = os.open(self.root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"Cannot write to {self.root}: {error.strerror}.") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._lock = fd
        self._is_current = self._matches_journal()
        if not self._is_current:
            try:
                self._wipe()
            except OSError as error:
                raise StoreError(f"Cannot write to {self.root}: {error.strerror}.") from error
        return True

    def update(self) -> bool:
        """Write what is new in the journal; returns whether there may be more."""
        if self._is_current:
            if self._matches_journal():
                return False
            self._is_current = False  # the experiment was resumed
            self._wipe()
        before = self._reader.offset
        facts = self._reader.read_new(BYTES_AT_ONCE)
        try:
            self._write(self._records(facts))
            self._link()
        except OSError as error:
            raise StoreError(f"Cannot write to {self.root}: {error.strerror} ({error.filename}).") from error
        return self._reader.offset > before

    def close(self) -> None:
        """Release the files for other writers; may be called twice."""
        if self._lock >= 0:
            if not self._is_current:
                with contextlib.suppress(OSError):  # then they are written again
                    (self.root / _STATE).write_text(str(self._reader.offset))
            os.close(self._lock)
            self._lock = -1

    def _matches_journal(self) -> bool:
        try:
            return int((self.root / _STATE).read_text()) == self.folder.journal.stat().st_size
        except (OSError, ValueError):
            return False

    def _wipe(self) -> None:
        (self.root / _STATE).unlink(missing_ok=True)
        for entry in self.root.iterdir():
            if entry.name != _LOCK and entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)

    def _records(self, facts: Iterable[AnyFact]) -> dict[int, list[bytes]]:
        """Turn facts into records, by trial."""
        records: dict[int, list[bytes]] = {}
        for fact in facts:
            if type(fact) is Reported:
                self._steps[fact.trial] = fact.step
                records.setdefault(fact.trial, []).append(scalars(unpack_numbers(fact.metrics), fact.step, fact.at))
            elif isinstance(fact, ExperimentStarted):
                self._objective = fact.metric or "value"
            elif isinstance(fact, TrialSuggested):
                self._params[fact.trial] = fact.params
            elif isinstance(fact, AttemptStarted) and fact.trial not in self._started:
                self._started.add(fact.trial)
                self._unlinked.add(fact.trial)
                start = session_start(self._params.pop(fact.trial, {}), f"{fact.trial:04d}", fact.at)
                records.setdefault(fact.trial, []).extend((file_start(fact.at), start))
            elif isinstance(fact, TrialEnded) and fact.trial in self._started:
                records.setdefault(fact.trial, []).extend(self._end(fact))
        return records

    def _end(self, fact: TrialEnded) -> list[bytes]:
        values = {f"final/{name}": value for name, value in unpack_numbers(fact.metrics).items()}
        if fact.value is not None:
            values.setdefault(f"final/{self._objective}", unpack_number(fact.value))
        step = self._steps.pop(fact.trial, 0)
        last = [scalars(values, step, fact.at)] if values else []
        return [*last, session_end(fact.state, fact.at)]

    def _write(self, records: dict[int, list[bytes]]) -> None:
        for trial, parts in records.items():
            folder = self.root / f"{trial:04d}"
            folder.mkdir(exist_ok=True)
            with (folder / _FILE).open("ab") as file:
                file.write(b"".join(parts))

    def _link(self) -> None:
        """Link what trials write themselves, as soon as they do."""
        for trial in list(self._unlinked):
            logs = self.folder.trial(trial).logs
            if logs.is_dir():
                with contextlib.suppress(FileExistsError):
                    link = self.root / f"{trial:04d}" / _OWN
                    link.symlink_to(os.path.relpath(logs, link.parent))
                self._unlinked.discard(trial)


def write_curves(folder: ExperimentFolder) -> Path:
    """Write the event files of an experiment as far as it has come; returns the folder to show TensorBoard.

    Raises:
        StoreError: If the journal cannot be read, or its folder cannot be written to.
    """
    view = CurvesView(folder)
    if view.open():
        try:
            while view.update():
                pass
        finally:
            view.close()
    return view.root


def gather(root: Path, folders: Iterable[tuple[str, ExperimentFolder]]) -> Path:
    """Make a folder that shows several experiments side by side, by name and the end of their ids."""
    root.mkdir(parents=True, exist_ok=True)
    views = {f"{_plain(name)}-{folder.id[-4:]}": folder.tensorboard for name, folder in folders}
    for entry in root.iterdir():
        if entry.is_symlink() and entry.name not in views:
            entry.unlink()
    for name, view in views.items():
        with contextlib.suppress(FileExistsError):
            (root / name).symlink_to(os.path.relpath(view, root))
    return root


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)[:60] or "experiment"
