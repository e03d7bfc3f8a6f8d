"""Sparse tensors over ranks: what all have is gathered, and added up where indices meet."""

from __future__ import annotations

from collections.abc import Callable

import torch

from cargobike.compat.horovod.common import operations
from cargobike.compat.horovod.common.process_sets import ProcessSet, global_process_set
from cargobike.compat.horovod.common.reductions import Average, ReduceOp, Sum, choose_op
from cargobike.core.errors import InvalidInputError


def sparse_allreduce_async(
    tensor: torch.Tensor,
    name: str | None,
    op: ReduceOp | int,
    process_set: ProcessSet = global_process_set,
) -> Callable[[], torch.Tensor]:
    """Begin to reduce a sparse tensor over ranks; returns what gives the result when it is called."""
    chosen = choose_op(op)
    if chosen not in (Average, Sum):
        raise InvalidInputError(f"sparse tensors can be reduced with Average and Sum, not with {chosen.name.title()}.")
    own = tensor.detach() if tensor.is_coalesced() else tensor.detach().coalesce()
    parts = [own.indices().t().contiguous(), own.values()]
    pending = operations.gathering(parts, name and f"{name}.sparse", process_set).begin()

    def result() -> torch.Tensor:
        indices, values = pending.result()
        if chosen == Average:
            values = values / (process_set.size() or 1)
        return torch.sparse_coo_tensor(indices.t(), values, tensor.shape, check_invariants=False).coalesce()

    return result
