"""Horovod for Keras 3 on the torch backend; that on TensorFlow is tested beside it."""

from __future__ import annotations

import os
from typing import Any

import pytest

from support.rank_host import RankHost


def train_on_torch() -> dict[str, Any]:
    os.environ["KERAS_BACKEND"] = "torch"
    import keras
    import numpy as np

    import cargobike.compat.horovod.keras as hvd

    hvd.init()
    keras.utils.set_random_seed(hvd.rank())
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    optimizer = hvd.DistributedOptimizer(
        keras.optimizers.SGD(lr=0.1, momentum=0.9),
        compression=hvd.Compression.fp16,
        backward_passes_per_step=2,
        average_aggregated_gradients=True,
    )
    model.compile(optimizer, "mse", experimental_run_tf_function=False)
    x = np.random.default_rng(hvd.rank()).normal(size=(40, 4)).astype("float32")
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(initial_lr=0.1, warmup_epochs=1),
        hvd.callbacks.LearningRateScheduleCallback(initial_lr=0.1, multiplier=0.5, start_epoch=1, end_epoch=3),
        hvd.callbacks.LearningRateScheduleCallback(0.1, lambda epoch: 1 / epoch, start_epoch=3),
    ]
    history = model.fit(x, x.sum(axis=1), batch_size=10, epochs=5, callbacks=callbacks, verbose=0).history
    variable = keras.Variable([0.0])
    plain = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), op=hvd.Sum)
    plain.apply([keras.ops.convert_to_tensor([1.0 + hvd.rank()])], [variable])
    seen = {
        "weights": float(np.abs(model.get_weights()[0]).sum()),
        "history": history["loss"],
        "rates": history["lr"],
        "sum": float(keras.ops.convert_to_numpy(variable)[0]),
        "scattered": hvd.reducescatter(np.arange(4.0), op=hvd.Sum).tolist(),
        "mean": float(hvd.allreduce(hvd.rank(), average=False)),
        "scaled": warm_up_with_momentum(),
        "state": keep_a_state(),
    }
    with pytest.raises(ValueError, match="has no file"):
        model.fit(x, x.sum(axis=1), verbose=0, callbacks=[hvd.callbacks.BestModelCheckpoint()])
    hvd.shutdown()
    return seen


def keep_a_state() -> list[Any]:
    """Return what a state has after it was synchronized, restored, and committed from `fit`."""
    import keras
    import numpy as np

    import cargobike.compat.horovod.keras as hvd

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    model.compile(keras.optimizers.SGD(0.5), "mse")
    model.set_weights([np.full((1, 1), 3.0 + hvd.rank())])
    state = hvd.elastic.KerasState(model, batch=20 + hvd.rank(), epoch=hvd.rank())
    state.sync()
    seen: list[Any] = [model.get_weights()[0].item(), state.batch, state.epoch]
    model.set_weights([np.zeros((1, 1))])
    state.batch = 1
    state.restore()
    seen += [model.get_weights()[0].item(), state.batch]
    commits: list[int] = []
    setattr(state, "commit", lambda: commits.append(state.batch))  # noqa: B010 - a method, says mypy
    callbacks = [
        hvd.elastic.UpdateBatchStateCallback(state),
        hvd.elastic.UpdateEpochStateCallback(state),
        hvd.elastic.CommitStateCallback(state, batches_per_commit=2),
    ]
    state.batch = 0
    model.fit(np.zeros((10, 1)), np.zeros(10), batch_size=2, epochs=2, verbose=0, callbacks=callbacks)
    with pytest.raises(ValueError, match="has not been built"):
        hvd.elastic.KerasState(keras.Sequential([keras.layers.Dense(1)]))
    result = hvd.elastic.run(lambda state, more: (state.epoch, more))(state, "more")
    return [*seen, commits, state.batch, result]


def warm_up_with_momentum() -> list[float]:
    """Return what momentum has gathered before and after the learning rate was halved."""
    import keras

    import cargobike.compat.horovod.keras as hvd

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    model.compile(keras.optimizers.SGD(0.2, momentum=0.9), "mse")
    model.optimizer.build(model.trainable_variables)
    model.optimizer.momentums[0].assign([[8.0]])
    callback = hvd.callbacks.LearningRateScheduleCallback(0.2, 0.5)
    callback.set_model(model)
    callback.on_train_begin()
    callback.on_epoch_begin(1)
    values = []
    for batch in (1, 0):  # only the first batch of an epoch changes a staircase
        callback.on_train_batch_begin(batch)
        values.append(float(keras.ops.convert_to_numpy(model.optimizer.momentums[0])[0, 0]))
    return values


def test_keras_on_torch_trains_alike_on_all_ranks(host: RankHost) -> None:
    first, second = host.ranks(train_on_torch, deadline_s=200)
    assert first["weights"] == second["weights"]
    assert first["history"] == second["history"]
    assert first["rates"] == pytest.approx([0.1, 0.1, 0.05, 0.1 / 3, 0.025])
    assert (first["sum"], second["sum"], first["mean"]) == (-3, -3, 1)
    assert (first["scattered"], second["scattered"]) == ([0, 2], [4, 6])
    assert first["scaled"] == [8, 4]
    for rank in (first, second):
        assert rank["state"] == [3, 20, 0, 3, 20, [1, 3, 0, 0, 2, 4, 0], 0, (2, "more")]
