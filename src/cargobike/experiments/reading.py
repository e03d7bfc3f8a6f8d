"""Read an experiment from its folder: its record, and the points of one trial."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cargobike.core.facts import EXPERIMENT_FACTS, AnyFact, ExperimentResumed, Reported, unpack_number
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord, fold
from cargobike.core.records import Curve, ExperimentState
from cargobike.store.files.locking import is_held
from cargobike.store.journal.journal import JournalReader, intact_lines

_BYTES_AT_ONCE: Final = 1 << 20


def read_record(folder: ExperimentFolder) -> ExperimentRecord:
    """Read an experiment from its folder, and find out whether a driver that recorded no end is still alive.

    Raises:
        StoreError: If there is no journal, or it cannot be understood.
    """
    reader = JournalReader(folder.journal, EXPERIMENT_FACTS)
    record = fold(reader.read_new(_BYTES_AT_ONCE))
    # Piece by piece: a million facts in one list would be walked over by the garbage collector again and again.
    while new := reader.read_new(_BYTES_AT_ONCE):
        for fact in new:
            record.apply(fact)
    settle(record, reader, folder)
    return record


def settle(record: ExperimentRecord, reader: JournalReader[AnyFact], folder: ExperimentFolder) -> list[AnyFact]:
    """Bring a record up to the present and mark it lost if its driver died; returns the facts that were new.

    The lock is looked at before the last read: a driver writes its end before it lets go, so an unheld lock
    and still no end after it mean that there will be none.
    """
    alive = record.state is not ExperimentState.RUNNING or is_held(folder)
    fresh = list[AnyFact]()
    while new := reader.read_new():
        fresh += new
        for fact in new:
            record.apply(fact)
    if not alive and record.state is ExperimentState.RUNNING and not _resumed(fresh):
        record.state = ExperimentState.LOST
    return fresh


def _resumed(facts: Iterable[AnyFact]) -> bool:
    return any(isinstance(fact, ExperimentResumed) for fact in facts)


def metrics_of(path: Path | str, trial: int) -> dict[str, Curve]:
    """Read every reported point of every metric of one trial from a journal."""
    curves: dict[str, Curve] = {}
    mention = b'"trial":%d,' % trial
    for lines, _ in intact_lines(Path(path)):
        for line in lines:
            # Decoding is ten times the cost of looking, and most lines are about other trials.
            if mention not in line or b'"fact":"reported"' not in line:
                continue
            fact = EXPERIMENT_FACTS.decode(line)
            if isinstance(fact, Reported) and fact.trial == trial:
                for name, value in fact.metrics.items():
                    curves.setdefault(name, Curve()).add(fact.step, unpack_number(value))
    return curves
