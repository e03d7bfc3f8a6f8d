"""Each setting with several seeds, from the call to the result, the index, the command line and a resume."""

from __future__ import annotations

import random
import statistics

import pytest

from cargobike import Searchspace, experiment, project, trial
from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ExperimentFolder
from cargobike.experiments.pages.live import LiveExperiment
from support.cut_copies import cut_copy

SPACE = Searchspace(x=("DOUBLE", [0, 1]))


def noisy(x: float) -> float:
    luck = random.Random(trial.current().seed)
    print("seed", trial.current().seed)
    if x > 0.85 and luck.random() < 0.3:
        raise ValueError("a bad seed")
    return x + luck.gauss(0, 0.05)


def test_a_trial_is_the_mean_of_its_repeats_wherever_it_is_looked_at() -> None:
    points = [{"x": 0.2}, {"x": 0.7}]
    result = experiment.launch(noisy, SPACE, num_trials=3, repeats=3, workers=2, seed=5, start_points=points)
    assert [one.number for one in result.trials] == [0, 3, 6]
    assert [one.params for one in result.trials[:2]] == points, "a start point is repeated like any other"
    second = result.trials[1]
    runs = result.repeats(second)
    assert [run.number for run in runs] == list(second.repeats) == [3, 4, 5]
    values = [run.value or 0.0 for run in runs]
    assert second.value == pytest.approx(statistics.fmean(values))
    assert second.spread == pytest.approx(statistics.stdev(values))
    assert [result.logs(run) for run in runs] == [f"seed {run.seed}\n" for run in runs]
    assert result.logs(4) == f"seed {runs[1].seed}\n"
    frame = result.to_pandas()
    assert frame["spread"].tolist()[1] == pytest.approx(second.spread)
    assert frame["failures"].sum() == sum(one.failures for one in result.trials)
    assert result.best is not None
    assert f"± {result.best.spread:.6g}"[:6] in str(result)
    again = experiment.load(result.id)
    assert [(one.number, one.value, one.spread) for one in again.trials] == [
        (one.number, one.value, one.spread) for one in result.trials
    ]
    listed = experiment.list()[0]
    assert (listed.best_value, listed.trials) == (result.best.value, 3)
    more = experiment.resume(result.id, num_trials=4)
    assert [one.number for one in more.trials] == [0, 3, 6, 9]
    assert len(more.record.runs) == 12
    assert experiment.list()[0].trials == 4


def test_a_search_that_was_cut_between_repeats_ends_like_an_unbroken_one() -> None:
    whole = experiment.launch(noisy, SPACE, num_trials=3, repeats=2, workers=1, seed=8, optimizer="tpe")
    lines = len(ExperimentFolder(whole.folder).journal.read_bytes().splitlines())
    for cut in (lines // 3, 2 * lines // 3):
        result = experiment.resume(cut_copy(whole, cut))
        assert [(one.number, one.params, one.value) for one in result.trials] == [
            (one.number, one.params, one.value) for one in whole.trials
        ]


def test_a_single_run_may_be_repeated() -> None:
    result = experiment.launch(noisy, params={"x": 0.5}, repeats=4, seed=2)
    assert len(result.trials) == 1
    assert len(result.values) == 4
    assert result.value == pytest.approx(statistics.fmean(result.values))


def test_a_number_of_repeats_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="repeats must be a whole number of at least 1, 0 was given"):
        experiment.launch(noisy, SPACE, num_trials=1, repeats=0)


def test_repeats_run_in_this_process_too() -> None:
    result = experiment.launch(noisy, SPACE, num_trials=2, repeats=2, workers=0, seed=5)
    assert [len(one.values) for one in result.trials] == [2, 2]
    assert len(result.record.runs) == 4


def curved(x: float) -> float:
    for step in range(3):
        trial.report({"loss": x + step, "other": step}, step=step)
    return x


def test_the_page_of_a_repeat_has_its_curves() -> None:
    result = experiment.launch(curved, params={"x": 0.5}, repeats=2, workers=0, metric="loss")
    first, second = result.repeats(0)
    live = LiveExperiment(project.current().experiment(result.id))
    with live.reading():
        for run in (first, second):
            assert {name: list(curve.steps) for name, curve in live.metrics(run.number or 0).items()} == {
                "loss": [0, 1, 2],
                "other": [0, 1, 2],
            }
