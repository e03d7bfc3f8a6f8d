"""A worker's copy of one server's parameters, in memory that messages are sent from and received into."""

from __future__ import annotations

from typing import Any

import torch

from cargobike.training.parameter_server.codecs import (
    ErrorFeedback,
    Packed,
    make_memory,
    memory_of,
    pack,
    packed_bytes,
    unpack,
)
from cargobike.training.parameter_server.messages import TensorSpec
from cargobike.training.wire.channel import Channel, Inbox


class Holding:
    """The parameters that one server holds, as this worker has them.

    Dense parameters on the CPU become views of one flat tensor, and their gradients views of another: what arrives is
    received into the model, and what is sent lies where backward wrote it. On a GPU the flat tensors are copies. There
    are two of gradients, in turns: one is cleared and written while the other is on its way.
    """

    def __init__(self, specs: list[TensorSpec], parameters: dict[str, Any], codec: tuple[str, float]) -> None:
        self.specs = specs
        self.version = 0
        self._codec, self._ratio = codec
        self.dense = [parameters[spec.name] for spec in specs if not spec.by_rows]
        self.by_rows = [parameters[spec.name] for spec in specs if spec.by_rows]
        size = sum(p.numel() for p in self.dense)
        self.weights, self.gradients, self._sent = torch.zeros(size), torch.zeros(size), torch.zeros(size)
        self._feedback = ErrorFeedback(size) if self._codec in ("int8", "topk") else None
        self._inbox = Inbox(make_memory)
        pieces = [p.numel() for p in self.dense]
        self._weight_views = [v.view(p.shape) for v, p in zip(self.weights.split(pieces), self.dense, strict=True)]
        self._gradient_views, self._sent_views = (
            [v.view(p.shape) for v, p in zip(flat.split(pieces), self.dense, strict=True)]
            for flat in (self.gradients, self._sent)
        )
        with torch.no_grad():
            for p, view in zip(self.dense, self._weight_views, strict=True):
                view.copy_(p)
                if _can_share(p):
                    p.data = view

    def first_values(self) -> list[memoryview]:
        """Return all values, dense ones first: what a server is told when it knows nothing."""
        self._collect_weights()
        return [memory_of(self.weights), *(memory_of(p.detach().cpu().float().contiguous()) for p in self.by_rows)]

    def _collect_weights(self) -> None:
        with torch.no_grad():
            for p, view in zip(self.dense, self._weight_views, strict=True):
                if p.data_ptr() != view.data_ptr():
                    view.copy_(p)

    def pack_gradients(self) -> Packed:
        """Gather the gradients of the last backward pass and pack them."""
        with torch.no_grad():
            for p, view in zip(self.dense, self._gradient_views, strict=True):
                if p.grad is None:
                    view.zero_()
                elif p.grad.data_ptr() != view.data_ptr():
                    view.copy_(p.grad)
        if self._feedback is not None:
            return self._feedback.pack(self._codec, self.gradients, self._ratio)
        return pack(self._codec, self.gradients)

    def rows_touched(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return, for each parameter that is sent by rows, the row numbers and gradients of the last backward pass."""
        return [_rows_of(p) for p in self.by_rows]

    def clear_gradients(self) -> None:
        """Have the next backward pass write into other memory than what is on its way, which may be needed again."""
        self.gradients, self._sent = self._sent, self.gradients
        self._gradient_views, self._sent_views = self._sent_views, self._gradient_views
        self.gradients.zero_()
        for p, view in zip(self.dense, self._gradient_views, strict=True):
            p.grad = view if _can_share(p) else None
        for p in self.by_rows:
            p.grad = None

    def receive(self, channel: Channel, length: int, codec: str, wanted: list[torch.Tensor | None]) -> None:
        """Receive parameters into the model: dense ones, then the wanted rows of each of the others (None: all)."""
        size = self.weights.numel()
        dense_bytes = packed_bytes(codec, size, 0)
        shares = [len(p) if rows is None else len(rows) for p, rows in zip(self.by_rows, wanted, strict=True)]
        expected = dense_bytes + sum(4 * n * p[0].numel() for n, p in zip(shares, self.by_rows, strict=True) if len(p))
        if length != expected:
            raise ConnectionError(f"{length} bytes of parameters came instead of {expected}")
        with torch.no_grad():
            if codec == "none":
                channel.read_into(memory_of(self.weights))
            else:
                unpack(codec, self._inbox.receive(channel, dense_bytes), size, 0, into=self.weights)
            for p, view in zip(self.dense, self._weight_views, strict=True):
                if p.data_ptr() != view.data_ptr():
                    p.copy_(view)
            for p, rows, count in zip(self.by_rows, wanted, shares, strict=True):
                fresh = torch.empty((count, *p.shape[1:]))
                channel.read_into(memory_of(fresh))
                if rows is None:
                    p.copy_(fresh)
                else:
                    p[rows.to(p.device)] = fresh.to(p.device, p.dtype)


def _can_share(parameter: Any) -> bool:
    return bool(parameter.device.type == "cpu" and parameter.dtype == torch.float32)


def _rows_of(parameter: Any) -> tuple[torch.Tensor, torch.Tensor]:
    gradient = parameter.grad
    if gradient is None:
        return torch.empty(0, dtype=torch.int64), torch.empty((0, *parameter.shape[1:]))
    if gradient.is_sparse:
        gradient = gradient.coalesce()
        rows, values = gradient.indices()[0], gradient.values()
    else:
        rows = gradient.flatten(1).abs().sum(dim=1).nonzero().view(-1)
        values = gradient[rows]
    return rows.cpu().contiguous(), values.cpu().float().contiguous()
