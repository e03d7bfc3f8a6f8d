"""A project on shared storage: a real server, a local copy on each host, and nothing lost between them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from cargobike import experiment, project, trial
from cargobike.cli.app import app
from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.records import ExperimentState
from cargobike.experiments.kind import EXPERIMENTS
from cargobike.experiments.reading import read_record
from cargobike.store.files import mirror, uploading
from cargobike.store.files.remote import RemoteProject, Segment, open_remote
from cargobike.ui.web.app import create_app
from cargobike.ui.web.state import ServerState
from support.scripts import environment, run_script

PATIENCE_S = 60.0


EVERYWHERE = pytest.mark.parametrize(
    "url",
    ["moto", pytest.param("seaweed", marks=pytest.mark.slow), pytest.param("hdfs", marks=pytest.mark.slow)],
    indirect=True,
)
"""A story that is told on every kind of storage; the others know the storage only through these."""


@pytest.fixture
def url(
    request: pytest.FixtureRequest,
    storage_url: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Return a project on a storage, with nothing in it yet, used by this process."""
    address = storage_url(getattr(request, "param", "moto"))
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "here"))
    monkeypatch.setenv("CARGOBIKE_PROJECT", address)
    return address


@pytest.fixture
def elsewhere(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what makes this process one on another host, with an empty copy of the project."""

    def move() -> None:
        monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "elsewhere"))

    return move


def train(x: int) -> int:
    print("trying", x)
    Path("weights.txt").write_text(str(x))
    for step in range(3):
        trial.report(score=x * step, step=step)
    trial.checkpoint.save({"x": x})
    return x


@EVERYWHERE
def test_everything_is_there_when_a_search_has_ended(url: str, elsewhere: Callable[[], None]) -> None:
    result = experiment.launch(train, {"x": [1, 2, 3]}, quiet=True)
    here = read_record(project.find_experiment(result.id))
    first = project.current().root
    elsewhere()
    assert experiment.list() == [result.id]
    assert project.current().root != first
    there = experiment.load("last")
    assert repr(there._record) == repr(here)
    assert there.logs(1) == "trying 2\n"
    assert there.snapshot is not None
    assert [path.read_text() for path in there.artifacts(2)] == ["3"]
    assert [row["id"] for row in json.loads(CliRunner().invoke(app, ["ls", "--json"]).stdout)] == [result.id]
    assert not list(there.folder.glob("trials/*/checkpoints/*")), "checkpoints are brought when they are wanted"
    assert experiment.reproduce(result.id, trial="best", quiet=True).is_same
    resumed = experiment.resume(result.id, quiet=True)
    assert list(resumed.folder.glob("trials/0002/checkpoints/*"))


def test_a_path_in_the_project_is_an_address(url: str) -> None:
    assert project.path("data", "digits.npz") == f"{url}/data/digits.npz"
    with pytest.raises(InvalidInputError, match="leads out"):
        project.path("..", "x")


@EVERYWHERE
def test_tags_notes_and_removal_reach_everybody(url: str, elsewhere: Callable[[], None]) -> None:
    result = experiment.launch(train, {"x": [1]}, quiet=True)
    result.add_tag("here")
    elsewhere()
    other = experiment.load(result.id)
    assert other.tags == ("here",)
    other.add_tag("there")
    told = json.loads(CliRunner().invoke(app, ["ls", "--tag", "there", "--json"]).stdout)
    assert [row["tags"] for row in told] == [["here", "there"]]
    done = CliRunner().invoke(app, ["rm", result.id, "--yes"])
    assert done.exit_code == 0, done.output
    assert experiment.list() == []
    assert open_remote(url).heads(EXPERIMENTS) == {}
    assert open_remote(url).segments(EXPERIMENTS, result.id) == []


def test_it_is_removed_here_when_it_was_removed_elsewhere(
    url: str, elsewhere: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result = experiment.launch(train, {"x": [1]}, quiet=True)
    elsewhere()
    assert CliRunner().invoke(app, ["rm", result.id, "--yes"]).exit_code == 0
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "here"))
    assert experiment.list() == []


DRIVER = """
import os, time
from cargobike import experiment, trial
from cargobike.store.files import uploading

uploading.JOURNAL_EVERY_S = 0.1
uploading.FILES_EVERY_S = 0.1

def train(x):
    begun = trial.checkpoint.load(default=0)
    for step in range(begun, 3):
        trial.report(score=x + step, step=step)
        trial.checkpoint.save(step + 1)
        while x == 2 and not begun and step == 1:
            time.sleep(0.05)
    return x + begun / 10

if __name__ == "__main__":
    experiment.launch(train, {"x": [1, 2, 3]}, workers=1, quiet=True)
"""


def wait_until(look: Callable[[], Any]) -> Any:
    give_up_at = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < give_up_at
        time.sleep(0.1)
    return found


@pytest.fixture
def driver(url: str, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Return a driver that hangs in its second trial, as seen from elsewhere."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "drive.py").write_text(textwrap.dedent(DRIVER))
    with subprocess.Popen([sys.executable, "drive.py"], cwd=tmp_path / "code", env=environment()) as process:
        yield process
        if process.poll() is None:
            process.kill()


@EVERYWHERE
def test_a_running_search_is_followed_and_stopped_from_elsewhere(
    driver: subprocess.Popen[bytes], elsewhere: Callable[[], None]
) -> None:
    elsewhere()
    wait_until(experiment.list)
    running = wait_until(lambda: (found := experiment.load("last")).counts.get("completed") and found)
    assert running.state is ExperimentState.RUNNING
    with pytest.raises(StoreError, match="being run by a process on host"):
        experiment.resume("last", quiet=True)
    told = CliRunner().invoke(app, ["stop", "last", "--timeout", "60"])
    assert told.exit_code == 0, told.output
    assert driver.wait(PATIENCE_S) == 0
    assert experiment.load("last").state is ExperimentState.INTERRUPTED


@EVERYWHERE
def test_a_killed_search_goes_on_elsewhere(
    driver: subprocess.Popen[bytes],
    elsewhere: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    url: str,
) -> None:
    elsewhere()
    checkpoint = "trials/0001/checkpoints"
    remote = open_remote(url)
    wait_until(experiment.list)
    (experiment_id,) = experiment.list()
    wait_until(lambda: sum(name.startswith(checkpoint) for name in remote.listing(EXPERIMENTS, experiment_id)) >= 2)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    monkeypatch.setattr("cargobike.store.files.remote.ALIVE_S", 0.0)  # nobody waits a minute here
    assert experiment.load("last").state is ExperimentState.LOST
    resumed = experiment.resume("last", quiet=True)
    assert resumed.state is ExperimentState.COMPLETED
    assert [one.params["x"] for one in resumed.trials] == [1, 2, 3]
    assert resumed.trials[1].value in {2.1, 2.2}, "it went on from a checkpoint"

    # The host of the killed driver comes back: what it had not sent must not be mixed with what followed.
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "here"))
    back = experiment.load("last")
    assert back.state is ExperimentState.COMPLETED
    assert repr(back._record) == repr(resumed._record)


def test_what_a_killed_driver_had_not_sent_is_sent_by_the_next_command(
    url: str, elsewhere: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = run_script(
        tmp_path / "code",
        """
        import json, os, signal
        from cargobike import experiment, project
        from cargobike.store.files import uploading

        uploading.JOURNAL_EVERY_S = 1000.0  # killed before anything is sent

        def train(x):
            if x == 2:
                os.kill(DRIVER, signal.SIGKILL)
                signal.pause()
            return x

        if __name__ == "__main__":
            DRIVER = os.fork()
            if DRIVER == 0:
                DRIVER = os.getpid()
                experiment.launch(train, {"x": [1, 2]}, workers=1, quiet=True)
            os.waitpid(DRIVER, 0)
            print(json.dumps([experiment.load("last").counts, experiment.list()]))
        """,
    )
    assert told[0]["completed"] == 1
    elsewhere()
    lost = experiment.load("last")
    assert lost.id == told[1][0]
    assert lost.counts["completed"] == 1
    assert lost.state is ExperimentState.LOST


def test_a_storage_that_is_away_for_a_while_costs_nothing(
    url: str, elsewhere: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploading, "JOURNAL_EVERY_S", 0.01)
    monkeypatch.setattr(uploading, "FILES_EVERY_S", 0.01)
    write, refusals = RemoteProject.write, iter(range(6))

    def sometimes(self: RemoteProject, name: str, data: bytes) -> None:
        if not name.startswith("heads/") and next(refusals, None) is not None:
            raise StoreError("503 Slow Down")
        write(self, name, data)

    monkeypatch.setattr(RemoteProject, "write", sometimes)
    result = experiment.launch(train, {"x": [1, 2]}, quiet=True)
    elsewhere()
    assert repr(experiment.load(result.id)._record) == repr(result._record)


def test_segments_are_merged_and_readers_do_not_notice(
    url: str, elsewhere: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploading, "_MOST_SEGMENTS", 3)
    monkeypatch.setattr(uploading, "JOURNAL_EVERY_S", 0.01)
    result = experiment.launch(train, {"x": list(range(12))}, quiet=True)
    remote = open_remote(url)
    segments = remote.segments(EXPERIMENTS, result.id)
    assert len(segments) <= 3
    assert segments[0].start == 0
    elsewhere()
    assert len(experiment.load(result.id).trials) == 12
    # A reader in the middle of a journal finds segments that begin before its place.
    folder = project.current().experiment(result.id)
    whole = folder.journal.read_bytes()
    half = whole[: whole.index(b"\n", len(whole) // 2) + 1]
    folder.journal.write_bytes(half)
    (project.current().root / "mirror.json").unlink()
    remote.write(f"experiments/{result.id}/journal/{Segment(0, len(whole)).name}", whole)
    mirror.refresh(project.current(), at_once=True)
    assert folder.journal.read_bytes() == whole


def test_an_archive_is_taken_into_shared_storage(url: str, elsewhere: Callable[[], None], tmp_path: Path) -> None:
    result = experiment.launch(train, {"x": [1]}, quiet=True)
    runner = CliRunner()
    assert runner.invoke(app, ["export", result.id, str(tmp_path / "x.zip")]).exit_code == 0
    assert runner.invoke(app, ["rm", result.id, "--yes"]).exit_code == 0
    assert runner.invoke(app, ["import", str(tmp_path / "x.zip")]).exit_code == 0
    elsewhere()
    assert experiment.load(result.id).counts == {"completed": 1}


def test_what_cannot_be_reached_is_said(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", "s3://no-such-bucket-here/x")
    with pytest.raises(StoreError, match=r"s3://no-such-bucket-here/x cannot be .* no such bucket: create it"):
        experiment.launch(train, {"x": [1]}, quiet=True)
    for wrong in ("s3://", "no such://x"):
        monkeypatch.setenv("CARGOBIKE_PROJECT", wrong)
        with pytest.raises(InvalidInputError, match="names no storage"):
            experiment.list()


def test_other_storages_that_have_folders_work_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGOBIKE_PROJECT", f"local://{tmp_path}/shared")
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "here"))
    result = experiment.launch(train, {"x": [1, 2]}, quiet=True)
    result.add_tag("good")
    monkeypatch.setenv("CARGOBIKE_CACHE", str(tmp_path / "elsewhere"))
    there = experiment.load("last")
    assert repr(there._record) == repr(result._record)
    assert there.tags == ("good",)
    assert there.logs(0) == "trying 1\n"
    assert experiment.resume(result.id, quiet=True).counts == {"completed": 2}
    assert CliRunner().invoke(app, ["rm", result.id, "--yes"]).exit_code == 0
    assert [path for path in (tmp_path / "shared").rglob("*") if path.is_file()] == []


def test_a_dashboard_elsewhere_shows_what_lies_on_the_storage(url: str, elsewhere: Callable[[], None]) -> None:
    result = experiment.launch(train, {"x": [1, 2]}, workers=1, quiet=True)
    elsewhere()
    with TestClient(create_app(ServerState.of(project.current())), base_url="http://127.0.0.1") as client:
        assert url in client.get("/").text
        (row,) = client.get("/api/v1/experiments").json()["experiments"]
        assert (row["id"], row["best"]["value"]) == (result.id, 2)
        one = f"/api/v1/experiments/{result.id}"
        assert client.get(f"{one}/trials/0/logs/stdout").json()["text"] == "trying 1\n"
        assert client.get(f"{one}/files/content", params={"path": "files/0001/weights.txt"}).text == "2"
        assert "def train" in client.get(f"{one}/snapshot").json()["function"]
