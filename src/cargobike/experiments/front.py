"""What `cargobike.experiment` opens: one record is made of what was asked, and handed to the rooms behind."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cargobike.engines.local.boot import Boot
from cargobike.experiments.trial import WORKER_PROGRAM

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    from cargobike.core.records import Direction, Resources
    from cargobike.engines.engine import Engine
    from cargobike.experiments.asking.arguments import SpaceLike
    from cargobike.experiments.asking.resolving import StopRules
    from cargobike.experiments.driving.request import Callback
    from cargobike.experiments.finding import ExperimentLike
    from cargobike.experiments.results.listing import ExperimentSummary
    from cargobike.experiments.results.reproduction import Reproduction
    from cargobike.experiments.results.result import Result
    from cargobike.search.optimizers.optimizer import AbstractOptimizer

__all__ = [
    "launch",
    "list",
    "load",
    "reproduce",
    "resume",
]

STALL_TIMEOUT_S = 600.0

# This module imports next to nothing: the first process of the workers is started as soon as `launch` is called, and
# boots while the driver loads. Each takes as long as the other, and they are most of the way to the first trial.


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
    warm_start: ExperimentLike | Sequence[ExperimentLike] = (),
    early_stop: StopRules | None = None,
    workers: int | None = None,
    gang: int = 1,
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
    stall_timeout_s: float | None = STALL_TIMEOUT_S,
    working_directory: Literal["trial", "launch"] = "trial",
    durability: Literal["process", "power"] = "process",
    versioned_resources: Sequence[str | os.PathLike[str]] = (),
    tensorboard: bool = False,
    data: object = None,
    callbacks: Sequence[Callback] = (),
    quiet: bool = False,
) -> Result:
    """Search a train function over a space, or run it once with given parameters, and remember everything.

    Args:
        train: A function, `"file.py:function"` or `"notebook.ipynb:function"`, also by URL. It takes hyperparameters by
            name and returns a number, or a dict of named numbers.
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
        warm_start: An earlier experiment, or several, to learn from: ids, the unique beginnings or ends of ids, unique
            names, or `"last"`. Their best points are tried first, and optimizers with a model begin with all of them.
        early_stop: Rules that end running trials early: `"median"`, `"percentile"`, `"patience"`, objects, several.
        workers: How many workers there are; by default one per core, or per GPU where there are any.
        gang: How many workers run each trial together, as ranks that find each other; `workers=8, gang=2` runs four
            trials at once.
        engine: Where workers live: `"local"`, `"spark"`, the address of a Spark master, or an engine object.
        resources: What each worker gets, such as `Resources(gpus=0.5)`.
        isolation: `"fresh"` gives every trial a process of its own; `"reuse"` lets a process run many trials.
        name: A name for people; by default the function's.
        description: A sentence for people.
        seed: Makes suggestions repeatable; by default random, and recorded.
        deterministic: Makes a parallel search repeatable, independent of timing, at the price of some waiting.
        max_failures: End the experiment when more trials than this have failed.
        timeout_s: End the experiment after this time; what is running is stopped.
        trial_timeout_s: End a trial that takes longer than this, as failed.
        stall_timeout_s: End an attempt of a gang in which a rank stands still for so long while no rank reports
            anything; `None` to wait for ever.
        working_directory: `"trial"` gives each trial its own directory to work in, `"launch"` leaves them in this one.
        durability: `"process"`: every recorded fact survives `kill -9`; `"power"`: also a power cut, a little slower.
        versioned_resources: Files and folders to keep a copy of, as they are now: data lists, configurations, weights.
        tensorboard: Start a TensorBoard server for the time of the search; the progress display says where.
        data: A Spark or pandas DataFrame or an Arrow table, written once into the project; the train function gets its
            share of it as `data` (each rank of a gang another one), and reads it with `data.batches(size)`.
        callbacks: Objects with a method `on_facts(facts)`.
        quiet: Show no progress.

    Returns:
        The result; after Ctrl-C what was known by then.

    Raises:
        InvalidInputError: If something given cannot be used; nothing was started then.
        ExperimentFailedError: If the experiment was given up; `.result` holds what was learned until then.
        TrialFailedError: If a single tracked run failed.
    """
    with begin(engine) as place:
        from cargobike.core.asked import Aim, Asked, Gang, Keeping, Limits, Placement, Search  # noqa: PLC0415
        from cargobike.core.records import Resources  # noqa: PLC0415
        from cargobike.experiments.asking.launching import launch_experiment  # noqa: PLC0415
        from cargobike.experiments.asking.resolving import Objects  # noqa: PLC0415

        asked = Asked(
            name=name,
            description=description,
            search=Search(
                params=None if params is None else dict(params),
                num_trials=num_trials,
                seed=seed,
                deterministic=deterministic,
            ),
            aim=Aim(
                direction=None if isinstance(direction, Mapping) else direction,
                metric=metric,
                objectives=dict(direction) if isinstance(direction, Mapping) else {},
                constraints=(constraints,) if isinstance(constraints, str) else tuple(constraints),
            ),
            placement=Placement(
                workers=workers, gang=Gang(size=gang), resources=resources or Resources(), isolation=isolation
            ),
            limits=Limits(
                timeout_s=timeout_s,
                trial_timeout_s=trial_timeout_s,
                stall_timeout_s=stall_timeout_s,
                max_failures=max_failures,
            ),
            keeping=Keeping(durability=durability, working_directory=working_directory, tensorboard=tensorboard),
        )
        objects = Objects(
            train=train,
            engine=place,
            space=space,
            optimizer=optimizer,
            early_stop=early_stop,
            start_points=start_points,
            warm_start=warm_start,
            versioned_resources=versioned_resources,
            data=data,
            callbacks=callbacks,
            quiet=quiet,
        )
        return launch_experiment(asked, objects)


def resume(
    experiment_id: ExperimentLike,
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
    with begin(engine) as place:
        from cargobike.experiments.asking.launching import resume_experiment  # noqa: PLC0415

        return resume_experiment(
            place, experiment_id, num_trials=num_trials, workers=workers, callbacks=callbacks, quiet=quiet
        )


def reproduce(
    experiment_id: ExperimentLike,
    *,
    trial: int | str | None = None,
    tolerance: float = 0.0,
    fresh_env: bool = False,
    workers: int | None = None,
    engine: str | Engine = "local",
    quiet: bool = False,
) -> Reproduction:
    """Run the recorded code of an experiment again, with its parameters and seeds, and compare what comes out.

    The function and your own modules are those that were recorded, not today's. The repetition is an experiment of its
    own, with the trials that completed, or the one that is asked for.

    Args:
        experiment_id: An id, the unique beginning or end of one, a unique name, or `"last"`.
        trial: `"best"` or a number, to repeat only that one.
        tolerance: By which part of it a number may differ and count as the same; by default by nothing.
        fresh_env: Run it in an environment that is made from the recorded packages.
        workers: How many trials run at once; as many as before by default.
        engine: Where workers live.
        quiet: Show no progress.

    Returns:
        What came out: `is_same`, `comparisons` metric by metric, and `warnings` about what in the environment differs.

    Raises:
        NotFoundError: If there is no such experiment or trial, or none that completed.
        StoreError: If its code was not kept.
    """
    if fresh_env:
        from cargobike.experiments.asking.fresh_environment import reproduce_in_fresh_environment  # noqa: PLC0415 - few need it

        return reproduce_in_fresh_environment(
            experiment_id, trial=trial, tolerance=tolerance, workers=workers, engine=engine, quiet=quiet
        )
    with begin(engine) as place:
        from cargobike.experiments.asking.reproducing import reproduce_experiment  # noqa: PLC0415

        return reproduce_experiment(
            place, experiment_id, trial=trial, tolerance=tolerance, workers=workers, quiet=quiet
        )


def load(experiment_id: ExperimentLike) -> Result:
    """Return the result of an earlier experiment, or of a running one as far as it has come.

    Args:
        experiment_id: An id, the unique beginning or end of one, a unique name, `"last"`, one of `list()`, or a result.
    """
    from cargobike.experiments.results.result import find_result  # noqa: PLC0415 - a launch need not wait for it

    return find_result(experiment_id)


def list() -> builtins.list[ExperimentSummary]:
    """Return all experiments of the project, oldest first.

    Each is the id, as a string, with fields: `name`, `state`, `best_value`, `best_params`, `trials`, `started_at`,
    `duration_s` and others. It can be given wherever an id is asked for.
    """
    from cargobike.experiments.results.listing import list_experiments  # noqa: PLC0415 - a launch need not wait for it

    return list_experiments()


def begin(engine: str | Engine) -> contextlib.AbstractContextManager[Boot | str | Engine]:
    """Start the first process of this machine's workers, if they are meant; what follows loads while it boots."""
    return Boot(WORKER_PROGRAM) if engine == "local" else contextlib.nullcontext(engine)
