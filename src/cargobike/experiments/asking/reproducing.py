"""Running the recorded code of an experiment once more, with its parameters and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from cargobike.core.errors import CargobikeError, InvalidInputError, NotFoundError, StoreError
from cargobike.core.facts import EXPERIMENT_FACTS, TrialSuggested
from cargobike.core.goals import Goals, read_constraints
from cargobike.core.layout import ExperimentFolder
from cargobike.core.record import ExperimentRecord
from cargobike.core.records import Resources, Trial, TrialState
from cargobike.core.version import __version__
from cargobike.engines.capabilities import WarmsUp
from cargobike.engines.engine import Engine
from cargobike.engines.local.boot import Boot
from cargobike.engines.registry import resolve_engine
from cargobike.experiments.asking import arguments
from cargobike.experiments.asking.recipe import Recipe
from cargobike.experiments.asking.recorded import recorded_payload
from cargobike.experiments.driving.conduct import conduct
from cargobike.experiments.driving.request import Request, Shipment
from cargobike.experiments.finding import ExperimentLike, find_experiment
from cargobike.experiments.reading import read_record
from cargobike.experiments.results.comparison import environment_changes, package_changes
from cargobike.experiments.results.reproduction import Reproduction, compare_trials
from cargobike.experiments.scheduling.plan import Plan
from cargobike.experiments.trial import WORKER_PROGRAM
from cargobike.experiments.trial.payload import Payload
from cargobike.search.optimizers.repeat import Repeat
from cargobike.search.spaces.space import Searchspace
from cargobike.store.files import project
from cargobike.store.files.resources import hash_file
from cargobike.store.history.environment import read_environment
from cargobike.store.history.snapshot import Snapshot, read_snapshot
from cargobike.store.journal.journal import read_journal

_MOST_NAMED = 10


def reproduce_experiment(
    boot: Boot | None,
    *,
    experiment_id: ExperimentLike,
    trial: int | str | None,
    tolerance: float,
    workers: int | None,
    engine: str | Engine,
    quiet: bool,
) -> Reproduction:
    """Run trials again; takes what `experiment.reproduce` takes."""
    if not 0 <= tolerance < 1:
        raise InvalidInputError(
            f"tolerance={tolerance} was given; it must be at least 0 and less than 1, such as 1e-6."
        )
    folder = find_experiment(experiment_id)
    record, snapshot = read_record(folder), read_snapshot(folder)
    trials = choose_trials(record, trial)
    payload = recorded_payload(folder, snapshot)
    plan = _plan(record, folder, len(trials), workers)
    with resolve_engine(engine, boot) as place:
        request = _request(record, folder, payload, plan=plan, place=place, trials=trials, quiet=quiet)
        if isinstance(place, WarmsUp):
            place.warm_up(WORKER_PROGRAM, request.resources, plan.workers)
        repeated, new_folder = conduct(request)
    return Reproduction(
        original=folder.id,
        id=new_folder.id,
        comparisons=tuple(compare_trials((record, folder), (repeated, new_folder), tolerance)),
        warnings=(*_environment_warnings(snapshot, payload), *_trial_warnings(folder, trials)),
    )


def choose_trials(record: ExperimentRecord, which: int | str | None) -> list[Trial]:
    """Return the trials to repeat: all that completed, the best one, or one by its number.

    Raises:
        NotFoundError: If there is none, or it did not complete.
    """
    completed = [trial for trial in record.trials.values() if trial.state is TrialState.COMPLETED]
    if which is None:
        if not completed:
            raise NotFoundError(f"No trial of {record.id} completed: there is nothing to compare with.")
        return completed
    if which == "best":
        if record.best is None:
            raise NotFoundError(f"{record.id} has no best trial; give the number of one that completed.")
        return [record.best]
    try:
        number = int(which)
    except ValueError:
        raise InvalidInputError(f"trial={which!r} was given; it must be a number or 'best'.") from None
    if number not in record.trials:
        raise NotFoundError(f"There is no trial {number} in {record.id}; it has {len(record.trials)}, counted from 0.")
    if record.trials[number].state is not TrialState.COMPLETED:
        state = record.trials[number].state.value
        raise NotFoundError(f"Trial {number} of {record.id} is {state}: only one that completed can be repeated.")
    return [record.trials[number]]


def _plan(record: ExperimentRecord, folder: ExperimentFolder, trials: int, workers: int | None) -> Plan:
    header = record.header
    try:
        plan = Recipe.read(folder.code).plan
    except CargobikeError:  # an optimizer that could not be kept, or whose module is gone: it is not needed
        plan = Plan(workers=header.workers, gang=header.gang)
    wanted = plan.workers if workers is None else arguments.at_least_one("workers", workers)
    return msgspec.structs.replace(
        plan,
        workers=max(plan.gang, min(wanted, trials * plan.gang)),
        num_trials=trials,
        seed=header.seed,
        deterministic=False,
        every_report_is_milestone=False,
        max_failures=None,
        fail_fast=0,
        timeout_s=None,
        reason_to_end=None,
    )


def _request(
    record: ExperimentRecord,
    folder: ExperimentFolder,
    payload: Payload,
    *,
    plan: Plan,
    place: Engine,
    trials: Sequence[Trial],
    quiet: bool,
) -> Request:
    header = record.header
    space, optimizer = Searchspace(), Repeat(trials)
    optimizer.setup(space, num_trials=plan.num_trials, direction=header.direction, seed=plan.seed)
    optimizer.initialize()
    source = folder.function
    return Request(
        shipment=Shipment(
            title=header.function,
            function=payload.function,
            libraries=tuple(payload.preload),
            wants_reporter=payload.wants_reporter,
            source=source.read_text("utf-8", "replace") if source.exists() else "",
        ),
        space=space,
        names=tuple(dict.fromkeys(name for trial in trials for name in trial.params)),
        optimizer=optimizer,
        plan=plan,
        engine=place,
        project=project.prepare(),
        version=__version__,
        direction=header.direction,
        metric=header.metric,
        goals=Goals(objectives=header.objectives, constraints=read_constraints(header.constraints)),
        resources=_resources(folder),
        isolation="reuse" if header.isolation == "reuse" else "fresh",
        own_directory=payload.own_directory,
        name=f"{header.name} again",
        description=f"Repeats {header.id}.",
        quiet=quiet,
        payload=payload.encode(),
        options={"reproduces": header.id},
    )


def _resources(folder: ExperimentFolder) -> Resources:
    try:
        return Recipe.read(folder.code).resources
    except CargobikeError:
        return Resources()


def _environment_warnings(snapshot: Snapshot | None, payload: Payload) -> list[str]:
    if snapshot is None:
        return ["there is no snapshot: modules of your own are today's, and the environment it ran in is unknown"]
    found = []
    if snapshot.sources.left_out:
        found.append(f"{snapshot.sources.left_out} files were too large or too many to be kept")
    here = read_environment()
    for name, (was, now) in environment_changes(snapshot.environment, here).items():
        found.append(f"{name} was {was or 'nothing'} and is {now or 'nothing'}")
    packages = package_changes(snapshot.environment, here)
    used = {name.partition(".")[0].replace("_", "-").lower() for name in payload.preload}
    ranked = sorted(packages, key=lambda name: (name not in used, name))
    for name in ranked[:_MOST_NAMED]:
        was, now = packages[name]
        found.append(f"package {name} was {was or 'not installed'} and is {now or 'not installed'}")
    if len(ranked) > _MOST_NAMED:
        found.append(f"{len(ranked) - _MOST_NAMED} more packages differ")
    return [*found, *_resource_warnings(snapshot)]


def _resource_warnings(snapshot: Snapshot) -> list[str]:
    found = []
    for resource in snapshot.resources:
        try:
            is_same = hash_file(Path(resource.path)) == resource.sha256
        except OSError:
            found.append(f"the versioned resource {resource.path} is gone; a copy of it was kept")
            continue
        if not is_same:
            found.append(f"the versioned resource {resource.path} has changed; a copy as it was has been kept")
    return found


def _trial_warnings(folder: ExperimentFolder, trials: Sequence[Trial]) -> list[str]:
    numbers = {trial.number for trial in trials}
    found = []
    try:
        for fact in read_journal(folder.journal, EXPERIMENT_FACTS):
            if isinstance(fact, TrialSuggested) and fact.trial in numbers and fact.copy_checkpoint_of is not None:
                found.append(
                    f"trial {fact.trial} began from a checkpoint of trial {fact.copy_checkpoint_of}, now from nothing"
                )
    except StoreError as error:
        found.append(str(error))
    found += [
        f"trial {trial.number} took {trial.attempts} attempts; now it is one from the beginning"
        for trial in trials
        if trial.attempts > 1
    ]
    return found
