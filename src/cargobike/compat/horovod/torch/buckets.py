"""Gradients that travel together: one piece of memory for several parameters, reduced as one operation.

After a reduction the gradients of its parameters are views into that memory: nothing is copied back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.nn import Parameter

from cargobike.compat.horovod.common import operations
from cargobike.compat.horovod.common.operations import Pending
from cargobike.compat.horovod.common.process_sets import ProcessSet
from cargobike.compat.horovod.common.reductions import ReduceOp
from cargobike.compat.horovod.torch.compression import BF16Compressor, Compressor, FP16Compressor, NoneCompressor

FIRST_BYTES = 1 << 20
BUCKET_BYTES = 25 << 20
"""As in torch's DistributedDataParallel: the first is small, so that the network has something to do early."""

_KNOWN = (NoneCompressor, FP16Compressor, BF16Compressor)


class Bucket:
    """Some parameters whose gradients travel together.

    Args:
        name: The same on all ranks.
        parameters: Of one type, on one device.
        compression: What makes gradients smaller on their way.
    """

    def __init__(self, name: str, parameters: Sequence[Parameter], compression: type[Compressor]) -> None:
        self.name = name
        self.parameters = tuple(parameters)
        self.pending: Pending | None = None
        self._compression = compression
        self._waiting = len(self.parameters)
        self._contexts: list[Any] = []
        self._flat: torch.Tensor | None = None
        self._small: torch.Tensor | None = None

    def ready(self) -> bool:
        """Count one more gradient that is ready; returns whether all are."""
        self._waiting -= 1
        return self._waiting == 0

    def send(self, op: ReduceOp, scales: tuple[float, float], of: ProcessSet, sparse: Iterable[Parameter] = ()) -> None:
        """Begin to reduce the gradients; those that there are none of count as zeros, as do sparse ones."""
        if self._compression not in _KNOWN:
            pairs = [self._compression.compress(_gradient(parameter)) for parameter in self.parameters]
            self._contexts = [context for _, context in pairs]
            sent = [tensor.contiguous() for tensor, _ in pairs]
        else:
            sent = [self._pack(set(sparse))]
        self.pending = operations.reduction(sent, self.name, op, *scales, of, in_place=True).begin()

    def receive(self, sparse: Iterable[Parameter] = ()) -> None:
        """Wait, and give the parameters their gradients."""
        pending, self.pending = self.pending, None
        self._waiting = len(self.parameters)
        results = pending.result() if pending is not None else []
        apart = set(sparse)
        if self._compression not in _KNOWN:
            for parameter, result, context in zip(self.parameters, results, self._contexts, strict=True):
                parameter.grad = self._compression.decompress(result, context).reshape(parameter.shape)
            return
        if self._small is not None and self._flat is not None:
            self._flat.copy_(self._small)
        for parameter, view in zip(self.parameters, self._views(), strict=True):
            if parameter not in apart:
                parameter.grad = view

    def forget(self) -> None:
        """Forget what is on its way."""
        self.pending = None
        self._waiting = len(self.parameters)

    def _views(self) -> list[torch.Tensor]:
        if self._flat is None:
            first = self.parameters[0]
            total = sum(parameter.numel() for parameter in self.parameters)
            self._flat = torch.zeros(total, dtype=first.dtype, device=first.device)
        return _cut(self._flat, self.parameters)

    def _pack(self, apart: set[Parameter]) -> torch.Tensor:
        views = self._views()
        assert self._flat is not None
        target, targets = self._flat, views
        if self._compression is not NoneCompressor and self._flat.is_floating_point():
            dtype = self._compression.dtype  # type: ignore[attr-defined]
            if self._small is None:
                self._small = torch.empty(self._flat.shape, dtype=dtype, device=self._flat.device)
            target, targets = self._small, _cut(self._small, self.parameters)
        into, gradients = [], []
        for parameter, place in zip(self.parameters, targets, strict=True):
            gradient = parameter.grad
            if gradient is None or parameter in apart:
                place.zero_()
                if gradient is None:
                    parameter.grad = torch.zeros_like(parameter)
            elif gradient.is_sparse:
                place.copy_(gradient.to_dense())
            elif gradient.data_ptr() != place.data_ptr() or gradient.dtype != place.dtype:
                into.append(place)
                gradients.append(gradient)
        if into:
            torch._foreach_copy_(into, gradients)
        return target


def _cut(flat: torch.Tensor, parameters: Sequence[Parameter]) -> list[torch.Tensor]:
    pieces = flat.split([parameter.numel() for parameter in parameters])
    return [piece.view(parameter.shape) for piece, parameter in zip(pieces, parameters, strict=True)]


def _gradient(parameter: Parameter) -> torch.Tensor:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad


def divide(
    parameters: Sequence[tuple[str, Parameter]],
    compression: type[Compressor],
    groups: Sequence[Sequence[Parameter]] = (),
) -> list[Bucket]:
    """Return buckets for parameters, the last first: backward computes their gradients in about this order.

    Args:
        parameters: With names, the same on all ranks.
        compression: One of a user's own gets each gradient by itself.
        groups: Parameters that are to travel together.
    """
    names = {parameter: name for name, parameter in parameters}
    buckets = [[one for one in group if one in names] for group in groups]
    grouped = {parameter for group in buckets for parameter in group}
    buckets = [part for group in buckets for part in _alike(group)]
    current: list[Parameter] = []
    total = 0
    limit = FIRST_BYTES
    for _, parameter in reversed(parameters):
        if parameter in grouped:
            continue
        size = parameter.numel() * parameter.element_size()
        full = current and (total + size > limit or not _fits(current[0], parameter))
        if full or (current and compression not in _KNOWN):
            buckets.append(current)
            current, total, limit = [], 0, BUCKET_BYTES
        current.append(parameter)
        total += size
    if current:
        buckets.append(current)
    return [Bucket(f"gradient.{names[group[0]]}", group, compression) for group in buckets]


def _fits(one: Parameter, other: Parameter) -> bool:
    return bool(one.dtype == other.dtype and one.device == other.device)


def _alike(group: Sequence[Parameter]) -> list[list[Parameter]]:
    kinds: dict[tuple[torch.dtype, torch.device], list[Parameter]] = {}
    for parameter in group:
        kinds.setdefault((parameter.dtype, parameter.device), []).append(parameter)
    return list(kinds.values())
