"""The deployments of a project under the names of Hopsworks."""

from __future__ import annotations

from typing import Any

from cargobike.compat.hsml import servings
from cargobike.compat.hsml.deployment import Deployment
from cargobike.compat.hsml.model import Model
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError


class ModelServing:
    """The deployments of the project in use."""

    @formerly("hsml.model_serving.ModelServing.get_deployment")
    def get_deployment(self, name: str | None = None) -> Deployment | None:
        """Return a deployment; `None` if there is none of that name."""
        served = servings.found(name or "")
        return None if served is None else Deployment(served)

    def get_deployment_by_id(self, id: int) -> Deployment | None:
        """Return a deployment by its number."""
        return next((Deployment(one) for one in servings.every() if one.id == id), None)

    def get_deployments(self, model: Model | None = None, status: str | None = None) -> list[Deployment]:
        """Return all deployments, those of a model, or those in a state."""
        deployments = [Deployment(one) for one in servings.every() if model is None or one.model == model.name]
        return [one for one in deployments if status is None or one.get_state().status == status.upper()]

    def create_predictor(
        self, model: Model, name: str | None = None, script_file: str | None = None, **said: Any
    ) -> Any:
        """Return what `deploy` defines a deployment of."""
        return Predictor(model, name, script_file, said)

    def create_deployment(self, predictor: Any, name: str | None = None, **said: Any) -> Deployment:
        """Define a deployment of a predictor."""
        return predictor.deploy(name)  # type: ignore[no-any-return]

    def create_transformer(self, *args: Any, **said: Any) -> Any:
        """Refuse: say what stands in their place."""
        raise InvalidInputError(
            "Transformers are not there: class Predict does it, or before=… and after=… of serving.deploy."
        )


class Predictor:
    """A model and the script that answers for it."""

    def __init__(self, model: Model, name: str | None, script_file: str | None, said: dict[str, Any]) -> None:
        self.model = model
        self.name = name
        self.script_file = script_file
        self.said = said

    def deploy(self, name: str | None = None) -> Deployment:
        """Define a deployment."""
        return self.model.deploy(name or self.name, script_file=self.script_file, **self.said)
