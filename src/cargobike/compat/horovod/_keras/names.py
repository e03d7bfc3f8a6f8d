"""What `horovod.keras` and `horovod.tensorflow.keras` both have: Keras 3 is what either means now."""

from __future__ import annotations

from cargobike.compat.horovod._keras.compression import Compression
from cargobike.compat.horovod._keras.loading import load_model
from cargobike.compat.horovod._keras.older_arguments import tolerate
from cargobike.compat.horovod._keras.optimizer import DistributedOptimizer, PartialDistributedOptimizer
from cargobike.compat.horovod._keras.values import allgather, allreduce, broadcast, reducescatter
from cargobike.compat.horovod.common.basics import (
    cross_rank,
    cross_size,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from cargobike.compat.horovod.common.built import (
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rocm_built,
)
from cargobike.compat.horovod.common.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from cargobike.compat.horovod.common.reductions import Adasum, Average, Max, Min, Product, Sum
from cargobike.compat.horovod.common.sessions import broadcast_global_variables

__all__ = [
    "Adasum",
    "Average",
    "Compression",
    "DistributedOptimizer",
    "Max",
    "Min",
    "PartialDistributedOptimizer",
    "ProcessSet",
    "Product",
    "Sum",
    "add_process_set",
    "allgather",
    "allreduce",
    "broadcast",
    "broadcast_global_variables",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "init",
    "is_homogeneous",
    "is_initialized",
    "load_model",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "reducescatter",
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
]

tolerate()
