"""Slide 5: the YAML of CloudML as a search space."""

from __future__ import annotations

from pathlib import Path

from cargobike import experiment
from cargobike.spaces import Searchspace, read_space

YAML = """
trainingInput:
  scaleTier: CUSTOM
  workerCount: 9
  parameterServerCount: 3
  hyperparameters:
    goal: MAXIMIZE
    hyperparameterMetricTag: accuracy
    maxTrials: 4
    maxParallelTrials: 2
    params:
    - parameterName: hidden1
      type: INTEGER
      minValue: 40
      maxValue: 400
      scaleType: UNIT_LINEAR_SCALE
    - parameterName: numRnnCells
      type: DISCRETE
      discreteValues: [1, 2, 3, 4]
    - parameterName: rnnCellType
      type: CATEGORICAL
      categoricalValues: [BasicLSTMCell, GRUCell]
    - parameterName: rate
      type: DOUBLE
      minValue: 0.0001
      maxValue: 0.1
      scaleType: UNIT_LOG_SCALE
"""


def train(hidden1: int, numRnnCells: int, rnnCellType: str, rate: float) -> dict[str, float]:
    return {"accuracy": hidden1 / 400 - rate, "cells": numRnnCells * len(rnnCellType)}


def test_the_file_is_the_space_that_python_would_write(tmp_path: Path) -> None:
    path = tmp_path / "hptuning_config.yaml"
    path.write_text(YAML)
    space = Searchspace(
        hidden1=("INTEGER", [40, 400]),
        numRnnCells=("DISCRETE", [1, 2, 3, 4]),
        rnnCellType=("CATEGORICAL", ["BasicLSTMCell", "GRUCell"]),
        rate=("DOUBLE", [0.0001, 0.1], "log"),
    )
    assert read_space(path).space == space


def test_it_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "hptuning_config.yaml"
    path.write_text(YAML)
    result = experiment.launch(train, str(path), metric="accuracy", num_trials=4, seed=1, quiet=True)
    assert result.counts == {"completed": 4}
