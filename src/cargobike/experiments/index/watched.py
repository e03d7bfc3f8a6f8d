"""What the index watches of experiments: their journals, their annotations, and whether their drivers live."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from cargobike.core.layout import ExperimentFolder
from cargobike.core.records import ExperimentState
from cargobike.core.registering.kinds import Kind
from cargobike.experiments.kind import EXPERIMENTS
from cargobike.store.files.locking import is_held
from cargobike.store.index.watched import Row, Watched

_OPEN: Final = {ExperimentState.RUNNING.value, ExperimentState.LOST.value}


class WatchedExperiments(Watched):
    """The journals of experiments."""

    product: ClassVar[str] = "experiments"
    version: ClassVar[int] = 10
    kind: ClassVar[Kind] = EXPERIMENTS
    table: ClassVar[str] = "experiments"
    compared: ClassVar[Sequence[str]] = ("state", "annotations_mtime_ns")

    def has_changed(self, folder: Path, row: Row) -> bool:
        """Tell whether an experiment got tags or notes, or its driver started or died without writing a fact."""
        experiment = ExperimentFolder(folder)
        if row["annotations_mtime_ns"] != annotated_at(experiment):
            return True
        return row["state"] in _OPEN and is_held(experiment) != (row["state"] == ExperimentState.RUNNING)


def annotated_at(folder: ExperimentFolder) -> int:
    """Return when an experiment got tags or notes last, 0 if it has none."""
    try:
        return folder.annotations.stat().st_mtime_ns
    except OSError:
        return 0
