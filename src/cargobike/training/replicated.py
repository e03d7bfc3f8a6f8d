"""Wraps a model in torch's DistributedDataParallel."""

from __future__ import annotations

import torch
from torch.nn.parallel import DistributedDataParallel

from cargobike.training.process_group import Group
from cargobike.training.strategies import DDP, Zero1


def wrap_ddp(model: torch.nn.Module, strategy: DDP | Zero1, group: Group) -> DistributedDataParallel:
    """Return the model inside DDP; rank 0's weights are everybody's first."""
    return DistributedDataParallel(
        model,
        device_ids=[group.device] if group.device.type == "cuda" else None,
        find_unused_parameters=strategy.find_unused_parameters,
        bucket_cap_mb=strategy.bucket_mb,
        gradient_as_bucket_view=True,
    )
