"""Divides an optimizer's state among the ranks with torch's ZeroRedundancyOptimizer (ZeRO, stage 1)."""

from __future__ import annotations

from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.optim import Optimizer

from cargobike.core.errors import InvalidInputError
from cargobike.training.remaking import has_begun, settings_of


def divide_optimizer(optimizer: Optimizer) -> ZeroRedundancyOptimizer:
    """Return an optimizer like the given one whose state is divided among the ranks.

    Raises:
        InvalidInputError: If the optimizer has already stepped, or a scheduler already follows it.
    """
    mistakes = []
    if has_begun(optimizer):
        mistakes.append("it has already stepped, or loaded a state")
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        mistakes.append("a learning-rate scheduler was made for it: make the scheduler for the prepared optimizer")
    if mistakes:
        raise InvalidInputError("strategy='zero1' makes a new optimizer like the given one, but", mistakes)
    groups, defaults = settings_of(optimizer)
    return ZeroRedundancyOptimizer(groups, optimizer_class=type(optimizer), **defaults)
