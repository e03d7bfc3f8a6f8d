"""Horovod's Estimators over our own, on executors and on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import DataFrame, SparkSession

from cargobike.compat.horovod.spark.common.backend import SparkBackend
from cargobike.compat.horovod.spark.common.store import Store
from cargobike.compat.horovod.spark.torch import TorchEstimator, TorchModel
from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.spark import trusting

if TYPE_CHECKING:
    from support.spark_applications import SparkApplications

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def frame(spark_applications: SparkApplications) -> DataFrame:
    session = SparkSession(spark_applications.context(), options={"spark.sql.shuffle.partitions": "2"})
    rows = session.range(200, numPartitions=3).selectExpr(
        "id % 10 / 10D as a", "id % 7 / 7D as b", "id % 4 = 0 as held"
    )
    rows = rows.selectExpr("*", "cast(3 * a - b + 1 as float) as y", "cast(a > 0.5 as int) as c")
    return VectorAssembler(inputCols=["a", "b"], outputCol="features").transform(rows)


class Here(SparkBackend):
    """Ranks on this machine."""

    engine = "local"


def linear(**more: Any) -> TorchEstimator:
    torch.manual_seed(0)
    network = torch.nn.Linear(2, 1)
    settings: dict[str, Any] = {
        "model": network,
        "optimizer": torch.optim.SGD(network.parameters(), lr=0.1),
        "loss": torch.nn.functional.mse_loss,
        "feature_cols": ["features"],
        "label_cols": ["y"],
        "input_shapes": [[-1, 2]],
        "batch_size": 10,
        "epochs": 4,
        "random_seed": 1,
        "verbose": 0,
    }
    return TorchEstimator(**{**settings, **more})


def worst(frame: DataFrame, column: str) -> float:
    return float(max(abs(row.y - row[column]) for row in frame.collect()))


def test_a_network_of_torch_is_fitted_goes_on_and_is_saved(frame: DataFrame, tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    estimator = linear(
        backend=Here(2), store=store, run_id="mine", validation="held", metrics=[torch.nn.functional.l1_loss]
    )
    model = estimator.fit(frame)
    first, *_, last = model.getHistory()
    assert set(first) == {"epoch", "train", "validation"}
    assert last["validation"]["loss"] < first["validation"]["loss"]
    assert list(first["train"]["all_metrics"]) == ["y_l1_loss"]
    assert model.getRunId() == "mine"
    assert store.exists(f"{store.get_checkpoint_path('mine')}/checkpoint")
    answered = model.transform(frame)
    assert answered.schema["y__output"].dataType.simpleString() == "float"
    assert answered.schema["features"].dataType.simpleString() == "vector"
    before = worst(answered, "y__output")
    assert before < 1

    again = estimator.fit(frame)  # the same run: goes on where it was
    assert again.getHistory()[0]["train"]["loss"] < first["train"]["loss"] / 2
    assert worst(again.setOutputCols(["guess"]).transform(frame), "guess") < before

    model.write().save(str(tmp_path / "model"))
    with pytest.raises(StoreError, match="exists already"):
        model.write().save(str(tmp_path / "model"))
    with pytest.raises(InvalidInputError, match="trust=True"):
        TorchModel.load(str(tmp_path / "model"))
    with trusting():
        loaded = TorchModel.load(str(tmp_path / "model"))
    assert worst(loaded.transform(frame), "y__output") == before
    assert loaded.getOptimizer().param_groups[0]["lr"] == pytest.approx(0.1)


def test_it_is_fitted_on_executors_from_parquet(frame: DataFrame, tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    frame.select("a", "b", "y", "c").write.parquet(store.get_train_data_path())
    frame.select("a", "b", "y", "c").limit(20).write.parquet(store.get_val_data_path())
    network = torch.nn.Sequential(torch.nn.Linear(1, 3), torch.nn.LogSoftmax(dim=1))
    model = linear(
        backend=SparkBackend(2),
        store=store,
        model=network,
        optimizer=torch.optim.Adam(network.parameters(), lr=0.05),
        loss=lambda output, label: torch.nn.functional.nll_loss(output, label.long()),
        feature_cols=["a"],
        label_cols=["c"],
        input_shapes=[[-1, 1]],
        backward_passes_per_step=2,
    ).fit_on_parquet()
    assert model.getHistory()[-1]["validation"]["loss"] < model.getHistory()[0]["validation"]["loss"]
    answered = model.transform(frame)
    assert answered.schema["c__output"].dataType.simpleString() == "vector"
    assert all(len(row.c__output) == 3 for row in answered.collect())
    assert store.exists(f"{store.get_checkpoint_path(model.getRunId())}/checkpoint")


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of Keras on torch
def test_a_model_of_keras_is_fitted(frame: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    import keras

    from cargobike.compat.horovod.spark.keras import KerasEstimator

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    fitted = KerasEstimator(
        num_proc=None,
        backend=Here(2),
        model=model,
        optimizer=keras.optimizers.SGD(0.1),
        loss="mse",
        metrics=["mae"],
        feature_cols=["features"],
        label_cols=["y"],
        validation=0.2,
        batch_size=10,
        epochs=3,
        verbose=0,
    ).fit(frame)
    history = fitted.getHistory()
    assert set(history) >= {"loss", "mae", "val_loss", "val_mae"}
    assert history["loss"][-1] < history["loss"][0]
    assert worst(fitted.transform(frame), "y__output") < 1.5
    assert float(fitted.getModel().optimizer.learning_rate) == pytest.approx(0.1)


def test_what_is_missing_is_said_at_once(frame: DataFrame) -> None:
    with pytest.raises(InvalidInputError, match=r"there is no column 'x'(.|\n)*at least 1"):
        linear(feature_cols=["x"], backward_passes_per_step=0).fit(frame)
    with pytest.raises(InvalidInputError, match="not both"):
        linear(num_proc=2, backend=Here(2)).fit(frame)
    with pytest.raises(InvalidInputError, match="no column"):
        linear(validation="nowhere").fit(frame)
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        linear(validation=1.5).fit(frame)
    with pytest.raises(InvalidInputError, match="give store="):
        linear().fit_on_parquet()
