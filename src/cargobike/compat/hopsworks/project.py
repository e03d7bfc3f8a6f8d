"""The project in use under the names of Hopsworks."""

from __future__ import annotations

from typing import Any

from cargobike.compat.hopsworks.dataset_api import DatasetApi
from cargobike.compat.hopsworks.paths import project_name
from cargobike.compat.hsfs.feature_store import FeatureStore
from cargobike.compat.hsml.model_registry import ModelRegistry
from cargobike.compat.hsml.model_serving import ModelServing
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError

_PROJECT = "hopsworks.project.Project"


class Project:
    """The project in use.

    Args:
        name: What it is called.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.id = 1

    def __repr__(self) -> str:
        return f"Project({self.name!r})"

    @formerly(f"{_PROJECT}.get_feature_store")
    def get_feature_store(self, name: str | None = None, engine: str | None = None) -> FeatureStore:
        """Return its groups and views; other projects are used with `project.use(url)`."""
        return FeatureStore(name or f"{self.name}_featurestore".lower())

    @formerly(f"{_PROJECT}.get_model_registry")
    def get_model_registry(self) -> ModelRegistry:
        """Return its models."""
        return ModelRegistry()

    @formerly(f"{_PROJECT}.get_model_serving")
    def get_model_serving(self) -> ModelServing:
        """Return its deployments."""
        return ModelServing()

    @formerly(f"{_PROJECT}.get_dataset_api")
    def get_dataset_api(self) -> DatasetApi:
        """Return its files."""
        return DatasetApi()

    def get_jobs_api(self) -> Any:
        """Refuse: say what stands in the place of jobs."""
        raise InvalidInputError(
            "Jobs of a platform are not there: cargobike.pipelines runs functions, `cargobike pipelines schedule` "
            "by the clock."
        )

    get_job_api = get_jobs_api

    def get_secrets_api(self) -> Any:
        """Refuse: say what stands in the place of secrets."""
        raise InvalidInputError("Secrets are not kept here; read them from environment variables.")


class Connection:
    """What `hopsworks.connection()` returned before there was `login`."""

    def get_project(self, name: str | None = None) -> Project:
        """Return the project in use."""
        return current_project()

    def close(self) -> None:
        """Do nothing: there is no server."""


def current_project() -> Project:
    """Return the project in use."""
    return Project(project_name())
