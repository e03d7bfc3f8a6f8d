"""The front door: search a function, look experiments up again.

Example:
    >>> from cargobike import Searchspace, experiment
    >>> def train(x):
    ...     return -((x - 3) ** 2)
    >>> result = experiment.launch(train, {"x": [1, 2, 3]}, quiet=True)
    >>> result.best.params
    {'x': 3}
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from cargobike import project
from cargobike.core.errors import ExperimentFailedError, InvalidInputError, TrialFailedError
from cargobike.core.ids import random_seed
from cargobike.core.records import Direction, ExperimentState, Resources
from cargobike.core.version import __version__
from cargobike.driver import arguments
from cargobike.driver.arguments import SpaceLike, StopRules
from cargobike.driver.function import check_signature, find_train
from cargobike.driver.goals import check_goals, check_start_points, goals_of
from cargobike.driver.plan import Plan
from cargobike.driver.recipe import Recipe
from cargobike.driver.request import WORKER_PROGRAM, Callback, Request, Shipment
from cargobike.driver.shipping import ship
from cargobike.engines.engine import Engine
from cargobike.search.optimizer import AbstractOptimizer

if TYPE_CHECKING:
    from cargobike.result import Result

__all__ = ["launch", "list", "load", "resume"]


def launch(
    train: Callable[..., Any] | str,
    space: SpaceLike | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    optimizer: str | AbstractOptimizer | None = None,
    num_trials: int | None = None,
    direction: Direction | Mapping[str, Direction] | None = None,
    metric: str | None = None,
    constraints: Sequence[str] = (),
    start_points: Sequence[Mapping[str, Any]] = (),
    early_stop: StopRules | None = None,
    workers: int | None = None,
    engine: str | Engine = "local",
    resources: Resources | None = None,
    isolation: Literal["fresh", "reuse"] = "fresh",
    name: str = "",
    description: str = "",
    seed: int | None = None,
    deterministic: bool = False,
    max_failures: int | None = None,
    timeout_s: float | None = None,
    trial_timeout_s: float | None = None,
    working_directory: Literal["trial", "launch"] = "trial",
    durability: Literal["process", "power"] = "process",
    callbacks: Sequence[Callback] = (),
    quiet: bool = False,
) -> Result:
    """Search a train function over a space, or run it once with given parameters, and remember everything.

    Args:
        train: A function, or `"file.py:function"`. It takes hyperparameters by name and returns a number, or a dict of
            named numbers.
        space: What to try: a `Searchspace`, a dict of lists (a grid), a list of dicts (exactly those), or a path to a
            YAML or JSON file.
        params: One set of parameters, for a single tracked run; instead of `space`.
        optimizer: A name or an object; by default a grid is walked through and a `Searchspace` searched at random.
        num_trials: How many trials to run.
        direction: `"max"` (default) or `"min"`; a dict such as `{"accuracy": "max", "latency_ms": "min"}` for several
            objectives, whose best compromises are then in `result.pareto_front`.
        metric: Which entry of a returned dict to optimize.
        constraints: Limits on returned metrics, such as `["latency_ms <= 50"]`; a trial that breaks one never wins.
        start_points: Parameters to try first: settings that are known to be good.
        early_stop: Rules that end running trials early: `"median"`, `"percentile"`, `"patience"`, objects, several.
        workers: How many trials run at once; by default one per core, or per GPU where there are any.
        engine: Where workers live: `"local"`, or an engine object.
        resources: What each worker gets, such as `Resources(gpus=0.5)`.
        isolation: `"fresh"` gives every trial a process of its own; `"reuse"` lets a process run many trials.
        name: A name for people; by default the function's.
        description: A sentence for people.
        seed: Makes suggestions repeatable; by default random, and recorded.
        deterministic: Makes a parallel search repeatable whatever the timing, at the price of some waiting.
        max_failures: End the experiment when more trials than this have failed.
        timeout_s: End the experiment after this time; what is running is stopped.
        trial_timeout_s: End a trial that takes longer than this, as failed.
        working_directory: `"trial"` gives each trial its own directory to work in, `"launch"` leaves them in this one.
        durability: `"process"`: every recorded fact survives `kill -9`; `"power"`: also a power cut, a little slower.
        callbacks: Objects with a method `on_facts(facts)`.
        quiet: Show no progress.

    Returns:
        The result; after Ctrl-C what was known by then.

    Raises:
        InvalidInputError: If something given cannot be used; nothing was started then.
        ExperimentFailedError: If the experiment was given up; `.result` holds what was learned until then.
        TrialFailedError: If a single tracked run failed.
    """
    request = _request(**locals())
    with request.engine as engine_in_use:
        engine_in_use.warm_up(WORKER_PROGRAM, request.resources, request.plan.workers)
        # The rest of the driver loads while the first process of the workers boots: each takes as long as the other,
        # and together they are most of the way to the first trial.
        from cargobike.driver.conduct import conduct  # noqa: PLC0415
        from cargobike.result import Result  # noqa: PLC0415

        record, folder = conduct(request)
    return _judge(Result.from_record(record, folder), is_single=params is not None)


def resume(
    experiment_id: str,
    *,
    num_trials: int | None = None,
    workers: int | None = None,
    engine: str | Engine = "local",
    callbacks: Sequence[Callback] = (),
    quiet: bool = False,
) -> Result:
    """Go on with an experiment whose driver died or was stopped, or add trials to one that has ended.

    Finished trials are kept, running ones start again from their last checkpoint, and the optimizer goes on as if
    nothing had happened: it is led through its own past, and must give the same answers as it did.

    Args:
        experiment_id: An id, the unique beginning or end of one, a unique name, or `"last"`.
        num_trials: How many trials to run in all, those that have ended included; as many as before by default.
        workers: How many trials run at once; as many as before by default.
        engine: Where workers live.
        callbacks: Objects with a method `on_facts(facts)`.
        quiet: Show no progress.

    Raises:
        StoreError: If it still runs, or its recipe or code cannot be found.
        OptimizerError: If its optimizer does not repeat itself.
    """
    folder = project.find_experiment(experiment_id)
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
    recipe = msgspec.structs.replace(recipe, plan=plan)
    request = _ready(
        recipe,
        shipment=Shipment(title="", function=b"", libraries=(), wants_reporter=False, source=""),
        engine=arguments.choose_engine(engine),
        callbacks=callbacks,
        quiet=quiet,
        recipe_bytes=None,
    )
    with request.engine as engine_in_use:
        engine_in_use.warm_up(WORKER_PROGRAM, request.resources, plan.workers)
        from cargobike.driver.conduct import take_up  # noqa: PLC0415 - see `launch`
        from cargobike.result import Result  # noqa: PLC0415

        record = take_up(request, folder)
    return _judge(Result.from_record(record, folder), is_single=recipe.params is not None)


def load(experiment_id: str) -> Result:
    """Return the result of an earlier experiment, or of a running one as far as it has come.

    Args:
        experiment_id: An id, the unique beginning or end of one, a unique name, or `"last"`.
    """
    from cargobike.result import Result  # noqa: PLC0415 - kept off the way to the first trial, see `launch`
    from cargobike.store.fold import read_record  # noqa: PLC0415

    folder = project.find_experiment(experiment_id)
    return Result.from_record(read_record(folder), folder)


def list() -> builtins.list[str]:
    """Return the ids of all experiments of the project, oldest first."""
    root = project.current().experiments
    if not root.is_dir():
        return []
    return sorted(path.parent.name for path in root.glob("*/journal.jsonl"))


def _request(
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
    early_stop: StopRules | None,
    workers: int | None,
    engine: str | Engine,
    resources: Resources | None,
    seed: int | None,
    deterministic: bool,
    max_failures: int | None,
    timeout_s: float | None,
    trial_timeout_s: float | None,
    working_directory: Literal["trial", "launch"],
    isolation: Literal["fresh", "reuse"],
    durability: Literal["process", "power"],
    callbacks: Sequence[Callback],
    **others: Any,
) -> Request:
    """Check everything that can be checked before anything starts."""
    found = find_train(train)
    told = arguments.understand_space(arguments.space_or_preset(space, params, optimizer), params)
    check_signature(found, told.names, optional_names=told.optional_names)
    chosen = arguments.choose_optimizer(told, optimizer)
    trials = arguments.number_of_trials(told, num_trials, timeout_s, chosen)
    place = arguments.choose_engine(engine)
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
    plan = Plan(
        workers=arguments.number_of_workers(told, workers, trials, place, needs),
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
    shipment = ship(found)
    recipe = Recipe(
        optimizer=chosen,
        space=told.space,
        names=told.names,
        plan=plan,
        direction=way,
        metric=None if goals.objectives else metric or told.metric,
        goals=goals,
        start_points=check_start_points(start_points, told),
        params=None if params is None else dict(params),
        resources=needs,
        isolation=isolation,
        own_directory=working_directory == "trial",
        durability=durability,
        stop_rules=rules,
    )
    return _ready(
        recipe, shipment=shipment, engine=place, callbacks=callbacks, recipe_bytes=recipe.encode(), **others
    )


def _ready(recipe: Recipe, *, recipe_bytes: bytes | None, **others: Any) -> Request:
    """Set the optimizer up; the last thing that can be refused."""
    plan, optimizer = recipe.plan, recipe.optimizer
    optimizer.deterministic = plan.deterministic
    optimizer.objectives = recipe.goals.objectives
    optimizer.setup(recipe.space, num_trials=plan.num_trials, direction=recipe.direction, seed=plan.seed)
    optimizer.initialize()
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
