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
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cargobike import __version__, project
from cargobike.core.errors import (
    ExperimentFailedError,
    InvalidInputError,
    TrialFailedError,
    nearest,
)
from cargobike.core.ids import random_seed
from cargobike.core.records import Direction, ExperimentState, Params, Resources
from cargobike.driver.conduct import Request, conduct
from cargobike.driver.conversation import StopRule, check_plain
from cargobike.driver.display import choose_display
from cargobike.driver.function import check_signature, find_train
from cargobike.driver.loop import Callback
from cargobike.driver.plan import Plan
from cargobike.engines.engine import Engine
from cargobike.engines.local import LocalEngine
from cargobike.result import Result
from cargobike.search.listed import Listed, read_sets
from cargobike.search.optimizer import AbstractOptimizer
from cargobike.search.registry import resolve_optimizer
from cargobike.search.space import Searchspace
from cargobike.store.fold import read_record
from cargobike.store.index import resolve

__all__ = ["Result", "launch", "list", "load"]

SpaceLike = Searchspace | Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | os.PathLike[str]


def launch(
    train: Callable[..., Any] | str,
    space: SpaceLike | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    optimizer: str | AbstractOptimizer | None = None,
    num_trials: int | None = None,
    direction: Direction | None = None,
    metric: str | None = None,
    early_stop: StopRule | Sequence[StopRule] = (),
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
        direction: `"max"` (default) or `"min"`.
        metric: Which entry of a returned dict to optimize.
        early_stop: Rules that end running trials early.
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
    found = find_train(train)
    told = _understand(space, params)
    check_signature(found, told.names, optional_names=told.optional_names)
    chosen = _choose_optimizer(told, optimizer)
    trials = _number_of_trials(told, num_trials, timeout_s, chosen)
    place = _choose_engine(engine)
    needs = resources or Resources()
    count = _number_of_workers(told, workers, trials, place, needs)
    rules = _rules(early_stop)
    way = direction or told.direction or "max"
    _check_choices(
        isolation=isolation, working_directory=working_directory, durability=durability, direction=way
    )
    _check_callbacks(callbacks)
    record, folder = conduct(
        Request(
            train=found,
            space=told.space,
            optimizer=chosen,
            plan=Plan(
                workers=count,
                num_trials=trials,
                seed=_whole("seed", seed, random_seed()),
                deterministic=deterministic,
                every_report_is_milestone=chosen.wants_every_report or bool(rules),
                max_failures=None if max_failures is None else _whole("max_failures", max_failures),
                fail_fast=0 if params is not None else 3,
                trial_timeout_s=_positive("trial_timeout_s", trial_timeout_s),
                timeout_s=_positive("timeout_s", timeout_s),
            ),
            engine=place,
            project=project.prepare(),
            display=choose_display(quiet=quiet),
            version=__version__,
            direction=way,
            metric=metric or told.metric,
            params=dict(params) if params is not None else None,
            value_is_optional=params is not None,
            resources=needs,
            isolation=isolation,
            own_directory=working_directory == "trial",
            name=name,
            description=description,
            durability=durability,
            stop_rules=rules,
            callbacks=callbacks,
        )
    )
    return _judge(Result.from_record(record, folder), is_single=params is not None)


def load(experiment_id: str) -> Result:
    """Return the result of an earlier experiment, or of a running one as far as it has come.

    Args:
        experiment_id: An id, or the unique beginning or end of one.
    """
    root = project.current()
    folder = root.experiment(resolve(experiment_id, [(known, "") for known in reversed(list())]))
    return Result.from_record(read_record(folder), folder)


def list() -> builtins.list[str]:
    """Return the ids of all experiments of the project, oldest first."""
    root = project.current().experiments
    if not root.is_dir():
        return []
    return sorted(path.parent.name for path in root.glob("*/journal.jsonl"))


# -- understanding the arguments --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What the space, or the parameters given instead of one, tell."""

    space: Searchspace
    names: tuple[str, ...]
    optional_names: tuple[str, ...] = ()
    listed: builtins.list[Params] | None = None
    is_grid: bool = False
    direction: Direction | None = None
    metric: str | None = None
    num_trials: int | None = None
    workers: int | None = None


def _understand(space: SpaceLike | None, params: Mapping[str, Any] | None) -> _Told:
    if params is not None:
        if space is not None:
            raise InvalidInputError(
                "Both a space and params were given; give a space to search it, or params to run once."
            )
        check_plain(params)
        return _Told(space=Searchspace(), names=tuple(params), listed=[dict(params)])
    if isinstance(space, Searchspace):
        return _of_space(space)
    if isinstance(space, Mapping):
        return replace(_of_space(Searchspace(space)), is_grid=all(_is_choice(spec) for spec in space.values()))
    if isinstance(space, str | os.PathLike):
        # Parsers of files are not needed by most experiments, and their import delays every first trial.
        from cargobike.search.space_formats import read_space  # noqa: PLC0415

        file = read_space(Path(space))
        return replace(
            _of_space(file.space) if isinstance(file.space, Searchspace) else _of_sets(file.space),
            direction=file.direction,
            metric=file.metric,
            num_trials=file.num_trials,
            workers=file.workers,
        )
    if isinstance(space, Sequence):
        return _of_sets(read_sets(space))
    raise InvalidInputError(
        f"There is nothing to try: the space is {space!r}. Give a Searchspace, a dict of lists such as "
        '{"lr": [0.1, 0.01]}, a list of dicts or a path to a file; or params={…} for a single run.'
    )


def _of_space(space: Searchspace) -> _Told:
    sometimes = tuple(name for name, parameter in space.parameters.items() if parameter.condition)
    return _Told(space=space, names=space.names, optional_names=sometimes)


def _of_sets(sets: builtins.list[Params]) -> _Told:
    names = dict.fromkeys(name for given in sets for name in given)
    sometimes = tuple(name for name in names if any(name not in given for given in sets))
    return _Told(space=Searchspace(), names=tuple(names), optional_names=sometimes, listed=sets)


def _is_choice(spec: object) -> bool:
    return isinstance(spec, builtins.list) or type(spec).__name__ in ("ndarray", "range")


def _choose_optimizer(told: _Told, optimizer: str | AbstractOptimizer | None) -> AbstractOptimizer:
    if told.listed is not None:
        if optimizer is not None:
            raise InvalidInputError(
                f"optimizer={optimizer!r} was given, but the parameters to try are listed already; "
                "leave the optimizer out, or give a space."
            )
        return Listed(told.listed)
    return resolve_optimizer(optimizer or ("gridsearch" if told.is_grid else "randomsearch"))


def _number_of_trials(
    told: _Told, num_trials: int | None, timeout_s: float | None, optimizer: AbstractOptimizer
) -> int | None:
    if num_trials is not None:
        return _count("num_trials", num_trials)
    if told.listed is not None:
        return len(told.listed)
    if told.num_trials is not None:
        return told.num_trials
    own = getattr(optimizer, "num_trials", None)
    if isinstance(own, int):
        return own
    if optimizer.name == "gridsearch":
        counts = getattr(optimizer, "counts", None)
        return told.space.grid_size(counts)
    if optimizer.name == "randomsearch" and timeout_s is None:
        raise InvalidInputError(
            "It is not said how long to search; give num_trials=…, or timeout_s=… to search as long as that."
        )
    return None


def _number_of_workers(
    told: _Told, workers: int | None, trials: int | None, engine: Engine, resources: Resources
) -> int:
    asked = workers if workers is not None else told.workers
    if asked is not None:
        _count("workers", asked)
    room = engine.capacity(resources)
    if room < 1 or (resources.gpus and asked is not None and asked > room):
        raise InvalidInputError(
            f"{asked or 1} workers with {resources.gpus or 0:g} GPUs each were asked for, but there is room for "
            f"{room} here; ask for fewer workers or a smaller share, such as Resources(gpus=0.5)."
        )
    count = asked if asked is not None else room
    return count if trials is None else min(count, trials)


def _choose_engine(engine: str | Engine) -> Engine:
    if isinstance(engine, Engine):
        return engine
    if engine == "local":
        return LocalEngine()
    raise InvalidInputError(
        f'engine={engine!r} is not known; allowed are "local" or an engine object.{nearest(str(engine), ["local"])}'
    )


def _rules(early_stop: StopRule | Sequence[StopRule]) -> tuple[StopRule, ...]:
    rules = tuple(early_stop) if isinstance(early_stop, Sequence) else (early_stop,)
    for rule in rules:
        if not callable(getattr(rule, "judge", None)):
            raise InvalidInputError(
                f"early_stop={rule!r} is no stop rule; "
                "give an object with a method judge(trial, step, trials, direction)."
            )
    return rules


def _check_choices(**given: str) -> None:
    allowed = {
        "isolation": ("fresh", "reuse"),
        "working_directory": ("trial", "launch"),
        "durability": ("process", "power"),
        "direction": ("max", "min"),
    }
    mistakes = [
        f"{name}={value!r}; allowed are {' and '.join(map(repr, allowed[name]))}.{nearest(str(value), allowed[name])}"
        for name, value in given.items()
        if value not in allowed[name]
    ]
    if mistakes:
        raise InvalidInputError("Some arguments are not understood:", mistakes)


def _check_callbacks(callbacks: Sequence[Callback]) -> None:
    for callback in callbacks:
        if not callable(getattr(callback, "on_facts", None)):
            raise InvalidInputError(f"callbacks: {callback!r} has no method on_facts(facts); give objects that have.")


def _whole(name: str, given: object, default: int = 0) -> int:
    if given is None:
        return default
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise InvalidInputError(f"{name} must be a whole number of at least 0, {given!r} was given.")
    return given


def _count(name: str, given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise InvalidInputError(f"{name} must be a whole number of at least 1, {given!r} was given.")
    return given


def _positive(name: str, seconds: float | None) -> float | None:
    if seconds is not None and not seconds > 0:
        raise InvalidInputError(f"{name} must be above 0, {seconds!r} was given; leave it out for no limit.")
    return seconds


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
