"""Every optimizer, as a class, with the settings that a name such as `optimizer="asha"` leaves at their defaults.

A class is loaded when it is first asked for; some of them load NumPy.

Example:
    >>> from cargobike import Search, Searchspace
    >>> from cargobike.optimizers import ASHA
    >>> search = Search(Searchspace(x=("DOUBLE", [0, 1])), ASHA(resource_max=27), num_trials=9)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.core.records import IDLE, Decision, Suggestion
    from cargobike.search.models.sampler import ModelSampler, RandomSampler, Sampler
    from cargobike.search.optimizers.ablation import Ablation
    from cargobike.search.optimizers.asha import ASHA
    from cargobike.search.optimizers.auto import Auto
    from cargobike.search.optimizers.bohb import BOHB
    from cargobike.search.optimizers.dehb import DEHB, EvolutionSampler
    from cargobike.search.optimizers.differential_evolution import DifferentialEvolution
    from cargobike.search.optimizers.gridsearch import GridSearch
    from cargobike.search.optimizers.hyperband import Hyperband
    from cargobike.search.optimizers.listed import Listed
    from cargobike.search.optimizers.optimizer import AbstractOptimizer
    from cargobike.search.optimizers.optuna_bridge import CMAES, NSGA2, GaussianProcess, OptunaOptimizer
    from cargobike.search.optimizers.pbt import PopulationBasedTraining
    from cargobike.search.optimizers.randomsearch import RandomSearch
    from cargobike.search.optimizers.registry import optimizer_names
    from cargobike.search.optimizers.sobol import Sobol
    from cargobike.search.optimizers.tpe import TPE

__all__ = [
    "ASHA",
    "BOHB",
    "CMAES",
    "DEHB",
    "IDLE",
    "NSGA2",
    "TPE",
    "Ablation",
    "AbstractOptimizer",
    "Auto",
    "Decision",
    "DifferentialEvolution",
    "EvolutionSampler",
    "GaussianProcess",
    "GridSearch",
    "Hyperband",
    "Listed",
    "ModelSampler",
    "OptunaOptimizer",
    "PopulationBasedTraining",
    "RandomSampler",
    "RandomSearch",
    "Sampler",
    "Sobol",
    "Suggestion",
    "optimizer_names",
]

_SOURCES = {
    "ASHA": "cargobike.search.optimizers.asha",
    "BOHB": "cargobike.search.optimizers.bohb",
    "CMAES": "cargobike.search.optimizers.optuna_bridge",
    "DEHB": "cargobike.search.optimizers.dehb",
    "IDLE": "cargobike.core.records",
    "NSGA2": "cargobike.search.optimizers.optuna_bridge",
    "TPE": "cargobike.search.optimizers.tpe",
    "Ablation": "cargobike.search.optimizers.ablation",
    "AbstractOptimizer": "cargobike.search.optimizers.optimizer",
    "Auto": "cargobike.search.optimizers.auto",
    "Decision": "cargobike.core.records",
    "DifferentialEvolution": "cargobike.search.optimizers.differential_evolution",
    "EvolutionSampler": "cargobike.search.optimizers.dehb",
    "GaussianProcess": "cargobike.search.optimizers.optuna_bridge",
    "GridSearch": "cargobike.search.optimizers.gridsearch",
    "Hyperband": "cargobike.search.optimizers.hyperband",
    "Listed": "cargobike.search.optimizers.listed",
    "ModelSampler": "cargobike.search.models.sampler",
    "OptunaOptimizer": "cargobike.search.optimizers.optuna_bridge",
    "PopulationBasedTraining": "cargobike.search.optimizers.pbt",
    "RandomSampler": "cargobike.search.models.sampler",
    "RandomSearch": "cargobike.search.optimizers.randomsearch",
    "Sampler": "cargobike.search.models.sampler",
    "Sobol": "cargobike.search.optimizers.sobol",
    "Suggestion": "cargobike.core.records",
    "optimizer_names": "cargobike.search.optimizers.registry",
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES)


def __dir__() -> list[str]:
    return __all__
