"""What the calls of Horovod are called here: those of `horovod.torch` and what all front ends share."""

from __future__ import annotations

from typing import Final

from cargobike.compat.translations import Translation

_PREPARE: Final = "cargobike.torch.prepare"
_REDUCE: Final = "cargobike.torch.all_reduce"
_NOTHING: Final = "Nothing to call: a function that `experiment.allreduce` runs has joined its gang already."
_AS_IS: Final = "Use it under this name: our own training needs no such call."


def _torch(name: str, new: str = "", remark: str = "", **more: object) -> Translation:
    return Translation(f"horovod.torch.{name}", new, remark=remark, **more)  # type: ignore[arg-type]


def _several(names: str, new: str = "", remark: str = _AS_IS) -> tuple[Translation, ...]:
    return tuple(_torch(name, new, remark) for name in names.split())


TORCH: Final[tuple[Translation, ...]] = (
    _torch("init", "", _NOTHING, positional=("comm", "process_sets")),
    _torch("shutdown", "", "Nothing to call: a rank leaves its gang when its function returns."),
    _torch("is_initialized", "", "Nothing to ask: see `trial.is_distributed`."),
    _torch("rank", "cargobike.torch.rank", same=True),
    _torch("size", "cargobike.torch.world_size", same=True),
    _torch("local_rank", "cargobike.trial.local_rank", "A value, not a call. `rank` 0 writes files, not local rank 0."),
    _torch("local_size", "", "Ranks of a host are placed by the engine; `cargobike.devices` gives this rank's GPUs."),
    *_several("cross_rank cross_size is_homogeneous", "", "Hosts are the engine's business; works under this name."),
    *_several("Average Sum Min Max", _REDUCE, "Give `op` as text: `mean`, `sum`, `min`, `max`."),
    *_several("Adasum Product"),
    _torch(
        "allreduce",
        _REDUCE,
        "Mean by default, as before; `op` is text; matched by the order of calls, so it has no name.",
        positional=("tensor", "average", "name", "compression", "op", "prescale_factor", "postscale_factor"),
        renamed={"tensor": "value"},
        dropped=frozenset({"name", "compression"}),
        same=True,
        accepts=frozenset({"tensor", "name"}),
    ),
    *_several(
        "allreduce_ allreduce_async allreduce_async_ grouped_allreduce grouped_allreduce_ grouped_allreduce_async "
        "grouped_allreduce_async_ sparse_allreduce_async",
        _REDUCE,
        "One form: returns a new tensor when it is done. The others work under this name.",
    ),
    *_several(
        "allgather allgather_async grouped_allgather grouped_allgather_async broadcast broadcast_ broadcast_async "
        "broadcast_async_ alltoall alltoall_async reducescatter reducescatter_async grouped_reducescatter "
        "grouped_reducescatter_async poll synchronize"
    ),
    _torch("join", _PREPARE, "Give `uneven='join'`: ranks that have no more data keep answering the others."),
    _torch(
        "barrier", "cargobike.torch.barrier", positional=("process_set",), dropped=frozenset({"process_set"}), same=True
    ),
    _torch(
        "broadcast_parameters", _PREPARE, "All ranks begin with rank 0's weights.", positional=("params", "root_rank")
    ),
    _torch(
        "broadcast_optimizer_state",
        _PREPARE,
        "All ranks begin with rank 0's state.",
        positional=("optimizer", "root_rank", "model"),
    ),
    _torch("broadcast_object", "", _AS_IS, positional=("obj", "root_rank", "name", "process_set")),
    _torch("allgather_object", "", _AS_IS, positional=("obj", "name")),
    _torch(
        "DistributedOptimizer",
        _PREPARE,
        "`prepare(model, optimizer, loader)`: strategies, compression and accumulation are its arguments.",
        positional=(
            "optimizer",
            "named_parameters",
            "compression",
            "backward_passes_per_step",
            "op",
            "gradient_predivide_factor",
            "num_groups",
            "groups",
            "sparse_as_dense",
            "process_set",
        ),
        renamed={"backward_passes_per_step": "accumulate"},
    ),
    _torch("Compression", "cargobike.torch.DDP", "`DDP(compression='bf16')`, also top-k and PowerSGD."),
    _torch("SyncBatchNorm", "", "`torch.nn.SyncBatchNorm` on GPUs; this one also works on CPUs."),
    *_several("ProcessSet global_process_set add_process_set remove_process_set"),
    _torch("start_timeline", "", "Use it under this name; `torch.profiler` shows what a rank computes."),
    _torch("stop_timeline", "", "Use it under this name."),
    *_several(
        "nccl_built gloo_built mpi_built cuda_built rocm_built ccl_built ddl_built mpi_enabled gloo_enabled "
        "mpi_threads_supported",
        "",
        "Tells the truth about the installed torch; there is no MPI here.",
    ),
    _torch("HorovodInternalError", "cargobike.errors.WaitError", "Raised where ranks are missing or gone."),
    Translation("horovod.mxnet", "", remark="MXNet is no longer developed; move the model to torch or Keras."),
    Translation("horovod.ray", "", remark="Use `experiment.allreduce(f, workers=n)`, on local workers or Spark."),
)
