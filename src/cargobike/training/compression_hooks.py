"""Compresses gradients on their way through DDP's all-reduce, and counts the bytes."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

from cargobike.training.strategies import Cast, Compression, PowerSGD, TopK
from cargobike.training.traffic import Traffic


def register_hook(model: Any, compression: Compression, traffic: Traffic) -> None:
    """Give a DDP model the hook that a compression stands for."""
    kind = {Cast: CastExchange, PowerSGD: CountedPowerSGD, TopK: TopKExchange}[type(compression)]
    # DDP reads annotations, and does not understand those of this file, which are text: hence a lambda.
    model.register_comm_hook(kind(compression, traffic), lambda exchange, bucket: exchange(bucket))


class CastExchange:
    """Torch's own casting to 16 bits, with its bytes counted."""

    def __init__(self, compression: Cast, traffic: Traffic) -> None:
        self._traffic = traffic
        is_bf16 = compression.kind == "bf16"
        self._hook = default_hooks.bf16_compress_hook if is_bf16 else default_hooks.fp16_compress_hook

    def __call__(self, bucket: Any) -> Any:
        """Exchange one bucket."""
        buffer = bucket.buffer()
        self._traffic.add(2 * buffer.numel(), buffer.nbytes, rounds=int(bucket.is_last()))
        return self._hook(None, bucket)


class CountedPowerSGD:
    """Torch's own PowerSGD, with its bytes counted."""

    def __init__(self, compression: PowerSGD, traffic: Traffic) -> None:
        self._traffic = traffic
        self._state = powerSGD_hook.PowerSGDState(
            process_group=None,
            matrix_approximation_rank=compression.rank,
            start_powerSGD_iter=max(2, compression.start_step),
        )

    def __call__(self, bucket: Any) -> Any:
        """Exchange one bucket."""
        buffer = bucket.buffer()
        size = buffer.element_size()
        before = self._state.total_numel_after_compression
        is_whole = self._state.iter < self._state.start_powerSGD_iter
        future = powerSGD_hook.powerSGD_hook(self._state, bucket)
        sent = buffer.numel() if is_whole else self._state.total_numel_after_compression - before
        self._traffic.add(sent * size, buffer.numel() * size, rounds=int(bucket.is_last()))
        return future


class TopKExchange:
    """Exchanges the largest entries of each bucket; what was not sent is added to the next step's gradient.

    Indices and values travel in one gathered tensor. The memory of what was not sent is kept for each parameter:
    DDP puts parameters into other buckets after the first step.
    """

    def __init__(self, compression: TopK, traffic: Traffic) -> None:
        self._ratio = compression.ratio
        self._traffic = traffic
        self._unsent: dict[Any, torch.Tensor] = {}
        self._by_parameter: dict[Any, torch.Tensor] = {}

    def __call__(self, bucket: Any) -> Any:
        """Exchange one bucket."""
        buffer = bucket.buffer()
        unsent = self._memory_of(bucket.parameters(), buffer)
        buffer.add_(unsent)
        count = max(1, int(self._ratio * buffer.numel()))
        indices = torch.topk(buffer.abs(), count, sorted=False).indices
        values = buffer[indices].float()
        unsent.copy_(buffer)
        unsent[indices] = 0
        packed = torch.cat([indices.to(torch.int32), values.view(torch.int32)])
        world_size = dist.get_world_size()
        gathered = [torch.empty_like(packed) for _ in range(world_size)]
        self._traffic.add(packed.nbytes, buffer.nbytes, rounds=int(bucket.is_last()))
        future = dist.all_gather(gathered, packed, async_op=True).get_future()

        def put_together(_: Any) -> torch.Tensor:
            buffer.zero_()
            for piece in gathered:
                buffer.index_add_(0, piece[:count].long(), piece[count:].view(torch.float32).to(buffer.dtype))
            return buffer.div_(world_size)

        return future.then(put_together)

    def _memory_of(self, parameters: list[Any], buffer: torch.Tensor) -> torch.Tensor:
        key = tuple(id(parameter) for parameter in parameters)
        if key not in self._unsent:
            known = [self._by_parameter.get(id(p), torch.zeros(p.numel(), device=buffer.device)) for p in parameters]
            flat = torch.cat([piece.to(buffer.dtype).reshape(-1) for piece in known])
            self._unsent[key] = flat
            pieces = flat.split([p.numel() for p in parameters])
            self._by_parameter.update(zip(key, pieces, strict=True))
        return self._unsent[key]
