"""For train functions written in PyTorch: one call makes a plain loop distributed.

Example:
    >>> import torch, cargobike.torch
    >>> model = torch.nn.Linear(4, 2)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> model, optimizer = cargobike.torch.prepare(model, optimizer)
    >>> cargobike.torch.is_main()
    True
"""

from __future__ import annotations

from cargobike.training.parameter_server.client import ParameterClient
from cargobike.training.parameter_server.door import parameter_client
from cargobike.training.parameter_server.serving import Server as ParameterServer
from cargobike.training.preparing import Prepared, prepare
from cargobike.training.strategies import DDP, FSDP, DiLoCo, LocalSGD, PowerSGD, TopK, Zero1
from cargobike.training.together import all_reduce, barrier, is_main, main_first, rank, world_size
from cargobike.training.traffic import Traffic

__all__ = [
    "DDP",
    "FSDP",
    "DiLoCo",
    "LocalSGD",
    "ParameterClient",
    "ParameterServer",
    "PowerSGD",
    "Prepared",
    "TopK",
    "Traffic",
    "Zero1",
    "all_reduce",
    "barrier",
    "is_main",
    "main_first",
    "parameter_client",
    "prepare",
    "rank",
    "world_size",
]
