"""Names under which modules were known before, for imports in old scripts and for pickles of old experiments.

Internal. Recipes and functions that were recorded name the modules that their objects come from. An import of a former
name gives the module under its present name.
"""

from __future__ import annotations

import importlib
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

FORMER_NAMES: Final = {
    "cargobike.driver.arguments": "cargobike.experiments.asking.arguments",
    "cargobike.driver.plan": "cargobike.experiments.scheduling.plan",
    "cargobike.driver.recipe": "cargobike.experiments.asking.recipe",
    "cargobike.driver.request": "cargobike.experiments.driving.request",
    "cargobike.driver.simulation": "cargobike.experiments.scheduling.simulation",
    "cargobike.search.ablation": "cargobike.search.optimizers.ablation",
    "cargobike.search.asha": "cargobike.search.optimizers.asha",
    "cargobike.search.auto": "cargobike.search.optimizers.auto",
    "cargobike.search.bohb": "cargobike.search.optimizers.bohb",
    "cargobike.search.cloudml": "cargobike.search.spaces.cloudml",
    "cargobike.search.combinations": "cargobike.search.spaces.combinations",
    "cargobike.search.conditions": "cargobike.search.spaces.conditions",
    "cargobike.search.contrast": "cargobike.search.models.contrast",
    "cargobike.search.dehb": "cargobike.search.optimizers.dehb",
    "cargobike.search.differential_evolution": "cargobike.search.optimizers.differential_evolution",
    "cargobike.search.documents": "cargobike.search.spaces.documents",
    "cargobike.search.encoding": "cargobike.search.spaces.encoding",
    "cargobike.search.fronts": "cargobike.search.models.fronts",
    "cargobike.search.gaussian": "cargobike.search.models.gaussian",
    "cargobike.search.gridsearch": "cargobike.search.optimizers.gridsearch",
    "cargobike.search.hyperband": "cargobike.search.optimizers.hyperband",
    "cargobike.search.improvement": "cargobike.search.models.improvement",
    "cargobike.search.listed": "cargobike.search.optimizers.listed",
    "cargobike.search.optimizer": "cargobike.search.optimizers.optimizer",
    "cargobike.search.optuna_bridge": "cargobike.search.optimizers.optuna_bridge",
    "cargobike.search.parameter": "cargobike.search.spaces.parameter",
    "cargobike.search.parzen": "cargobike.search.models.parzen",
    "cargobike.search.pbt": "cargobike.search.optimizers.pbt",
    "cargobike.search.randomsearch": "cargobike.search.optimizers.randomsearch",
    "cargobike.search.registry": "cargobike.search.optimizers.registry",
    "cargobike.search.repeat": "cargobike.search.optimizers.repeat",
    "cargobike.search.rungs": "cargobike.search.models.rungs",
    "cargobike.search.sagemaker": "cargobike.search.spaces.sagemaker",
    "cargobike.search.sampler": "cargobike.search.models.sampler",
    "cargobike.search.scales": "cargobike.search.spaces.scales",
    "cargobike.search.sobol": "cargobike.search.optimizers.sobol",
    "cargobike.search.space": "cargobike.search.spaces.space",
    "cargobike.search.space_file": "cargobike.search.spaces.file",
    "cargobike.search.space_formats": "cargobike.search.spaces.formats",
    "cargobike.search.specs": "cargobike.search.spaces.specs",
    "cargobike.search.standing": "cargobike.search.models.standing",
    "cargobike.search.stop_rule": "cargobike.search.rules.stop_rule",
    "cargobike.search.stop_rules": "cargobike.search.rules.stop_rules",
    "cargobike.search.tpe": "cargobike.search.optimizers.tpe",
    "cargobike.search.values": "cargobike.search.spaces.values",
    "cargobike.store.comparison": "cargobike.experiments.results.comparison",
    "cargobike.store.fold": "cargobike.journals",
    "cargobike.store.opening": "cargobike.experiments.index.opening",
    "cargobike.worker.context": "cargobike.experiments.trial.context",
    "cargobike.worker.payload": "cargobike.experiments.trial.payload",
    "cargobike.worker.shard": "cargobike.data.shard",
}
"""Names in published documentation and in recorded experiments; a former package stands for all its modules."""

_GONE: Final = frozenset({"cargobike.driver", "cargobike.worker"})


class _Loader:
    """Makes modules that forward to the module of the present name."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        present = FORMER_NAMES.get(spec.name)
        return ModuleType(spec.name) if present is None else _Alias(spec.name, present)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        pass  # it is executed under its present name


class _Alias(ModuleType):
    """A module that forwards to the module of another name."""

    def __init__(self, name: str, present: str) -> None:
        super().__init__(name, f"Former name of {present}.")
        self._present = importlib.import_module(present)

    def __getattr__(self, name: str) -> object:
        return getattr(self._present, name)


def find_former(name: str) -> ModuleSpec | None:
    """Return how to load a module by its former name; `None` if there was no such name."""
    if name in _GONE:
        return ModuleSpec(name, _Loader(), is_package=True)  # type: ignore[arg-type]  # it has what a loader needs
    return ModuleSpec(name, _Loader()) if name in FORMER_NAMES else None  # type: ignore[arg-type]
