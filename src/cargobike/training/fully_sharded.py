"""Divides a model among the ranks with torch's FSDP (the second, `fully_shard`; it works on gloo too)."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, distribute_tensor
from torch.optim import Optimizer

from cargobike.core.errors import InvalidInputError
from cargobike.training.process_group import Group, broadcast_
from cargobike.training.remaking import has_begun, remake
from cargobike.training.strategies import FSDP


def wrap_fsdp(model: torch.nn.Module, optimizer: Optimizer | None, strategy: FSDP, group: Group) -> None:
    """Divide the model among the ranks, in place, and point the optimizer to the divided parameters.

    Raises:
        InvalidInputError: If the optimizer has already stepped.
    """
    if optimizer is not None and has_begun(optimizer):
        raise InvalidInputError("strategy='fsdp' needs an optimizer that has not stepped yet: prepare before training.")
    with torch.no_grad():
        broadcast_([t.data for t in [*model.parameters(), *model.buffers()]], group, "take the first weights of rank 0")
    names = {parameter: name for name, parameter in model.named_parameters()}
    mesh = init_device_mesh(group.device.type, (group.world_size,))
    for module in _parts(model, strategy.min_parameters):
        fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh)
    if optimizer is None:
        return
    divided = dict(model.named_parameters())
    for options in optimizer.param_groups:
        unknown = [p for p in options["params"] if p not in names]
        if unknown:
            raise InvalidInputError(f"The optimizer has {len(unknown)} parameters that are not the model's.")
        options["params"] = [divided[names[p]] for p in options["params"]]
    if optimizer.state:  # one that has its state from the start gets that of the divided parameters
        optimizer.state.clear()
        optimizer.state.update(remake(optimizer).state)


def divide_state(state: dict[str, Any], optimizer: Any) -> dict[str, Any]:
    """Divide an optimizer's whole state, by position, as its parameters are."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return {
        "state": {
            position: {name: _divide_like(value, parameters[position]) for name, value in values.items()}
            for position, values in state["state"].items()
        },
        "param_groups": state["param_groups"],
    }


def _divide_like(value: Any, parameter: Any) -> Any:
    if not isinstance(value, torch.Tensor) or value.dim() == 0 or not isinstance(parameter, DTensor):
        return value
    mesh = parameter.device_mesh
    is_alike = value.shape == parameter.shape
    placements = parameter.placements if is_alike else [Replicate()] * mesh.ndim
    return distribute_tensor(value.to(parameter.device), mesh, placements, src_data_rank=None)


def _parts(model: torch.nn.Module, min_parameters: int) -> list[torch.nn.Module]:
    """Return the sub-modules to be gathered on their own: the outermost that are called and are large enough."""
    found: list[Any] = []
    for child in model.children():
        if isinstance(child, torch.nn.ModuleList | torch.nn.ModuleDict | torch.nn.Sequential):
            found += _parts(child, min_parameters)
        elif sum(p.numel() for p in child.parameters()) >= min_parameters:
            found.append(child)
    return found
