"""Journals of experiments: the facts in them, and the record that they add up to.

Example:
    >>> from cargobike import experiment, project
    >>> from cargobike.journals import read_journal
    >>> result = experiment.launch(lambda x: x, {"x": [1]}, quiet=True)
    >>> facts = list(read_journal(project.find_experiment(result.id).journal))
    >>> type(facts[-1]).__name__
    'ExperimentEnded'
"""

from __future__ import annotations

from cargobike.core.facts import (
    EXPERIMENT_FACTS,
    AttemptLost,
    AttemptStarted,
    CheckpointSaved,
    ExperimentEnded,
    ExperimentResumed,
    ExperimentStarted,
    Fact,
    Judged,
    ModelKept,
    OptimizerIdled,
    Reported,
    TrialEnded,
    TrialPaused,
    TrialResumed,
    TrialSuggested,
    WorkerJoined,
    WorkerLost,
)
from cargobike.core.record import Attempt, ExperimentRecord, WorkerSeen, fold
from cargobike.experiments.reading import metrics_of, read_record
from cargobike.store.journal.journal import JournalReader, JournalWriter, read_header, read_journal
from cargobike.store.journal.lines import seal

__all__ = [
    "EXPERIMENT_FACTS",
    "Attempt",
    "AttemptLost",
    "AttemptStarted",
    "CheckpointSaved",
    "ExperimentEnded",
    "ExperimentRecord",
    "ExperimentResumed",
    "ExperimentStarted",
    "Fact",
    "JournalReader",
    "JournalWriter",
    "Judged",
    "ModelKept",
    "OptimizerIdled",
    "Reported",
    "TrialEnded",
    "TrialPaused",
    "TrialResumed",
    "TrialSuggested",
    "WorkerJoined",
    "WorkerLost",
    "WorkerSeen",
    "fold",
    "metrics_of",
    "read_header",
    "read_journal",
    "read_record",
    "seal",
]
