"""Where a project lies: `.cargobike/` in the working directory or above, unless chosen otherwise; what is in it."""

from __future__ import annotations

from cargobike.core.layout import ExperimentFolder, ProjectFolder
from cargobike.experiments.finding import experiment_ids, find_experiment
from cargobike.experiments.index.index import ExperimentRow, Index, TrialRow, Where
from cargobike.experiments.index.opening import open_index
from cargobike.store.files.project import current, path, prepare, use

__all__ = [
    "ExperimentFolder",
    "ExperimentRow",
    "Index",
    "ProjectFolder",
    "TrialRow",
    "Where",
    "current",
    "experiment_ids",
    "find_experiment",
    "open_index",
    "path",
    "prepare",
    "use",
]
