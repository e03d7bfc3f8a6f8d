"""Models that train functions keep, and trials that become models."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cargobike import experiment, features, models, project, trial
from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.tracing import Thing, lineage_of
from cargobike.journals import ModelKept, read_journal
from support.far_engine import FarEngine
from support.scripts import environment


def best_of(result: Any) -> Any:
    assert result.best is not None
    return result.best


def train(factor: float) -> dict[str, float]:
    def predict(rows: list[Any]) -> list[Any]:
        return [factor * row for row in rows]

    trial.model.save("scaled", lambda rows: [0.0 for _ in rows], description="not yet")
    trial.model.save("scaled", predict, example=[1.0], metrics={"latency_ms": 3.0}, tags=["kept"])
    return {"accuracy": factor}


def stopped(factor: float) -> float:
    trial.model.save("scaled", lambda rows: rows)
    if factor < 2:
        raise ValueError("not good enough")
    return factor


@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_train_function_keeps_is_registered_when_the_trial_has_completed(workers: int) -> None:
    result = experiment.launch(train, {"factor": [1.0, 2.0, 3.0]}, metric="accuracy", workers=workers, quiet=True)

    versions = {version.training.trial: version for version in models.list("scaled")}
    assert set(versions) == {0, 1, 2}
    assert [version.version for version in models.list("scaled")] == [3, 2, 1]
    best = versions[best_of(result).number]
    assert best.metrics == {"accuracy": 3.0, "latency_ms": 3.0}
    assert best.predict([2.0]) == [6.0], "the last one that was kept counts"
    assert best.tags == ("kept",)
    training = best.training
    assert (training.experiment, training.params) == (result.id, {"factor": 3.0})
    assert training.function.endswith("train")
    assert len(training.code) == 64
    assert "cloudpickle==" in best.requirements
    assert [(edge.source.kind, edge.source.name, edge.detail) for edge in best.lineage().sources] == [
        ("experiment", result.id, f"trial {best_of(result).number}")
    ]
    facts = [fact for fact in read_journal(best_of(result).experiment.journal) if isinstance(fact, ModelKept)]
    assert [fact.name for fact in facts] == ["scaled"] * 6
    assert best_of(result).register("scaled") == best, "it is registered once"
    assert best_of(result).register("other").predict([1.0]) == [3.0]
    models.remove(best.reference)
    assert best_of(result).register("scaled").version == 4, "what was removed is registered anew if it is wanted"


def test_a_model_of_a_trial_that_failed_stays_among_its_files() -> None:
    result = experiment.launch(stopped, {"factor": [1.0, 2.0]}, workers=1, max_failures=5, quiet=True)
    assert [version.training.params for version in models.list("scaled")] == [{"factor": 2.0}]
    failed = next(one for one in result.trials if one.params["factor"] == 1.0)
    assert [path.name for path in failed.artifacts if path.name == "packed.json"] == ["packed.json"]


def test_workers_that_do_not_see_the_disk_send_their_models() -> None:
    experiment.launch(train, {"factor": [1.0, 2.0]}, metric="accuracy", engine=FarEngine(), workers=1, quiet=True)
    assert sorted(version.predict([1.0])[0] for version in models.list("scaled")) == [1.0, 2.0]


def test_of_a_gang_rank_0_keeps_the_model() -> None:
    def train_together() -> float:
        trial.model.save("ranked", lambda rows: rows, metrics={"rank": trial.rank})
        return 1.0

    experiment.allreduce(train_together, workers=2, quiet=True)
    assert [dict(version.metrics)["rank"] for version in models.list("ranked")] == [0.0]


def test_outside_an_experiment_a_model_is_registered_at_once() -> None:
    version = trial.model.save("scaled", lambda rows: rows, metrics={"accuracy": 1.0})
    assert version is not None
    assert version.version == 1
    assert train(2.0) == {"accuracy": 2.0}
    assert models.get("scaled").version == 3


_KILLED = """
import os, signal, sys
from cargobike import experiment, project, trial
from cargobike.experiments.driving import models

def train(factor):
    trial.model.save("scaled", lambda rows: [factor * row for row in rows])
    return factor

def die(self, *given):
    if sys.argv[2] == "after":
        register(self, *given)
    os.kill(os.getpid(), signal.SIGKILL)

register = models.ModelRegistrar._register
if __name__ == "__main__":
    project.use(sys.argv[1])
    if sys.argv[2] == "resume":
        experiment.resume("last", quiet=True)
    else:
        models.ModelRegistrar._register = die
        experiment.launch(train, {"factor": [1.0, 2.0]}, workers=1, quiet=True)
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_driver_that_is_killed_loses_no_model_and_registers_none_twice(tmp_path: Path, moment: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(_KILLED)
    root = tmp_path / "project"

    def run(word: str) -> int:
        command = [sys.executable, str(script), str(root), word]
        return subprocess.run(command, env=environment(), cwd=tmp_path, timeout=120, check=False).returncode

    assert run(moment) == -signal.SIGKILL
    project.use(root)
    assert len(models.list()) == (moment == "after")
    assert run("resume") == 0
    assert sorted(version.predict([1.0])[0] for version in models.list("scaled")) == [1.0, 2.0]


def test_a_checkpoint_becomes_a_model_by_its_factory() -> None:
    class Line:
        slope = 0.0

        def load_state_dict(self, state: dict[str, float]) -> None:
            self.slope = state["slope"]

        def predict(self, rows: list[Any]) -> list[Any]:
            return [self.slope * row for row in rows]

    def saves(slope: float) -> float:
        trial.checkpoint.save({"model": {"slope": slope}, "epoch": 1})
        return slope

    result = experiment.launch(saves, {"slope": [1.0, 2.0]}, workers=1, quiet=True)
    with pytest.raises(InvalidInputError, match=r"holds a dict, which cannot predict by itself.*factory=make_net"):
        best_of(result).register("line")
    made = Line()
    made.load_state_dict(best_of(result).checkpoint.load()["model"])
    assert models.register("line", made, trial=best_of(result)).predict([3.0]) == [6.0]
    with pytest.raises(InvalidInputError, match="does not fit the Other that the factory made"):
        models.register("line", trial=best_of(result), factory=Other)
    nothing = experiment.launch(lambda x: x, {"x": [1.0]}, workers=1, quiet=True)
    with pytest.raises(InvalidInputError, match="Trial 0 has kept no model and no checkpoint"):
        best_of(nothing).register("line")


class Other:
    def load_state_dict(self, state: object) -> None:
        raise KeyError("weights")


def test_the_command_line_registers_a_trial(tmp_path: Path) -> None:
    result = experiment.launch(train, {"factor": [1.0, 2.0]}, metric="accuracy", workers=1, quiet=True)
    number = next(one.number for one in result.trials if one.params["factor"] == 1.0)
    command = [
        sys.executable,
        "-m",
        "cargobike.cli",
        "models",
        "register",
        "again",
        "--trial",
        f"last/{number}",
        "--json",
    ]
    answer = subprocess.run(
        command, env={**environment(), **os.environ}, capture_output=True, text=True, timeout=120, check=True
    )
    assert json.loads(answer.stdout)["training"]["trial"] == number
    assert models.get("again").predict([5.0]) == [5.0]


def test_a_model_knows_the_training_dataset_and_the_view_it_came_from() -> None:
    teams = features.create_group("teams", key="team_id", event_time="at")
    teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [1.0, 2.0]})
    view = features.create_view("team_value", features=["budget"], label="value")
    labels = {"team_id": [1, 2], "at": ["2026-05-01"] * 2, "value": [1.0, 2.0]}
    dataset = view.create_training_dataset("values", labels)

    def learn(data: Any, factor: float) -> float:
        trial.model.save("valued", lambda rows: [factor for _ in rows])
        return factor

    experiment.launch(learn, {"factor": [1.0]}, data=dataset, workers=1, quiet=True)
    version = models.get("valued")
    assert [(one.relation, one.kind, one.name, one.version) for one in version.sources[1:]] == [
        ("trained on", "dataset", "values", "1"),
        ("made from", "view", "team_value", "1"),
    ]
    kinds = {edge.source.kind for edge in version.lineage().sources}
    assert kinds >= {"experiment", "dataset", "view", "group"}
    assert Thing("model", "valued", "1") in {edge.made for edge in lineage_of(project.current(), "teams").uses}
