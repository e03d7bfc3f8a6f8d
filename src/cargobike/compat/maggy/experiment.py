"""Maggy's `experiment`: `launch` of 0.1, and `lagom` of all versions since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cargobike.compat.maggy.config import (
    AblationConfig,
    BaseConfig,
    HyperparameterOptConfig,
    LagomConfig,
    TfDistributedConfig,
    TorchDistributedConfig,
)
from cargobike.compat.maggy.running.calling import OBJECTS
from cargobike.compat.maggy.running.searching import Search, run_search
from cargobike.compat.maggy.searchspace import Searchspace
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError, nearest
from cargobike.core.registering.lazy import load
from cargobike.experiment import load as own_load

__all__ = ["lagom", "launch"]

_ROOM = "cargobike.compat.maggy.running"
_TYPES = ("optimization", "ablation")


class ConfigTypeError(InvalidInputError, TypeError):
    """What was given is no configuration: Maggy raised a TypeError."""


class ExperimentTypeError(InvalidInputError, RuntimeError):
    """There is no such kind of experiment: Maggy raised a RuntimeError."""


@formerly("maggy.experiment.launch")
def launch(
    map_fun: Callable[..., Any],
    searchspace: Searchspace | None = None,
    optimizer: Any = None,
    direction: str = "max",
    num_trials: int = 1,
    name: str = "",
    hb_interval: int = 1,
    es_policy: Any = "median",
    es_interval: int = 300,
    es_min: int = 10,
    **ours: Any,
) -> dict[str, Any]:
    """Search a function, as Maggy 0.1 did.

    Args:
        map_fun: The train function: it takes the parameters by name, and a `reporter`.
        searchspace: What to search.
        optimizer: A name or an object.
        direction: `"max"` or `"min"`.
        num_trials: How many trials.
        name: The experiment's name.
        hb_interval: Means nothing here.
        es_policy: `"median"`, `"none"` or a policy of your own.
        es_interval: At which steps it is asked.
        es_min: After how many finished trials it is asked.
        **ours: Arguments of `cargobike.experiment.launch`, such as `workers` and `engine`.

    Returns:
        The best and the worst trial under the names of all versions, the average and the numbers of trials.
    """
    preset = getattr(optimizer, "searchspace", None)
    space = searchspace if searchspace is not None else preset
    asked = Search(
        searchspace=space if isinstance(space, Searchspace) else searchspace,
        optimizer=optimizer,
        direction=direction,
        num_trials=num_trials,
        name=name,
        es_policy=es_policy,
        es_interval=es_interval,
        es_min=es_min,
    )
    return run_search(map_fun, asked, ours)


@formerly("maggy.experiment.lagom")
def lagom(
    train_fn: Callable[..., Any] | None = None,
    config: Any = None,
    *,
    map_fun: Callable[..., Any] | None = None,
    name: str | None = None,
    experiment_type: str = "optimization",
    searchspace: Searchspace | None = None,
    optimizer: Any = None,
    direction: str | None = None,
    num_trials: int | None = None,
    ablation_study: Any = None,
    ablator: Any = None,
    optimization_key: str = "metric",
    hb_interval: int = 1,
    es_policy: Any = "median",
    es_interval: int = 1,
    es_min: int = 10,
    description: str = "",
    **ours: Any,
) -> Any:
    """Run what a configuration describes, as Maggy 1.x did, or what the arguments say, as versions before did.

    Args:
        train_fn: The train function.
        config: A configuration, whose class decides; with older versions the name.
        map_fun: The train function, as older versions called it.
        name: The experiment's name.
        experiment_type: `"optimization"` or `"ablation"`.
        searchspace: What to search; nothing for a single run.
        optimizer: A name or an object.
        direction: `"max"` or `"min"`.
        num_trials: How many trials.
        ablation_study: What to leave out.
        ablator: `"loco"`, or an ablator of your own.
        optimization_key: What the number to optimize is called in a returned dict.
        hb_interval: Means nothing here.
        es_policy: `"median"`, `"none"` or a policy of your own.
        es_interval: At which steps it is asked.
        es_min: After how many finished trials it is asked.
        description: A sentence about it.
        **ours: Arguments of `cargobike.experiment.launch` (or `allreduce`, if a training is distributed).

    Returns:
        A dict with the best and the worst trial; of a training in torch its mean over all ranks as `"test result"`, of
        one in TensorFlow a list with what each rank returned.
    """
    function = train_fn if train_fn is not None else map_fun
    if function is None:
        raise ConfigTypeError("lagom needs a train function: lagom(train_fn, config).")
    if isinstance(config, LagomConfig):
        return _run(function, config, ours)
    if isinstance(config, str):
        name = config
    elif isinstance(config, Searchspace):
        searchspace = config
    elif config is not None:
        raise ConfigTypeError(
            f"config={config!r} ({type(config).__name__}): give a configuration of maggy.config, such as "
            "HyperparameterOptConfig(…)."
        )
    if experiment_type not in _TYPES:
        hint = nearest(experiment_type, _TYPES)
        raise ExperimentTypeError(f"experiment_type={experiment_type!r}; allowed are {' and '.join(_TYPES)}.{hint}")
    if experiment_type == "ablation":
        return _ablate(
            function,
            AblationConfig(ablation_study, ablator or "loco", direction or "max", name or "", description),
            ours,
        )
    asked = Search(
        searchspace=searchspace,
        optimizer=optimizer,
        direction=direction,
        num_trials=1 if num_trials is None else num_trials,
        name=name or "",
        description=description,
        key=optimization_key,
        es_policy=es_policy,
        es_interval=es_interval,
        es_min=es_min,
    )
    return run_search(function, asked, ours)


def _run(train_fn: Callable[..., Any], config: LagomConfig, ours: dict[str, Any]) -> Any:
    """Run what a configuration describes."""
    if isinstance(config, HyperparameterOptConfig):
        return run_search(train_fn, _search_of(config), ours)
    if isinstance(config, AblationConfig):
        return _ablate(train_fn, config, ours)
    if isinstance(config, TorchDistributedConfig):
        return load(f"{_ROOM}.torch_ranks:run_torch")(train_fn, config, ours)
    if isinstance(config, TfDistributedConfig):
        return load(f"{_ROOM}.tensorflow_ranks:run_tensorflow")(train_fn, config, ours)
    if not isinstance(config, BaseConfig):
        raise ConfigTypeError(f"{type(config).__name__} is a LagomConfig of no kind that can be run.")
    found = run_search(train_fn, Search(name=config.name, description=config.description), ours)
    metrics = own_load(found["experiment_id"]).trials[0].metrics
    return {**found, "test result": {name: [value] for name, value in metrics.items()}}


def _search_of(config: HyperparameterOptConfig) -> Search:
    return Search(
        searchspace=config.searchspace,
        optimizer=config.optimizer,
        direction=config.direction,
        num_trials=config.num_trials,
        name=config.name,
        description=config.description,
        key=config.optimization_key,
        es_policy=config.es_policy,
        es_interval=config.es_interval,
        es_min=config.es_min,
        objects={name: getattr(config, name) for name in OBJECTS if hasattr(config, name)},
    )


def _ablate(train_fn: Callable[..., Any], config: AblationConfig, ours: dict[str, Any]) -> Any:
    return load(f"{_ROOM}.ablating:run_ablation")(train_fn, config, ours)
