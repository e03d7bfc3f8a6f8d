"""Slide 8: `tensorboard.logdir()` inside the function: a folder for each run, which TensorBoard and we read."""

from __future__ import annotations

from pathlib import Path

from cargobike.compat.hops import experiment, tensorboard
from support.slide_functions import train


def test_each_run_has_a_folder_of_its_own() -> None:
    returned = experiment.launch(train, {"learning_rate": [0.001, 0.01], "dropout": [0.5, 0.6]})
    logs = sorted(Path(returned).glob("trials/*/logs/events.out"))
    assert [path.read_text() for path in logs] == ["0.001 0.5", "0.01 0.6"]


def test_outside_an_experiment_it_works_too() -> None:
    assert Path(tensorboard.logdir()).is_dir()
