"""Keep facts and the place in the log together: both or neither, whenever the process is killed.

A journal and a state cannot be written at once. So the state is written first, whole, with the facts that go with it
and the length that the journal had: whoever opens them later appends those that are missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from cargobike.core.errors import StoreError
from cargobike.core.facts import encode_fact
from cargobike.monitoring.facts import MONITOR_FACTS, AnyMonitorFact
from cargobike.monitoring.judgement import Judgement
from cargobike.monitoring.labelling.following import LabellingRecord
from cargobike.monitoring.record import MonitorFolder
from cargobike.monitoring.watching.watching import WatchingRecord
from cargobike.store.journal.journal import JournalReader, JournalWriter

_JUDGEMENTS: Final = 500
"""How many windows are kept with every figure; those before them have their facts."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a watcher goes on with."""

    watching: WatchingRecord = WatchingRecord()
    labelling: LabellingRecord = LabellingRecord()


class _Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What is written before the journal.

    Attributes:
        kept: What the watcher goes on with.
        journal_bytes: How long the journal was.
        facts: What is to be appended, each as a line.
    """

    kept: Kept
    journal_bytes: int
    facts: list[bytes]


class Keeper:
    """Writes for one watcher, which holds the lock.

    Args:
        folder: The monitor.
        before: Called with a word before anything is written; for tests that end the process there.
    """

    def __init__(self, folder: MonitorFolder, before: Callable[[str], None] = lambda _: None) -> None:
        self._folder = folder
        self._before = before
        checkpoint = self._read()
        self._journal = JournalWriter(folder.journal, durability="power")
        self.kept = Kept() if checkpoint is None else checkpoint.kept
        if checkpoint is not None:
            self._finish(checkpoint)

    def commit(
        self, kept: Kept, facts: Sequence[AnyMonitorFact], judgements: Mapping[int, Judgement] | None = None
    ) -> None:
        """Keep a state and its facts.

        Raises:
            StoreError: If they cannot be written; then neither counts.
        """
        for number, judgement in (judgements or {}).items():
            self._before("judgement")
            self._write(self._folder.judgement(number), msgspec.json.encode(judgement))
            self._folder.judgement(number - _JUDGEMENTS).unlink(missing_ok=True)
        checkpoint = _Checkpoint(
            kept=kept, journal_bytes=self._journal.offset, facts=[encode_fact(fact) for fact in facts]
        )
        self._before("checkpoint")
        self._write(self._folder.checkpoint, msgspec.msgpack.encode(checkpoint))
        self._before("journal")
        self._journal.append(facts)
        self.kept = kept
        self._before("end")

    def close(self) -> None:
        """Close the journal; may be called twice."""
        self._journal.close()

    def _read(self) -> _Checkpoint | None:
        try:
            data = self._folder.checkpoint.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self._folder.checkpoint} cannot be read: {error.strerror}.") from error
        try:
            return msgspec.msgpack.decode(data, type=_Checkpoint)
        except msgspec.MsgspecError as error:
            raise StoreError(f"{self._folder.checkpoint} is damaged: {error}. Delete it to watch anew.") from error

    def _finish(self, checkpoint: _Checkpoint) -> None:
        """Append what a process that was killed could not append."""
        reader = JournalReader(self._folder.journal, MONITOR_FACTS, checkpoint.journal_bytes)
        there = len(reader.read_new())
        missing = checkpoint.facts[there:]
        if missing:
            self._journal.append([MONITOR_FACTS.decode(line) for line in missing])

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file whole: its name leads to the old content or to the new one."""
        aside = path.with_name(f".{path.name}.new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with aside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self._before("rename")
            aside.replace(path)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be written: {error.strerror}. Nothing was lost; it is tried again."
            ) from error
