"""`hops.experiment` in all its spellings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cargobike import experiment as ours
from cargobike.compat.hops import experiment, hdfs, tensorboard, util
from cargobike.compat.hops.translating.arguments import direction_of, runs_of, space_of
from cargobike.compat.hops.translating.custom import RunningExperimentError
from cargobike.compat.hops.translating.distributing import roles_of
from cargobike.compat.hops.translating.functions import with_score
from cargobike.compat.hops.translating.returned import Returned, returns_as_before
from cargobike.core import settings
from cargobike.core.errors import FunctionError, InvalidInputError, SignatureError
from support.hops_functions import once, positions, score, several


@pytest.fixture(autouse=True)
def _own_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(settings.PROJECT, str(tmp_path / "team"))
    monkeypatch.setenv(settings.COMPAT_QUIET, "1")


def test_one_object_is_the_path_and_the_tuple() -> None:
    returned = experiment.launch(once, name="one", description="words", local_logdir=True)
    path, outputs = returned
    assert returned == path == str(returned)
    assert type(path) is str
    assert os.path.isdir(os.path.join(returned, "trials"))
    assert outputs == {"metric": 0.5, "log": f"experiments/{ours.list()[0]}/trials/0000/stdout.log"}
    assert hdfs.load(outputs["log"]) == b"hello\n"
    assert returned.result is not None
    assert (returned.result.name, returned.result.asked.description) == ("one", "words")
    assert hdfs.exists(path + "/trials/0000/logs/events")


def test_equal_lists_are_rows_and_unequal_ones_a_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    _, rows = experiment.launch(several, {"a": [1, 2], "b": [30, 40]})
    assert [row["accuracy"] for row in rows] == [31, 42]
    assert hdfs.load(rows[1]["notes"]) == b"2 40"
    assert hdfs.load(rows[1]["far"]) == b"far"
    assert (tmp_path / "elsewhere-2-40.txt").exists(), "what a function returned is copied, not taken away"
    assert rows[0]["where"] == "a/b"
    returned = experiment.launch(several, {"a": [1, 2, 3], "b": [30, 40]}, metric_key="loss")
    assert returned.result is not None
    assert len(returned.result.trials) == 6
    assert returned.result.best is not None
    assert returned.result.best.params["a"] == 1


def test_a_function_without_a_score_runs_for_each_row() -> None:
    returned = experiment.launch(print, {"sep": [",", ";"]})
    assert returned.result is not None
    assert returned.result.counts == {"completed": 2}
    assert [set(outputs) for outputs in returned[1]] == [{"metric", "log"}] * 2


def test_a_grid_is_searched_downwards() -> None:
    grid = {"lr": [0.1, 1.0, 10.0], "units": [4, 8]}
    path, params, outputs = experiment.grid_search(score, grid, direction="MIN")
    assert params == {"lr": 10.0, "units": 8}
    assert path.endswith(f"trials/{outputs['log'].split('/')[-2]}")
    assert outputs["metric"] == pytest.approx(score(10.0, 8))


def test_directions_are_read_in_any_case() -> None:
    assert direction_of(experiment.Direction.MAX) == direction_of("max") == "max"
    assert direction_of(experiment.Direction.MIN) == direction_of("Min") == "min"


def test_old_names_of_arguments_and_the_old_order_work(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("kept")
    returned = experiment.grid_search(
        map_fun=score, args_dict={"lr": [0.1], "units": [4]}, versioned_resources=["list.txt"]
    )
    assert returned.result is not None
    assert returned.result.snapshot is not None
    assert [one.name for one in returned.result.snapshot.resources] == ["list.txt"]
    hdfs.dump("x", "Resources/run.ipynb")
    old = experiment.launch(once, None, "old", False, [hdfs.project_path() + "Resources/run.ipynb"], "said")
    assert old.result is not None
    assert old.result.asked.description == "said"
    assert old.result.snapshot is not None
    assert [one.name for one in old.result.snapshot.resources] == ["team/Resources/run.ipynb"]


def test_random_search_stays_inside_the_boundaries() -> None:
    returned = experiment.random_search(score, {"lr": [0.1, 0.2], "units": [2, 5]}, "min", samples=5)
    assert returned.result is not None
    assert len(returned.result.trials) == 5
    for one in returned.result.trials:
        assert 0.1 <= one.params["lr"] <= 0.2
        assert one.params["units"] in {2, 3, 4, 5}


def test_differential_evolution_returns_two_things_or_three(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = {"lr": [-1.0, -0.5], "units": [2, 5]}
    path, best = experiment.differential_evolution(score, bounds, direction="max", generations=1, population=4)
    assert set(best) == {"lr", "units"}
    assert "/trials/" in path
    new = {"optimization_key": "metric", "generations": 1, "population": 4}
    _, best, outputs = experiment.differential_evolution(score, bounds, **new)
    assert outputs["metric"] == pytest.approx(score(**best)), "scores below zero are scores"
    assert returns_as_before(is_new=False)
    assert not returns_as_before(is_new=True)
    monkeypatch.setenv(settings.HOPS_VERSION, "1.0.0")
    assert returns_as_before(is_new=True)
    monkeypatch.setenv(settings.HOPS_VERSION, "2.5")
    assert not returns_as_before(is_new=False)


def test_names_that_do_not_fit_are_said_before_anything_starts() -> None:
    with pytest.raises(SignatureError, match="Did you mean 'lr'"):
        experiment.launch(lambda lr, dropout: lr, util.grid_params({"learning_rate": [1, 2], "dropout": [3]}))
    with pytest.raises(FunctionError, match=r"experiment.collective_all_reduce\(train_fn"):
        experiment.collective_all_reduce([1, 2], object())
    with pytest.raises(InvalidInputError, match="a range has two values"):
        experiment.random_search(score, {"lr": [1, 2, 3]})
    with pytest.raises(InvalidInputError, match=r"allowed are Direction\.MAX"):
        experiment.grid_search(score, {"lr": [1], "units": [1]}, direction="up")
    assert ours.list() == []


def test_roles_are_those_of_tensorflow() -> None:
    assert roles_of(1) == {"chief": 1}
    assert roles_of(4, evaluator=True) == {"chief": 1, "worker": 2, "evaluator": 1}
    with pytest.raises(InvalidInputError, match="none is left to train"):
        roles_of(1, servers=1)
    with pytest.raises(InvalidInputError, match="at least 3 workers"):
        roles_of(2, evaluator=True)


def test_scores_are_found_where_there_is_one() -> None:
    assert with_score(3, "metric", needs_score=True) == {"metric": 3}
    assert with_score({"acc": 1, "file": "x"}, "metric", needs_score=True) == {"acc": 1, "file": "x", "metric": 1}
    with pytest.raises(InvalidInputError, match="optimization_key='metric' is not among them"):
        with_score({"acc": 1, "loss": 2}, "metric", needs_score=True)


def test_lists_and_boundaries_become_spaces() -> None:
    assert runs_of({"a": [1, 2], "b": [3, 4]}) == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    assert runs_of({"a": [1, 2], "b": [3]}) == {"a": [1, 2], "b": [3]}
    space = space_of({"n": [9, 2], "x": [1, 2.0], "c": ["a", "b", "c"], "one": [5, 5]}, "call")
    assert space.contains({"n": 2, "x": 1.5, "c": "c", "one": 5})
    assert not space.contains({"n": 1, "x": 1.5, "c": "c", "one": 5})


def test_the_driver_itself_can_be_a_run() -> None:
    path = experiment.begin("mine", description="by hand")
    with pytest.raises(RunningExperimentError, match="currently running"):
        experiment.begin()
    Path(tensorboard.logdir(), "events").write_text("x")
    ended, outputs = experiment.end(0.75)
    assert ended == path
    assert outputs["metric"] == 0.75
    assert hdfs.exists(path + "/trials/0000/logs/events")
    assert ours.load("last").state == "completed"
    with pytest.raises(RunningExperimentError, match="No experiment is running"):
        experiment.end()


def test_a_path_is_text_in_everything_but_its_parts() -> None:
    returned = Returned("runs/7", ({"metric": 1},))
    assert f"{returned}/x" == "runs/7/x"
    assert returned[:4] == "runs"
    assert returned[1] == {"metric": 1}
    assert returned.startswith("runs")
    assert os.path.basename(returned) == "7"
    assert "runs/7" in {returned}


def test_inside_a_train_function_the_job_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.COMPAT_WORKERS, "2")
    assert util.num_executors() == 2
    _, outputs = experiment.collective_all_reduce(positions)
    assert outputs["total"] == 3
    assert outputs["task"] == "chief"
    assert outputs["cluster"] == {"chief": 1, "worker": 1}
