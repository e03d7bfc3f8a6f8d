"""Operations whose gradient autograd knows: that of a reduction is a reduction, that of a gathering is an own part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from cargobike.compat.horovod.common import collectives, operations
from cargobike.compat.horovod.common.process_sets import ProcessSet
from cargobike.compat.horovod.common.reductions import Average, ReduceOp, Sum
from cargobike.core.errors import InvalidInputError

Context = Any


class Reduction(torch.autograd.Function):  # type: ignore[misc]
    """Reduces tensors over ranks; so do gradients."""

    @staticmethod
    def forward(
        ctx: Context,
        name: str | None,
        op: ReduceOp,
        scales: tuple[float, float],
        of: ProcessSet,
        *tensors: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Reduce."""
        ctx.asked = (name, op, scales, of)
        return tuple(operations.reduction(tensors, name, op, scales[0], scales[1], of).run())

    @staticmethod
    def backward(ctx: Context, *gradients: torch.Tensor) -> tuple[Any, ...]:
        """Reduce the gradients in the same way."""
        name, op, scales, of = ctx.asked
        if op not in (Average, Sum):
            raise InvalidInputError(f"allreduce with op=hvd.{op.name.title()} has no gradient; Average and Sum have.")
        label = name and f"{name}.gradient"
        return (None, None, None, None, *operations.reduction(gradients, label, op, scales[0], scales[1], of).run())


class Gathering(torch.autograd.Function):  # type: ignore[misc]
    """Concatenates tensors of ranks; each gets the mean of the gradients of its own rows."""

    @staticmethod
    def forward(ctx: Context, name: str | None, of: ProcessSet, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Concatenate."""
        ctx.asked = (name, of, [tuple(tensor.shape) for tensor in tensors])
        return tuple(operations.gathering(tensors, name, of).run())

    @staticmethod
    def backward(ctx: Context, *gradients: torch.Tensor) -> tuple[Any, ...]:
        """Average the gradients over ranks and cut out the own rows."""
        name, of, shapes = ctx.asked
        averaged = operations.reduction(gradients, name and f"{name}.gradient", Average, process_set=of).run()
        own = torch.tensor([shape[0] if shape else 1 for shape in shapes])
        rows = collectives.allgather(own.reshape(1, -1), name and f"{name}.rows", process_set=of)
        start = rows[: of.rank()].sum(0)
        cut = [g[int(b) : int(b) + int(n)] for g, b, n in zip(averaged, start, own, strict=True)]
        return (None, None, *(piece.reshape(shape) for piece, shape in zip(cut, shapes, strict=True)))


class Broadcasting(torch.autograd.Function):  # type: ignore[misc]
    """Gives all ranks the tensor of one, which gets the mean of all gradients."""

    @staticmethod
    def forward(ctx: Context, tensor: torch.Tensor, root_rank: int, name: str | None, of: ProcessSet) -> torch.Tensor:
        """Broadcast."""
        ctx.asked = (root_rank, name, of)
        received: torch.Tensor = collectives.broadcast(tensor, root_rank, name, of)
        return received

    @staticmethod
    def backward(ctx: Context, gradient: torch.Tensor) -> tuple[Any, ...]:
        """Average the gradients for the root; others get zeros."""
        root_rank, name, of = ctx.asked
        averaged = collectives.allreduce(gradient, name and f"{name}.gradient", Average, process_set=of)
        is_root = (of.ranks or [])[of.rank() or 0] == root_rank
        return averaged if is_root else averaged * 0, None, None, None


class Exchange(torch.autograd.Function):  # type: ignore[misc]
    """Sends rows to each rank; gradients go back the way the rows came."""

    @staticmethod
    def forward(
        ctx: Context, tensor: torch.Tensor, splits: Any, name: str | None, of: ProcessSet
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Exchange."""
        received, counts = collectives.alltoall(tensor, splits, name, of)
        ctx.asked = (counts, name, of)
        ctx.mark_non_differentiable(counts)
        return received, counts

    @staticmethod
    def backward(ctx: Context, gradient: torch.Tensor, _: torch.Tensor) -> tuple[Any, ...]:
        """Send each gradient to where its row came from."""
        counts, name, of = ctx.asked
        returned, _ = collectives.alltoall(gradient, counts, name and f"{name}.gradient", of)
        return returned, None, None, None


class Scattering(torch.autograd.Function):  # type: ignore[misc]
    """Reduces tensors and gives each rank some rows; gradients are gathered from all."""

    @staticmethod
    def forward(
        ctx: Context,
        name: str | None,
        op: ReduceOp,
        scales: tuple[float, float],
        of: ProcessSet,
        *tensors: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Reduce and divide."""
        ctx.asked = (name, op, scales, of)
        return tuple(operations.scattering(tensors, name, op, of, *scales).run())

    @staticmethod
    def backward(ctx: Context, *gradients: torch.Tensor) -> tuple[Any, ...]:
        """Gather the gradients of all rows; that of a sum counts for every rank."""
        name, op, scales, of = ctx.asked
        if op not in (Average, Sum):
            raise InvalidInputError(f"reducescatter with op=hvd.{op.name.title()} has no gradient.")
        factor = scales[0] * scales[1] * ((of.size() or 1) if op == Sum else 1)
        gathered: Sequence[torch.Tensor] = operations.gathering(gradients, name and f"{name}.gradient", of).run()
        return (None, None, None, None, *(each * factor for each in gathered))
