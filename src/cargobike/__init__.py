"""Carry one plain Python function from a laptop to a cluster: search it, distribute it, remember it.

The names below load their modules when first used, so that `import cargobike` costs next to nothing. Public are these
names, and what the modules in `_DOORS` have in their `__all__`; other modules are internal and may move at any time.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from cargobike.core.package import load_msgspec
from cargobike.core.version import __version__

if TYPE_CHECKING:
    from cargobike import devices, experiment, project, tensorboard, trial
    from cargobike.core.records import IDLE, Resources, Suggestion, Trial
    from cargobike.search.ask_tell import Search
    from cargobike.search.optimizers.optimizer import AbstractOptimizer
    from cargobike.search.spaces.space import Searchspace

__all__ = [
    "IDLE",
    "AbstractOptimizer",
    "Resources",
    "Search",
    "Searchspace",
    "Suggestion",
    "Trial",
    "__version__",
    "devices",
    "experiment",
    "project",
    "tensorboard",
    "trial",
]

_DOORS = frozenset(
    {
        "callbacks",
        "client",
        "compat",
        "dashboard",
        "data",
        "devices",
        "engines",
        "errors",
        "experiment",
        "features",
        "journals",
        "keras",
        "models",
        "monitoring",
        "optimizers",
        "pipelines",
        "products",
        "project",
        "results",
        "serving",
        "sharing",
        "simulation",
        "sklearn",
        "spaces",
        "spark",
        "stop_rules",
        "storage",
        "tensorboard",
        "testing",
        "torch",
        "trial",
    }
)
"""The public modules. Not all are in `__all__`: those of a framework import it, and the others are rarely needed."""
_NAMES = {
    "IDLE": "cargobike.core.records",
    "AbstractOptimizer": "cargobike.search.optimizers.optimizer",
    "Resources": "cargobike.core.records",
    "Search": "cargobike.search.ask_tell",
    "Searchspace": "cargobike.search.spaces.space",
    "Suggestion": "cargobike.core.records",
    "Trial": "cargobike.core.records",
}


def __getattr__(name: str) -> Any:
    if name in _DOORS:
        load_msgspec()
        return importlib.import_module(f"cargobike.{name}")
    if name in _NAMES:
        load_msgspec()
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'cargobike' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_DOORS})


class _FormerNames:
    """Finds modules by former names; asked last, after all other finders."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> Any:
        if not name.startswith("cargobike."):
            return None
        return importlib.import_module("cargobike.former_names").find_former(name)


sys.meta_path.append(_FormerNames)
