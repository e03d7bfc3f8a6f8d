"""What the calls of Horovod are called here: those of `horovod.tensorflow`, `horovod.keras` and Spark's Estimators."""

from __future__ import annotations

from typing import Final

from cargobike.compat.translations import Translation

_FRONTS = ("horovod.tensorflow", "horovod.tensorflow.keras", "horovod.keras")
_KERAS = _FRONTS[1:]

_PLACE = {
    "rank": ("cargobike.trial.rank", "a value, without ()"),
    "size": ("cargobike.trial.world_size", "a value, without ()"),
    "local_rank": ("cargobike.trial.local_rank", "a value, without ()"),
    "init": ("", "not needed: a train function knows its gang"),
    "shutdown": ("", "not needed: a gang ends with its train function"),
}
_BY_PREPARE = "prepare averages gradients, and takes over rank 0's weights"
_NO_GRAPH = "in a graph of TensorFlow stay with this room: our own collectives are for numbers and torch"


def _everywhere(fronts: tuple[str, ...], name: str, new: str, remark: str) -> list[Translation]:
    return [Translation(f"{front}.{name}", new, remark=remark) for front in fronts]


def _places() -> list[Translation]:
    return [one for name, (new, remark) in _PLACE.items() for one in _everywhere(_FRONTS, name, new, remark)]


_TENSORFLOW: Final = (
    Translation(
        "horovod.tensorflow.allreduce",
        "cargobike.trial.all_reduce",
        positional=("tensor", "average", "device_dense", "device_sparse", "compression", "op"),
        renamed={"tensor": "value"},
        dropped=frozenset({"device_dense", "device_sparse", "ignore_name_scope", "name"}),
        remark=f"for numbers; {_NO_GRAPH}",
    ),
    *(
        Translation(f"horovod.tensorflow.{name}", "", remark=_NO_GRAPH)
        for name in (
            *("grouped_allreduce", "allgather", "grouped_allgather", "broadcast", "broadcast_", "alltoall"),
            *("reducescatter", "grouped_reducescatter", "broadcast_object", "broadcast_object_fn"),
            *("allgather_object", "join", "SyncBatchNormalization"),
            *("rank_op", "size_op", "local_rank_op", "local_size_op", "process_set_included_op"),
        )
    ),
    Translation(
        "horovod.tensorflow.broadcast_variables",
        "cargobike.keras.prepare",
        positional=("variables", "root_rank", "process_set", "inplace"),
        remark=_BY_PREPARE,
    ),
    Translation(
        "horovod.tensorflow.DistributedGradientTape",
        "cargobike.keras.prepare",
        positional=("gradtape",),
        remark="prepare the optimizer instead, and use the tape as it is: optimizer.apply_gradients averages",
    ),
    Translation(
        "horovod.tensorflow.PartialDistributedGradientTape",
        "",
        remark="prepare averages all gradients; keep layers local by this room",
    ),
    Translation(
        "horovod.tensorflow.DistributedOptimizer",
        "cargobike.keras.prepare",
        positional=("optimizer", "name", "use_locking", "device_dense", "device_sparse"),
        remark=_BY_PREPARE,
    ),
    Translation(
        "horovod.tensorflow.BroadcastGlobalVariablesHook",
        "",
        remark="TensorFlow 1: hvd.broadcast_variables(model.variables + optimizer.variables, root_rank=0)",
    ),
    Translation(
        "horovod.tensorflow.elastic.TensorFlowKerasState",
        "cargobike.trial.checkpoint.save",
        remark="experiment.allreduce starts again from the last checkpoint when a worker is lost",
    ),
    Translation(
        "horovod.tensorflow.elastic.TensorFlowState",
        "cargobike.trial.checkpoint.save",
        remark="experiment.allreduce starts again from the last checkpoint when a worker is lost",
    ),
    Translation(
        "horovod.tensorflow.elastic.run",
        "cargobike.experiment.allreduce",
        remark="with checkpoints it goes on when workers are lost",
    ),
    Translation(
        "horovod.tensorflow.data.compute_service",
        "",
        remark="not supported: give the function its data by experiment.allreduce(train, data=...)",
    ),
)


def _keras() -> list[Translation]:
    callbacks = {
        "BroadcastGlobalVariablesCallback": ("cargobike.keras.prepare", _BY_PREPARE),
        "MetricAverageCallback": ("cargobike.trial.all_reduce", "on a dict of the metrics, where they are reported"),
        "LearningRateWarmupCallback": ("", "keras.optimizers.schedules has warm-up; or keep this one"),
        "LearningRateScheduleCallback": ("", "keras.callbacks.LearningRateScheduler; or keep this one"),
        "BestModelCheckpoint": ("cargobike.trial.checkpoint.keep", "trial.checkpoint.keep(best=1)"),
    }
    elastic = {
        "KerasState": ("cargobike.trial.checkpoint.save", "a gang goes on from its last checkpoint"),
        "CommitStateCallback": ("cargobike.trial.checkpoint.save", "a gang goes on from its last checkpoint"),
        "UpdateBatchStateCallback": ("", "data.Loader knows where it is, and goes on there"),
        "UpdateEpochStateCallback": ("", "data.Loader knows where it is, and goes on there"),
        "run": ("cargobike.experiment.allreduce", "with checkpoints it goes on when workers are lost"),
    }
    names = {
        "DistributedOptimizer": ("cargobike.keras.prepare", _BY_PREPARE),
        "PartialDistributedOptimizer": ("", "prepare averages all gradients; keep layers local by this room"),
        "allreduce": ("cargobike.trial.all_reduce", "for numbers"),
        "allgather": ("", "our own collectives combine numbers; keep this one"),
        "broadcast": ("", "our own collectives combine numbers; keep this one"),
        "reducescatter": ("", "our own collectives combine numbers; keep this one"),
        "load_model": ("cargobike.keras.prepare", "on keras.models.load_model(path), before it is trained on"),
        **{f"callbacks.{name}": said for name, said in callbacks.items()},
        **{f"elastic.{name}": said for name, said in elastic.items()},
    }
    return [one for name, (new, remark) in names.items() for one in _everywhere(_KERAS, name, new, remark)]


_SPARK: Final = (
    Translation(
        "horovod.spark.torch.TorchEstimator",
        "cargobike.spark.Estimator",
        remark="takes a train function and a predict function in place of model, optimizer and loss",
    ),
    Translation(
        "horovod.spark.keras.KerasEstimator",
        "cargobike.spark.Estimator",
        remark="takes a train function and a predict function in place of model, optimizer and loss",
    ),
    Translation(
        "horovod.spark.lightning.TorchEstimator",
        "cargobike.spark.Estimator",
        remark="not supported under this name: a train function with lightning.Trainer(...).fit(model)",
    ),
    *(
        Translation(
            f"horovod.spark.common.store.{name}", "", remark="our Estimator keeps data and models in the project"
        )
        for name in ("Store.create", "LocalStore", "FilesystemStore", "HDFSStore", "DBFSLocalStore")
    ),
    Translation(
        "horovod.spark.common.backend.SparkBackend",
        "cargobike.spark.Estimator",
        positional=("num_proc", "env"),
        renamed={"num_proc": "workers"},
        remark="Estimator(..., workers=4, engine='spark')",
    ),
)

_SESSIONS: Final = _everywhere(
    _FRONTS,
    "broadcast_global_variables",
    "",
    "TensorFlow 1: hvd.broadcast_variables(model.variables + optimizer.variables, root_rank=0)",
)

KERAS: Final[tuple[Translation, ...]] = (*_places(), *_TENSORFLOW, *_keras(), *_SESSIONS, *_SPARK)
