"""A deployment of Hopsworks over one of ours."""

from __future__ import annotations

import sys
from typing import Any, Final

from cargobike import serving
from cargobike.compat.hsml import servings
from cargobike.compat.hsml.predictors import instances_of
from cargobike.compat.noticing import formerly
from cargobike.core.errors import DeploymentError
from cargobike.core.registering.lazy import load

_DEPLOYMENT: Final = "hsml.deployment.Deployment"
_STATES: Final = {
    "created": "CREATED",
    "starting": "STARTING",
    "serving": "RUNNING",
    "releasing": "UPDATING",
    "stopping": "STOPPING",
    "stopped": "STOPPED",
    "lost": "FAILED",
}


class DeploymentState:
    """How a deployment is doing, in Hopsworks's words."""

    def __init__(self, status: str, words: str) -> None:
        self.status = status
        self._words = words

    def describe(self) -> None:
        """Print it."""
        sys.stdout.write(f"{self._words}\n")

    def __repr__(self) -> str:
        return f"DeploymentState(status: {self.status!r})"


class Deployment:
    """A model that is, or can be, served.

    Args:
        served: What was defined.
    """

    def __init__(self, served: servings.Served) -> None:
        self.served = served
        self.name = served.name
        self.id = served.id
        self.model_name = served.model
        self.model_version = served.number
        self.script_file = served.script or None

    def __repr__(self) -> str:
        return f"Deployment(name: {self.name!r})"

    @formerly(f"{_DEPLOYMENT}.start")
    def start(self, await_running: int | None = 600) -> None:
        """Serve it; it goes on when this process ends, until it is stopped."""
        servings.start(self.name)

    @formerly(f"{_DEPLOYMENT}.stop")
    def stop(self, await_stopped: int | None = 600) -> None:
        """End its processes."""
        servings.stop(self.name)

    def restart(self, await_stopped: int | None = 600, await_running: int | None = 600) -> None:
        """Stop it and start it."""
        servings.stop(self.name)
        servings.start(self.name)

    @formerly(f"{_DEPLOYMENT}.predict")
    def predict(self, data: Any = None, inputs: Any = None) -> Any:
        """Return `{"predictions": …}`.

        Args:
            data: `{"instances": […]}` or `{"inputs": […]}`.
            inputs: The instances; a flat list is one.
        """
        return servings.ask(self.name, instances_of(data, inputs))

    def is_running(self, or_idle: bool = True, or_updating: bool = True) -> bool:
        """Tell whether requests are answered."""
        return servings.is_running(self.name)

    def is_stopped(self, or_created: bool = True) -> bool:
        """Tell whether it has no processes."""
        return servings.state(self.name) in {"stopped", *(["created"] if or_created else [])}

    def is_created(self) -> bool:
        """Tell whether it was defined."""
        return servings.found(self.name) is not None

    def get_state(self) -> DeploymentState:
        """Return how it is doing."""
        state = servings.state(self.name)
        words = (
            str(serving.deployment(self.name).status()) if servings.was_started(self.name) else f"{self.name}: {state}"
        )
        return DeploymentState(_STATES[state], words)

    def get_logs(self, component: str = "predictor", tail: int = 10) -> str:
        """Print and return the last lines that its processes printed."""
        lines = serving.deployment(self.name).logs(lines=tail) if servings.was_started(self.name) else ""
        sys.stdout.write(f"{lines}\n")
        return lines

    @formerly(f"{_DEPLOYMENT}.delete")
    def delete(self, force: bool = False) -> None:
        """Forget it, with everything it has kept.

        Raises:
            DeploymentError: If it is being served, unless forced.
        """
        if not force and servings.is_running(self.name):
            raise DeploymentError(f"{self.name} is being served; stop it first, or say delete(force=True).")
        servings.remove(self.name)

    def save(self, await_update: int | None = 600) -> None:
        """Do nothing: it was kept when it was defined."""

    def get_model(self) -> Any:
        """Return the model that it serves."""
        return load("cargobike.compat.hsml.model:Model").found(self.model_name, self.model_version)

    def get_url(self) -> str:
        """Return where requests go."""
        return serving.deployment(self.name).url

    get_inference_url = get_url

    def describe(self) -> None:
        """Print what is served."""
        sys.stdout.write(f"{self.served}\n")
