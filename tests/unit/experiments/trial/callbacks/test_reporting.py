"""Choosing metrics, and holding a stop until the framework has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from cargobike.core.errors import InvalidInputError, TrialPaused, TrialStopped
from cargobike.experiments.trial.callbacks.reporting import Metrics, Reporting
from support.watched_trial import WatchedTrial, inside

MEASURED = {"loss": 0.5, "accuracy": 0.75, "epoch": 1, "device": "cpu"}


@pytest.mark.parametrize(
    ("metrics", "reported"),
    [
        ("loss", {"loss": 0.5}),
        (["loss", "accuracy"], {"loss": 0.5, "accuracy": 0.75}),
        ({"score": "accuracy"}, {"score": 0.75}),
        (None, {"loss": 0.5, "accuracy": 0.75}),
    ],
)
def test_the_chosen_metrics_are_reported(tmp_path: Path, metrics: Metrics, reported: dict[str, float]) -> None:
    with inside(WatchedTrial(tmp_path)) as trial:
        assert not Reporting("Owner", metrics, noise=["epoch"]).report(MEASURED, 3)
    assert trial.reports == [(3, reported)]


def test_a_metric_that_is_not_measured_is_named_with_those_that_are() -> None:
    with pytest.raises(InvalidInputError, match=r"Owner is to report 'acuracy'; measured here: 'loss', .*'accuracy'\?"):
        Reporting("Owner", "acuracy").report(MEASURED, 0)


@pytest.mark.parametrize("metrics", [[], {}, [1], {"a": 2}])
def test_names_that_are_none_are_refused(metrics: Metrics) -> None:
    with pytest.raises(InvalidInputError, match=r"Owner\(.*give the name of a metric"):
        Reporting("Owner", metrics)


def test_a_stop_is_held_until_the_framework_has_ended(tmp_path: Path) -> None:
    with inside(WatchedTrial(tmp_path, stop_at=1)) as trial:
        reporting = Reporting("Owner", "loss")
        assert [reporting.report(MEASURED, step) for step in range(4)] == [False, True, True, True]
        assert not reporting.save_copy(tmp_path, 1) or not trial.checkpoint.exists
        with pytest.raises(TrialStopped):
            reporting.end()
        reporting.end()
    assert trial.steps == [0, 1]


def test_a_paused_trial_still_saves(tmp_path: Path) -> None:
    with inside(WatchedTrial(tmp_path / "trial", stop_at=0, error=TrialPaused)) as trial:
        reporting = Reporting("Owner", "loss")
        reporting.report(MEASURED, 0)
        assert reporting.save(lambda path: path.write_text("weights"), "model.txt", 0)
        assert trial.checkpoint.load().read_text() == "weights"
        with pytest.raises(TrialPaused):
            reporting.end()


def test_a_rank_ends_with_the_others(tmp_path: Path) -> None:
    with inside(WatchedTrial(tmp_path)):
        reporting = Reporting("Owner", None)
        reporting.follow(False)
        reporting.end()
        reporting.follow(True)
        with pytest.raises(TrialStopped, match="another rank"):
            reporting.end()
