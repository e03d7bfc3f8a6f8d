"""A project for the browser to look at, and the server that shows it."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from cargobike import Searchspace, experiment, trial
from cargobike import project as project_door
from cargobike.core.errors import ExperimentFailedError
from cargobike.core.facts import (
    AnyFact,
    AttemptStarted,
    ExperimentEnded,
    Reported,
    TrialEnded,
    TrialSuggested,
    WorkerJoined,
)
from cargobike.core.layout import ProjectFolder
from cargobike.store.journal.journal import JournalWriter
from cargobike.testing.journals import first_fact

HOSTILE = "<script>alert(1)</script><img src=x onerror=\"document.title='owned'\">"
BIG, BIG_TRIALS = "20270115-080000-bigg", 10_000
START_S = 1_700_000_000.0


@dataclass(frozen=True)
class Site:
    """A server's address, the project it shows, and the driver of the experiment that runs in it."""

    address: str
    project: Path
    driver: subprocess.Popen[bytes]

    def id_of(self, name: str) -> str:
        """Return the id of an experiment by its name."""
        for journal in sorted((self.project / "experiments").glob("*/journal.jsonl")):
            with journal.open("rb") as file:
                if f'"name":"{name}"'.encode() in file.readline():
                    return journal.parent.name
        raise AssertionError(f"no experiment {name}")


def train(lr: float, act: str) -> dict[str, float]:
    print("printed by", act)
    for step in range(6):
        trial.report(score=lr * step, loss=1 - lr, step=step)
    if lr > 0.9:
        raise ValueError(f"{lr} is too much for {act}")
    return {"score": lr if act == "relu" else lr / 2, "cost": 1 - lr}


def fail(lr: float) -> float:
    raise ValueError(f"nothing goes with {lr > 0}")


def make_project(root: Path) -> Path:
    """Make a project with a search that was really run, a hostile one, and one of ten thousand trials."""
    project_door.use(root)
    try:
        space = Searchspace(lr=("DOUBLE", [0.0, 1.0]), act=["relu", "gelu"])
        experiment.launch(train, space, metric="score", num_trials=30, workers=2, seed=4, name="calm", quiet=True)
        hostile = Searchspace({"lr": ("DOUBLE", [0.0, 1.0]), "act": ["relu", HOSTILE]})
        experiment.launch(
            train,
            hostile,
            metric="score",
            num_trials=14,
            workers=2,
            seed=1,
            name=HOSTILE,
            description=HOSTILE,
            quiet=True,
        )
        with pytest.raises(ExperimentFailedError):
            experiment.launch(fail, {"lr": [0.1, 0.2, 0.3]}, num_trials=3, workers=2, name="all fails", quiet=True)
    finally:
        project_door.use(None)
    write_big(ProjectFolder(root))
    return root


def write_big(project: ProjectFolder, trials: int = BIG_TRIALS, points: int = 4) -> None:
    """Write the journal of a very large search as its driver would have."""
    rng = random.Random(2)
    space = Searchspace(lr=("DOUBLE", [1e-4, 1e-1], "log"), layers=("INTEGER", [1, 5]), act=["relu", "gelu", "silu"])
    facts: list[AnyFact] = [
        first_fact(
            at=START_S,
            id=BIG,
            name="big",
            space=space.describe(),
            optimizer="asha",
            num_trials=trials,
            metric="accuracy",
        ),
        *(WorkerJoined(at=START_S, worker=f"w{index}", host="tower", pid=index) for index in range(8)),
    ]
    now = START_S
    for number in range(trials):
        params = space.sample(rng)
        score = 0.9 - 0.02 * params["layers"] + rng.gauss(0, 0.02)
        facts.append(TrialSuggested(at=now, trial=number, params=params, seed=number))
        facts.append(AttemptStarted(at=now, trial=number, attempt=1, workers=(f"w{number % 8}",)))
        for step in range(points):
            facts.append(
                Reported(at=now, trial=number, step=step, metrics={"accuracy": score * (1 - 0.5 ** (step + 1))})
            )
        now += 0.5
        if number % 4 == 3:
            facts.append(TrialEnded(at=now, trial=number, state="stopped"))
        elif number % 50 == 9:
            facts.append(TrialEnded(at=now, trial=number, state="failed", error="Traceback\nValueError: diverged"))
        else:
            facts.append(TrialEnded(at=now, trial=number, state="completed", value=score))
    facts.append(ExperimentEnded(at=now, state="completed"))
    with JournalWriter(project.experiment(BIG).journal) as journal:
        journal.append(facts)


@contextmanager
def started_server(project: Path, *options: str) -> Iterator[str]:
    """Run `cargobike ui` on a free port; gives the address that it prints."""
    variables = {**os.environ, "CARGOBIKE_PROJECT": str(project)}
    command = [sys.executable, "-m", "cargobike.cli", "ui", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=variables, text=True) as server:
        try:
            assert server.stdout is not None
            found = next(match[0] for line in server.stdout if (match := re.search(r"http://\S+", line)))
            yield found.rstrip("/")
        finally:
            server.terminate()
            server.wait(60)
