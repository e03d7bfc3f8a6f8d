"""What a writer of a training dataset leaves when it is killed is not seen, and gone after the next write."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cargobike import features, project
from cargobike.core.errors import StoreError
from cargobike.features.datasets import claims, writing
from cargobike.features.datasets.claims import Claim, sweep
from cargobike.features.datasets.record import DatasetRecord
from cargobike.store.files.storages import open_storage

LABELS = {"team_id": [1, 2], "at": ["2026-05-01"] * 2, "value": [1.0, 2.0]}

_PROGRAM = """
import os, signal, sys
from cargobike import features, project
import cargobike.features.datasets.claims as claims
import cargobike.features.datasets.writing as writing

def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)

def then_die(function):
    return lambda *given: (function(*given), die())

project.use(sys.argv[1])
moment = sys.argv[2]
if moment == "claimed":
    writing._write_part = die
elif moment == "half written":
    writing._write_part = then_die(writing._write_part)
elif moment == "fitted":
    writing.keep_fitted = then_die(writing.keep_fitted)
elif moment == "about to commit":
    claims.commit_dataset = die
elif moment == "committed":
    claims.commit_dataset = then_die(claims.commit_dataset)
labels = {"team_id": [1, 2], "at": ["2026-05-01"] * 2, "value": [1000.0, 2000.0]}
features.view("team_value").create_training_dataset("season", labels, format="csv")
"""


@pytest.fixture
def view() -> features.View:
    teams = features.create_group("teams", key="team_id", event_time="at", online=True)
    teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [1.0, 5.0]})
    return features.create_view(
        "team_value", features=["budget"], label="value", transformations={"budget": "standardize"}
    )


def killed(moment: str) -> None:
    command = [sys.executable, "-c", _PROGRAM, str(project.current().root), moment]
    assert subprocess.run(command, timeout=120, check=False).returncode == -signal.SIGKILL


def files() -> set[str]:
    """Return what lies in the project about training datasets, but not the files of tables."""
    root = project.current().root
    found = [*root.glob("datasets/**/*"), *root.glob("views/*/*/fitted/*")]
    return {str(path.relative_to(root)) for path in found if path.is_file()}


@pytest.mark.parametrize("moment", ["claimed", "half written", "fitted", "about to commit"])
def test_what_a_killed_writer_left_is_swept_by_the_next_write(view: features.View, moment: str) -> None:
    killed(moment)
    assert "datasets/season/1/claim" in files()
    assert features.list_training_datasets() == []
    assert view.fitted() is None, "what was fitted for a dataset that is not there does not count"

    dataset = view.create_training_dataset("another", LABELS)
    left = {path for path in files() if "season" in path}
    assert left == set()
    assert not (project.current().root / "datasets" / "season").exists()
    again = view.create_training_dataset("season", LABELS)
    assert (again.version, again["train"].to_pandas()["value"].tolist()) == (1, [1.0, 2.0])
    assert again["train"].to_pandas()["budget"].tolist() == dataset["train"].to_pandas()["budget"].tolist()
    assert view.fitted_on("season:1").vector(team_id=1)["budget"] == -1.0


def test_a_version_that_was_committed_by_a_killed_writer_stays(view: features.View) -> None:
    killed("committed")
    first = features.training_dataset("season")
    assert (first.version, first["train"].to_pandas()["value"].tolist()) == (1, [1000.0, 2000.0])
    second = view.create_training_dataset("season", LABELS)
    assert second.version == 2
    assert not {path for path in files() if path.endswith(".end")}
    assert features.training_dataset("season:1")["train"].to_pandas()["value"].tolist() == [1000.0, 2000.0]


def test_a_writer_that_lives_is_left_alone(view: features.View, monkeypatch: pytest.MonkeyPatch) -> None:
    written, go_on = threading.Event(), threading.Event()
    whole = writing._write_part

    def slow(*given: Any) -> Any:
        part = whole(*given)
        if threading.current_thread() is not threading.main_thread():
            written.set()
            assert go_on.wait(60)
        return part

    monkeypatch.setattr(writing, "_write_part", slow)
    other = threading.Thread(target=lambda: view.create_training_dataset("season", {**LABELS, "value": [7.0, 8.0]}))
    other.start()
    try:
        assert written.wait(60)
        assert sweep(view.storage) == []
        mine = view.create_training_dataset("season", LABELS)
    finally:
        go_on.set()
        other.join(60)
    assert mine.version == 2
    values = [one["train"].to_pandas()["value"].tolist() for one in features.list_training_datasets()]
    assert values == [[7.0, 8.0], [1.0, 2.0]]


def test_a_writer_elsewhere_counts_as_dead_after_a_day_and_is_refused_when_it_comes_back(
    view: features.View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "name_of_this_process", lambda: "4711 elsewhere 1 other/1")
    storage = view.storage
    with claims.Writing(storage, "season", view.record) as late:
        assert sweep(storage) == [], "it is on another host, and may live"
        claim = Claim(late._token, "4711 elsewhere 1 other/1", 0.0, "team_value", 1)
        storage.write(f"{late.folder}/claim", msgspec.json.encode(claim))
        assert sweep(storage) == ["season:1"]
        with claims.Writing(storage, "season", view.record) as other:
            assert other.version == 1
            record = DatasetRecord(name="season", version=1, view="team_value", view_version=1)
            with pytest.raises(StoreError, match="was swept away, since this process had been silent for more than 24"):
                late.renew()
            with pytest.raises(StoreError, match="was swept away"):
                late.commit(record)
            other.renew()
            other.commit(record)
    assert files() == {"datasets/season/1/claim", "datasets/season/1/manifest.json"}


def test_a_failure_leaves_nothing(view: features.View, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr(claims, "commit_dataset", fail)
    with pytest.raises(OSError, match="no room"):
        view.create_training_dataset("season", LABELS, format="csv")
    assert files() == set()
    assert not (project.current().root / "datasets").exists()


def test_claims_that_say_nothing_are_left_alone(view: features.View, tmp_path: Path) -> None:
    """Those of earlier versions, and damaged ones; their numbers are not given again."""
    storage = open_storage(project.current().root)
    assert storage.create("datasets/season/1/claim", b"0123456789abcdef0123456789abcdef")
    assert storage.create("datasets/season/2/claim", b"\xff{")
    assert storage.create("datasets/season/x/claim", b"{}")
    assert view.create_training_dataset("season", LABELS).version == 3
    assert {path for path in files() if path.endswith("claim")} == {
        f"datasets/season/{version}/claim" for version in ("1", "2", "x", "3")
    }
