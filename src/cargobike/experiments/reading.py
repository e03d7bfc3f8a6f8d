"""Read an experiment from its folder: its record, and the points of one trial."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from cargobike.core.facts import EXPERIMENT_FACTS, AnyFact, ExperimentResumed, Reported, unpack_number
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord, fold
from cargobike.core.records import Curve, ExperimentState, Trial
from cargobike.core.seen import Attempt
from cargobike.core.values.kinds import read_path
from cargobike.core.values.undecodable import UNDECODABLE
from cargobike.store.files.locking import is_held
from cargobike.store.journal.journal import JournalReader
from cargobike.store.journal.lines import intact_lines, is_intact
from cargobike.store.journal.moments import lines_between
from cargobike.store.journal.scanning import lines_with

_BYTES_AT_ONCE: Final = 1 << 20


def journal_reader(folder: ExperimentFolder, offset: int = 0) -> JournalReader[AnyFact]:
    """Begin to read the journal of an experiment, which must be its own."""
    return JournalReader(folder.journal, EXPERIMENT_FACTS, offset, of=folder.id)


def facts_of(folder: ExperimentFolder) -> Iterator[AnyFact]:
    """Yield all facts of an experiment in order; raises `StoreError` where its journal cannot be understood."""
    return facts_from(journal_reader(folder))


def facts_from(reader: JournalReader[AnyFact]) -> Iterator[AnyFact]:
    """Yield the facts that a reader finds until there are no more; never more than a few of them are in memory."""
    while new := reader.read_new(_BYTES_AT_ONCE):
        yield from new


def read_record(folder: ExperimentFolder | str | os.PathLike[str]) -> ExperimentRecord:
    """Read an experiment from its folder, and find out whether a driver that recorded no end is still alive.

    Args:
        folder: The folder, also by its path.

    Raises:
        StoreError: If there is no journal, or it cannot be understood.
    """
    if not isinstance(folder, ExperimentFolder):
        folder = ExperimentFolder(Path(read_path("folder", folder)).absolute())
    reader = journal_reader(folder)
    record = fold(reader.read_new(_BYTES_AT_ONCE))
    # Piece by piece: a million facts in one list would be walked over by the garbage collector again and again.
    while new := reader.read_new(_BYTES_AT_ONCE):
        for fact in new:
            record.apply(fact)
    settle(record, reader, folder)
    return record


def resumptions(folder: ExperimentFolder) -> list[ExperimentResumed]:
    """Return how often, and how, an experiment was taken up again, without reading what happened between."""
    facts = list[ExperimentResumed]()
    for line in lines_with(folder.journal, b'"fact":"experiment-resumed"'):
        with contextlib.suppress(*UNDECODABLE):  # what a newer version wrote is for those to refuse who read all of it
            fact = EXPERIMENT_FACTS.decode(line)
            if isinstance(fact, ExperimentResumed):
                facts.append(fact)
    return facts


def settle(
    record: ExperimentRecord,
    reader: JournalReader[AnyFact],
    folder: ExperimentFolder,
    before: Callable[[Sequence[AnyFact]], None] = lambda facts: None,
) -> list[AnyFact]:
    """Bring a record up to the present and mark it lost if its driver died; returns the facts that were new.

    The lock is looked at before the last read: a driver writes its end before it lets go, so an unheld lock
    and still no end after it mean that there will be none. `before` is called with facts before they are applied.
    """
    alive = record.state is not ExperimentState.RUNNING or is_held(folder)
    fresh = list[AnyFact]()
    while new := reader.read_new():
        fresh += new
        before(new)
        for fact in new:
            record.apply(fact)
    if not alive and record.state is ExperimentState.RUNNING and not _resumed(fresh):
        record.state = ExperimentState.LOST
    return fresh


def _resumed(facts: Iterable[AnyFact]) -> bool:
    return any(isinstance(fact, ExperimentResumed) for fact in facts)


class Curves:
    """The points of all metrics of one trial, each report once.

    Attributes:
        by_metric: The curves by the names of their metrics.
        reports: How many reports they are made of.
    """

    __slots__ = ("by_metric", "reports")

    def __init__(self) -> None:
        self.by_metric: dict[str, Curve] = {}
        self.reports = 0

    def add(self, fact: Reported, but: str | None = None) -> None:
        """Add a report; one whose number was there takes the place of that one and of all after it.

        Args:
            fact: The report.
            but: A metric to leave out.
        """
        number = fact.number or self.reports + 1
        if number <= self.reports:
            for curve in self.by_metric.values():
                curve.rewind(number)
        self.reports = number
        for name, value in fact.metrics.items():
            if name != but:
                if name not in self.by_metric:
                    self.by_metric[name] = Curve()
                self.by_metric[name].add(fact.step, unpack_number(value), number)


def metrics_of(path: Path | str, trial: int) -> dict[str, Curve]:
    """Read every reported point of every metric of one trial from a journal."""
    curves = Curves()
    for lines, _ in intact_lines(Path(path)):
        for line in _mentions(lines, trial):
            fact = EXPERIMENT_FACTS.decode(line)
            if isinstance(fact, Reported) and fact.trial == trial:
                curves.add(fact)
    return {name: curve for name, curve in curves.by_metric.items() if len(curve)}


def curves_of(path: Path, run: Trial, attempts: Sequence[Attempt]) -> dict[str, Curve]:
    """Return what `metrics_of` does, without reading more of the journal than the times of the attempts.

    Args:
        path: The journal.
        run: The trial, or one run of it.
        attempts: Its attempts, as the journal told them.
    """
    curves = _within(path, run, _spans(run, attempts))
    if curves is None:  # a clock was set back between two drivers, or the journal is another one by now
        return metrics_of(path, run.number)
    return {name: curve for name, curve in curves.by_metric.items() if len(curve)}


def _spans(run: Trial, attempts: Sequence[Attempt]) -> list[tuple[float, float]]:
    """Return when a trial may have reported, from each time to another; one that may go on, until now."""
    if not run.state.is_final or run.is_interrupted:
        return [(attempts[0].started_at, math.inf)] if attempts else [(-math.inf, math.inf)]
    spans = list[tuple[float, float]]()
    for attempt in attempts:
        end = math.inf if attempt.ended_at is None else attempt.ended_at
        if spans and attempt.started_at <= spans[-1][1]:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((attempt.started_at, end))
    return spans


def _within(path: Path, run: Trial, spans: Sequence[tuple[float, float]]) -> Curves | None:
    """Return the points that a trial reported within some times; `None` if some may be missing, or lines are damaged.

    The numbers of its reports tell whether all were found: they count from 1, and the trial knows how many there are.
    """
    curves, is_over = Curves(), run.state.is_final and not run.is_interrupted
    for start, end in spans:
        for lines in lines_between(path, start, end):
            for line in _mentions(lines, run.number):
                fact = EXPERIMENT_FACTS.decode(line) if is_intact(line) else None
                if not isinstance(fact, Reported):
                    return None
                if fact.trial != run.number or not start <= fact.at <= end:
                    continue
                if fact.number > curves.reports + 1 or not (fact.number or is_over):
                    return None
                curves.add(fact)
    return curves if curves.reports == run.reports or not is_over else None


def _mentions(lines: Iterable[bytes], trial: int) -> Iterator[bytes]:
    """Yield the lines that may be reports of a trial; decoding is ten times the cost of looking."""
    mention = b'"trial":%d,' % trial
    return (line for line in lines if mention in line and b'"fact":"reported"' in line)
