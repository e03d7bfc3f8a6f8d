"""The arguments of the public functions: read, checked before anything starts, and made into what the driver needs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.records import Direction, Params, Resources
from cargobike.core.values.plain import check_plain
from cargobike.engines.capabilities import ChecksWorkers
from cargobike.engines.engine import NO_LIMIT, Engine
from cargobike.experiments.driving.request import Callback
from cargobike.search.optimizers.listed import read_sets
from cargobike.search.optimizers.optimizer import AbstractOptimizer
from cargobike.search.spaces.space import Searchspace

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
        return at_least_one("num_trials", num_trials)
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


def check_callbacks(callbacks: Sequence[Callback]) -> None:
    """Refuse callbacks that cannot be called."""
    for callback in callbacks:
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


def positive(name: str, seconds: float | None) -> float | None:
    """Return a length of time, refusing one that is not above 0."""
    if seconds is not None and not seconds > 0:
        raise InvalidInputError(f"{name} must be above 0, {seconds!r} was given; leave it out for no limit.")
    return seconds
