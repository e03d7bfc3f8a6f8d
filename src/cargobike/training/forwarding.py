"""What happens around a model's forward pass: lower precision, and gradients of micro-batches that add up to a mean.

Done with the module's own hooks, which torch offers for this; no method of the model is replaced.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from cargobike.core.errors import InvalidInputError, nearest
from cargobike.training.pace import Pace

PRECISIONS = {"fp32": None, "bf16": torch.bfloat16}


def check_precision(precision: str) -> None:
    """Refuse an unknown precision.

    Raises:
        InvalidInputError: If there is no such precision.
    """
    if precision not in PRECISIONS:
        raise InvalidInputError(
            f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}.{nearest(str(precision), PRECISIONS)}"
        )


class ForwardHooks:
    """Enters autocast before a forward pass and leaves it after; scales what flows back into the outputs."""

    def __init__(self, precision: str, pace: Pace, device_type: str) -> None:
        self._type = PRECISIONS[precision]
        self._pace = pace
        self._device_type = device_type
        self._entered: list[Any] = []

    def attach(self, model: torch.nn.Module) -> None:
        """Hook into the model."""
        if self._type is None and self._pace.accumulate == 1:
            return
        model.register_forward_pre_hook(self._before)
        model.register_forward_hook(self._after, always_call=True)

    def _before(self, module: torch.nn.Module, arguments: Any) -> None:
        if self._type is not None:
            context = torch.autocast(self._device_type, dtype=self._type)
            context.__enter__()
            self._entered.append(context)

    def _after(self, module: torch.nn.Module, arguments: Any, output: Any) -> Any:
        if self._entered:
            self._entered.pop().__exit__(None, None, None)
        if output is None:  # the forward pass raised
            return None
        found: list[torch.Tensor] = []
        output = _map_tensors(output, lambda tensor: self._treat(tensor, found))
        if self._pace.accumulate > 1 and torch.is_grad_enabled() and module.training and not found:
            raise InvalidInputError(
                f"accumulate={self._pace.accumulate} found no tensor in the output ({type(output).__name__}) "
                "whose gradient it could scale; return a tensor, or tensors in a tuple, list, dict or dataclass."
            )
        return output

    def _treat(self, tensor: torch.Tensor, found: list[torch.Tensor]) -> torch.Tensor:
        if self._type is not None and tensor.dtype == self._type:
            tensor = tensor.float()
        if tensor.requires_grad and self._pace.accumulate > 1:
            share = self._pace.share
            tensor.register_hook(lambda gradient: gradient * share)
            found.append(tensor)
        return tensor


def _map_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        for key in list(value):
            value[key] = _map_tensors(value[key], change)
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map_tensors(item, change) for item in value))
    if isinstance(value, list | tuple):
        return type(value)(_map_tensors(item, change) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {f.name: _map_tensors(getattr(value, f.name), change) for f in dataclasses.fields(value) if f.init}
        return dataclasses.replace(value, **changes)
    return value
