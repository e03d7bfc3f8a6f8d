"""Batch normalization with the statistics of all ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from cargobike.compat.horovod.common import collectives
from cargobike.compat.horovod.common.basics import size
from cargobike.compat.horovod.common.reductions import Sum
from cargobike.core.errors import InvalidInputError


class SyncBatchNorm(_BatchNorm):  # type: ignore[misc]
    """Normalizes by the mean and variance of the samples of all ranks, whose numbers may differ.

    Arguments are those of `torch.nn.BatchNorm2d`. With one rank, and in evaluation, this is what that does.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise InvalidInputError(f"SyncBatchNorm expects at least 2 dimensions, this has {input.dim()}.")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalize."""
        self._check_input_dim(input)
        if not (self.training or not self.track_running_stats) or size() == 1:
            return super().forward(input)
        dims = [0, *range(2, input.dim())]
        count = input.numel() // input.shape[1]
        shape = (1, -1, *(1 for _ in dims[1:]))
        moments = torch.cat([input.sum(dims), (input * input).sum(dims), input.new_tensor([float(count)])])
        total = _Total.apply(moments)
        features = self.num_features
        number = total[-1]
        mean = total[:features] / number
        variance = (total[features:-1] / number - mean * mean).clamp_min(0)
        self._remember(mean.detach(), variance.detach(), float(number))
        normal = (input - mean.view(shape)) * torch.rsqrt(variance.view(shape) + self.eps)
        return normal * self.weight.view(shape) + self.bias.view(shape) if self.affine else normal

    def _remember(self, mean: torch.Tensor, variance: torch.Tensor, number: float) -> None:
        if not (self.training and self.track_running_stats) or self.running_mean is None or self.running_var is None:
            return
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        share = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked or 1)
        unbiased = variance * (number / max(number - 1, 1))
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), share)


class _Total(torch.autograd.Function):  # type: ignore[misc]
    """Adds up over ranks; so are gradients: what one rank's samples change is felt in the loss of every rank."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor) -> torch.Tensor:
        """Add up."""
        total: torch.Tensor = collectives.allreduce(values, op=Sum)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Add up."""
        total: torch.Tensor = collectives.allreduce(gradient.contiguous(), op=Sum)
        return total
