"""What experiments return, and the records that results are made of.

`experiment.launch` and `experiment.load` give a `Result`; `compare` says what differs between two of them.
"""

from __future__ import annotations

from cargobike.core.asked import Asked
from cargobike.core.records import Curve, Decision, ExperimentState, Trial, TrialState
from cargobike.experiments.results.comparison import Comparison, FileDifference, compare
from cargobike.experiments.results.listing import ExperimentSummary
from cargobike.experiments.results.reforms import Reform
from cargobike.experiments.results.reproduction import MetricComparison, Reproduction
from cargobike.experiments.results.result import Result
from cargobike.experiments.results.trial import RecordedTrial, TrialCheckpoint
from cargobike.experiments.usage import Sample, Usage
from cargobike.store.history.annotations import Note
from cargobike.store.history.environment import Environment
from cargobike.store.history.snapshot import Snapshot

__all__ = [
    "Asked",
    "Comparison",
    "Curve",
    "Decision",
    "Environment",
    "ExperimentState",
    "ExperimentSummary",
    "FileDifference",
    "MetricComparison",
    "Note",
    "RecordedTrial",
    "Reform",
    "Reproduction",
    "Result",
    "Sample",
    "Snapshot",
    "Trial",
    "TrialCheckpoint",
    "TrialState",
    "Usage",
    "compare",
]
