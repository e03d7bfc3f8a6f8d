"""Running the recorded code of an experiment once more, with its parameters and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from pathlib import Path

from msgspec.structs import replace

from cargobike.core.asked import Named, Search
from cargobike.core.errors import InvalidInputError, NotFoundError, StoreError
from cargobike.core.facts import TrialSuggested
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Trial, TrialState
from cargobike.core.values.kinds import is_number
from cargobike.engines.engine import Engine
from cargobike.engines.local.boot import Boot
from cargobike.experiments.asking import arguments
from cargobike.experiments.asking.feeding import check_feed
from cargobike.experiments.asking.launching import make_request, warm_up
from cargobike.experiments.asking.recipe import asked_for
from cargobike.experiments.asking.recorded import recorded_payload
from cargobike.experiments.asking.resolving import engine_of
from cargobike.experiments.asking.setup import Setup
from cargobike.experiments.driving.conduct import conduct
from cargobike.experiments.driving.request import KeptCode
from cargobike.experiments.finding import ExperimentLike, find_experiment
from cargobike.experiments.reading import facts_of, read_record
from cargobike.experiments.results.comparison import environment_changes, package_changes
from cargobike.experiments.results.reproduction import Reproduction, compare_trials
from cargobike.experiments.trial.payload import Payload
from cargobike.search.optimizers.repeat import Repeat
from cargobike.search.spaces.space import Searchspace
from cargobike.store.files.resources import hash_file
from cargobike.store.history.environment import read_environment
from cargobike.store.history.snapshot import Snapshot, read_snapshot

_MOST_NAMED = 10


def reproduce_experiment(
    place: Boot | str | Engine,
    experiment_id: ExperimentLike,
    *,
    trial: Trial | int | str | None,
    tolerance: float,
    workers: int | None,
    quiet: bool,
) -> Reproduction:
    """Run trials again, and compare what they report and return."""
    if not is_number(tolerance, lambda number: 0 <= number < 1):
        raise InvalidInputError(
            f"tolerance={tolerance!r} was given; it must be at least 0 and less than 1, such as 1e-6."
        )
    folder = find_experiment(experiment_id)
    record, snapshot = read_record(folder), read_snapshot(folder)
    trials = choose_trials(record, trial)
    payload = recorded_payload(folder, snapshot)
    check_feed(payload.data, folder.project.root)
    with engine_of(place) as engine:
        setup = _setup(record, folder, trials, engine, workers)
        request = make_request(
            setup,
            replace(setup.plan(), fail_fast=0),
            engine=engine,
            payload=payload.encode(),
            libraries=tuple(payload.preload),
            code=KeptCode(source=folder.function.read_bytes() if folder.function.exists() else b""),
            quiet=quiet,
        )
        warm_up(engine, request)
        repeated, new_folder = conduct(request)
    return Reproduction(
        original=folder.id,
        id=new_folder.id,
        comparisons=tuple(compare_trials((record, folder), (repeated, new_folder), tolerance)),
        warnings=(*_environment_warnings(snapshot, payload), *_trial_warnings(folder, trials)),
    )


def choose_trials(record: ExperimentRecord, which: Trial | int | str | None) -> list[Trial]:
    """Return the trials to repeat: all that completed, the best one, or one by its number.

    Raises:
        NotFoundError: If there is no such trial, or it did not complete.
    """
    completed = [trial for trial in record.runs.values() if trial.state is TrialState.COMPLETED]
    if which is None:
        if not completed:
            raise NotFoundError(f"No trial of {record.id} completed: there is nothing to compare with.")
        return completed
    if which == "best":
        if record.best is None:
            raise NotFoundError(f"{record.id} has no best trial; give the number of one that completed.", wanted="best")
        # With repeats the best trial is the mean of several runs: they are what can be repeated.
        numbers = record.best.repeats or (record.best.number,)
        return [trial for trial in completed if trial.number in numbers]
    try:
        number = which.number if isinstance(which, Trial) else int(which) if isinstance(which, str) else index(which)
    except (TypeError, ValueError):
        raise InvalidInputError(f"trial={which!r} was given; it must be a trial, its number, or 'best'.") from None
    if number not in record.runs:
        words = f"There is no trial {number} in {record.id}; it has {len(record.runs)}, counted from 0."
        raise NotFoundError(words, wanted=number)
    if record.runs[number].state is not TrialState.COMPLETED:
        state = record.runs[number].state.value
        words = f"Trial {number} of {record.id} is {state}: only one that completed can be repeated."
        raise NotFoundError(words, wanted=number)
    return [record.runs[number]]


def _setup(
    record: ExperimentRecord, folder: ExperimentFolder, trials: Sequence[Trial], engine: Engine, workers: int | None
) -> Setup:
    """Return an experiment that repeats trials as they were asked for, without anything that may end them early."""
    asked = asked_for(record.header, folder)
    placement = asked.placement
    gang, wanted = placement.gang.size or 1, placement.workers or 1
    if workers is not None:
        wanted = arguments.at_least_one("workers", workers)
    repeated = replace(
        asked,
        name=f"{record.header.name} again",
        description="",
        function=record.header.function,
        reproduces=record.id,
        search=Search(space=[], optimizer=Named(Repeat.name), num_trials=len(trials), seed=record.header.seed),
        placement=replace(placement, workers=max(gang, min(wanted, len(trials) * gang)), engine=engine.name),
        limits=replace(asked.limits, timeout_s=None, max_failures=None),
        keeping=replace(asked.keeping, durability="process", versioned_resources=(), tensorboard=False),
    )
    names = tuple(dict.fromkeys(name for trial in trials for name in trial.params))
    return Setup(asked=repeated, space=Searchspace(), names=names, optimizer=Repeat(trials))


def _environment_warnings(snapshot: Snapshot | None, payload: Payload) -> list[str]:
    if snapshot is None:
        return [
            "there is no snapshot: your own modules are used as they are now, and the environment it ran in is unknown"
        ]
    warnings = []
    if snapshot.sources.left_out:
        warnings.append(f"{snapshot.sources.left_out} files were too large or too many to be kept")
    here = read_environment()
    for name, (was, now) in environment_changes(snapshot.environment, here).items():
        warnings.append(f"{name} was {was or 'nothing'} and is {now or 'nothing'}")
    packages = package_changes(snapshot.environment, here)
    used = {name.partition(".")[0].replace("_", "-").lower() for name in payload.preload}
    ranked = sorted(packages, key=lambda name: (name not in used, name))
    for name in ranked[:_MOST_NAMED]:
        was, now = packages[name]
        warnings.append(f"package {name} was {was or 'not installed'} and is {now or 'not installed'}")
    if len(ranked) > _MOST_NAMED:
        warnings.append(f"{len(ranked) - _MOST_NAMED} more packages differ")
    return [*warnings, *_resource_warnings(snapshot)]


def _resource_warnings(snapshot: Snapshot) -> list[str]:
    warnings = []
    for resource in snapshot.resources:
        try:
            is_same = hash_file(Path(resource.path)) == resource.sha256
        except OSError:
            warnings.append(f"the versioned resource {resource.path} is gone; a copy of it was kept")
            continue
        if not is_same:
            warnings.append(f"the versioned resource {resource.path} has changed; a copy as it was has been kept")
    return warnings


def _trial_warnings(folder: ExperimentFolder, trials: Sequence[Trial]) -> list[str]:
    numbers = {trial.number for trial in trials}
    warnings = []
    try:
        for fact in facts_of(folder):
            if isinstance(fact, TrialSuggested) and fact.trial in numbers and fact.copy_checkpoint_of is not None:
                warnings.append(
                    f"trial {fact.trial} began from a checkpoint of trial {fact.copy_checkpoint_of}, now from nothing"
                )
    except StoreError as error:
        warnings.append(str(error))
    warnings += [
        f"trial {trial.number} took {trial.attempts} attempts; now it is one from the beginning"
        for trial in trials
        if trial.attempts > 1
    ]
    return warnings
