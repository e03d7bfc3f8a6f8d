"""`kill -9` of a pipeline's driver before every write of its own calls: resumed, each thing exists once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cargobike import data, experiment, features, models, pipelines, project, serving
from cargobike.pipelines.facts import RunState, StepState
from cargobike.pipelines.running import start

_PIPELINE = """
from cargobike import data, experiment, features, models, serving


def double(rows):
    return [2 * row for row in rows]


def train(x):
    return -((x - 3) ** 2)


def prepare():
    table = data.write({"x": [1.0, 2.0, 3.0, 4.0]}, "numbers")
    teams = features.create_group("teams", key="team_id", event_time="at", online=True)
    teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [1.0, 5.0]})
    view = features.create_view("team_value", features=["budget"], label="value", transformations={"budget": "min_max"})
    labels = {"team_id": [1, 2], "at": ["2026-05-01"] * 2, "value": [1.0, 2.0]}
    dataset = view.create_training_dataset("season", labels)
    result = experiment.launch(train, {"x": [1, 2, 3, 4]}, workers=0, quiet=True)
    model = result.best.register("best", double)
    other = models.register("other", double, metrics={"score": 1.0})
    other.promote("champion", when="score >= champion.score")
    return [table, dataset, model]


def slow(x, notes):
    import pathlib, time
    pathlib.Path(notes, f"{x}-{time.monotonic_ns()}").touch()
    deadline = time.monotonic() + 60
    while x > 2 and not pathlib.Path(notes, "go").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return float(x)


def search(notes):
    space = [{"x": x, "notes": notes} for x in range(1, 7)]
    return experiment.launch(slow, space, workers=2, quiet=True)


def deploy():
    models.register("numbers", double)
    models.register("numbers", double)
    deployment = serving.deploy("numbers", "numbers:1", log=False)
    deployment.roll("numbers:2")
    deployment.rollback()
    return deployment
"""

_DYING = """
import json, os, signal, sys

from cargobike import data, experiment, features, models, pipelines, project, serving
from cargobike.core.registering.tracing import all_edges
from cargobike.store.files import patient
from cargobike.store.journal.journal import JournalWriter

function, most, first, stride = sys.argv[1], *map(int, sys.argv[2:])
project.use("project")
data.write, features.create_group, models.register, serving.deploy, pipelines.run, experiment.launch
list(all_edges(project.current()))  # loaded once, before processes are forked
os.fsync = lambda _: None  # a process that is killed loses nothing that it had handed to the kernel


def dying_at(moment):
    seen = 0

    def wrapped(method):
        def call(self, *arguments, **options):
            nonlocal seen
            seen += 1
            if seen == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return method(self, *arguments, **options)
        return call

    for kind, names in ((patient.PatientStorage, ("write", "create", "delete")), (JournalWriter, ("append",))):
        for name in names:
            setattr(kind, name, wrapped(getattr(kind, name)))


def drive(moment):
    dying_at(moment)
    journal = project.current().root / "runs/run/journal.jsonl"
    if not journal.exists() or not journal.stat().st_size:
        pipelines.run(f"{os.getcwd()}/pipeline.py:{function}", run_id="run")
    else:
        pipelines.resume("run")


statuses = []
while not statuses or statuses[-1]:
    pid = os.fork()
    if not pid:
        try:
            drive(first + stride * len(statuses) if len(statuses) < most else 0)
            os._exit(0)
        except BaseException as error:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(1)
    statuses.append(os.waitpid(pid, 0)[1])
    if os.WIFEXITED(statuses[-1]) and statuses[-1]:
        break
print(json.dumps(statuses))
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pipeline.py").write_text(_PIPELINE)
    monkeypatch.chdir(tmp_path)
    project.use(tmp_path / "project")
    project.prepare()
    return tmp_path


def killed_again_and_again(place: Path, function: str, most: int, stride: int) -> int:
    """Kill the driver of a run, each one some writes later than the one before; return how many were killed."""
    environment = {key: value for key, value in os.environ.items() if key != "CARGOBIKE_PROJECT"}
    command = [sys.executable, "-c", _DYING, function, str(most), "1", str(stride)]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=280, check=False)
    statuses: list[Any] = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else []
    assert statuses, done.stderr
    assert statuses[-1] == 0, done.stderr[-4000:]
    assert all(os.WIFSIGNALED(status) for status in statuses[:-1]), done.stderr[-4000:]
    return len(statuses) - 1


def test_a_driver_that_is_killed_again_and_again_makes_each_thing_once(place: Path) -> None:
    assert killed_again_and_again(place, "prepare", most=60, stride=1) >= 12
    run = pipelines.get("run")
    assert run.state is RunState.COMPLETED
    assert {step.state for step in run.steps} == {StepState.COMPLETED}
    table, dataset, model = run.result
    assert (table.version, dataset.version, model.version) == (1, 1, 1)
    assert data.open("numbers").version == 1
    assert len(features.group("teams").history()) == 1
    assert features.group("teams").verify().is_equal
    assert features.view("team_value").version == 1
    assert len(features.list_training_datasets()) == 1
    assert [one.state for one in experiment.list()] == ["completed"]
    assert experiment.load("last").counts == {"completed": 4}
    assert [len(models.list(name)) for name in ("best", "other")] == [1, 1]
    assert len(models.history("other")) == 1


def test_a_search_whose_driver_is_killed_goes_on_with_the_trials_that_it_lacks(place: Path) -> None:
    notes = place / "notes"
    notes.mkdir()
    started = start(f"{place}/pipeline.py:search", params={"notes": str(notes)}, run_id="run")
    give_up_at = time.monotonic() + 100
    while len(list(notes.glob("[34]-*"))) < 2 and time.monotonic() < give_up_at:  # two ended, two are at work
        time.sleep(0.02)
    started.process.kill()
    started.process.wait(60)
    assert pipelines.get("run").state is RunState.INTERRUPTED
    (notes / "go").touch()
    run = pipelines.resume("run")
    assert [one.id for one in experiment.list()] == [run.result.id]
    assert run.result.counts == {"completed": 6}
    tried = [path.name.partition("-")[0] for path in notes.glob("*-*")]
    assert {x: tried.count(x) for x in "123456"} == {"1": 1, "2": 1, "3": 2, "4": 2, "5": 1, "6": 1}


def test_a_driver_that_is_killed_again_and_again_deploys_and_rolls_once(place: Path) -> None:
    try:
        assert killed_again_and_again(place, "deploy", most=12, stride=2) >= 3
        deployment = serving.deployment("numbers")
        assert deployment.predict([4]) == [8]
        assert deployment.status().version == 1
        assert [len(models.list("numbers"))] == [2]
        words = [moment.text for moment in deployment.history()]
        assert words.count("deployed") == 1
        assert [text for text in words if text.endswith("released")] == [
            "version 1 released",
            "version 2 released",
            "version 1 released",
        ]
    finally:
        for one in serving.list_deployments():
            one.stop()
