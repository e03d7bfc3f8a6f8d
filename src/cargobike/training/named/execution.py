"""Moves the tensors of operations that all ranks of a set have agreed on, in the order that they agreed on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import torch
import torch.distributed as dist

from cargobike.training.named.adasum import combine_adaptively
from cargobike.training.named.lane import Lane
from cargobike.training.named.requests import Agreed, Request

Finish = Callable[[], list[list[Any]]]
"""Waits for operations that were begun, and returns what each gives."""

_OPERATIONS = {
    "average": dist.ReduceOp.AVG,
    "sum": dist.ReduceOp.SUM,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
    "product": dist.ReduceOp.PRODUCT,
}
_WIDER = {torch.int16: torch.int32, torch.bool: torch.uint8}
_CARRIED = frozenset({torch.float16, torch.float32, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64})
"""Types that every backend moves; others travel as their bytes where nothing is computed with them."""
_FUSED_BYTES = 1 << 22


def fused(frame: Sequence[Agreed]) -> list[list[Agreed]]:
    """Return which of the operations that were decided together travel as one: small reductions of a kind."""
    groups: list[list[Agreed]] = []
    total = 0
    for agreed in frame:
        size = sum(math.prod(shape) for shape in agreed.request.shapes) * 8
        alike = groups and _kind_of_reduction(groups[-1][0]) == _kind_of_reduction(agreed) is not None
        if alike and total + size <= _FUSED_BYTES:
            groups[-1].append(agreed)
            total += size
        else:
            groups.append([agreed])
            total = size
    return groups


def _kind_of_reduction(agreed: Agreed) -> object:
    request = agreed.request
    if request.kind != "allreduce" or agreed.error or agreed.is_foreseen:  # not all ranks find these in one frame
        return None
    return request.of, request.op, request.scales, request.device, agreed.joined


def begin(together: list[Agreed], tensors: list[list[torch.Tensor]], lane: Lane) -> Finish | None:
    """Begin operations that travel as one; `None` if there is nothing to move.

    All of them are handed to the backend here, since it matches what ranks do by the order in which it is begun.
    `allreduce` and `broadcast` change the tensors that they are given, and return them.
    """
    agreed, own = together[0], tensors[0]
    kind = agreed.request.kind
    if kind == "allreduce":
        return _reduce_all(agreed.request, tensors, lane)
    if kind == "broadcast":
        root = lane.ranks.index(agreed.request.root)
        return _all([_broadcast(tensor, lane, root) for tensor in own])
    if kind == "allgather":
        return _all([_gather(tensor, lane, rows) for tensor, rows in zip(own, agreed.rows, strict=True)])
    if kind == "alltoall":
        return _all([_exchange(own[0], lane, agreed.splits)])
    if kind == "reducescatter":
        return _all([_scatter(agreed.request, tensor, lane) for tensor in own])
    return None


def _all(finishes: list[Callable[[], Any]]) -> Finish:
    """Return what waits for the tensors of one operation."""
    return lambda: [[finish() for finish in finishes]]


def zeros_for(request: Request) -> list[torch.Tensor]:
    """Return what a rank that has no more data gives to a reduction: what changes nothing in the others' result."""
    filled = []
    for shape, name in zip(request.shapes, request.dtypes, strict=True):
        dtype = getattr(torch, name)
        value: float = 1 if request.op == "product" else 0
        if request.op in ("min", "max"):
            limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
            value = limits.max if request.op == "min" else limits.min
        filled.append(torch.full(shape, value, dtype=dtype, device=request.device))
    return filled


def _reduce_all(request: Request, tensors: list[list[torch.Tensor]], lane: Lane) -> Finish:
    """Begin to reduce tensors in place; several of a type travel as one."""
    by_type: dict[torch.dtype, list[torch.Tensor]] = {}
    for tensor in chain(*tensors):
        by_type.setdefault(tensor.dtype, []).append(tensor)
    finishes = [_reduce_alike(request, same, lane) for same in by_type.values()]

    def finish_all() -> list[list[Any]]:
        for finish in finishes:
            finish()
        return tensors

    return finish_all


def _reduce_alike(request: Request, same: list[torch.Tensor], lane: Lane) -> Callable[[], None]:
    lengths = [tensor.numel() for tensor in same]
    if len(same) == 1 and same[0].is_contiguous():
        return _reduce(same[0], request, lane, lengths)
    flat = torch.cat([tensor.reshape(-1) for tensor in same])
    finish = _reduce(flat, request, lane, lengths)

    def divide() -> None:
        finish()
        for tensor, piece in zip(same, flat.split(lengths), strict=True):
            tensor.copy_(piece.view(tensor.shape))

    return divide


def _reduce(tensor: torch.Tensor, request: Request, lane: Lane, lengths: Sequence[int]) -> Callable[[], None]:
    """Begin to reduce one tensor that lies in one piece, in place."""
    before, after = request.scales
    op = request.op
    _scale(tensor, before)
    if lane.size == 1 or not tensor.numel():
        return lambda: _scale(tensor, after)
    if op == "adasum":
        combine_adaptively(tensor, lane, lengths, after)  # several rounds, between which nothing else may begin
        return lambda: None
    truncates = op == "average" and not tensor.is_floating_point()
    wide = tensor.to(_WIDER[tensor.dtype]) if tensor.dtype in _WIDER else tensor
    options = dist.AllreduceOptions()
    options.reduceOp = _OPERATIONS["sum" if truncates else op]
    work = lane.group(tensor).allreduce([wide], options)

    def finish() -> None:
        work.wait()
        if truncates:
            wide.div_(lane.size, rounding_mode="trunc")
        if wide is not tensor:
            tensor.copy_(wide)
        _scale(tensor, after)

    return finish


def _scale(tensor: torch.Tensor, factor: float) -> None:
    if factor == 1.0:
        return
    if tensor.is_floating_point() or tensor.is_complex():
        tensor.mul_(factor)
    else:
        tensor.copy_((tensor.double() * factor).trunc())


def _broadcast(tensor: torch.Tensor, lane: Lane, root: int) -> Callable[[], torch.Tensor]:
    if lane.size == 1 or not tensor.numel():
        return lambda: tensor
    options = dist.BroadcastOptions()
    options.rootRank = root
    whole = tensor if tensor.is_contiguous() else tensor.contiguous()
    work = lane.group(tensor).broadcast([_carried(whole)], options)

    def finish() -> torch.Tensor:
        work.wait()
        return tensor if whole is tensor else tensor.copy_(whole)

    return finish


def _gather(tensor: torch.Tensor, lane: Lane, rows: Sequence[int]) -> Callable[[], torch.Tensor]:
    """Begin to concatenate what all ranks have; those with fewer rows send some that are thrown away."""
    if lane.size == 1:
        copy = tensor.clone()
        return lambda: copy
    most = max(rows)
    rest = tensor.shape[1:]
    sent = tensor.contiguous()
    if tensor.shape[0] < most:
        sent = tensor.new_zeros((most, *rest))
        sent[: tensor.shape[0]] = tensor
    received = tensor.new_empty((most * lane.size, *rest))
    if not received.numel():
        return lambda: received
    work = lane.group(tensor)._allgather_base(_carried(received), _carried(sent))

    def finish() -> torch.Tensor:
        work.wait()
        if len(set(rows)) == 1:
            return received
        return torch.cat([received[i * most : i * most + count] for i, count in enumerate(rows)])

    return finish


def _exchange(
    tensor: torch.Tensor, lane: Lane, splits: Sequence[Sequence[int]]
) -> Callable[[], tuple[torch.Tensor, list[int]]]:
    own = list(splits[lane.position])
    incoming = [row[lane.position] for row in splits]
    if lane.size == 1:
        return lambda: (tensor.clone(), incoming)
    received = tensor.new_empty((sum(incoming), *tensor.shape[1:]))
    width = math.prod(tensor.shape[1:]) * (1 if tensor.dtype in _CARRIED else tensor.element_size())
    if not width:
        return lambda: (received, incoming)
    outs, ins = [count * width for count in incoming], [count * width for count in own]
    sent, arriving = _carried(tensor.contiguous().view(-1)), _carried(received.view(-1))
    work = lane.group(tensor).alltoall_base(arriving, sent, outs, ins, dist.AllToAllOptions())

    def finish() -> tuple[torch.Tensor, list[int]]:
        work.wait()
        return received, incoming

    return finish


def _carried(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor that lies in one piece as what backends move: the same memory, as bytes if they must be."""
    return tensor if tensor.dtype in _CARRIED else tensor.view(-1).view(torch.uint8)


def share_of(rows: int, position: int, size: int) -> tuple[int, int]:
    """Return which rows one rank gets when they are divided: the first ranks get one more.

    Example:
        >>> [share_of(5, position, 3) for position in range(3)]
        [(0, 2), (2, 4), (4, 5)]
    """
    least, more = divmod(rows, size)
    start = position * least + min(position, more)
    return start, start + least + (position < more)


def _scatter(request: Request, tensor: torch.Tensor, lane: Lane) -> Callable[[], torch.Tensor]:
    start, end = share_of(tensor.shape[0], lane.position, lane.size)
    whole = tensor.contiguous().clone()
    reduced = _reduce(whole, request, lane, [whole.numel()])

    def finish() -> torch.Tensor:
        reduced()
        return whole[start:end].clone()

    return finish
