"""Optimizers by name. An entry is a line of the table; its module is imported when it is asked for."""

from __future__ import annotations

import inspect
from typing import Final

from cargobike.core.asked import Named
from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.registry import Registry, plain_word
from cargobike.search.described import describe, is_whole, restore
from cargobike.search.optimizers.optimizer import AbstractOptimizer

_BAYESIAN = "Bayesian optimization is 'tpe' or 'auto' here, and 'gp' through Optuna."
_OPTUNA = "Through Optuna come 'gp', 'cmaes' and 'nsga2', and any sampler: OptunaOptimizer(sampler)."

OPTIMIZERS: Final = Registry(
    "optimizer",
    "cargobike.optimizers",
    {
        "randomsearch": "cargobike.search.optimizers.randomsearch:RandomSearch",
        "gridsearch": "cargobike.search.optimizers.gridsearch:GridSearch",
        "sobol": "cargobike.search.optimizers.sobol:Sobol",
        "listed": "cargobike.search.optimizers.listed:Listed",
        "auto": "cargobike.search.optimizers.auto:Auto",
        "tpe": "cargobike.search.optimizers.tpe:TPE",
        "bohb": "cargobike.search.optimizers.bohb:BOHB",
        "dehb": "cargobike.search.optimizers.dehb:DEHB",
        "de": "cargobike.search.optimizers.differential_evolution:DifferentialEvolution",
        "gp": "cargobike.search.optimizers.optuna_bridge:GaussianProcess",
        "cmaes": "cargobike.search.optimizers.optuna_bridge:CMAES",
        "nsga2": "cargobike.search.optimizers.optuna_bridge:NSGA2",
        "ablation": "cargobike.search.optimizers.ablation:Ablation",
        "asha": "cargobike.search.optimizers.asha:ASHA",
        "hyperband": "cargobike.search.optimizers.hyperband:Hyperband",
        "pbt": "cargobike.search.optimizers.pbt:PopulationBasedTraining",
    },
    aliases={
        "differentialevolution": "de",
        "gaussianprocess": "gp",
        "nsgaii": "nsga2",
        "random": "randomsearch",
        "grid": "gridsearch",
        "populationbasedtraining": "pbt",
    },
    foreign={
        **dict.fromkeys(("bayesian", "bayes", "bayesianoptimization", "bo", "modelbased"), _BAYESIAN),
        **dict.fromkeys(("ax", "axsearch", "botorch", "skopt", "bayesopt", "bayessearchcv", "gpsampler"), _BAYESIAN),
        **dict.fromkeys(("randomsampler", "randomizedsearchcv", "rand"), "That is 'random' here."),
        **dict.fromkeys(("gridsampler", "gridsearchcv", "bruteforcesampler"), "That is 'grid' here."),
        **dict.fromkeys(("qmcsampler", "quasirandom"), "That is 'sobol' here."),
        **dict.fromkeys(("ashascheduler", "asynchyperband"), "That is 'asha' here."),
        **dict.fromkeys(("hyperopt", "hyperoptsearch", "tpesampler"), "That is 'tpe' here."),
        **dict.fromkeys(("evolution", "evolutionary", "genetic", "ga"), "Those here are 'de', 'nsga2' and 'cmaes'."),
        **dict.fromkeys(("successivehalving", "sha", "halving"), "That is 'asha' here."),
        **dict.fromkeys(("optuna", "sampler", "optunasearch"), _OPTUNA),
        **dict.fromkeys(("median", "medianpruner", "pruner", "patience"), 'That is early_stop="median" or "patience".'),
    },
    otherwise="give an object of your own; OptunaOptimizer(sampler) takes any sampler of Optuna",
)
"""What `optimizer="…"` understands: to add one, add a line."""
_NOTHING = {"", "none", "null", "no", "off", "false", "single"}


def optimizer_names() -> tuple[str, ...]:
    """Return the names that `optimizer="…"` understands, without aliases."""
    return OPTIMIZERS.names()


def names_for_several_objectives() -> tuple[str, ...]:
    """Return the names of those of our optimizers that search for several objectives at once."""
    kinds = {name: OPTIMIZERS.find(name) for name in OPTIMIZERS.own}
    return tuple(
        name for name, kind in kinds.items() if getattr(kind, "handles_objectives", False) and name != "listed"
    )


def resolve_optimizer(given: object) -> AbstractOptimizer:
    """Return the optimizer that is meant by a name, a class or an object.

    Example:
        >>> resolve_optimizer("random").name
        'randomsearch'

    Raises:
        InvalidInputError: If there is no such optimizer; says which there are.
    """
    if isinstance(given, AbstractOptimizer):
        return given
    if isinstance(given, str):
        return _by_name(given)
    if isinstance(given, type) and issubclass(given, AbstractOptimizer):
        return _made(given)
    raise InvalidInputError(_refusal(given))


def describe_optimizer(optimizer: AbstractOptimizer) -> Named:
    """Return an optimizer as data."""
    return describe(optimizer, optimizer.settings, registered_as=OPTIMIZERS.own_name_of(type(optimizer)))


def restore_optimizer(told: Named) -> AbstractOptimizer:
    """Make a registered optimizer from what `describe_optimizer` told.

    Raises:
        InvalidInputError: If there is no such optimizer, or it has other settings now.
    """
    kind = _class_of(told.name)
    try:
        optimizer: AbstractOptimizer = restore(kind, told.settings)
    except TypeError as error:
        raise InvalidInputError(f"the optimizer {told} cannot be made: {error}") from error
    return optimizer


def is_told_whole(optimizer: AbstractOptimizer, told: Named) -> bool:
    """Tell whether the description of an optimizer is all that is needed to make it again."""
    return is_whole(optimizer, told, restore_optimizer, describe_optimizer)


def _by_name(given: str) -> AbstractOptimizer:
    if plain_word(given) in _NOTHING:
        raise InvalidInputError(_refusal(given))
    return _made(_class_of(given))


def _class_of(name: str) -> type[AbstractOptimizer]:
    kind = OPTIMIZERS.find(name)
    if not (isinstance(kind, type) and issubclass(kind, AbstractOptimizer)):
        raise InvalidInputError(f"the optimizer {name!r} stands for {kind!r}, which is not an AbstractOptimizer")
    return kind


def _made(optimizer: type[AbstractOptimizer]) -> AbstractOptimizer:
    if inspect.isabstract(optimizer):
        missing = ", ".join(sorted(getattr(optimizer, "__abstractmethods__", ())))
        raise InvalidInputError(f"the optimizer {optimizer.__name__} lacks the methods {missing}; define them")
    needed = [
        parameter.name
        for parameter in inspect.signature(optimizer).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise InvalidInputError(
            f"the optimizer {optimizer.__name__} cannot be made without {', '.join(needed)}; give an object: "
            f"optimizer={optimizer.__name__}({', '.join(f'{name}=…' for name in needed)})"
        )
    return optimizer()


def _refusal(given: object) -> str:
    names = ", ".join(sorted([*OPTIMIZERS.names(), *OPTIMIZERS.aliases]))
    if given is None or given is False or isinstance(given, str):
        return (
            f"optimizer={given!r} names no optimizer; for one run with fixed values pass params={{...}} and "
            f"leave the optimizer out, for a search choose one of {names}"
        )
    methods = ("initialize", "get_suggestion")
    if all(callable(getattr(given, method, None)) for method in methods):
        what = given.__name__ if isinstance(given, type) else type(given).__name__
        return f"{what} has the methods of an optimizer; make it a subclass of AbstractOptimizer as well"
    return f"optimizer={given!r} is not an optimizer; give one of {names}, or an object of your own"
