"""Maggy's distributed training in TensorFlow: models of Keras that train with all ranks."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from cargobike import trial
from cargobike.compat.maggy import experiment
from cargobike.compat.maggy.config import TfDistributedConfig
from cargobike.compat.maggy.running.tensorflow_ranks import PreparedModel, TensorflowCalled, share_of

QUIET: dict[str, Any] = {"quiet": True, "seed": 1, "engine": "local"}


def make_model(units: int) -> Any:
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(units), keras.layers.Dense(1)])


def train(model: Any, train_set: Any, test_set: Any, hparams: dict[str, Any]) -> list[float]:
    keras.utils.set_random_seed(trial.rank)
    network = model(**hparams)
    network.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse", experimental_run_tf_function=False)
    network.fit(*train_set, batch_size=4, epochs=1, verbose=0)
    assert (len(train_set[0]), len(test_set[0])) == (16 // trial.world_size, 16)
    return [float(sum(np.sum(weight) for weight in network.get_weights())), 0.0]


def test_ranks_agree_on_the_weights() -> None:
    x = np.linspace(-1, 1, 64, dtype="float32").reshape(16, 4)
    data = (x, x.sum(1, keepdims=True))
    config = TfDistributedConfig(model=make_model, train_set=data, test_set=data, hparams={"units": 3})
    result = experiment.lagom(train_fn=train, config=config, workers=2, **QUIET)
    assert type(result) is list
    assert len(result) == 2
    assert result[0] == pytest.approx(result[1])


def test_data_is_made_where_it_is_used() -> None:
    def check(model: Any, dataset: Any) -> float:
        (x, y), tested = dataset
        assert (model, len(y), tested) == (None, 4, "test")
        return float(x.sum())

    def process(dataset: Any) -> Any:
        assert dataset == ["train", "test"]
        return [(np.arange(4.0), np.arange(4.0)), "test"]

    config = TfDistributedConfig(None, ["train", "test"], process)
    objects = {"model": None, "train_set": None, "test_set": None, "dataset": config.dataset, "hparams": {}}
    called = TensorflowCalled(check, objects, config.process_data, mixed_precision=False)
    assert called() == 6.0


def test_a_model_that_was_made_is_refused() -> None:
    with pytest.raises(AssertionError, match="not a model; the ranks make it"):
        PreparedModel(make_model(1))
    assert share_of("hdfs:///train") == "hdfs:///train"
