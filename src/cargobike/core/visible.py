"""An experiment without the trials that people have hidden."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from cargobike.core.record import ExperimentRecord


def visible(record: ExperimentRecord, hidden: Collection[int]) -> ExperimentRecord:
    """Return an experiment without the trials of some numbers: the best is that of the others.

    What its workers did and what it cost stays as it was.
    """
    if not any(number in record.trials for number in hidden):
        return record
    trials = {number: trial for number, trial in record.trials.items() if number not in hidden}
    return dataclasses.replace(record, trials=trials)
