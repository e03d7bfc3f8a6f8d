"""Maggy's callbacks report from Keras' fit, and its loader reads a rank's share of Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cargobike import experiment as own
from cargobike.compat.maggy import Searchspace, experiment
from cargobike.compat.maggy.core.patching import MaggyDataLoader, MaggyPetastormDataLoader
from cargobike.compat.maggy.core.reporter import Reporter
from cargobike.compat.maggy.experiment_config import OptimizationConfig

HERE: dict[str, Any] = {"workers": 0, "quiet": True, "seed": 3}


def fit(*given: Any) -> None:
    import keras  # takes seconds, for which a process that runs other tests need not wait

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", loss="mse", metrics=["accuracy"])
    x, y = np.zeros((8, 2), "float32"), np.zeros((8, 1), "float32")
    model.fit(x, y, batch_size=4, epochs=3, verbose=0, validation_data=(x, y), callbacks=list(given))


def test_the_ends_of_epochs_and_batches_are_broadcast() -> None:
    from cargobike.compat.maggy import callbacks

    reporter = Reporter()
    batches = callbacks.KerasBatchEnd(reporter)
    for batch in (0, 1, 0, 1):
        batches.on_batch_end(batch, {"loss": 0.0})
    assert (reporter.step, reporter.metric) == (3, 0.0)
    callbacks.KerasEpochEnd(reporter, metric="acc").on_epoch_end(7, {"accuracy": 0.5})
    assert (reporter.step, reporter.metric) == (7, 0.5)
    with pytest.raises(ValueError, match=r"metric='val_los' was not measured.*Did you mean 'val_loss'"):
        callbacks.KerasEpochEnd(reporter, metric="val_los").on_epoch_end(8, {"val_loss": 0.5})


def test_fit_broadcasts() -> None:
    from cargobike.compat.maggy import callbacks

    def train(x: float, reporter: Any) -> float:
        fit(callbacks.KerasEpochEnd(reporter, metric="val_acc"))
        return x

    experiment.lagom(train, OptimizationConfig(1, "randomsearch", Searchspace(x=("DOUBLE", [0, 1]))), **HERE)
    assert list(own.load("last").trials[0].curve.steps) == [0, 1, 2]
    reporter = Reporter()
    fit(callbacks.KerasBatchEnd(reporter))
    assert reporter.step == 5


def test_a_loader_reads_parquet_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0]}), tmp_path / "rows.parquet")
    loader = MaggyPetastormDataLoader(str(tmp_path), batch_size=2)
    batches = list(loader)
    assert len(batches) == len(loader) == 2
    assert type(batches[0]["x"]).__name__ == "Tensor"
    doubled = MaggyPetastormDataLoader(str(tmp_path), 3, transform_spec=lambda batch: batch["x"] * 2)
    assert [batch.tolist() for batch in doubled] == [[2.0, 4.0, 6.0]]
    assert [batch.tolist() for batch in MaggyDataLoader([1, 2, 3], batch_size=3)] == [[1, 2, 3]]
