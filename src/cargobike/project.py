"""Where a project lies: `.cargobike/` in the working directory unless chosen otherwise."""

from __future__ import annotations

from cargobike.experiments.finding import experiment_ids, find_experiment
from cargobike.store.files.project import current, path, prepare, use

__all__ = ["current", "experiment_ids", "find_experiment", "path", "prepare", "use"]
