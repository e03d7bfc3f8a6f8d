"""Runs experiments: a search, or one tracked run."""

from __future__ import annotations

from typing import Any

from cargobike import experiment
from cargobike.errors import CargobikeError, ExperimentFailedError, NotFoundError

from .answers import experiment_reference
from .origins import tags_of

Arguments = dict[str, Any]
Origin = dict[str, Any]


def run_experiment(arguments: Arguments, origin: Origin) -> Any:
    """Search a train function and return a reference to the experiment."""
    options = dict(arguments["options"])
    options.setdefault("quiet", True)
    if isinstance(options.get("data"), dict) and options["data"].get("kind") == "dataset":
        options["data"] = _open_dataset(options["data"]["id"])
    try:
        result = experiment.launch(arguments["train"], _read_space(arguments["space"]), **options)
    except CargobikeError as error:
        if (failed := getattr(error, "result", None)) is not None:
            failed.add_tag(*tags_of(origin))
        raise
    result.add_tag(*tags_of(origin))
    reference = experiment_reference(result)
    if str(result.state) != "completed":
        raise ExperimentFailedError(f"The experiment {result.id} is {result.state}: {result.reason}", result=result)
    return reference


def _open_dataset(reference: str) -> Any:
    """Return the training dataset that a task has handed on, so that the experiment knows what it was trained on."""
    from cargobike import features  # noqa: PLC0415 - an extra of Cargobike

    name, _, version = reference.partition(":")
    return features.training_dataset(name, int(version) if version else None)


def _read_space(space: Any) -> Any:
    """Make a space of plain data: names with `["DOUBLE", [0.0, 1.0]]` are a search space, with lists a grid."""
    if not isinstance(space, dict) or not space:
        return space
    if all(
        isinstance(one, list) and len(one) == 2 and _is_type(one[0]) and isinstance(one[1], list)
        for one in space.values()
    ):
        from cargobike import Searchspace  # noqa: PLC0415 - a grid needs none

        return Searchspace(**{name: (kind, bounds) for name, (kind, bounds) in space.items()})
    return space


def _is_type(word: Any) -> bool:
    return isinstance(word, str) and word.isupper()


def find_trial(reference: Any) -> Any:
    """Return a trial: the best of an experiment, or one by its number, `20261117-1a2b/3`.

    Raises:
        NotFoundError: If there is no such experiment or trial, or none that completed.
    """
    if isinstance(reference, dict):  # what a task that searched has handed on
        reference = reference["id"]
    name, _, number = str(reference).partition("/")
    result = experiment.load(name)
    if number:
        return result.trial(int(number))
    if result.best is None:
        raise NotFoundError(f"No trial of the experiment {result.id} has completed; it is {result.state}.", wanted=name)
    return result.best
