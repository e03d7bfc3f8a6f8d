"""Makes an optimizer like a given one, for parameters that are divided in another way."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.optim import Optimizer


def settings_of(optimizer: Optimizer) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the parameter groups and the defaults with which such an optimizer is made."""
    accepted = inspect.signature(type(optimizer).__init__).parameters
    groups = [
        {name: value for name, value in group.items() if name == "params" or name in accepted}
        for group in optimizer.param_groups
    ]
    return groups, {name: value for name, value in optimizer.defaults.items() if name in accepted}


def remake(optimizer: Optimizer) -> Optimizer:
    """Return a new optimizer of the same kind, with the same settings and parameters."""
    groups, defaults = settings_of(optimizer)
    kind: Any = type(optimizer)
    made: Optimizer = kind(groups, **defaults)
    return made


def has_begun(optimizer: Optimizer) -> bool:
    """Tell whether an optimizer has stepped, or loaded a state; some, such as Adagrad, have a state from the start."""
    if not optimizer.state:
        return False
    try:
        fresh = remake(optimizer)
    except Exception:  # noqa: BLE001 - of a kind that cannot be made from its settings: then it is not known
        return True
    return not _is_equal(dict(optimizer.state), dict(fresh.state))


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(_is_equal(one[k], other[k]) for k in one)
    return bool(one == other)
