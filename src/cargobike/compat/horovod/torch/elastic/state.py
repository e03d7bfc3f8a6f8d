"""The state of a program of torch: models, optimizers, schedules, samplers and plain objects."""

from __future__ import annotations

import copy
from typing import Any

import torch

from cargobike.compat.horovod.common.basics import rank
from cargobike.compat.horovod.common.elastic import ObjectState
from cargobike.compat.horovod.torch.elastic.sampler import ElasticSampler
from cargobike.compat.horovod.torch.functions import (
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)


class StateHandler:
    """Keeps one object of a state; derive one for a kind of objects of your own, and enter it in the registry.

    Args:
        value: The object.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> None:
        """Keep its state in memory."""
        raise NotImplementedError

    def restore(self) -> None:
        """Go back to what was saved last."""
        raise NotImplementedError

    def sync(self) -> None:
        """Give all ranks that of rank 0, and save it."""
        raise NotImplementedError

    def reset(self) -> None:
        """Do what it needs after ranks have changed."""

    def set_value(self, value: Any) -> None:
        """Keep another object from now on."""
        self.value = value
        self.save()


class DictStateHandler(StateHandler):
    """Keeps what has a `state_dict`: a model, an optimizer, a schedule, a sampler."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.save()

    def save(self) -> None:
        """Copy its state."""
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        """Load the copy."""
        self.value.load_state_dict(copy.deepcopy(self._saved))

    def sync(self) -> None:
        """Load the state of rank 0."""
        self.value.load_state_dict(broadcast_object(self.value.state_dict()))
        self.save()


class ModelStateHandler(DictStateHandler):
    """Keeps a model."""

    def sync(self) -> None:
        """Broadcast its parameters and buffers."""
        broadcast_parameters(self.value.state_dict(), root_rank=0)
        self.save()


class OptimizerStateHandler(DictStateHandler):
    """Keeps an optimizer."""

    def sync(self) -> None:
        """Broadcast its state."""
        broadcast_optimizer_state(self.value, root_rank=0)
        self.save()


class SamplerStateHandler(DictStateHandler):
    """Keeps an `ElasticSampler`."""

    def reset(self) -> None:
        """Deal out what is left."""
        self.value.reset()


_REGISTRY: list[tuple[type, type[StateHandler]]] = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (torch.optim.lr_scheduler.LRScheduler, DictStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry() -> list[tuple[type, type[StateHandler]]]:
    """Return which handler keeps objects of which class; the first that fits counts."""
    return _REGISTRY


def set_handler_registry(registry: list[tuple[type, type[StateHandler]]]) -> None:
    """Replace it."""
    _REGISTRY[:] = registry


class TorchState(ObjectState):
    """The state of a program of torch.

    Args:
        model: A model, if there is one.
        optimizer: Its optimizer.
        **kwargs: Further models, optimizers, schedules, samplers and plain objects; each is an attribute.
    """

    _handlers: dict[str, StateHandler]

    def __init__(
        self, model: torch.nn.Module | None = None, optimizer: torch.optim.Optimizer | None = None, **kwargs: Any
    ) -> None:
        given = {**kwargs, "model": model, "optimizer": optimizer}
        handled = {name: handler for name, value in given.items() if (handler := _handler_for(value)) is not None}
        super().__setattr__("_handlers", handled)
        for name, handler in handled.items():
            super().__setattr__(name, handler.value)
        super().__init__(
            broadcast_object, rank, **{name: value for name, value in given.items() if name not in handled}
        )

    def save(self) -> None:
        """Keep everything in memory."""
        for handler in self._handlers.values():
            handler.save()
        super().save()

    def restore(self) -> None:
        """Go back to what was saved last."""
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self) -> None:
        """Give all ranks the state of rank 0."""
        for handler in self._handlers.values():
            handler.sync()
        super().sync()

    def reset(self) -> None:
        """Let samplers deal out anew."""
        for handler in self._handlers.values():
            handler.reset()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._handlers:
            self._handlers[name].set_value(value)
        super().__setattr__(name, value)


def _handler_for(value: Any) -> StateHandler | None:
    return next((handler(value) for kind, handler in _REGISTRY if isinstance(value, kind)), None)
