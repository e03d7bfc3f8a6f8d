"""Killed with kill -9 at the worst moment, a materialization and a training dataset leave a clean state."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from cargobike import features, project

_PROGRAM = """
import os, signal, sys
from cargobike import features, project
import cargobike.features.online.stores.sqlite as sqlite
import cargobike.features.datasets.claims as claims

def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)

project.use(sys.argv[1])
if sys.argv[2] == "materialize":
    sqlite.encode_state = die
    features.group("teams").materialize()
else:
    claims.commit_dataset = die
    labels = {"team_id": [1, 2], "at": ["2026-05-01"] * 2, "value": [1.0, 2.0]}
    features.view("team_value").create_training_dataset("team_value", labels)
"""


def die_in(root: Path, what: str) -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM, str(root), what], timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL


def test_what_was_there_before_stays_and_the_next_try_succeeds(tmp_path: Path) -> None:
    root = tmp_path / "project"
    project.use(root)
    try:
        teams = features.create_group("teams", key="team_id", event_time="at")
        teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [1.0, 2.0]})
        teams.materialize()
        teams.insert({"team_id": [1, 3], "at": ["2026-02-01"] * 2, "budget": [10.0, 30.0]})
        view = features.create_view("team_value", features=["budget"], label="value")

        die_in(root, "materialize")
        assert [vector["budget"] for vector in view.vectors([1, 2, 3])] == [1.0, 2.0, None]
        assert teams.verify().is_equal
        assert teams.materialize().rows == 2
        assert [vector["budget"] for vector in view.vectors([1, 2, 3])] == [10.0, 2.0, 30.0]
        view.close()

        die_in(root, "dataset")
        assert features.list_training_datasets() == []
        labels = {"team_id": [1, 2], "at": ["2026-05-01"] * 2, "value": [1.0, 2.0]}
        assert view.create_training_dataset("team_value", labels)["train"].num_rows == 2
    finally:
        project.use(None)
