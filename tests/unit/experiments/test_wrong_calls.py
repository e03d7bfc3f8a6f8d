"""Wrong calls of the public functions: each is answered by a sentence of ours, and starts nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cargobike import Search, Searchspace, callbacks, experiment, optimizers, project, spaces, stop_rules, trial
from cargobike.core.registering.lazy import lazy_names
from cargobike.engines import LocalEngine
from cargobike.engines.spark.engine import SparkEngine
from cargobike.errors import CargobikeError, InvalidInputError, MissingLibraryError
from cargobike.journals import read_journal, read_record, seal
from cargobike.results import Result
from cargobike.simulation import Cluster, SimulatedRun, simulate
from cargobike.training.server_options import check_options

SPACE = Searchspace(x=("DOUBLE", [0, 1]))


def train(x: float) -> float:
    return x


def launch(**options: Any) -> Result:
    return experiment.launch(train, {"x": [1, 2]}, **{"workers": 0, "quiet": True, **options})


def allreduce(*args: Any, **options: Any) -> Result:
    return experiment.allreduce(train, *args, workers=2, quiet=True, **options)


def tell(**told: Any) -> None:
    search = Search(SPACE, seed=1)
    search.tell(search.ask(), **told)  # type: ignore[arg-type]


def tell_another_search() -> None:
    search, other = Search(SPACE, seed=1), Search(SPACE, seed=2)
    search.ask()
    search.tell(other.ask(), 1.0)  # type: ignore[arg-type]


def model(params: dict[str, Any], seed: int) -> SimulatedRun:
    return SimulatedRun(steps=[(1.0, {"score": 1.0})], value=1.0)


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "params as a list": (lambda: experiment.launch(train, params=[1]), "params must be a dict"),  # type: ignore[arg-type]
    "params as a text": (lambda: experiment.launch(train, params="x=1"), "params must be a dict"),  # type: ignore[arg-type]
    "params of a gang": (lambda: allreduce(params=[1]), "params must be a dict"),
    "a space for a gang": (lambda: allreduce({"x": [1]}), r"takes train without a name.*name the others: params"),
    "constraints as a number": (lambda: launch(constraints=5), "constraints must be a list"),
    "constraints as a dict": (lambda: launch(constraints={"ms": 5}), "constraints must be a list"),
    "a name that is none": (lambda: launch(name=5), r"name must be a text, int \(5\)"),
    "a description in a list": (lambda: launch(description=["a"]), "description must be a text"),
    "an empty dict as name": (lambda: launch(name={}), "name must be a text"),
    "an empty list as description": (lambda: launch(description=[]), "description must be a text"),
    "deterministic in words": (lambda: launch(deterministic="no"), "deterministic must be True or False"),
    "tensorboard in words": (lambda: launch(tensorboard="no"), "tensorboard must be True or False"),
    "quiet in words": (lambda: launch(quiet="no"), "quiet must be True or False"),
    "resources as a number": (lambda: launch(versioned_resources=5), "versioned_resources must be a list"),
    "a function as callbacks": (lambda: launch(callbacks=print), "callbacks must be a list"),
    "a number as command": (lambda: experiment.command(5), "a command must be a list"),  # type: ignore[arg-type]
    "a part that is none": (lambda: experiment.command(["echo", None]), "each part of a command must be"),  # type: ignore[list-item]
    "an open quote": (lambda: experiment.command("echo 'a"), "cannot be split: No closing quotation"),
    "env as a list": (lambda: experiment.command(["echo"], env=["A"]), "env must be a dict"),  # type: ignore[arg-type]
    "a pattern that is none": (lambda: experiment.command(["echo"], pattern=5), "pattern must be a text"),  # type: ignore[arg-type]
    "a file that is none": (lambda: experiment.command(["echo"], file=5), "file must be a path"),  # type: ignore[arg-type]
    "a metric that is none": (lambda: experiment.command(["echo"], metric=5), "metric must be a text"),  # type: ignore[arg-type]
    "no such directory": (lambda: experiment.command(["echo"], directory="nowhere"), "there is no such folder"),
    "a search of nothing": (lambda: Search(None), "There is nothing to try"),  # type: ignore[arg-type]
    "a seed that is none": (lambda: Search(SPACE, seed="a"), "seed must be a whole number"),  # type: ignore[arg-type]
    "no trials": (lambda: Search(SPACE, num_trials=0), "num_trials must be a whole number of at least 1"),
    "metrics in a list": (lambda: tell(value=1.0, metrics=[1]), "metrics must be a dict"),
    "an error that is none": (lambda: tell(error=5), "error must be a text"),
    "a trial of another search": (tell_another_search, "it was asked from another search"),
    "parameters that are none": (lambda: Search(SPACE).add(5, 1.0), "parameters must be a dict by name"),  # type: ignore[arg-type]
    "a vector of texts": (lambda: SPACE.from_unit(["a"]), "must hold numbers"),  # type: ignore[list-item]
    "a number as space file": (lambda: spaces.read_space(5), "read from a path, a text or a dict"),  # type: ignore[arg-type]
    "a population in words": (lambda: optimizers.PopulationBasedTraining("a"), "give at least 2"),  # type: ignore[arg-type]
    "a startup in words": (lambda: optimizers.TPE("a"), "must be at least 1"),  # type: ignore[arg-type]
    "a mixture in words": (lambda: optimizers.DifferentialEvolution("a"), "members at least"),  # type: ignore[arg-type]
    "patience in words": (lambda: stop_rules.PatienceRule("a"), "give 1 or more"),  # type: ignore[arg-type]
    "a target in words": (lambda: stop_rules.TargetReached("a"), "give a finite number to reach"),  # type: ignore[arg-type]
    "a percentile in words": (lambda: stop_rules.PercentileRule("a"), "between 0 and 100"),  # type: ignore[arg-type]
    "a model that is none": (lambda: simulate(5, SPACE), "needs a model of a train function"),  # type: ignore[arg-type]
    "checkpoints in words": (lambda: trial.checkpoint.keep(last="1"), "at least the newest one"),  # type: ignore[arg-type]
    "an artifact's name": (lambda: trial.artifact(text="a", name=5), "name must be a path"),  # type: ignore[arg-type]
    "a weight below 0": (lambda: trial.all_reduce(1.0, weight=-1), "weight must be a number of at least 0"),
    "a number as project": (lambda: project.use(5), "url must be a path"),  # type: ignore[arg-type]
    "an empty project": (lambda: project.use(""), "url must be a path"),
    "a number in a path": (lambda: project.path(5), "a part of a path must be a path"),  # type: ignore[arg-type]
    "a report of nothing": (trial.report, "report was given no metric. Name at least one"),
    "a report of an empty dict": (lambda: trial.report({}, step=1), "report was given no metric"),
    "a number to sample with": (lambda: SPACE.sample(5), r"such as space.sample\(random.Random\(5\)\); int \(5\) was"),  # type: ignore[arg-type]
    "samples in words": (lambda: SPACE.get_random_parameter_values("a"), "num must be a whole number"),  # type: ignore[arg-type]
    "no vector": (lambda: SPACE.from_unit(5), "a vector must hold 1 numbers"),  # type: ignore[arg-type]
    "no names": (lambda: SPACE.active_names(5), "parameters must be a dict by name"),  # type: ignore[arg-type]
    "counts of a grid": (lambda: SPACE.grid(5), "counts must be a dict"),  # type: ignore[arg-type]
    "counts of an optimizer": (lambda: optimizers.GridSearch(5), "counts must be a dict"),  # type: ignore[arg-type]
    "no such parameter": (lambda: SPACE["y"], "The space has no parameter 'y'; it has x"),
    "a list as parameter": (lambda: SPACE[["x"]], "The space has no parameter"),  # type: ignore[index]
    "a list of nothing": (lambda: optimizers.Listed(None), "are a list of dicts"),  # type: ignore[arg-type]
    "a factor in words": (lambda: optimizers.ASHA("a"), "give a number above 1"),  # type: ignore[arg-type]
    "an end in words": (lambda: optimizers.Hyperband(resource_max="a"), "of at least resource_min"),  # type: ignore[arg-type]
    "a population of DEHB": (lambda: optimizers.DEHB(population="a"), "a mixture needs"),  # type: ignore[arg-type]
    "a metric of a launch": (lambda: launch(metric=5), "metric must be a text"),
    "metrics of a callback": (lambda: callbacks.XGBoostReport(5), "give the name of a metric"),  # type: ignore[arg-type]
    "a mixed list of metrics": (lambda: callbacks.XGBoostReport(["a", 5]), "give the name of a metric"),  # type: ignore[list-item]
    "speeds in words": (lambda: Cluster(speeds="a"), "give at least one, each above 0"),  # type: ignore[arg-type]
    "starts in words": (lambda: Cluster(failed_starts="a"), "at least 0 and below 1"),  # type: ignore[arg-type]
    "trials to simulate": (lambda: simulate(model, SPACE, num_trials="a"), "num_trials must be a whole number"),  # type: ignore[arg-type]
    "repeats to simulate": (lambda: simulate(model, SPACE, repeats=None), "repeats must be a whole number"),  # type: ignore[arg-type]
    "workers to simulate": (lambda: simulate(model, SPACE, workers=0), "workers must be a whole number of at least 1"),
    "a seed to simulate": (lambda: simulate(model, SPACE, seed=None), "seed must be a whole number"),  # type: ignore[arg-type]
    "another tool's word": (lambda: simulate(model, SPACE, n_trials=5), "no 'n_trials'. Did you mean 'num_trials'?"),  # type: ignore[call-arg]
    "no fact": (lambda: seal(5), "a line of a journal holds a fact"),  # type: ignore[arg-type]
    "a cluster that is none": (lambda: simulate(model, SPACE, cluster=5), "cluster must be a Cluster"),  # type: ignore[arg-type]
    "settings of Spark": (lambda: SparkEngine(conf=5), "conf must be a dict"),  # type: ignore[arg-type]
    "a number of GPUs": (lambda: LocalEngine(gpus=2), "gpus must be a list"),  # type: ignore[arg-type]
    "a number as journal": (lambda: list(read_journal(5)), "path must be a path"),  # type: ignore[call-overload]
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_calls(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    act, words = WRONG[call]
    with pytest.raises(CargobikeError, match=words):
        act()
    assert experiment.list() == []


def test_wrong_calls_of_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.chdir(tmp_path)
    result = launch()
    mistakes: list[tuple[Callable[[], object], str]] = [
        (lambda: result.trial("0"), "a trial, or its number, is needed"),  # type: ignore[arg-type]
        (lambda: result.curves(None), "`result.best` is None if no trial has completed"),  # type: ignore[arg-type]
        (lambda: result.logs(0, rank=5), "ran on 1 rank, from 0"),
        (lambda: result.logs(0, "stdot"), "allowed are 'stdout' and 'stderr'"),
        (lambda: result.trials[0].output(rank="a"), "rank must be a whole number"),  # type: ignore[arg-type]
        (lambda: result.add_note(5), "a note must be a text"),  # type: ignore[arg-type]
        (lambda: result.add_note(" "), "The note is empty"),
        (lambda: result.report(tmp_path), "is a folder; name a file in it"),
        (lambda: result.report("a.pdf"), "call it a.html"),
        (lambda: result.report(5), "path must be a path"),  # type: ignore[arg-type]
        (lambda: result.report("a.html", pareto=5), "pareto must be a list"),  # type: ignore[arg-type]
        (lambda: result.report("a.html", pareto=["ab c"]), "a list of pairs of metrics"),  # type: ignore[list-item]
        (result.add_tag, "add_tag was given no tag"),
        (result.remove_tag, "remove_tag was given no tag"),
        (lambda: result.importance(metric=5), "there is no metric 5"),  # type: ignore[arg-type]
        (lambda: result.ablation(confidence="a"), "confidence must lie between 0 and 1"),  # type: ignore[arg-type]
        (lambda: result.plot.best_so_far(metric=5), "metric must be a text"),  # type: ignore[arg-type]
        (lambda: result.plot.contour("x", 5), "y must be a text"),  # type: ignore[arg-type]
        (lambda: result.plot.slices(step=[1]), "step must be a whole number"),  # type: ignore[arg-type]
        (lambda: result.plot.slices(params=5), "params must be a list"),  # type: ignore[arg-type]
        (lambda: result.plot.slices(params=[5]), "each of params must be a text"),  # type: ignore[list-item]
        (lambda: result.plot.learning_curves(most=0), "most must be a whole number of at least 1"),
        (lambda: result.plot.pareto("value", "duration_s", direction=5), "direction must be a dict"),  # type: ignore[arg-type]
        (lambda: result.plot.trial_curves(None), "`result.best` is None"),  # type: ignore[arg-type]
        (lambda: experiment.reproduce(result, fresh_env="no"), "fresh_env must be True or False"),  # type: ignore[arg-type]
        (lambda: experiment.reproduce(result, trial=1.5), "a trial, its number, or 'best'"),  # type: ignore[arg-type]
        (lambda: experiment.reproduce(result, tolerance="1%"), "tolerance='1%' was given"),  # type: ignore[arg-type]
        (lambda: experiment.resume(result, callbacks=5), "callbacks must be a list"),  # type: ignore[arg-type]
    ]
    for act, words in mistakes:
        with pytest.raises(InvalidInputError, match=words):
            act()
    with caplog.at_level(logging.WARNING):
        result.add_tag("baseline")
        result.remove_tag("basline")
    assert "has no tag 'basline'. Did you mean 'baseline'?" in caplog.text
    assert result.trial(np.int64(1)) is result.trials[1]  # type: ignore[arg-type] # as a table has it
    assert read_record(str(result.folder)).id == result.id


def test_no_description_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = launch(name=None, description=None)
    assert experiment.load(result.id).asked.description == "", "the journal can be read"


def test_an_exception_says_why_a_trial_failed() -> None:
    search = Search(SPACE, seed=1)
    asked = search.ask()
    assert asked is not None
    search.tell(asked, error=ValueError("no data"))
    assert asked.error == "ValueError: no data"


def test_a_name_whose_library_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needs_another.py").write_text("import surely_not_installed\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingLibraryError, match=r"callbacks\.Some needs surely_not_installed") as caught:
        lazy_names(callbacks.__name__, {"Some": "needs_another"})("Some")
    assert caught.value.name == "surely_not_installed"


@pytest.mark.parametrize("minute", [60, "1m", "60", timedelta(minutes=1)])
def test_lengths_of_time_in_words(minute: Any) -> None:
    assert check_options({"timeout_s": minute, "checkpoint_every_s": minute})["checkpoint_every_s"] == 60.0
    assert Cluster(startup_s=minute, mean_time_to_failure_s=minute) == Cluster(startup_s=60, mean_time_to_failure_s=60)
    assert SparkEngine(wait_s=minute).join_s == 90.0

    def model(params: Any, seed: int) -> SimulatedRun:
        return SimulatedRun(steps=[(100.0, {"y": 1.0})], value=1.0)

    result = simulate(model, SPACE, num_trials=3, workers=1, trial_timeout_s=minute, suggestion_s=minute)
    assert {one.state.value for one in result.trials} == {"failed"}


def test_lengths_of_time_that_are_none() -> None:
    with pytest.raises(InvalidInputError, match=r"timeout_s must be a number of seconds[^$]*checkpoint_every_s must"):
        check_options({"timeout_s": "soon", "checkpoint_every_s": 0})
    with pytest.raises(InvalidInputError, match="startup_s must be a number of seconds"):
        Cluster(startup_s="soon")  # type: ignore[arg-type]
