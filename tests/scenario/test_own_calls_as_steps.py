"""Our own calls are steps by themselves in a pipeline: made once, kept by reference, found again."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from cargobike import data, experiment, features, models, project
from cargobike.core.errors import ExperimentFailedError, GateError, NotFoundError
from cargobike.core.registering.steps import Keepable, Kept, open_kept, step_token, stepping
from cargobike.features.views.view import View
from cargobike.models.version import ModelVersion
from cargobike.serving.handle import Deployment
from support.own_steps import Moment, Remembering
from support.trains import parabola


def double(rows: list[Any]) -> list[Any]:
    return [2 * row for row in rows]


def prepare() -> dict[str, Any]:
    """Go from data to a training dataset, a search and a model that is promoted."""
    table = data.write({"x": [1.0, 2.0, 3.0, 4.0]}, "numbers")
    teams = features.create_group("teams", key="team_id", event_time="at", online=True)
    commit = teams.insert({"team_id": [1, 2], "at": ["2026-01-01"] * 2, "budget": [1.0, 5.0]})
    view = features.create_view("team_value", features=["budget"], label="value")
    labels = {"team_id": [1, 2], "at": ["2026-05-01"] * 2, "value": [1.0, 2.0]}
    dataset = view.create_training_dataset("season", labels)
    result = experiment.launch(parabola, {"x": [1, 2, 3]}, workers=0, quiet=True)
    assert result.best is not None
    model = models.register("double", double, metrics={"score": float(result.best.value or 0.0)})
    own = result.best.register("own", double)
    promotion = model.promote("champion", when="score >= champion.score")
    kept = {"table": table, "group": teams, "view": view, "dataset": dataset, "result": result, "model": model}
    return {**kept, "trial": result.best, "own": own, "commit": commit, "promotion": promotion}


CALLS = (
    "data.write",
    "features.create_group",
    "group.insert",
    "features.create_view",
    "view.create_training_dataset",
    "experiment.launch",
    "models.register",
    "trial.register",
    "version.promote",
)


def what_there_is() -> dict[str, int]:
    """Count what a project holds."""
    group = features.group("teams")
    return {
        "tables": data.open("numbers").version,
        "groups": len(features.list_groups()),
        "commits": len(group.history()),
        "views": features.view("team_value").version,
        "datasets": len(features.list_training_datasets()),
        "experiments": len(experiment.list()),
        "models": len(models.list("double")) + len(models.list("own")),
        "moves": len(models.history("double")),
    }


ONCE = {
    "tables": 1,
    "groups": 1,
    "commits": 1,
    "views": 1,
    "datasets": 1,
    "experiments": 1,
    "models": 2,
    "moves": 1,
}


def test_a_pipeline_that_is_run_again_opens_what_it_made_and_makes_nothing() -> None:
    run = Remembering()
    first = run.run(prepare)
    assert run.made == dict.fromkeys(CALLS, 1)
    again = run.run(prepare)
    assert run.made == dict.fromkeys(CALLS, 1)
    assert what_there_is() == ONCE
    for name in ("table", "group", "view", "dataset", "result", "model", "trial", "own"):
        assert isinstance(first[name], Keepable), name
        assert again[name].kept_as() == first[name].kept_as(), name
    assert again["table"].fingerprint == first["table"].fingerprint
    assert again["result"].best.params == {"x": 3}
    assert again["dataset"]["train"].to_arrow().num_rows == 2
    assert again["group"].read().num_rows == 2
    assert again["promotion"] == first["promotion"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_pipeline_that_lost_its_process_in_each_call_has_made_each_thing_once(moment: Moment) -> None:
    run = Remembering()
    for call in CALLS:
        assert run.run(prepare, kill_at=(call, moment)) is None, call
    finished = run.run(prepare)
    assert finished is not None
    assert what_there_is() == ONCE
    may_be_repeated = {"features.create_group", "features.create_view"}
    assert {name: made for name, made in run.made.items() if made > 1 and name not in may_be_repeated} == {}
    assert finished["commit"].inserted == 2
    assert finished["promotion"].version == finished["model"].version == 1
    assert finished["group"].verify().is_equal


def test_a_search_that_was_interrupted_goes_on_and_one_that_failed_is_launched_anew(tmp_path: Path) -> None:
    run = Remembering()
    notes = tmp_path / "tried"

    def fragile(x: int) -> float:
        with notes.open("a") as file:
            file.write(f"{x} ")
        if notes.read_text() == "1 2 ":
            raise KeyboardInterrupt
        return float(x)

    def search() -> Any:
        return experiment.launch(fragile, {"x": [1, 2, 3]}, workers=0, quiet=True)

    with pytest.raises(KeyboardInterrupt):
        run.run(search)
    result = run.run(search)
    assert notes.read_text() == "1 2 2 3 ", "what had ended was not tried again"
    assert [one.id for one in experiment.list()] == [result.id]
    assert result.counts == {"completed": 3}

    def fails(x: int) -> float:
        raise ValueError(x)

    def doomed() -> Any:
        return experiment.launch(fails, {"x": [1]}, workers=0, quiet=True, max_failures=0)

    other = Remembering()
    for count in (2, 3):
        with pytest.raises(ExperimentFailedError):
            other.run(doomed)
        assert len(experiment.list()) == count


def test_a_search_that_was_killed_before_its_code_was_kept_is_replaced() -> None:
    run = Remembering()

    def search() -> Any:
        return experiment.launch(parabola, {"x": [1, 3]}, workers=0, quiet=True)

    run.run(search, kill_at=("experiment.launch", "after"))
    (folder,) = [project.current().experiment(one.id) for one in experiment.list()]
    header = folder.journal.read_bytes().splitlines(keepends=True)[0]
    folder.journal.write_bytes(header)
    for file in folder.code.iterdir():
        file.unlink()
    result = run.run(search)
    assert [one.id for one in experiment.list()] == [result.id]
    assert result.id != folder.id


def test_tables_of_files_and_of_predictions_are_written_once(tmp_path: Path) -> None:
    (tmp_path / "pets").mkdir()
    (tmp_path / "pets/tom.txt").write_text("fur")
    run = Remembering()

    def tables() -> list[int]:
        packed = data.pack(tmp_path / "pets", "packed")
        guessed = experiment.inference(lambda rows: rows["x"] * 2, {"x": [1.0, 2.0]}, workers=0, quiet=True)
        chosen = experiment.inference(lambda rows: rows["x"], {"x": [1.0]}, output_to="chosen", workers=0, quiet=True)
        return [table.version for table in (packed, guessed, chosen)]

    for call in ("data.pack", "experiment.inference"):
        assert run.run(tables, kill_at=(call, "after")) is None
    assert run.run(tables) == [1, 1, 1]
    assert run.made == {"data.pack": 1, "experiment.inference": 2}
    assert len(data.list()) == 3


def test_what_is_gone_is_said_when_it_is_opened() -> None:
    data.write({"x": [1.0]}, "numbers")
    folder = project.current()
    with pytest.raises(NotFoundError, match="has no version 7"):
        open_kept(Kept("table", "numbers:7"), folder)
    with pytest.raises(NotFoundError, match="No product here can open a spaceship"):
        open_kept(Kept("spaceship", "one"), folder)
    for kind, reference in (("model", "digits:3"), ("deployment", "digits"), ("group", "teams:1"), ("view", "v:1")):
        with pytest.raises(NotFoundError):
            open_kept(Kept(kind, reference), folder)


def test_a_gate_that_is_not_passed_is_an_error_of_the_call() -> None:
    version = models.register("double", double, metrics={"score": 1.0})
    run = Remembering()
    with pytest.raises(GateError):
        run.run(lambda: version.promote("champion", when="score > 2"))
    assert run.done == {}


def test_calls_have_the_signatures_they_had() -> None:
    calls: list[Any] = [experiment.launch, data.write, models.register, features.create_group, features.create_view]
    calls += [ModelVersion.promote, View.create_training_dataset, Deployment.roll, Deployment.stop]
    for call in calls:
        assert call.__doc__, call
        assert call.__module__.startswith("cargobike."), call
        assert inspect.signature(call) == inspect.signature(inspect.unwrap(call))
    assert "space" in inspect.signature(experiment.launch).parameters
    with pytest.raises(TypeError, match="'n_trials': here it is called 'num_trials'"):
        experiment.launch(parabola, {"x": [1]}, n_trials=3)  # type: ignore[call-arg]


def test_inside_of_a_step_calls_are_its_own_affair() -> None:
    run = Remembering()
    with stepping(run), stepping(None, "run/7"):
        assert step_token() == "run/7"
        table = data.write({"x": [1.0]}, "numbers")
    assert run.made == {}
    assert step_token() == ""
    assert table.manifest.step == "run/7"
    assert data.write({"x": [1.0]}, "numbers").manifest.step == ""
