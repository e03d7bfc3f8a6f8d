"""What happens behind the front door: arguments become a request, the request an experiment, and that a result."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from cargobike.core.errors import ExperimentFailedError, InvalidInputError, TrialFailedError
from cargobike.core.ids import random_seed
from cargobike.core.records import Direction, ExperimentState, Resources, Trial
from cargobike.core.version import __version__
from cargobike.engines.capabilities import WarmsUp
from cargobike.engines.engine import Engine
from cargobike.engines.local.boot import Boot
from cargobike.engines.registry import resolve_engine
from cargobike.experiments.asking import arguments
from cargobike.experiments.asking.arguments import SpaceLike, StopRules
from cargobike.experiments.asking.function import check_signature, find_train
from cargobike.experiments.asking.goals import check_goals, check_start_points, goals_of
from cargobike.experiments.asking.recipe import Recipe
from cargobike.experiments.asking.shipping import ship
from cargobike.experiments.driving.conduct import conduct, take_up
from cargobike.experiments.driving.request import Callback, Request, Shipment
from cargobike.experiments.finding import ExperimentLike, find_experiment
from cargobike.experiments.reading import read_record
from cargobike.experiments.results.result import Result
from cargobike.experiments.scheduling.plan import GangShape, Plan
from cargobike.experiments.trial import WORKER_PROGRAM, payload
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.store.files import project


def launch_experiment(boot: Boot | None, **given: Any) -> Result:
    """Run a new experiment; takes what `experiment.launch` takes."""
    _refuse_while_loading()
    place = resolve_engine(given.pop("engine"), boot)
    with place as engine:
        request = _request(engine, **given)
        if isinstance(engine, WarmsUp):
            engine.warm_up(WORKER_PROGRAM, request.resources, request.plan.workers)
        record, folder = conduct(request)
    return _judge(Result.from_record(record, folder), is_single=request.params is not None)


def _refuse_while_loading() -> None:
    """Break the circle of a module that launches an experiment whose workers import that module."""
    if payload.is_loading:
        raise InvalidInputError(
            "A worker imports the module of the train function, and that module launches an experiment itself. "
            'Put the launch under `if __name__ == "__main__":`, or into a function.'
        )


def resume_experiment(
    boot: Boot | None,
    *,
    experiment_id: ExperimentLike,
    num_trials: int | None,
    workers: int | None,
    engine: str | Engine,
    callbacks: Sequence[Callback],
    quiet: bool,
) -> Result:
    """Run an experiment on; takes what `experiment.resume` takes."""
    folder = find_experiment(experiment_id, with_checkpoints=True)
    recipe = Recipe.read(folder.code)
    plan = recipe.plan
    if num_trials is not None:
        plan = msgspec.structs.replace(plan, num_trials=arguments.at_least_one("num_trials", num_trials))
    if workers is not None:
        if plan.deterministic and workers != plan.workers:
            raise InvalidInputError(
                f"workers={workers} was given, but a deterministic search depends on its {plan.workers} workers."
            )
        plan = msgspec.structs.replace(plan, workers=arguments.at_least_one("workers", workers))
    with resolve_engine(engine, boot) as place:
        request = _ready(
            recipe,
            plan=plan,
            shipment=Shipment(title="", function=b"", libraries=(), wants_reporter=False, source=""),
            engine=place,
            callbacks=callbacks,
            quiet=quiet,
            recipe_bytes=None,
        )
        if isinstance(place, WarmsUp):
            place.warm_up(WORKER_PROGRAM, request.resources, plan.workers)
        record = take_up(request, folder)
    return _judge(Result.from_record(record, folder), is_single=recipe.params is not None)


def _request(
    place: Engine,
    *,
    train: Callable[..., Any] | str,
    space: SpaceLike | None,
    params: Mapping[str, Any] | None,
    optimizer: str | AbstractOptimizer | None,
    num_trials: int | None,
    direction: Direction | Mapping[str, Direction] | None,
    metric: str | None,
    constraints: Sequence[str],
    start_points: Sequence[Mapping[str, Any]],
    warm_start: ExperimentLike | Sequence[ExperimentLike],
    early_stop: StopRules | None,
    workers: int | None,
    gang: int | GangShape,
    stall_timeout_s: float | None,
    resources: Resources | None,
    seed: int | None,
    deterministic: bool,
    max_failures: int | None,
    timeout_s: float | None,
    trial_timeout_s: float | None,
    working_directory: Literal["trial", "launch"],
    isolation: Literal["fresh", "reuse"],
    durability: Literal["process", "power"],
    versioned_resources: Sequence[str | os.PathLike[str]],
    callbacks: Sequence[Callback],
    data: object = None,
    **others: Any,
) -> Request:
    """Check everything that can be checked before anything starts."""
    found = find_train(train)
    told = arguments.understand_space(arguments.space_or_preset(space, params, optimizer), params)
    filled = ("data",) if data is not None else ()
    check_signature(found, (*told.names, *filled), optional_names=told.optional_names)
    chosen = arguments.choose_optimizer(told, optimizer)
    trials = arguments.number_of_trials(told, num_trials, timeout_s, chosen)
    needs = resources or Resources()
    rules = arguments.stop_rules_of(early_stop)
    aim = direction or told.direction or "max"
    goals = goals_of(aim, constraints)
    way: Direction = "max" if isinstance(aim, Mapping) else aim
    check_goals(goals, metric, chosen, rules)
    arguments.check_choices(
        isolation=isolation, working_directory=working_directory, durability=durability, direction=way
    )
    arguments.check_callbacks(callbacks)
    kept = _resources_to_keep(versioned_resources)
    shape = arguments.shape_of(gang, isolation)
    size = shape.size or arguments.number_of_workers(told, workers, None, place, needs)
    plan = Plan(
        workers=arguments.number_of_workers(told, workers, trials, place, needs, gang=size),
        gang=size,
        least_gang=shape.least,
        servers=shape.servers,
        roles=shape.roles,
        is_distributed=shape.is_distributed,
        stall_timeout_s=arguments.positive("stall_timeout_s", stall_timeout_s),
        num_trials=trials,
        seed=arguments.whole("seed", seed, random_seed()),
        deterministic=deterministic,
        every_report_is_milestone=chosen.wants_every_report
        or any(getattr(rule, "judges_steps", True) for rule in rules),
        max_failures=None if max_failures is None else arguments.whole("max_failures", max_failures),
        fail_fast=0 if params is not None else 3,
        trial_timeout_s=arguments.positive("trial_timeout_s", trial_timeout_s),
        timeout_s=arguments.positive("timeout_s", timeout_s),
        reason_to_end=arguments.end_of(rules, way),
    )
    chosen_metric = None if goals.objectives else metric or told.metric
    points = check_start_points(start_points, told)
    past: tuple[Trial, ...] = ()
    origins: tuple[str, ...] = ()
    if warm_start:
        # Only for who builds on an earlier experiment; its import would delay everybody's first trial.
        from cargobike.experiments.asking.warm_start import past_trials, points_to_repeat  # noqa: PLC0415

        names = warm_start if isinstance(warm_start, Sequence) and not isinstance(warm_start, str) else (warm_start,)
        records = [read_record(find_experiment(name)) for name in names]
        past = past_trials(records, told, direction=way, metric=chosen_metric, goals=goals)
        points += points_to_repeat(past, direction=way, goals=goals, num_trials=trials)
        origins = tuple(record.id for record in records)
    shipment = ship(found)
    recipe = Recipe(
        optimizer=chosen,
        space=told.space,
        names=told.names,
        plan=plan,
        direction=way,
        metric=chosen_metric,
        goals=goals,
        start_points=points,
        past=past,
        params=None if params is None else dict(params),
        resources=needs,
        isolation=isolation,
        own_directory=working_directory == "trial",
        durability=durability,
        stop_rules=rules,
    )
    return _ready(
        recipe,
        plan=plan,
        shipment=shipment,
        engine=place,
        callbacks=callbacks,
        recipe_bytes=recipe.encode(),
        warm_start=origins,
        versioned_resources=kept,
        data=None if data is None else _materialize(data),
        **others,
    )


def _materialize(data: object) -> payload.DataFiles:
    from cargobike.data.materialize import materialize  # noqa: PLC0415 - pyarrow only for who gives data

    return materialize(data, project.prepare())


def _resources_to_keep(given: Sequence[str | os.PathLike[str]]) -> tuple[Path, ...]:
    if not given:
        return ()
    from cargobike.store.files.resources import check_resources  # noqa: PLC0415 - only for who has some

    return check_resources(given)


def _ready(recipe: Recipe, *, plan: Plan, recipe_bytes: bytes | None, **others: Any) -> Request:
    """Set the optimizer up; the last thing that can be refused.

    It is told what it was told at first, whatever is planned now: one that is taken up again must repeat itself before
    it may go further.
    """
    optimizer = recipe.optimizer
    optimizer.deterministic = plan.deterministic
    optimizer.objectives = recipe.goals.objectives
    first = recipe.plan
    optimizer.setup(recipe.space, num_trials=first.num_trials, direction=recipe.direction, seed=first.seed)
    optimizer.initialize()
    if recipe.past:
        optimizer.learn_from(recipe.past)
    return Request(
        space=recipe.space,
        names=recipe.names,
        optimizer=optimizer,
        plan=plan,
        project=project.prepare(),
        version=__version__,
        direction=recipe.direction,
        metric=recipe.metric,
        goals=recipe.goals,
        start_points=recipe.start_points,
        params=recipe.params,
        resources=recipe.resources,
        own_directory=recipe.own_directory,
        isolation=recipe.isolation,
        durability=recipe.durability,
        stop_rules=recipe.stop_rules,
        recipe=recipe_bytes,
        **others,
    )


def _judge(result: Result, *, is_single: bool) -> Result:
    """Raise if the experiment as a whole has failed."""
    failures = result.failures
    if is_single and failures:
        raise TrialFailedError(f"the run {result.id} failed:\n{failures[0].error}")
    if result.state is ExperimentState.FAILED:
        raise ExperimentFailedError(f"experiment {result.id} was given up: {result.reason}", result)
    if failures and len(failures) == len(result.trials):
        raise ExperimentFailedError(
            f"all {len(failures)} trials of experiment {result.id} failed, the first one with:\n{failures[0].error}",
            result,
        )
    return result
