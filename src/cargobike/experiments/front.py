"""What `cargobike.experiment` opens: one record is made of what was asked, and handed to the rooms behind."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import without_collections
from cargobike.core.registering.steps import own_step
from cargobike.core.values.kinds import read_flag
from cargobike.engines.local.boot import Boot
from cargobike.experiments.other_words import explains_other_words
from cargobike.experiments.trial import WORKER_PROGRAM

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    from cargobike.core.records import Direction, Resources, Trial
    from cargobike.core.values.times import Seconds
    from cargobike.engines.engine import Engine
    from cargobike.experiments.asking.arguments import SpaceLike
    from cargobike.experiments.asking.resolving import StopRules
    from cargobike.experiments.driving.request import Callback
    from cargobike.experiments.finding import ExperimentLike
    from cargobike.experiments.results.listing import ExperimentSummary
    from cargobike.experiments.results.reproduction import Reproduction
    from cargobike.experiments.results.result import Result
    from cargobike.experiments.trial.command.command import Command
    from cargobike.search.optimizers.optimizer import AbstractOptimizer

__all__ = [
    "command",
    "launch",
    "list",
    "load",
    "reproduce",
    "resume",
]

STALL_TIMEOUT_S = 600.0
RECOVER = "cargobike.experiments.recovering:recover_launch"

# This module imports next to nothing: the first process of the workers is started as soon as `launch` is called, and
# boots while the driver loads. Each takes as long as the other, and they are most of the way to the first trial.


@own_step("experiment.launch", recover=RECOVER)
@explains_other_words
def launch(
    train: Callable[..., Any] | str,
    space: SpaceLike | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    optimizer: str | AbstractOptimizer | None = None,
    num_trials: int | None = None,
    repeats: int = 1,
    direction: Direction | Mapping[str, Direction] | None = None,
    metric: str | None = None,
    constraints: Sequence[str] = (),
    start_points: Sequence[Mapping[str, Any]] = (),
    warm_start: ExperimentLike | Sequence[ExperimentLike] = (),
    early_stop: StopRules | None = None,
    workers: int | None = None,
    gang: int = 1,
    engine: str | Engine = "local",
    resources: Resources | Mapping[str, Any] | None = None,
    isolation: Literal["fresh", "reuse"] = "fresh",
    name: str = "",
    description: str = "",
    seed: int | None = None,
    deterministic: bool = False,
    max_failures: int | None = None,
    timeout_s: Seconds | None = None,
    trial_timeout_s: Seconds | None = None,
    stall_timeout_s: Seconds | None = STALL_TIMEOUT_S,
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
        optimizer: A name or an object; by default a grid is walked through, and a `Searchspace` searched by
            `Auto(stops_trials=False)`: with a model, every trial to its end.
        num_trials: How many trials to run.
        repeats: How often each of them is run, with another seed each time; its score is the mean, `trial.spread` the
            standard deviation. Optimizers and stop rules see the mean.
        direction: `"max"` (default) or `"min"`; a dict such as `{"accuracy": "max", "latency_ms": "min"}` for several
            objectives, whose best compromises are then in `result.pareto_front`.
        metric: Which entry of a returned dict to optimize.
        constraints: Limits on returned metrics, such as `["latency_ms <= 50"]`; a trial that breaks one never wins.
        start_points: Parameters to try first: settings that are known to be good.
        warm_start: An earlier experiment, or several, to learn from: ids, the unique beginnings or ends of ids, unique
            names, or `"last"`. Their best points are tried first, and optimizers with a model begin with all of them.
        early_stop: Rules that end running trials early: `"median"`, `"percentile"`, `"patience"`, objects, several.
        workers: How many workers there are; by default one per core, or per GPU where there are any. With 0, trials run
            one after the other in this process, for `breakpoint()` and debuggers.
        gang: How many workers run each trial together, as ranks that find each other; `workers=8, gang=2` runs four
            trials at once.
        engine: Where workers live: `"local"`, `"spark"`, the address of a Spark master, or an engine object.
        resources: What each worker gets, such as `Resources(gpus=0.5)` or `{"gpus": 0.5}`.
        isolation: `"fresh"` gives every trial a process of its own; `"reuse"` lets a process run many trials.
        name: A name for people; by default the function's.
        description: A sentence for people.
        seed: Makes suggestions repeatable; by default random, and recorded.
        deterministic: Makes a parallel search repeatable, independent of timing, at the price of some waiting.
        max_failures: End the experiment when more trials than this have failed.
        timeout_s: End the experiment after this time, in seconds or as `"1h30m"`; what is running is stopped.
        trial_timeout_s: End a trial that takes longer than this, as failed.
        stall_timeout_s: End an attempt of a gang in which a rank stands still for so long while no rank reports
            anything; `None` to wait for ever.
        working_directory: `"trial"` gives each trial its own directory to work in, `"launch"` leaves them in this one.
        durability: `"process"`: every recorded fact survives `kill -9`; `"power"`: also a power cut, a little slower.
        versioned_resources: Files and folders to keep a copy of, as they are now: data lists, configurations, weights.
        tensorboard: Start a TensorBoard server for the time of the search; the progress display says where.
        data: What the train function is fed with as `data`: a `data.Loader`, of which it gets one with the same options
            for its share; or a table or its name, a path, glob, folder or address, a DataFrame, an Arrow table or a
            dict of arrays. Iterating yields batches, and checkpoints keep the position.
        callbacks: Objects with a method `on_facts(facts)`.
        quiet: Show no progress.

    Returns:
        The result; after Ctrl-C what was known by then.

    Raises:
        InvalidInputError: If something given cannot be used; nothing was started then.
        ExperimentFailedError: If the experiment was given up; `.result` holds what was learned until then.
        TrialFailedError: If a single tracked run failed.
    """
    with begin(engine, workers) as place:
        with without_collections():
            from cargobike.core.asked import Aim, Asked, Gang, Keeping, Placement, Search  # noqa: PLC0415
            from cargobike.experiments.asking.arguments import (  # noqa: PLC0415
                at_least_one,
                read_constraints,
                read_limits,
                read_params,
                read_resources,
            )
            from cargobike.experiments.asking.launching import launch_experiment  # noqa: PLC0415
            from cargobike.experiments.asking.resolving import Objects  # noqa: PLC0415

        asked = Asked(
            name=name,
            description=description,
            search=Search(
                params=None if params is None else read_params(params),
                num_trials=num_trials,
                seed=seed,
                deterministic=deterministic,
                repeats=at_least_one("repeats", repeats),
            ),
            aim=Aim(
                direction=None if isinstance(direction, Mapping) else direction,
                metric=metric,
                objectives=dict(direction) if isinstance(direction, Mapping) else {},
                constraints=read_constraints(constraints),
            ),
            placement=Placement(
                workers=workers, gang=Gang(size=gang), resources=read_resources(resources), isolation=isolation
            ),
            limits=read_limits(
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


def command(
    arguments: str | Sequence[str],
    *,
    metric: str = "value",
    file: str | os.PathLike[str] | None = None,
    pattern: str | None = None,
    report: str | None = None,
    env: Mapping[str, str] | None = None,
    directory: str | os.PathLike[str] | None = None,
) -> Command:
    """Make a train function of a program, to be launched like any other.

    Args:
        arguments: Program and arguments, as a list; a text is split as a shell would. `{lr}` stands for the parameter
            `lr`, `{flags}` for all of them as `--lr 0.1`, `{overrides}` for all of them as `lr=0.1`, `{folder}` for the
            trial's folder of files; also `{trial}`, `{attempt}`, `{seed}` and `{rank}`.
        metric: What a number is called that has no name of its own.
        file: Where the program writes its score, with placeholders; by default it is the last line that it prints.
        pattern: A regular expression that finds the score in what it prints, with a group for each number.
        report: A regular expression for lines to report, with a group for each metric, and one named `step`.
        env: Environment variables for the program, with placeholders.
        directory: Where it runs; by default the working directory.

    Raises:
        FunctionError: If there is no such program, or something is no regular expression.

    Example:
        >>> from cargobike import experiment
        >>> program = experiment.command(["python", "-c", "print({x} ** 2)"])
        >>> experiment.launch(program, {"x": [1, 2, 3]}, quiet=True).best.value
        9.0
    """
    from cargobike.experiments.trial.command.command import Command  # noqa: PLC0415 - only for programs

    return Command(arguments, metric=metric, file=file, pattern=pattern, report=report, env=env, directory=directory)


@own_step("experiment.resume")
@explains_other_words
def resume(
    experiment_id: ExperimentLike,
    *,
    num_trials: int | None = None,
    workers: int | None = None,
    space: SpaceLike | None = None,
    defaults: Mapping[str, Any] | None = None,
    engine: str | Engine = "local",
    callbacks: Sequence[Callback] = (),
    quiet: bool = False,
) -> Result:
    """Go on with an experiment whose driver died or was stopped, or add trials to one that has ended.

    Finished trials are kept, running ones start again from their last checkpoint, and the optimizer goes on as if
    nothing had happened: it is led through its own past, and must give the same answers as it did.

    Args:
        experiment_id: An id, the unique beginning or end of one, a name, or `"last"`.
        num_trials: How many trials to run in all, those that have ended included; as many as before by default.
        workers: How many trials run at once; as many as before by default. With 0 they run in this process.
        space: Another space to go on in: wider or narrower ranges, other choices, further parameters. A fresh optimizer
            of the same kind goes on, which learns from all trials that lie in it; the others stay in the result.
        defaults: What the trials so far had for parameters that are new in `space`, so that they can be learned from.
        engine: Where workers live.
        callbacks: Objects with a method `on_facts(facts)`.
        quiet: Show no progress.

    Raises:
        InvalidInputError: If it cannot go on in that space: a grid, a parameter of another type, nothing to learn from.
        StoreError: If it still runs, or its recipe or code cannot be found.
        OptimizerError: If its optimizer does not repeat itself.
    """
    with begin(engine, workers) as place:
        from cargobike.experiments.asking.resuming import resume_experiment  # noqa: PLC0415

        return resume_experiment(
            place,
            experiment_id,
            num_trials=num_trials,
            workers=workers,
            space=space,
            defaults=defaults,
            callbacks=callbacks,
            quiet=quiet,
        )


@explains_other_words
def reproduce(
    experiment_id: ExperimentLike,
    *,
    trial: Trial | int | str | None = None,
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
        experiment_id: An id, the unique beginning or end of one, a name, or `"last"`.
        trial: `"best"`, a trial or its number, to repeat only that one.
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
    if read_flag("fresh_env", fresh_env):
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
        experiment_id: An id, the unique beginning or end of one, a name, `"last"`, one of `list()`, or a result.
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


def begin(engine: str | Engine, workers: object = None) -> contextlib.AbstractContextManager[Boot | str | Engine]:
    """Start the first process of this machine's workers, if they are meant; what follows loads while it boots."""
    is_local = engine == "local" and not (type(workers) is int and workers == 0)
    return Boot(WORKER_PROGRAM) if is_local else contextlib.nullcontext(engine)
