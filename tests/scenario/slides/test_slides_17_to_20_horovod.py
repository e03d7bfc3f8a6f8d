"""Slides 17 to 20: a GPU for each rank, an optimizer for all of them, its step, and checkpoints by rank 0.

The four are lines of one script, which is here in its form for TensorFlow 2. It runs alone, and then goes on with two
ranks; each test looks at what became of one line.
"""

from __future__ import annotations

import os

import pytest

from cargobike import experiment
from cargobike.compat.hops import experiment as hops
from cargobike.core import settings
from support.slide_functions import pinned_device, saving_on_every_rank

RATE, MOMENTUM = 0.1, 0.5
WEIGHTS = ("began", "first", "last")
Seen = list[dict[str, float]]


def train(folder: str, steps: int) -> dict[str, float]:
    os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3")
    import keras
    import tensorflow as tf

    import cargobike.compat.horovod.tensorflow as hvd

    hvd.init()
    gpus = os.environ["CUDA_VISIBLE_DEVICES"].split(",")  # made up: parts of the CPU stand for them
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration() for _ in gpus])
    with tf.device(tf.config.list_logical_devices("CPU")[hvd.local_rank()]):
        start = keras.initializers.Constant(5.0 + hvd.rank())
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer=start)])
        optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(RATE, momentum=MOMENTUM))
        optimizer.build(model.trainable_variables)
        checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
        if hvd.rank() == 0 and (newest := tf.train.latest_checkpoint(folder)):
            checkpoint.restore(newest).assert_existing_objects_matched()
        hvd.broadcast_variables(model.variables + optimizer.variables, root_rank=0)
        weights = [float(model.get_weights()[0].item())]
        for _ in range(steps):
            optimizer.minimize(
                lambda: tf.reduce_sum((model(tf.ones([1, 1])) - hvd.rank()) ** 2), model.trainable_variables
            )
            weights.append(float(model.get_weights()[0].item()))
        if hvd.rank() == 0:
            checkpoint.save(f"{folder}/model")
        device = int((tf.ones([]) + 1.0).device[-1])
    return {"gpus": len(gpus), "device": device, "began": weights[0], "first": weights[1], "last": weights[-1]}


def descend(weight: float, speed: float, goal: float) -> tuple[float, float]:
    """Return the weight and the speed after a step of SGD with momentum, towards the mean of all ranks' goals."""
    speed = MOMENTUM * speed - RATE * 2 * (weight - goal)
    return weight + speed, speed


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Return what the script saw alone, and then as each of two ranks that go on where it ended."""
    folder = str(tmp_path_factory.mktemp("checkpoints"))
    found: Seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(settings.FAKE_GPUS, "0,1")
        for ranks, steps in ((1, 2), (2, 30)):
            params = {"folder": folder, "steps": steps}
            run = experiment.allreduce(train, params=params, workers=ranks, resources={"gpus": 1}, quiet=True)
            found += run.values
    return found


def test_17_each_rank_computes_on_a_device_of_its_own(seen: Seen) -> None:
    assert [(one["gpus"], one["device"]) for one in seen] == [(1, 0), (2, 0), (2, 1)]


def test_17_a_rank_may_see_no_other_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.FAKE_GPUS, "0,1")
    monkeypatch.setenv(settings.COMPAT_WORKERS, "2")
    seen_alone = hops.collective_all_reduce(pinned_device).result.values
    assert [(one["visible"], one["device"]) for one in seen_alone] == [(1, 0), (1, 1)]


def test_18_ranks_begin_alike_and_stay_alike(seen: Seen) -> None:
    _, first, second = seen
    assert [first[name] for name in WEIGHTS] == [second[name] for name in WEIGHTS]
    assert first["last"] == pytest.approx(0.5, abs=0.01), "the best for both ranks, not for one"


def test_19_one_step_is_the_mean_of_all_gradients(seen: Seen) -> None:
    alone, *ranks = seen
    state = descend(5.0, 0.0, goal=0.0)
    assert alone["first"] == pytest.approx(state[0])
    after = descend(*descend(*state, goal=0.0), goal=0.5)
    assert [rank["first"] for rank in ranks] == pytest.approx([after[0]] * 2), "with the momentum that was saved"


def test_20_rank_0_saves_and_other_numbers_of_ranks_go_on(seen: Seen) -> None:
    alone, *ranks = seen
    assert alone["began"] == 5.0
    assert [rank["began"] for rank in ranks] == [alone["last"]] * 2


def test_20_what_all_ranks_save_is_one_checkpoint() -> None:
    run = experiment.allreduce(saving_on_every_rank, workers=2, quiet=True)
    checkpoint = run.trials[0].checkpoint
    assert checkpoint is not None
    assert checkpoint.load() == {"rank": 0}
    assert [one.step for one in checkpoint.all()] == [1]
    assert [(one["ranks"], one["saved_by"]) for one in run.values] == [(2, 0), (2, 0)]
