"""An optimizer whose steps are made by parameter servers, for loops that know nothing of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer

from cargobike.training.parameter_server.client import ParameterClient


class ServerOptimizer(Optimizer):
    """`step()` pushes gradients and pulls parameters. Settings, such as the learning rate, are those given."""

    def __init__(
        self, optimizer: Optimizer, client: ParameterClient, after_step: Callable[[], None] | None = None
    ) -> None:
        self.param_groups = optimizer.param_groups
        self.defaults = optimizer.defaults
        self.state = optimizer.state
        self._client = client
        self._after_step = after_step

    def step(self, closure: Any = None) -> Any:
        """Push the gradients of the last backward pass, and pull parameters."""
        loss = closure() if closure is not None else None
        self._client.step()
        if self._after_step is not None:
            self._after_step()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Do nothing: gradients are cleared when they are sent."""

    def state_dict(self) -> dict[str, Any]:
        """Return the settings; momentum and the like live on the servers, who save it themselves."""
        groups = [{**group, "params": list(range(len(group["params"])))} for group in self.param_groups]
        return {"state": {}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over settings."""
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update({name: value for name, value in saved.items() if name != "params"})

    def __repr__(self) -> str:
        return f"ServerOptimizer({self.param_groups})"
