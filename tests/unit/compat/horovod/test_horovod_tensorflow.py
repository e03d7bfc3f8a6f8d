"""Horovod for TensorFlow 2 and Keras on it: one pair of ranks does everything, as TensorFlow takes seconds to load."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.rank_host import RankHost


def do_everything(folder: str) -> dict[str, Any]:
    os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
    import cargobike.compat.horovod.tensorflow as hvd

    hvd.init()
    parts: list[Callable[[str], dict[str, Any]]] = [
        reduce_eagerly,
        gather_and_exchange,
        work_in_graphs,
        differentiate,
        use_tapes,
        fit_with_keras,
        accumulate_passes,
        minimize_losses,
        keep_layers_local,
        save_and_load,
        normalize,
        disagree,
    ]
    seen: dict[str, Any] = {}
    for part in parts:
        seen |= part(folder)
    hvd.shutdown()
    return seen


def reduce_eagerly(_: str) -> dict[str, Any]:
    import tensorflow as tf

    import cargobike.compat.horovod.tensorflow as hvd

    own = tf.constant([1.0, 2.0]) * (hvd.rank() + 1)
    rows = tf.IndexedSlices(own[:, tf.newaxis], tf.constant([0, 2 + hvd.rank()]), tf.constant([4, 1]))
    gathered = hvd.allreduce(rows)
    return {
        "mean": hvd.allreduce(own).numpy().tolist(),
        "sum": hvd.allreduce(own, average=False).numpy().tolist(),
        "max": hvd.allreduce(own, op=hvd.Max, name="largest").numpy().tolist(),
        "scaled": hvd.allreduce(own, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0).numpy().tolist(),
        "half": (hvd.allreduce(own, compression=hvd.Compression.fp16).dtype.name),
        "bfloat16": hvd.allreduce(tf.cast(own, tf.bfloat16)).numpy().astype("float32").tolist(),
        "rows": tf.convert_to_tensor(gathered)[:, 0].numpy().tolist(),
        "group": [t.numpy().tolist() for t in hvd.grouped_allreduce([own, tf.constant([hvd.rank()])], op=hvd.Sum)],
        "object": hvd.broadcast_object({"of": hvd.rank()}, 1),
        "function": hvd.broadcast_object_fn(1)(hvd.rank()),
        "objects": hvd.allgather_object("ab"[hvd.rank()]),
        "scatter": hvd.reducescatter(tf.range(3.0) + float(hvd.rank()), op=hvd.Sum).numpy().tolist(),
    }


def gather_and_exchange(_: str) -> dict[str, Any]:
    import tensorflow as tf

    import cargobike.compat.horovod.tensorflow as hvd

    rank = hvd.rank()
    rows, received = hvd.alltoall(tf.range(3) + 10 * rank, splits=[1, 2] if rank == 0 else [3, 0])
    variable = tf.Variable([float(rank)])
    hvd.broadcast_variables([variable], root_rank=1)
    return {
        "gathered": hvd.allgather(tf.fill([rank + 1, 1], rank)).numpy().tolist(),
        "gathers": [t.shape[0] for t in hvd.grouped_allgather([tf.zeros([rank]), tf.zeros([2])])],
        "broadcast": hvd.broadcast(tf.constant([rank]), 1).numpy().tolist(),
        "alltoall": (rows.numpy().tolist(), received.numpy().tolist()),
        "even": hvd.alltoall(tf.range(4) + 10 * rank).numpy().tolist(),
        "variable": variable.numpy().tolist(),
        "numbers": [int(op()) for op in (hvd.rank_op, hvd.size_op, hvd.local_size_op, hvd.process_set_included_op)],
    }


def work_in_graphs(_: str) -> dict[str, Any]:
    import tensorflow as tf

    import cargobike.compat.horovod.tensorflow as hvd

    traced = []
    variable = tf.Variable([float(hvd.rank() + 1)])

    @tf.function
    def step(x: Any, first: bool) -> Any:
        traced.append(first)
        if first:
            hvd.broadcast_variables([variable], root_rank=1)
        mean = hvd.allreduce(x)
        return mean, hvd.allgather(x), hvd.broadcast(x, 1), hvd.size_op(), hvd.reducescatter(x)

    own = tf.constant([1.0, 2.0]) * (hvd.rank() + 1)
    results = [step(own * turn, turn == 1) for turn in (1, 2, 3)]
    mean, gathered, sent, ranks, share = results[-1]
    return {
        "graph": [
            mean.numpy().tolist(),
            gathered.numpy().tolist(),
            sent.numpy().tolist(),
            int(ranks),
            share.numpy().tolist(),
        ],
        "traced": traced,
        "shapes": (results[0][0].shape.as_list(), variable.numpy().tolist()),
    }


def differentiate(_: str) -> dict[str, Any]:
    import tensorflow as tf

    import cargobike.compat.horovod.tensorflow as hvd

    rank = hvd.rank()
    own = tf.Variable([1.0, 2.0])
    uneven = tf.Variable(tf.ones([rank + 1]))
    weights = tf.constant([1.0, 2.0, 3.0]) * (rank + 1)

    @tf.function
    def gradients() -> Any:
        with tf.GradientTape(persistent=True) as tape:
            mean = tf.reduce_sum(hvd.allreduce(own) * (rank + 1))
            total = tf.reduce_sum(hvd.allreduce(own, op=hvd.Sum) * (rank + 1))
            rows = tf.reduce_sum(hvd.allgather(uneven) * weights)
            sent = tf.reduce_sum(hvd.broadcast(own, 1) * (rank + 1))
            parts = tf.reduce_sum(hvd.reducescatter(own, op=hvd.Sum) * (rank + 1))
            swapped = tf.reduce_sum(hvd.alltoall(own) * (rank + 1))
        return [tape.gradient(one, own) for one in (mean, total, sent, parts, swapped)], tape.gradient(rows, uneven)

    of_own, of_uneven = gradients()
    with tf.GradientTape() as tape:
        largest = hvd.allreduce(own, op=hvd.Max)
    try:
        tape.gradient(largest, own)
        refused = ""
    except ValueError as error:
        refused = str(error)
    return {
        "gradients": [one.numpy().tolist() for one in of_own],
        "slice": of_uneven.numpy().tolist(),
        "refused": refused,
    }


def use_tapes(_: str) -> dict[str, Any]:
    import keras
    import tensorflow as tf

    import cargobike.compat.horovod.tensorflow as hvd

    rank = hvd.rank()
    kept, shared, unused = tf.Variable(1.0), tf.Variable(1.0), tf.Variable(1.0)
    table = keras.layers.Embedding(4, 1)
    table.build()

    def gradients(make: Callable[[Any], Any]) -> Any:
        with tf.GradientTape() as tape:
            loss = (kept + shared) * 2.0 * (rank + 1) + tf.reduce_sum(table(tf.constant([0, rank + 1])))
        tape = make(tape)
        return tape.gradient(loss, [kept, shared, unused, table.embeddings])

    def keep(tape: Any) -> Any:
        tape = hvd.DistributedGradientTape(tape, gradient_predivide_factor=2.0)
        tape.register_local_source(kept)
        assert isinstance(tape, tf.GradientTape)
        return tape

    def partly(tape: Any) -> Any:
        return hvd.PartialDistributedGradientTape(
            tape, op=hvd.Sum, local_layers=table, scale_local_gradients=False, compression=hvd.Compression.fp16
        )

    def whole(gradient: Any) -> Any:
        return None if gradient is None else tf.reshape(tf.convert_to_tensor(gradient), [-1]).numpy().tolist()

    with hvd.DistributedGradientTape(tf.GradientTape(), sparse_as_dense=True) as around:
        loss = shared * float(rank)
    local, everybody = keep_pairs(around, loss, shared, kept)
    return {
        "tape": [whole(one) for one in gradients(keep)],
        "graph tape": [whole(one) for one in tf.function(lambda: gradients(keep)[:2])()],
        "partial": [whole(one) for one in gradients(partly)],
        "pairs": (local, everybody),
    }


def keep_pairs(tape: Any, loss: Any, shared: Any, kept: Any) -> tuple[int, list[float]]:
    tape.register_local_source(kept)
    local, everybody = tape.get_local_and_global_gradients(loss, [shared, kept])
    return len(local), [float(gradient) for _, gradient in everybody]


def fit_with_keras(_: str) -> dict[str, Any]:
    import keras
    import numpy as np

    import cargobike.compat.horovod.tensorflow.keras as hvd

    keras.utils.set_random_seed(hvd.rank())
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(lr=0.1 * hvd.size(), momentum=0.5), name="mine")
    model.compile(optimizer=optimizer, loss="mse", metrics=["mae"], experimental_run_tf_function=False)
    rng = np.random.default_rng(hvd.rank())
    x = rng.normal(size=(40, 4)).astype("float32")
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(initial_lr=0.2, warmup_epochs=2, verbose=1),
    ]
    history = model.fit(x, x.sum(axis=1), batch_size=10, epochs=3, callbacks=callbacks, verbose=0).history
    return {
        "weights": float(sum(np.abs(weight).sum() for weight in model.get_weights())),
        "history": (history["loss"], history["mae"]),
        "rates": history["lr"],
        "steps": int(model.optimizer.iterations.numpy()),
        "values": (hvd.allreduce(float(hvd.rank())).tolist(), hvd.broadcast(np.array([hvd.rank()]), 1).tolist()),
        "called": len(model.optimizer.variables()) == len(model.optimizer.variables),
        "lr": float(model.optimizer.lr.numpy()),
    }


def accumulate_passes(_: str) -> dict[str, Any]:
    import keras
    import tensorflow as tf

    import cargobike.compat.horovod.tensorflow as hvd
    from cargobike.core.errors import InvalidInputError

    seen: dict[str, Any] = {}
    for mean in (False, True):
        variable = keras.Variable([0.0])
        optimizer = hvd.DistributedOptimizer(
            keras.optimizers.SGD(1.0), backward_passes_per_step=3, average_aggregated_gradients=mean
        )

        optimizer.build([variable])
        step = tf.function(functools.partial(apply_one, optimizer, variable))
        values = []
        for _turn in range(7):
            step(tf.constant([1.0 + hvd.rank()]))
            values.append(float(variable.numpy()[0]))
        seen["mean passes" if mean else "passes"] = values
        again = type(optimizer).from_config(optimizer.get_config())
        seen["config"] = again.get_config() == optimizer.get_config()
        seen["exchanges again"] = type(again) is type(optimizer)
    with pytest.raises(InvalidInputError, match=r"op must be hvd\.Average") as failed:
        hvd.DistributedOptimizer(keras.optimizers.SGD(), op=hvd.Adasum, backward_passes_per_step=0)
    seen["mistakes"] = len(failed.value.mistakes)
    with pytest.raises(ValueError, match="optimizer of Keras 3"):
        hvd.DistributedOptimizer(tf.compat.v1.train.AdamOptimizer())
    return seen


def apply_one(optimizer: Any, variable: Any, gradient: Any) -> None:
    optimizer.apply_gradients([(gradient, variable)])


def minimize_losses(_: str) -> dict[str, Any]:
    import keras
    import tensorflow as tf

    import cargobike.compat.horovod.tensorflow as hvd

    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0))

    def loss() -> Any:
        return tf.reduce_sum(layer(tf.fill([1, 1], 1.0 + hvd.rank())))

    optimizer.minimize(loss, lambda: layer.trainable_variables)
    values = [layer.kernel.numpy().item()]
    with tf.GradientTape() as tape:
        value = loss()
    optimizer.minimize(value, layer.trainable_variables, tape=tape)
    values.append(layer.kernel.numpy().item())
    for mistaken in ((value,), (value, layer.trainable_variables)):
        with pytest.raises(RuntimeError, match=r"optimizer\.minimize\(lambda: compute_loss\(\), model"):
            optimizer.minimize(*mistaken)
    return {"minimized": values}


def keep_layers_local(_: str) -> dict[str, Any]:
    import keras
    import tensorflow as tf

    import cargobike.compat.horovod.tensorflow.keras as hvd

    kept, shared = keras.layers.Dense(1, use_bias=False), keras.layers.Dense(1, use_bias=False)
    for layer in (kept, shared):
        layer.build((None, 1))
        layer.kernel.assign([[0.0]])
    optimizer = hvd.PartialDistributedOptimizer(keras.optimizers.SGD(1.0), local_layers=[kept])
    gradient = tf.constant([[2.0 * (hvd.rank() + 1)]])
    optimizer.apply_gradients([(gradient, kept.kernel), (gradient, shared.kernel)])
    with pytest.raises(ValueError, match="takes layers of Keras, not 7"):
        hvd.PartialDistributedOptimizer(keras.optimizers.SGD(1.0), local_layers=[7])
    return {"local": [float(layer.kernel.numpy()[0, 0]) for layer in (kept, shared)]}


def save_and_load(folder: str) -> dict[str, Any]:
    import keras
    import numpy as np

    import cargobike.compat.horovod.keras as hvd

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(hvd.DistributedOptimizer(keras.optimizers.Adam(0.01)), "mse")
    model.fit(np.ones((8, 2)), np.ones(8), batch_size=2, verbose=0)
    path = f"{folder}/model{hvd.rank()}.keras"
    model.save(path)
    loaded = hvd.load_model(path)
    plain = keras.models.load_model(path)
    state = [np.array(variable) for variable in model.optimizer.variables]
    same = all(np.allclose(a, np.array(b)) for a, b in zip(state, loaded.optimizer.variables, strict=True))
    before = loaded.get_weights()[0].copy()
    loaded.fit(np.full((4, 2), hvd.rank()), np.ones(4), batch_size=4, verbose=0)
    return {
        "state kept": same,
        "loaded": [type(one.optimizer).__name__ for one in (loaded, plain)],
        "plain class": type(plain.optimizer) is keras.optimizers.Adam,
        "moved": bool((loaded.get_weights()[0] != before).any()),
    }


def normalize(_: str) -> dict[str, Any]:
    import tensorflow as tf

    import cargobike.compat.horovod.tensorflow as hvd

    everything = tf.constant([[0.0], [2.0], [4.0], [10.0]])
    layer = hvd.SyncBatchNormalization(momentum=0.0)
    result = layer(everything[:1] if hvd.rank() == 0 else everything[1:], training=True)
    with pytest.raises(ValueError, match="fused"):
        hvd.SyncBatchNormalization(fused=True)
    return {
        "normalized": hvd.allgather(result).numpy()[:, 0].round(3).tolist(),
        "moving": (layer.moving_mean.numpy().tolist(), layer.moving_variance.numpy().tolist()),
    }


def disagree(_: str) -> dict[str, Any]:
    import tensorflow as tf

    import cargobike.compat.horovod.tensorflow as hvd
    from cargobike.compat.horovod._tensorflow.crossing import last_failure

    own = tf.zeros([hvd.rank() + 2])
    try:
        hvd.allreduce(own, name="shapes")
        eager = ""
    except hvd.HorovodInternalError as error:
        eager = str(error)
    try:
        tf.function(lambda: hvd.allreduce(own, name="shapes"))()
    except tf.errors.OpError:
        pass
    with pytest.raises(RuntimeError, match=r"hvd.broadcast_variables\(model.variables"):
        hvd.broadcast_global_variables(0)
    with pytest.raises(RuntimeError, match=r"BroadcastGlobalVariablesCallback\(0\)"):
        hvd.BroadcastGlobalVariablesHook(0)
    last = int(hvd.join())
    return {"eager": eager, "graph error": type(last_failure()).__name__, "joined": last in (0, 1)}


@pytest.fixture(scope="module")
def seen(host: RankHost, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder: Path = tmp_path_factory.mktemp("models")
    return host.ranks(do_everything, deadline_s=200, folder=str(folder))


def test_tensors_are_reduced(seen: list[dict[str, Any]]) -> None:
    for rank in seen:
        assert (rank["mean"], rank["sum"], rank["max"], rank["scaled"]) == ([1.5, 3], [3, 6], [2, 4], [6, 12])
        assert (rank["half"], rank["bfloat16"]) == ("float32", [1.5, 3])
        assert rank["rows"] == [1.5, 0, 1, 2]
        assert rank["group"] == [[3, 6], [1]]
        assert (rank["object"], rank["function"], rank["objects"]) == ({"of": 1}, 1, ["a", "b"])
    assert [rank["scatter"] for rank in seen] == [[1, 3], [5]]


def test_rows_are_gathered_and_exchanged(seen: list[dict[str, Any]]) -> None:
    for rank in seen:
        assert rank["gathered"] == [[0], [1], [1]]
        assert (rank["gathers"], rank["broadcast"], rank["variable"]) == ([1, 4], [1], [1.0])
    assert seen[0]["alltoall"] == ([0, 10, 11, 12], [1, 3])
    assert seen[1]["alltoall"] == ([1, 2], [2, 0])
    assert [rank["even"] for rank in seen] == [[0, 1, 10, 11], [2, 3, 12, 13]]
    assert [rank["numbers"] for rank in seen] == [[0, 2, 2, 1], [1, 2, 2, 1]]


def test_graphs_are_traced_once_and_talk_at_each_call(seen: list[dict[str, Any]]) -> None:
    for number, rank in enumerate(seen):
        assert rank["graph"] == [[4.5, 9], [3, 6, 6, 12], [6, 12], 2, [4.5, 9][number : number + 1]]
        assert rank["traced"] == [True, False]
        assert rank["shapes"] == ([2], [2.0])


def test_collectives_have_gradients(seen: list[dict[str, Any]]) -> None:
    mean, total, parts = [1.5, 1.5], [3, 3], [2, 4]
    for number, rank in enumerate(seen):
        sent = [1.5, 1.5] if number == 1 else [0, 0]
        assert rank["gradients"] == [mean, total, sent, parts, [1, 2]]
        assert "no gradient" in rank["refused"]
    assert [rank["slice"] for rank in seen] == [[1.5], [3, 4.5]]


def test_tapes_give_gradients_of_all_ranks(seen: list[dict[str, Any]]) -> None:
    for number, rank in enumerate(seen):
        kept = [2.0 * (number + 1) / 2]
        assert rank["tape"] == [kept, [3], None, [1, 0.5, 0.5, 0]]
        assert rank["graph tape"] == [kept, [3]]
        own_rows = [1, 0, 0, 0]
        own_rows[number + 1] = 1
        assert rank["partial"] == [[6], [6], None, own_rows]
        assert rank["pairs"] == (1, [0.5])


def test_keras_trains_alike_on_all_ranks(seen: list[dict[str, Any]]) -> None:
    first, second = seen
    assert first["weights"] == second["weights"]
    assert first["history"] == second["history"]
    assert first["history"][0][-1] < first["history"][0][0]
    assert first["rates"] == pytest.approx([0.15, 0.2, 0.2])
    assert (first["steps"], first["called"], first["lr"]) == (12, True, pytest.approx(0.2))
    assert first["values"] == (0.5, [1])


def test_weights_change_after_some_passes(seen: list[dict[str, Any]]) -> None:
    for rank in seen:
        assert rank["passes"] == pytest.approx([0, 0, -4.5, -4.5, -4.5, -9, -9])
        assert rank["mean passes"] == pytest.approx([0, 0, -1.5, -1.5, -1.5, -3, -3])
        assert rank["config"]
        assert rank["exchanges again"]
        assert rank["mistakes"] == 2


def test_losses_are_minimized_by_the_gradients_of_all_ranks(seen: list[dict[str, Any]]) -> None:
    assert [rank["minimized"] for rank in seen] == [[-1.5, -3.0]] * 2


def test_layers_can_stay_local(seen: list[dict[str, Any]]) -> None:
    assert [rank["local"] for rank in seen] == [[-1, -3], [-2, -3]]


def test_models_are_loaded_with_their_optimizers(seen: list[dict[str, Any]]) -> None:
    for rank in seen:
        assert rank["state kept"]
        assert rank["loaded"] == ["Adam", "Adam"]
        assert rank["plain class"]
        assert rank["moved"]


def test_batches_of_all_ranks_are_normalized(seen: list[dict[str, Any]]) -> None:
    for rank in seen:
        assert rank["normalized"] == pytest.approx([-1.069, -0.535, 0.0, 1.604], abs=0.002)
        assert rank["moving"] == ([4.0], [14.0])


def test_ranks_that_disagree_are_named(seen: list[dict[str, Any]]) -> None:
    for rank in seen:
        assert "rank" in rank["eager"].lower()
        assert rank["graph error"] == "HorovodInternalError"
        assert rank["joined"]
