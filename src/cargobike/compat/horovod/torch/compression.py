"""How tensors are made smaller on their way: classes with `compress` and `decompress`, also of users' own."""

from __future__ import annotations

from typing import Any

import torch


class Compressor:
    """What every compression has: two static methods."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Return what is sent, and what `decompress` needs to know."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """Return what was sent as it was before."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Return the tensor."""
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """Return the tensor."""
        return tensor


class FP16Compressor(Compressor):
    """Sends floating point numbers with 16 bits."""

    dtype = torch.float16

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Return the tensor with 16 bits, and its type before."""
        return (tensor.to(torch.float16), tensor.dtype) if tensor.is_floating_point() else (tensor, tensor.dtype)

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """Return the tensor in its type before."""
        return tensor.to(ctx) if ctx is not None and ctx.is_floating_point else tensor


class BF16Compressor(FP16Compressor):
    """Sends floating point numbers as bfloat16, which keeps their range."""

    dtype = torch.bfloat16

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Return the tensor as bfloat16, and its type before."""
        return (tensor.to(torch.bfloat16), tensor.dtype) if tensor.is_floating_point() else (tensor, tensor.dtype)


class Compression:
    """What `compression` can be."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
