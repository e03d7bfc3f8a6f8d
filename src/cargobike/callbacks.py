"""Callbacks that report what other frameworks measure, and end their training when a trial is to stop.

Each is loaded, with its framework, when it is first asked for. All of them also work outside an experiment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cargobike.core.registering.lazy import lazy_names

if TYPE_CHECKING:
    from cargobike.experiments.trial.callbacks.keras import KerasReport
    from cargobike.experiments.trial.callbacks.lightgbm import LightGBMReport
    from cargobike.experiments.trial.callbacks.lightning import LightningReport
    from cargobike.experiments.trial.callbacks.sklearn import FoldsReport, SklearnReport
    from cargobike.experiments.trial.callbacks.transformers import TransformersReport
    from cargobike.experiments.trial.callbacks.xgboost import XGBoostReport

__all__ = [
    "FoldsReport",
    "KerasReport",
    "LightGBMReport",
    "LightningReport",
    "SklearnReport",
    "TransformersReport",
    "XGBoostReport",
]

_ROOM = "cargobike.experiments.trial.callbacks"
_SOURCES = {
    "FoldsReport": f"{_ROOM}.sklearn",
    "KerasReport": f"{_ROOM}.keras",
    "LightGBMReport": f"{_ROOM}.lightgbm",
    "LightningReport": f"{_ROOM}.lightning",
    "SklearnReport": f"{_ROOM}.sklearn",
    "TransformersReport": f"{_ROOM}.transformers",
    "XGBoostReport": f"{_ROOM}.xgboost",
}

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    __getattr__ = lazy_names(__name__, _SOURCES)


def __dir__() -> list[str]:
    return __all__
