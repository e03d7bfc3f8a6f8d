"""From a call to an experiment that can run: names become objects, and what was left open is filled in.

Everything is checked here, before anything starts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from cargobike.core.asked import Aim, Asked, Named, Placement
from cargobike.core.errors import InvalidInputError
from cargobike.core.ids import random_seed
from cargobike.core.records import Params, Trial
from cargobike.engines.engine import Engine
from cargobike.engines.local.boot import Boot
from cargobike.engines.registry import resolve_engine
from cargobike.experiments.asking import arguments
from cargobike.experiments.asking.arguments import SpaceLike, Subject
from cargobike.experiments.asking.function import Train, check_signature, find_train
from cargobike.experiments.asking.goals import check_goals, check_start_points, read_aim
from cargobike.experiments.asking.setup import Setup
from cargobike.experiments.driving.request import Callback
from cargobike.experiments.finding import ExperimentLike, find_experiment
from cargobike.experiments.reading import read_record
from cargobike.search.optimizers.listed import Listed
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.optimizers.registry import describe_optimizer, resolve_optimizer, restore_optimizer
from cargobike.search.rules.stop_rule import StopRule

StopRules = str | StopRule | Sequence[str | StopRule]


class Objects(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a call that are objects, not data; they travel beside the record."""

    train: Callable[..., Any] | str
    engine: Boot | str | Engine
    space: SpaceLike | None = None
    optimizer: str | AbstractOptimizer | None = None
    early_stop: StopRules | None = None
    start_points: Sequence[Mapping[str, Any]] = ()
    warm_start: ExperimentLike | Sequence[ExperimentLike] = ()
    versioned_resources: Sequence[str | os.PathLike[str]] = ()
    data: object = None
    callbacks: Sequence[Callback] = ()
    quiet: bool = False


def engine_of(place: Boot | str | Engine) -> Engine:
    """Return the engine; a process that is booting already belongs to the local one."""
    return resolve_engine("local", place) if isinstance(place, Boot) else resolve_engine(place)


def resolve(asked: Asked, objects: Objects, engine: Engine) -> tuple[Setup, Train]:
    """Return the experiment that was asked for, and its function; refuse what cannot work.

    Raises:
        InvalidInputError: If something that was given cannot be used.
    """
    search = asked.search
    # 1. The function, and the space that it must fit.
    train = find_train(objects.train)
    subject = arguments.understand_space(
        arguments.space_or_preset(objects.space, search.params, objects.optimizer), search.params
    )
    filled = ("data",) if objects.data is not None else ()
    check_signature(train, (*subject.names, *filled), optional_names=subject.optional_names)
    # 2. The optimizer, and how many trials it may have.
    optimizer = _optimizer(subject, objects.optimizer)
    num_trials = arguments.number_of_trials(subject, search.num_trials, asked.limits.timeout_s, optimizer)
    # 3. The stop rules.
    rules = stop_rules_of(objects.early_stop)
    # 4. What the search looks for.
    aim = read_aim(asked.aim, subject)
    check_goals(aim, asked.aim.metric, optimizer, rules)
    # 5. Words and numbers that need no object.
    _check_words(asked, aim)
    arguments.check_callbacks(objects.callbacks)
    keeping = replace(asked.keeping, versioned_resources=_resources_to_keep(objects.versioned_resources))
    # 6. How many workers, in what gangs.
    runs = None if num_trials is None else num_trials * search.repeats
    placement = _placement(asked.placement, subject, runs, engine)
    # 7. What is there to begin with: start points, and earlier experiments to learn from.
    points = check_start_points(objects.start_points, subject)
    past, repeated, origins = _learned(objects.warm_start, subject, aim, num_trials)
    # 8. The record, with nothing left open.
    complete = replace(
        asked,
        name=asked.name or train.title.rpartition(":")[2],
        function=train.title,
        search=replace(
            search,
            space=subject.space.describe(),
            params=None if search.params is None else dict(search.params),
            optimizer=Named(optimizer.name) if search.params is not None else describe_optimizer(optimizer),
            stop_rules=_described(rules),
            num_trials=num_trials,
            start_points=points,
            warm_start=origins,
            seed=arguments.whole("seed", search.seed, random_seed()),
        ),
        aim=aim,
        placement=placement,
        keeping=keeping,
    )
    setup = Setup(
        asked=complete,
        space=subject.space,
        names=subject.names,
        optimizer=optimizer,
        stop_rules=rules,
        start_points=(*points, *repeated),
        past=past,
    )
    return setup, train


def stop_rules_of(early_stop: StopRules | None) -> tuple[StopRule, ...]:
    """Return stop rules, by name or as objects, as a tuple."""
    if early_stop is None:
        return ()
    # Not needed by most experiments, and every import delays the first trial.
    from cargobike.search.rules.stop_rules import resolve_stop_rule  # noqa: PLC0415

    if isinstance(early_stop, str) or not isinstance(early_stop, Sequence):
        return (resolve_stop_rule(early_stop),)
    return tuple(resolve_stop_rule(rule) for rule in early_stop)


def _described(rules: Sequence[StopRule]) -> tuple[Named, ...]:
    if not rules:
        return ()
    from cargobike.search.rules.stop_rules import describe_stop_rule  # noqa: PLC0415 - as above

    return tuple(map(describe_stop_rule, rules))


def _optimizer(subject: Subject, optimizer: str | AbstractOptimizer | None) -> AbstractOptimizer:
    """Return the optimizer that was asked for, or the one that fits the space."""
    if subject.listed is None:
        if optimizer is not None:
            return resolve_optimizer(optimizer)
        return resolve_optimizer("gridsearch") if subject.is_grid else _default_optimizer()
    if optimizer is not None:
        raise InvalidInputError(
            f"optimizer={optimizer!r} was given, but the parameters to try are listed already; "
            "leave the optimizer out, or give a space."
        )
    return Listed(subject.listed)


def _default_optimizer() -> AbstractOptimizer:
    """Return what searches a space for which no optimizer was chosen; it ends no trial, for that was not asked for."""
    return restore_optimizer(Named("auto", settings={"stops_trials": False}))


def _check_words(asked: Asked, aim: Aim) -> None:
    arguments.check_choices(
        isolation=asked.placement.isolation,
        working_directory=asked.keeping.working_directory,
        durability=asked.keeping.durability,
        direction=aim.direction or "max",
    )


def _resources_to_keep(paths: Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    if not paths:
        return ()
    from cargobike.store.files.resources import check_resources  # noqa: PLC0415 - few have any

    return tuple(map(str, check_resources(paths)))


def _placement(placement: Placement, subject: Subject, num_trials: int | None, engine: Engine) -> Placement:
    gang, resources = placement.gang, placement.resources
    if gang.size is not None:
        arguments.at_least_one("gang", gang.size)
    is_distributed = gang.is_distributed or (gang.size or 1) > 1
    if is_distributed and placement.isolation != "fresh":
        raise InvalidInputError(
            f"isolation={placement.isolation!r} was given, but ranks that train together need processes of their own: "
            "what they joined once they cannot join again. Leave isolation out."
        )
    if arguments.runs_here(placement.workers):
        arguments.check_here(engine, is_gang=is_distributed or bool(gang.servers))
    size = gang.size or arguments.number_of_workers(subject, placement.workers, None, engine, resources)
    workers = arguments.number_of_workers(subject, placement.workers, num_trials, engine, resources, gang=size)
    return replace(
        placement,
        workers=workers,
        gang=replace(gang, size=size, is_distributed=is_distributed),
        engine=engine.name,
    )


def _learned(
    warm_start: ExperimentLike | Sequence[ExperimentLike], subject: Subject, aim: Aim, num_trials: int | None
) -> tuple[tuple[Trial, ...], tuple[Params, ...], tuple[str, ...]]:
    """Return trials to learn from, points to try again, and the ids of the experiments that they come from."""
    if not warm_start:
        return (), (), ()
    # Only needed to build on an earlier experiment; its import would delay the first trial of all others.
    from cargobike.experiments.asking.warm_start import past_trials, points_to_repeat  # noqa: PLC0415

    names = warm_start if isinstance(warm_start, Sequence) and not isinstance(warm_start, str) else (warm_start,)
    records = [read_record(find_experiment(name)) for name in names]
    direction, goals = aim.direction or "max", aim.goals
    past = past_trials(records, subject, direction=direction, metric=aim.metric, goals=goals)
    points = points_to_repeat(past, direction=direction, goals=goals, num_trials=num_trials)
    return past, points, tuple(record.id for record in records)
