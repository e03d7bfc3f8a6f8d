"""Packs a flat tensor into fewer bytes and back: 16 bits, 8 bits and a scale for each block, or the largest entries."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cargobike.core.errors import InvalidInputError

_HALVES = {"fp16": torch.float16, "bf16": torch.bfloat16}
_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Packed:
    """A packed tensor: pieces of memory, and how many entries were sent where that is not all."""

    pieces: tuple[torch.Tensor, ...]
    count: int = 0


def pack(codec: str, values: torch.Tensor, ratio: float = 0.01) -> Packed:
    """Pack a flat float32 tensor; with codec `none` the memory itself is returned, not a copy."""
    if codec == "none" or values.numel() == 0:
        return Packed((values,))
    if codec in _HALVES:
        return Packed((values.to(_HALVES[codec]),))
    if codec == "int8":
        blocks = _in_blocks(values)
        scales = blocks.abs().amax(dim=1).div_(127).clamp_(min=1e-30)
        return Packed((scales, (blocks / scales[:, None]).round_().to(torch.int8).view(-1)[: values.numel()]))
    count = max(1, int(values.numel() * ratio))
    indices = torch.topk(values.abs(), count, sorted=False).indices
    return Packed((indices.to(torch.int32), values[indices]), count)


def packed_bytes(codec: str, size: int, count: int) -> int:
    """Return how many bytes a tensor of `size` numbers takes when packed.

    Raises:
        InvalidInputError: If there is no such codec.
    """
    if codec == "none" or size == 0:
        return 4 * size
    if codec in _HALVES:
        return 2 * size
    if codec == "int8":
        return 4 * -(-size // _BLOCK) + size
    if codec == "topk":
        return 8 * count
    raise InvalidInputError(f"There is no codec {codec!r}.")


def unpack(codec: str, body: torch.Tensor, size: int, count: int, into: torch.Tensor | None = None) -> torch.Tensor:
    """Return the float32 tensor that a body of bytes stands for; a view of the body where nothing was packed."""
    if codec == "none" or size == 0:
        values = _typed(body, torch.float32)
        return values if into is None else into.copy_(values)
    out = torch.empty(size) if into is None else into
    if codec in _HALVES:
        return out.copy_(_typed(body, _HALVES[codec]))
    if codec == "int8":
        blocks = -(-size // _BLOCK)
        scales, numbers = _typed(body[: 4 * blocks], torch.float32), body[4 * blocks :].view(torch.int8)
        whole = size - size % _BLOCK
        torch.mul(numbers[:whole].view(-1, _BLOCK), scales[: whole // _BLOCK, None], out=out[:whole].view(-1, _BLOCK))
        if whole < size:
            torch.mul(numbers[whole:], scales[-1], out=out[whole:])
        return out
    out.zero_()
    indices = _typed(body[: 4 * count], torch.int32).long()
    if count and not 0 <= int(indices.min()) <= int(indices.max()) < size:
        raise InvalidInputError("an index lies outside the shard")
    return out.index_add_(0, indices, _typed(body[4 * count :], torch.float32))


def _in_blocks(values: torch.Tensor) -> torch.Tensor:
    missing = -values.numel() % _BLOCK
    return torch.nn.functional.pad(values, (0, missing)).view(-1, _BLOCK)


def _typed(body: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """Read bytes as numbers: in place where their address allows it, otherwise from a copy."""
    width = torch.empty(0, dtype=kind).element_size()
    if body.storage_offset() % width:
        body = body.clone()
    return body.view(kind)


class ErrorFeedback:
    """Remembers what a codec lost of a gradient, and adds it to the next one."""

    def __init__(self, size: int) -> None:
        self._lost = torch.zeros(size)

    def pack(self, codec: str, gradient: torch.Tensor, ratio: float) -> Packed:
        """Pack a gradient together with what was lost before; the gradient's memory is used up."""
        gradient.add_(self._lost)
        packed = pack(codec, gradient, ratio)
        if codec == "topk":
            self._lost.copy_(gradient)
            self._lost[packed.pieces[0].long()] = 0
        else:
            body = torch.cat([piece.view(torch.uint8) for piece in packed.pieces])
            unpack(codec, body, gradient.numel(), packed.count, into=self._lost)
            torch.sub(gradient, self._lost, out=self._lost)
        return packed


def memory_of(tensor: torch.Tensor) -> memoryview:
    """Return the bytes of a contiguous tensor on the CPU, without a copy."""
    return memoryview(tensor.reshape(-1).view(torch.uint8).numpy())


def make_memory(length: int) -> tuple[torch.Tensor, memoryview]:
    """Return fresh memory as a tensor of bytes and as a view to receive into."""
    tensor = torch.empty(length, dtype=torch.uint8)
    return tensor, memory_of(tensor)
