"""Finds a trial by what a person calls it."""

from __future__ import annotations

from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.experiments.results.result import Result, find_result, open_result
from cargobike.experiments.results.trial import RecordedTrial


def find_trial(reference: str) -> RecordedTrial:
    """Return the trial that `EXPERIMENT/NUMBER` means, or the best one of `EXPERIMENT`.

    Raises:
        NotFoundError: If there is none.
        InvalidInputError: If what stands behind the slash is no number.
    """
    name, slash, number = reference.partition("/")
    return _trial_of(find_result(name), reference, number if slash else None)


def open_trial(reference: str, project: ProjectFolder) -> RecordedTrial:
    """Return the trial that `EXPERIMENT/NUMBER` means in any project."""
    experiment, _, number = reference.partition("/")
    return _trial_of(open_result(experiment, project), reference, number)


def _trial_of(result: Result, reference: str, number: str | None) -> RecordedTrial:
    if number is None:
        if result.best is None:
            raise NotFoundError(f"No trial of {result.id} has completed with a finite value.", wanted=reference)
        return result.best
    if not number.isdecimal() or len(number) > 9:
        raise InvalidInputError(f"{reference!r} was given; write EXPERIMENT/NUMBER, such as last/3.")
    trials = {trial.number: trial for trial in result.trials}
    if int(number) not in trials:
        raise NotFoundError(f"{result.id} has no trial {number}; it has {len(trials)} trials.", wanted=reference)
    return trials[int(number)]
