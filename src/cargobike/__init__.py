"""Carry one plain Python function from a laptop to a cluster: search it, distribute it, remember it.

The names below load their modules when first used, so that `import cargobike` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cargobike.core.version import __version__

if TYPE_CHECKING:
    from cargobike import devices, experiment, project, tensorboard, trial
    from cargobike.core.records import IDLE, Resources, Suggestion, Trial
    from cargobike.search.ask_tell import Search
    from cargobike.search.optimizer import AbstractOptimizer
    from cargobike.search.space import Searchspace

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

_DOORS = frozenset({"devices", "experiment", "keras", "project", "tensorboard", "torch", "trial"})
"""Not all are in `__all__`: opening those of a framework imports it."""
_NAMES = {
    "IDLE": "cargobike.core.records",
    "AbstractOptimizer": "cargobike.search.optimizer",
    "Resources": "cargobike.core.records",
    "Search": "cargobike.search.ask_tell",
    "Searchspace": "cargobike.search.space",
    "Suggestion": "cargobike.core.records",
    "Trial": "cargobike.core.records",
}


def __getattr__(name: str) -> Any:
    if name in _DOORS:
        return importlib.import_module(f"cargobike.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'cargobike' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
