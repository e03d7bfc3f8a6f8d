"""Stores, backends and parameters of Horovod's Estimators, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cargobike.compat.horovod.spark import lightning
from cargobike.compat.horovod.spark.common.backend import SparkBackend
from cargobike.compat.horovod.spark.common.store import DBFSLocalStore, FilesystemStore, HDFSStore, LocalStore, Store
from cargobike.compat.horovod.spark.torch import TorchEstimator, TorchModel
from cargobike.core.errors import NotFoundError


def test_a_store_keeps_everything_under_its_prefix(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    assert type(store) is FilesystemStore
    path = f"{store.get_checkpoint_path('run')}/{store.get_checkpoint_filename()}"
    assert path == f"{tmp_path}/runs/run/checkpoint"
    assert not store.exists(path)
    with pytest.raises(NotFoundError, match="There is no file"):
        store.read(path)
    store.write_text(path, "weights")
    assert (store.exists(path), store.exists(store.get_runs_path()), store.read(path)) == (True, True, b"weights")
    assert store.get_train_data_path(3) == f"{tmp_path}/intermediate_train_data.3"
    assert LocalStore(str(tmp_path), save_runs=False).get_checkpoint_path("run") is None
    assert LocalStore(str(tmp_path), train_path="/elsewhere").get_train_data_path() == "/elsewhere"


@pytest.mark.parametrize(
    ("address", "kind", "prefix"),
    [
        ("hdfs://host:9000/team/", HDFSStore, "hdfs://host:9000/team"),
        ("dbfs:/team", DBFSLocalStore, "/dbfs/team"),
        ("/dbfs/team", DBFSLocalStore, "/dbfs/team"),
        ("s3://bucket/team", FilesystemStore, "s3://bucket/team"),
    ],
)
def test_an_address_says_what_store_it_is(address: str, kind: type[Store], prefix: str) -> None:
    store = Store.create(address)
    assert (type(store), store.prefix_path) == (kind, prefix)


def test_parameters_are_set_read_and_copied() -> None:
    estimator = TorchEstimator(epochs=3, feature_cols=["a"], reader_pool_type="process")
    assert estimator.setEpochs(5).setBatchSize(64) is estimator
    assert (estimator.getEpochs(), estimator.getBatchSize(), estimator.getFeatureCols()) == (5, 64, ["a"])
    assert (estimator.getVerbose(), estimator.getInMemoryCacheAll(), estimator.getReaderPoolType()) == (
        1,
        False,
        "process",
    )
    assert estimator.copy({estimator.epochs: 9}).getEpochs() == 9
    with pytest.raises(TypeError, match=r"'epoch' is unknown. Did you mean 'epochs'"):
        TorchEstimator(epoch=1)
    with pytest.raises(ValueError, match="not both"):
        TorchEstimator(loss=torch.nn.functional.mse_loss, loss_constructors=[torch.nn.MSELoss])


def test_models_name_their_columns_after_labels_unless_told() -> None:
    model = TorchModel(label_columns=["y", "z"], run_id="run", history=[])
    assert model.getOutputCols() == ["y__output", "z__output"]
    assert model.setOutputCols(["a", "b"]).getOutputCols() == ["a", "b"]
    assert (model.getRunId(), model.getHistory()) == ("run", [])


def test_backends_say_how_many_ranks_there_are() -> None:
    assert SparkBackend(3).num_processes() == 3
    with pytest.raises(ValueError, match="num_proc=0"):
        SparkBackend(0)
    with pytest.raises(ValueError, match=r"lightning\.Trainer"):
        lightning.TorchEstimator(num_proc=2)
