"""The state of a run as plain data that fits any strategy and any number of ranks.

Optimizer states are kept by parameter names, not by positions, and always whole: a run that was saved by eight ranks
with FSDP can go on with two and DDP, or alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.optim import ZeroRedundancyOptimizer

from cargobike.core.errors import InvalidInputError

_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)


def whole_state(model: Any, optimizer: Any, *, is_divided: bool, is_main: bool) -> dict[str, Any]:
    """Gather model and optimizer in rank 0; the other ranks, which must call this too, get an empty dict."""
    if isinstance(optimizer, ZeroRedundancyOptimizer):
        optimizer.consolidate_state_dict(to=0)
    if not is_main and not is_divided:
        return {}
    state: dict[str, Any] = {"model": {}, "optimizer": {}}
    state["model"] = get_model_state_dict(model, options=_WHOLE) if is_divided else _on_cpu(model.state_dict())
    if optimizer is not None:
        state["optimizer"] = _on_cpu(_by_name(optimizer.state_dict(), _names(model, optimizer)), keep=is_main)
    return state if is_main else {}


def load_whole_state(model: Any, optimizer: Any, state: dict[str, Any], *, is_divided: bool) -> None:
    """Give model and optimizer a state that `whole_state` has made; every rank needs it and must call this.

    Raises:
        InvalidInputError: If it is not such a state.
    """
    if "model" not in state:
        raise InvalidInputError(
            "This is not a state that run.state() has made: it has no 'model'. Every rank must be given the whole "
            "state, such as trial.checkpoint.load() returns it."
        )
    if is_divided:
        set_model_state_dict(model, state["model"], options=_WHOLE)
    else:
        model.load_state_dict(state["model"])
    if optimizer is not None and state["optimizer"]:
        saved = _by_position(state["optimizer"], _names(model, optimizer))
        if is_divided:
            from cargobike.training.fully_sharded import divide_state  # noqa: PLC0415 - only newer versions of torch can

            saved = divide_state(saved, optimizer)
        optimizer.load_state_dict(saved)


def sharded_state(model: Any, optimizer: Any) -> dict[str, Any]:
    """Return this rank's part, for `trial.checkpoint.save_sharded`.

    Raises:
        InvalidInputError: With ZeRO-1, whose parts torch cannot put together again.
    """
    if isinstance(optimizer, ZeroRedundancyOptimizer):
        raise InvalidInputError("With strategy='zero1' save the whole state: trial.checkpoint.save(run.state()).")
    is_fresh = optimizer is not None and not optimizer.state
    model_state, optimizer_state = get_state_dict(model, optimizer or [])
    if is_fresh:  # torch has made a step of length zero, so that there are tensors to fill
        for values in optimizer.state.values():
            if isinstance(values.get("step"), torch.Tensor):
                values["step"].zero_()
        optimizer.state.clear()
    return {"model": model_state, "optimizer": optimizer_state}


def load_sharded_state(model: Any, optimizer: Any, state: dict[str, Any]) -> None:
    """Give model and optimizer the parts that `trial.checkpoint.load_sharded` has filled in."""
    set_state_dict(model, optimizer or [], model_state_dict=state["model"], optim_state_dict=state.get("optimizer", {}))


def _names(model: Any, optimizer: Any) -> list[str]:
    known = {id(parameter): name for name, parameter in model.named_parameters()}
    return [known[id(parameter)] for group in optimizer.param_groups for parameter in group["params"]]


def _by_name(state: dict[str, Any], names: list[str]) -> dict[str, Any]:
    groups = [{**group, "params": [names[position] for position in group["params"]]} for group in state["param_groups"]]
    return {"state": {names[position]: value for position, value in state["state"].items()}, "param_groups": groups}


def _by_position(state: dict[str, Any], names: list[str]) -> dict[str, Any]:
    position = {name: index for index, name in enumerate(names)}
    if missing := [name for group in state["param_groups"] for name in group["params"] if name not in position]:
        raise InvalidInputError(f"The saved optimizer knows parameters that this model does not have: {missing[:5]}.")
    groups = [{**group, "params": [position[name] for name in group["params"]]} for group in state["param_groups"]]
    return {"state": {position[name]: value for name, value in state["state"].items()}, "param_groups": groups}


def _on_cpu(value: Any, *, keep: bool = True) -> Any:
    """Copy the tensors in a state; those that are divided are put together, which all ranks must do at once.

    With `keep=False` they are only put together, for others.
    """
    if hasattr(value, "full_tensor"):
        value = value.full_tensor()
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone() if keep else None
    if isinstance(value, dict):
        return {key: _on_cpu(item, keep=keep) for key, item in value.items()}
    return value
