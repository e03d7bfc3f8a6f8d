"""`hops.experiment` over `cargobike.experiment`: single runs, searches and distributed training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cargobike import experiment as ours
from cargobike.compat.hops.allreduce import launch as launch_program
from cargobike.compat.hops.translating.arguments import direction_of, lists_of, name_of, runs_of, space_of
from cargobike.compat.hops.translating.custom import begin, end
from cargobike.compat.hops.translating.distributing import Training, distribute
from cargobike.compat.hops.translating.functions import METRIC, checked, keeping_files, scoring
from cargobike.compat.hops.translating.place import Place
from cargobike.compat.hops.translating.resources import fetched
from cargobike.compat.hops.translating.returned import Returned, outputs_of, path_of, returns_as_before
from cargobike.compat.hops.translating.spelling import spelled
from cargobike.compat.noticing import notice
from cargobike.optimizers import AbstractOptimizer, DifferentialEvolution, RandomSearch
from cargobike.spaces import Searchspace

__all__ = [
    "Direction",
    "allreduce",
    "begin",
    "collective_all_reduce",
    "differential_evolution",
    "end",
    "evolutionary_search",
    "grid_search",
    "horovod",
    "launch",
    "mirrored",
    "parameter_server",
    "random_search",
]


class Direction:
    """Whether more is better."""

    MAX = "MAX"
    MIN = "MIN"


# Until 1.0 `versioned_resources` stood before `description`: a list in its place says so.


@spelled("hops.experiment.launch", map_fun="train_fn")
def launch(
    train_fn: object = None,
    args_dict: object = None,
    name: object = "no-name",
    local_logdir: object = False,
    description: object = None,
    metric_key: Any = None,
    *,
    versioned_resources: Sequence[str] | None = None,
    spark: object = None,
) -> Any:
    """Run a train function once, or once for each set of arguments.

    Lists of equal length are taken row by row; of unequal ones all combinations are run.

    Returns:
        The path of the experiment, which unpacks into the path and the outputs: a dict of one run, a list for several.
    """
    resources, description, key = _old_order(versioned_resources, description, metric_key)
    function = checked(train_fn, "launch")
    said: Any = {
        "name": name_of(name),
        "description": str(description or ""),
        "engine": Place(spark).engine,
        "workers": Place(spark).workers,
    }
    runs = None if args_dict is None else runs_of(lists_of(args_dict, "experiment.launch"))
    with fetched(resources) as kept:
        if runs is None:
            result = ours.launch(keeping_files(function), params={}, metric=key, versioned_resources=kept, **said)
            return Returned(path_of(result), (outputs_of(result, result.trials[0]),), result)
        train = scoring(function, key, needs_score=False)
        result = ours.launch(train, runs, metric=key or METRIC, versioned_resources=kept, **said)
    outputs = [outputs_of(result, trial) for trial in result.trials if not trial.error]
    return Returned(path_of(result), (outputs[0] if len(result.trials) == 1 and outputs else outputs,), result)


@spelled("hops.experiment.grid_search", map_fun="train_fn", args_dict="grid_dict")
def grid_search(
    train_fn: object = None,
    grid_dict: object = None,
    direction: object = Direction.MAX,
    name: object = "no-name",
    local_logdir: object = False,
    description: object = None,
    optimization_key: Any = METRIC,
    *,
    versioned_resources: Sequence[str] | None = None,
    spark: object = None,
) -> Any:
    """Try all combinations of listed values.

    Returns:
        The path of the best trial, which unpacks into the path, its parameters and its outputs.
    """
    resources, description, key = _old_order(versioned_resources, description, optimization_key)
    space = lists_of(grid_dict, "experiment.grid_search")
    said = _Said(name_of(name), str(description or ""), spark, resources)
    return _searched("grid_search", train_fn, space, direction, key, said)


@spelled("hops.experiment.random_search", map_fun="train_fn")
def random_search(
    train_fn: object = None,
    boundary_dict: object = None,
    direction: object = Direction.MAX,
    samples: int = 10,
    name: object = "no-name",
    local_logdir: object = False,
    description: object = None,
    optimization_key: Any = METRIC,
    *,
    versioned_resources: Sequence[str] | None = None,
    spark: object = None,
) -> Any:
    """Try random points: integers with both ends, floats evenly.

    Returns:
        The path of the best trial, which unpacks into the path, its parameters and its outputs.
    """
    resources, description, key = _old_order(versioned_resources, description, optimization_key)
    space = space_of(boundary_dict, "experiment.random_search")
    said = _Said(name_of(name), str(description or ""), spark, resources)
    return _searched("random_search", train_fn, space, direction, key, said, RandomSearch(), samples)


@spelled(
    "hops.experiment.differential_evolution", map_fun="train_fn", objective_function="train_fn", popsize="population"
)
def differential_evolution(
    train_fn: object = None,
    boundary_dict: object = None,
    direction: object = None,
    generations: int | None = None,
    population: int | None = None,
    mutation: float = 0.5,
    crossover: float = 0.7,
    name: object = "no-name",
    local_logdir: object = False,
    description: object = None,
    optimization_key: str | None = None,
    *,
    cleanup_generations: bool | None = None,
    versioned_resources: Sequence[str] | None = None,
    spark: object = None,
) -> Any:
    """Search by differential evolution, without generations that wait for their slowest trial.

    Returns:
        The path of the best trial, which unpacks into the path, its parameters and its outputs; for a call in the
        spelling of 1.0 and before into the path and the parameters.
    """
    is_new = optimization_key is not None or direction in {Direction.MAX, Direction.MIN}
    is_old = returns_as_before(is_new=is_new)
    size = population or (10 if is_old else 6)
    rounds = generations or (10 if is_old else 4)
    space = space_of(boundary_dict, "experiment.differential_evolution")
    said = _Said(name_of(name), str(description or ""), spark, versioned_resources)
    optimizer = DifferentialEvolution(size, crossover)
    key = optimization_key or METRIC
    returned = _searched(
        "differential_evolution", train_fn, space, direction, key, said, optimizer, size * (rounds + 1)
    )
    return Returned(str(returned), returned.parts[1:2], returned.result) if is_old else returned


def evolutionary_search(*args: Any, **kwargs: Any) -> Any:
    """Search by differential evolution, as it was called until 0.5."""
    notice("hops.experiment.evolutionary_search")
    return differential_evolution(*args, **kwargs)


@spelled("hops.experiment.collective_all_reduce", map_fun="train_fn")
def collective_all_reduce(
    train_fn: object = None,
    name: object = "no-name",
    local_logdir: object = False,
    description: object = None,
    evaluator: bool = False,
    metric_key: str | None = None,
    *,
    data: object = None,
    model: object = None,
    versioned_resources: Sequence[str] | None = None,
    spark: object = None,
) -> Any:
    """Train one function on all workers at once, which find each other by `TF_CONFIG` and what torch and JAX read.

    `data=…` gives each worker its share of a table, `model=…` goes to the function as it is.

    Returns:
        The path of the experiment, which unpacks into the path and the outputs of the chief.
    """
    _, description, _ = _old_order(versioned_resources, description, None)
    said = Training(name_of(name), str(description or ""), metric_key, evaluator, data, model)
    return distribute("collective_all_reduce", train_fn, said, spark)


def allreduce(*args: Any, **named: Any) -> Any:
    """Train one function on all workers at once, as it was called in September 2018."""
    notice("hops.experiment.allreduce")
    return collective_all_reduce(*args, **named)


@spelled("hops.experiment.mirrored", map_fun="train_fn")
def mirrored(
    train_fn: object = None,
    name: object = "no-name",
    local_logdir: object = False,
    description: object = None,
    evaluator: bool = False,
    metric_key: str | None = None,
    *,
    versioned_resources: Sequence[str] | None = None,
    spark: object = None,
) -> Any:
    """Train one function on all workers at once.

    Returns:
        The path of the experiment, which unpacks into the path and the outputs of the chief.
    """
    _, description, _ = _old_order(versioned_resources, description, None)
    said = Training(name_of(name), str(description or ""), metric_key, evaluator)
    return distribute("mirrored", train_fn, said, spark)


@spelled("hops.experiment.parameter_server", map_fun="train_fn")
def parameter_server(
    train_fn: object = None,
    name: object = "no-name",
    local_logdir: object = False,
    description: object = None,
    evaluator: bool = False,
    metric_key: str | None = None,
    *,
    versioned_resources: Sequence[str] | None = None,
    spark: object = None,
) -> Any:
    """Train one function on a chief, workers and parameter servers in TensorFlow's sense, told by `TF_CONFIG`.

    Returns:
        The path of the experiment, which unpacks into the path and the outputs of the chief.
    """
    _, description, _ = _old_order(versioned_resources, description, None)
    said = Training(name_of(name), str(description or ""), metric_key, evaluator)
    return distribute("parameter_server", train_fn, said, spark, with_servers=True)


@spelled("hops.experiment.horovod")
def horovod(notebook: str, *, spark: object = None) -> int:
    """Run a notebook or script on all workers at once, and return its exit status."""
    return launch_program(spark, notebook)


@dataclass(frozen=True, slots=True)
class _Said:
    """What is said about a search besides what is searched."""

    name: str
    description: str
    spark: object
    resources: Sequence[str] | None


def _searched(
    call: str,
    train: object,
    space: Searchspace | dict[str, list[Any]],
    direction: object,
    key: object,
    said: _Said,
    optimizer: AbstractOptimizer | None = None,
    num_trials: int | None = None,
) -> Returned:
    metric = str(key or METRIC)
    with fetched(said.resources) as kept:
        result = ours.launch(
            scoring(checked(train, call), metric, needs_score=True),
            space,
            optimizer=optimizer,
            num_trials=num_trials,
            direction=direction_of(direction or Direction.MAX),
            metric=metric,
            name=said.name,
            description=said.description,
            engine=Place(said.spark).engine,
            workers=Place(said.spark).workers,
            versioned_resources=kept,
        )
    best = result.best
    if best is None:
        return Returned(path_of(result), ({}, None), result)
    return Returned(path_of(result, best), (dict(best.params), outputs_of(result, best)), result)


def _old_order(
    resources: Sequence[str] | None, description: object, key: Any
) -> tuple[Sequence[str] | None, object, Any]:
    """Return resources, description and key, where a list in the place of the description means the old order."""
    if isinstance(description, list | tuple):
        return description, key if isinstance(key, str) and key != METRIC else None, None
    return resources, description, key
