"""The arguments of the public functions: read, checked before anything starts, and made into what the driver needs."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cargobike.core.asked import Asked, Limits
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.records import Direction, Params, Resources
from cargobike.core.values.kinds import read_flag, read_mapping, read_several, read_text
from cargobike.core.values.plain import check_plain
from cargobike.core.values.times import Seconds, read_seconds
from cargobike.engines.capabilities import ChecksWorkers
from cargobike.engines.engine import NO_LIMIT, Engine
from cargobike.experiments.driving.request import Callback
from cargobike.search.optimizers.listed import read_sets
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.spaces.space import Searchspace

log = logging.getLogger(__name__)

SpaceLike = Searchspace | Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | os.PathLike[str]


_CRUMB = 0.001
"""A share of a GPU so small that there is room for it wherever there is a GPU."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be tried, as the space or the parameters say, and what else a space's file may say."""

    space: Searchspace
    names: tuple[str, ...]
    optional_names: tuple[str, ...] = ()
    listed: list[Params] | None = None
    is_grid: bool = False
    direction: Direction | None = None
    metric: str | None = None
    num_trials: int | None = None
    workers: int | None = None


def space_or_preset(space: SpaceLike | None, params: object, optimizer: object) -> SpaceLike | None:
    """Return the space, or the one that an optimizer object was made with."""
    if space is None and params is None and isinstance(optimizer, AbstractOptimizer):
        return optimizer.preset_space
    return space


def understand_space(space: SpaceLike | None, params: Mapping[str, Any] | None) -> Subject:
    """Read the space, or the parameters of a single run."""
    if params is not None:
        if space is not None:
            raise InvalidInputError(
                "Both a space and params were given; give a space to search it, or params to run once."
            )
        check_plain(params, InvalidInputError)
        return Subject(space=Searchspace(), names=tuple(params), listed=[dict(params)])
    if isinstance(space, Searchspace):
        return _of_space(space)
    if isinstance(space, Mapping):
        is_grid = all(_is_choice(spec) for spec in space.values())
        return msgspec.structs.replace(_of_space(Searchspace(space)), is_grid=is_grid)
    if isinstance(space, str | os.PathLike):
        # Most experiments need no parser of files, and its import would delay the first trial.
        from cargobike.search.spaces.formats import read_space  # noqa: PLC0415

        file = read_space(Path(space))
        return msgspec.structs.replace(
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


def _of_space(space: Searchspace) -> Subject:
    sometimes = tuple(name for name, parameter in space.parameters.items() if parameter.condition)
    return Subject(space=space, names=space.names, optional_names=sometimes)


def _of_sets(sets: list[Params]) -> Subject:
    names = dict.fromkeys(name for params in sets for name in params)
    sometimes = tuple(name for name in names if any(name not in params for params in sets))
    return Subject(space=Searchspace(), names=tuple(names), optional_names=sometimes, listed=sets)


def _is_choice(spec: object) -> bool:
    return isinstance(spec, list) or type(spec).__name__ in ("ndarray", "range")


def number_of_trials(
    subject: Subject, num_trials: int | None, timeout_s: float | None, optimizer: AbstractOptimizer
) -> int | None:
    """Return how many trials to run, `None` for as many as the optimizer suggests."""
    if num_trials is not None:
        at_least_one("num_trials", num_trials)
        there = len(subject.listed) if subject.listed is not None else optimizer.count_trials(subject.space)
        if there is not None and num_trials > there:
            log.warning("num_trials=%d was asked for, but there are only %d to try.", num_trials, there)
        return num_trials
    if subject.listed is not None:
        return len(subject.listed)
    if subject.num_trials is not None:
        return subject.num_trials
    trials = optimizer.count_trials(subject.space)
    if trials is not None:
        return trials
    if optimizer.is_endless and timeout_s is None:
        raise InvalidInputError(
            "It is not clear how long to search; give num_trials=…, or timeout_s=… to search as long as that."
        )
    return None


def number_of_workers(
    subject: Subject, workers: int | None, trials: int | None, engine: Engine, resources: Resources, *, gang: int = 1
) -> int:
    """Return how many workers to start: a multiple of the gang, and no more than there can be."""
    asked = workers if workers is not None else subject.workers
    if runs_here(asked):
        check_here(engine, is_gang=gang > 1)
        return 0
    if asked is not None:
        at_least_one("workers", asked)
        if isinstance(engine, ChecksWorkers):
            engine.check_workers(asked if trials is None else min(asked, trials * gang), resources)
    room = engine.capacity(resources)
    if resources.gpus and room < 1 and engine.capacity(msgspec.structs.replace(resources, gpus=_CRUMB)) < 1:
        raise InvalidInputError(
            f"{resources.gpus:g} GPUs for each worker were asked for, but no GPU was found here; leave them out, "
            "or find out why with `cargobike doctor`: a missing driver, or CUDA_VISIBLE_DEVICES."
        )
    if room < 1 or (resources.gpus and asked is not None and asked > room):
        raise InvalidInputError(
            f"{asked or 1} workers with {resources.gpus or 0:g} GPUs each were asked for, but there is room for "
            f"{room} here; ask for fewer workers or a smaller share, such as Resources(gpus=0.5)."
        )
    if room >= NO_LIMIT and asked is None and trials is None:
        raise InvalidInputError(
            "There may be any number of workers here (Spark's dynamic allocation without a maximum); give workers=…."
        )
    wanted = asked if asked is not None else max(room, gang)
    if gang > 1 and asked is None and resources.gpus and room < gang:
        raise InvalidInputError(
            f"gang={gang} workers with {resources.gpus:g} GPUs each run one trial together, but there is room for "
            f"{room} here; ask for a smaller gang or a smaller share, such as Resources(gpus=0.5)."
        )
    wanted = wanted if trials is None else min(wanted, trials * gang)
    return wanted - wanted % gang if wanted >= gang else wanted


def runs_here(workers: object) -> bool:
    """Tell whether trials are to run in the driver's process: `workers=0`."""
    return type(workers) is int and workers == 0


def check_here(engine: Engine, *, is_gang: bool) -> None:
    """Refuse to run trials in the driver's process if they need more than that."""
    mistakes = []
    if is_gang:
        mistakes.append("ranks that train together need a process each")
    if engine.name != "local":
        mistakes.append(f"engine={engine.name!r} has workers; leave it out")
    if mistakes:
        raise InvalidInputError("workers=0 runs one trial after the other in this process:", mistakes)


def check_choices(**words: str) -> None:
    """Refuse words that are not allowed, all of them at once."""
    allowed = {
        "isolation": ("fresh", "reuse"),
        "working_directory": ("trial", "launch"),
        "durability": ("process", "power"),
        "direction": ("max", "min"),
    }
    mistakes = [
        f"{name}={value!r}; allowed are {' and '.join(map(repr, allowed[name]))}.{nearest(str(value), allowed[name])}"
        for name, value in words.items()
        if value not in allowed[name]
    ]
    if mistakes:
        raise InvalidInputError("Some arguments are not understood:", mistakes)


def read_params(given: Mapping[str, Any]) -> Params:
    """Return the parameters of a single run."""
    return read_mapping("params", given, "{'lr': 0.1}")


def read_constraints(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return limits on metrics, of which one may be given alone."""
    return (given,) if isinstance(given, str) else read_several("constraints", given, "['latency_ms <= 50']")


def check_words(asked: Asked, *, quiet: object) -> Asked:
    """Return what was asked for with its texts; refuse what is no text, and what is neither true nor false."""
    texts: dict[str, Any] = {"name": asked.name, "description": asked.description}
    texts = {name: "" if text is None else read_text(name, text) for name, text in texts.items()}
    if asked.aim.metric is not None:
        read_text("metric", asked.aim.metric)
    read_flag("deterministic", asked.search.deterministic)
    read_flag("tensorboard", asked.keeping.tensorboard)
    read_flag("quiet", quiet)
    return msgspec.structs.replace(asked, **texts)


def check_callbacks(callbacks: Sequence[Callback]) -> None:
    """Refuse callbacks that cannot be called."""
    for callback in read_several("callbacks", callbacks, "[MyCallback()]"):
        if not callable(getattr(callback, "on_facts", None)):
            raise InvalidInputError(f"callbacks: {callback!r} has no method on_facts(facts); give objects with one.")


def whole(name: str, value: object, default: int = 0) -> int:
    """Return a whole number of at least 0, refusing anything else."""
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInputError(f"{name} must be a whole number of at least 0, {value!r} was given.")
    return value


def at_least_one(name: str, value: object) -> int:
    """Return a whole number of at least 1, refusing anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInputError(f"{name} must be a whole number of at least 1, {value!r} was given.")
    return value


def read_limits(
    *,
    timeout_s: Seconds | None = None,
    trial_timeout_s: Seconds | None = None,
    stall_timeout_s: Seconds | None = None,
    max_failures: int | None = None,
) -> Limits:
    """Return when to give up, refusing what is no limit."""
    return Limits(
        timeout_s=read_seconds("timeout_s", timeout_s),
        trial_timeout_s=read_seconds("trial_timeout_s", trial_timeout_s),
        stall_timeout_s=read_seconds("stall_timeout_s", stall_timeout_s),
        max_failures=None if max_failures is None else whole("max_failures", max_failures),
    )


def read_resources(given: Resources | Mapping[str, Any] | None) -> Resources:
    """Return what each worker gets; a dict with the same names will do.

    Raises:
        InvalidInputError: If it cannot be used, with every mistake.
    """
    if given is None:
        return Resources()
    names = Resources.__struct_fields__
    if isinstance(given, Mapping):
        unknown = [f"{name!r} is unknown.{nearest(str(name), names)}" for name in given if name not in names]
        if unknown:
            raise InvalidInputError(f"resources={dict(given)!r} was given; it may have {' and '.join(names)}.", unknown)
        given = Resources(**given)
    if not isinstance(given, Resources):
        raise InvalidInputError(f"resources must be Resources(cpus=…, gpus=…), {given!r} was given.")
    mistakes = []
    if given.cpus is not None and (type(given.cpus) is not int or given.cpus < 1):
        mistakes.append(f"cpus={given.cpus!r}; give a whole number of at least 1, or None for a fair share")
    if given.gpus is not None and (type(given.gpus) not in (int, float) or not 0 <= given.gpus < math.inf):
        mistakes.append(f"gpus={given.gpus!r}; give a number of at least 0, such as 0.5, or None")
    if mistakes:
        raise InvalidInputError("resources cannot be used:", mistakes)
    return given
