"""The model registry of a project under the names of Hopsworks."""

from __future__ import annotations

from typing import Any, Final

from cargobike.compat.hsml import numbering
from cargobike.compat.hsml.model import Model
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError, NotFoundError

_REGISTRY: Final = "hsml.model_registry.ModelRegistry"


class Framework:
    """Makes models of one framework: `mr.sklearn.create_model(…)`."""

    def __init__(self, framework: str) -> None:
        self._framework = framework

    @formerly(f"{_REGISTRY}.create_model")
    def create_model(
        self,
        name: str,
        version: int | None = None,
        metrics: Any = None,
        description: str | None = None,
        input_example: Any = None,
        model_schema: Any = None,
        feature_view: Any = None,
        training_dataset_version: int | None = None,
        **more: Any,
    ) -> Model:
        """Return a model that `save(path)` keeps."""
        return Model(
            name,
            version,
            self._framework,
            training_metrics=metrics,
            description=description,
            input_example=input_example,
            model_schema=model_schema,
            feature_view=feature_view,
            training_dataset_version=training_dataset_version,
        )


class ModelRegistry:
    """The models of the project in use."""

    def __init__(self) -> None:
        self.python = Framework("PYTHON")
        self.sklearn = Framework("SKLEARN")
        self.torch = Framework("TORCH")
        self.tensorflow = Framework("TENSORFLOW")
        self.llm = Framework("LLM")

    @formerly(f"{_REGISTRY}.get_model")
    def get_model(self, name: str, version: int | None = None) -> Model:
        """Return a version of a model, by default the first.

        Raises:
            NotFoundError: If there is none.
        """
        return Model.found(name, 1 if version is None else version)

    def get_models(self, name: str) -> list[Model]:
        """Return all versions of a model."""
        return [Model.of(name, number, kept) for number, kept in numbering.versions(name).items()]

    @formerly(f"{_REGISTRY}.get_best_model")
    def get_best_model(self, name: str, metric: str, direction: str) -> Model | None:
        """Return the version with the best value of a metric; `None` if there is no such model.

        Args:
            name: The model.
            metric: The metric.
            direction: `"max"` or `"min"`.
        """
        if str(direction).lower() not in {"max", "min"}:
            raise InvalidInputError(f"direction={direction!r} was given; allowed are 'max' and 'min'.")
        try:
            return Model.of(name, *numbering.best(name, metric, direction))
        except NotFoundError:
            return None
