"""Somebody holds the index's file for ever: searches do not care, and who looks is told."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cargobike import experiment
from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.records import TrialState
from cargobike.experiments.index.opening import open_index
from cargobike.store.index import database


def train(x: int) -> float:
    return float(x)


def test_a_locked_index_holds_up_no_search_and_whoever_looks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.3)
    project = ProjectFolder(tmp_path)
    first = experiment.launch(train, {"x": [1, 2, 3]}, quiet=True)
    with closing(open_index(project)) as index:
        index.sync()
        assert [found for found, _ in index.names()] == [first.id]
    with closing(sqlite3.connect(project.index, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        second = experiment.launch(train, {"x": [1, 2, 3, 4]}, workers=2, quiet=True)
        assert sorted(trial.value or 0 for trial in second.trials) == [1.0, 2.0, 3.0, 4.0]
        with closing(open_index(project)) as index, pytest.raises(StoreError, match="database is locked"):
            index.sync()
    with closing(open_index(project)) as index:
        index.sync()
        assert {found for found, _ in index.names()} == {first.id, second.id}
        assert index.experiment(second.id).counts[TrialState.COMPLETED] == 4
