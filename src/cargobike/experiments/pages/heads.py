"""The head of an experiment's page, the same whether its journal has been read already or not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from cargobike.core.errors import NotFoundError, StoreError
from cargobike.core.facts import EXPERIMENT_FACTS, ExperimentStarted
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import ExperimentState
from cargobike.experiments.index.index import ExperimentRow
from cargobike.experiments.pages import answers
from cargobike.experiments.pages.describing import note_told, progress_of, row_of, row_summary
from cargobike.experiments.pages.drawing import crates
from cargobike.experiments.pages.live import LiveExperiment
from cargobike.experiments.pages.state import ExperimentPages
from cargobike.experiments.space_changes import change_in_words
from cargobike.store.history.annotations import Annotations, read_annotations
from cargobike.store.journal.journal import read_header

_MOST_NOTES: Final = 5


@dataclass(frozen=True, slots=True)
class Head:
    """What is at the top of an experiment's page.

    Attributes:
        experiment: The experiment in short.
        notes: The latest notes, the oldest first.
        facts: What was asked for, in words.
        may_stop: Whether it runs, so that callers whose role allows it can stop it.
        strip: All trials as crates; `None` before the journal has been read.
        hidden: How many trials people have hidden.
    """

    experiment: answers.ExperimentSummary
    notes: list[answers.Note]
    facts: dict[str, str]
    may_stop: bool
    strip: list[dict[str, Any]] | None
    hidden: int = 0


def head_of(state: ExperimentPages, live: LiveExperiment, *, may_wait: bool) -> Head:
    """Return the head of an experiment's page.

    It comes from the journal. Where that has not been read yet and the page must not wait for it, or where it cannot be
    read, the index says the same about the part that it has read.
    """
    said = read_annotations(live.folder)
    if may_wait or live.is_read or said.hidden:  # the index does not know what is hidden
        try:
            with live.reading() as record:
                row = row_of(record, said)
                head = _head(row, said, progress_of(live, said), crates(record, row.best_trial))
                return replace(head, facts=head.facts | _later(record), hidden=len(said.hidden & record.trials.keys()))
        except StoreError:
            if state.listing.known(live.folder.id) is None:
                raise
    row = state.listing.known(live.folder.id) or _unread(live)
    return _head(row, said, state.listing.progress(row), None)


def _head(
    row: ExperimentRow,
    said: Annotations,
    progress: list[float] | None,
    strip: list[dict[str, Any]] | None,
) -> Head:
    return Head(
        experiment=row_summary(row, progress),
        notes=[note_told(note) for note in said.notes[-_MOST_NOTES:]],
        facts=_facts(row.header),
        may_stop=row.state is ExperimentState.RUNNING,
        strip=strip,
    )


def _facts(header: ExperimentStarted) -> dict[str, str]:
    facts = {
        "function": header.function,
        "optimizer": header.optimizer,
        "objectives": ", ".join(f"{name} ({way})" for name, way in header.objectives.items()),
        "limits": ", ".join(header.constraints),
        "workers": str(header.workers),
        "engine": header.engine,
        "seed": str(header.seed),
        "data": header.asked.feeding.label,
        "by": " on ".join(word for word in (header.user, header.host) if word),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _later(record: ExperimentRecord) -> dict[str, str]:
    """Return what was asked for after the beginning, in words."""
    changes = "; ".join(change_in_words(change) for change in record.space_changes)
    return {"space changed": changes} if changes else {}


def _unread(live: LiveExperiment) -> ExperimentRow:
    """Return what the first line of a journal says: a page can be shown before the rest has been read."""
    header = read_header(live.folder.journal, EXPERIMENT_FACTS)
    if header is None:
        raise NotFoundError(f"Experiment {live.folder.id!r} has not begun yet.")
    return ExperimentRow(id=live.folder.id, header=header, state=ExperimentState.RUNNING, started_at=header.at)
