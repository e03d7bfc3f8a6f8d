"""What the slides put between their imports and their calls, with a few numbers in place of networks."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from cargobike import trial
from cargobike.compat.hops import devices, tensorboard


def model(lr: float, dropout: float) -> float:
    """Stand for a network whose accuracy is best at 0.001 and 0.5."""
    print(f"lr {lr} dropout {dropout}")
    return 1.0 - abs(math.log10(lr) + 3.0) / 10 - abs(dropout - 0.5)


def train(learning_rate: float, dropout: float) -> float:
    """Do the same by the names of the second deck."""
    Path(tensorboard.logdir(), "events.out").write_text(f"{learning_rate} {dropout}")
    return model(learning_rate, dropout)


def devices_of_this_worker() -> dict[str, float]:
    """Say what this worker may compute on."""
    return {"gpus": devices.get_num_gpus(), "rank": trial.rank}


def distributed_training() -> dict[str, Any]:
    """Average one number over all workers, as a strategy does with gradients."""
    config = json.loads(os.environ["TF_CONFIG"])
    mean = trial.all_reduce(float(trial.rank), op="mean")
    servers = len(config["cluster"].get("ps", ()))
    return {"loss": mean, "workers": trial.world_size, "servers": servers, "role": config["task"]["type"]}


def fit_share(data: Any, model: dict[str, float]) -> dict[str, float]:
    """Fit a slope to this worker's share of the data, and average over all."""
    rows, top, bottom = 0, 0.0, 0.0
    for batch in data:
        rows += len(batch["x"])
        top += float((batch["x"] * batch["y"]).sum())
        bottom += float((batch["x"] ** 2).sum())
    everything = trial.all_reduce(rows, op="sum")
    slope = trial.all_reduce(top, op="sum") / trial.all_reduce(bottom, op="sum")
    return {"rows": everything, "slope": slope, "start": model["start"]}


def mirrored_training() -> dict[str, float]:
    """Train a line with `MultiWorkerMirroredStrategy`, the form of `CollectiveAllReduceStrategy` in TensorFlow 2."""
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weight = tf.Variable(0.0)

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types
    def step() -> Any:
        def replica() -> Any:
            context = tf.distribute.get_replica_context()
            rank = tf.cast(context.replica_id_in_sync_group, tf.float32)
            x = rank + 1.0
            gradient = 2.0 * x * (weight * x - 3.0 * x)
            weight.assign_sub(0.05 * context.all_reduce(tf.distribute.ReduceOp.MEAN, gradient))
            return (weight - 3.0) ** 2

        return strategy.reduce(tf.distribute.ReduceOp.MEAN, strategy.run(replica), axis=None)

    loss = 0.0
    for _ in range(30):
        loss = float(step())
    return {"loss": loss, "replicas": strategy.num_replicas_in_sync}


def horovod_place() -> dict[str, float]:
    """Say which rank this is in Horovod's words."""
    import cargobike.compat.horovod.torch as hvd

    hvd.init()
    return {"rank": hvd.rank(), "size": hvd.size()}


def pinned_device() -> dict[str, float]:
    """Take the GPU of this rank, as `visible_device_list = str(hvd.local_rank())` did, or the only one."""
    import cargobike.compat.horovod.torch as hvd

    hvd.init()
    names = devices.get_gpu_uuid()
    return {"visible": len(names), "device": float(names[hvd.local_rank() if len(names) > 1 else 0])}


def saving_on_every_rank() -> dict[str, float]:
    """Save from all ranks to what each calls the same checkpoint, and load it again."""
    trial.checkpoint.save({"rank": trial.rank}, step=1)
    trial.barrier()
    return {"ranks": trial.world_size, "saved_by": trial.checkpoint.load()["rank"]}
