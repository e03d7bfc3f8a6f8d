"""A model of Hopsworks over a version of ours."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cargobike import models
from cargobike.compat.hopsworks.paths import project_name
from cargobike.compat.hsml import numbering, servings
from cargobike.compat.hsml.deployment import Deployment
from cargobike.compat.hsml.model_schema import ModelSchema
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.lazy import load
from cargobike.core.registering.tracing import Thing

_MODEL: Final = "hsml.model.Model"
_FRAMEWORK: Final = "framework="


class Model:
    """A version of a model; before `save`, one that is to be.

    Args:
        name: Its name, as it was given.
        version: Its number; the next one if left out.
        framework: `PYTHON`, `SKLEARN`, `TORCH`, `TENSORFLOW` or `LLM`.
        training_metrics: What was measured of it.
        description: What it is.
        input_example: Something to ask it.
        model_schema: What it takes and returns.
        feature_view: The feature view that it was trained on.
        training_dataset_version: The training dataset of that.
    """

    def __init__(
        self,
        name: str,
        version: int | None = None,
        framework: str = "PYTHON",
        *,
        training_metrics: Mapping[str, Any] | None = None,
        description: str | None = None,
        input_example: Any = None,
        model_schema: ModelSchema | None = None,
        feature_view: Any = None,
        training_dataset_version: int | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.framework = framework
        self.training_metrics = dict(training_metrics or {})
        self.description = description or ""
        self.input_example = input_example
        self.model_schema = model_schema
        self.training_dataset_version = training_dataset_version
        self._feature_view = feature_view
        self._kept: models.ModelVersion | None = None

    @classmethod
    def found(cls, name: str, number: int | None = None) -> Model:
        """Return a version of a model.

        Raises:
            NotFoundError: If there is none.
        """
        number, kept = numbering.find(name, number)
        return cls.of(name, number, kept)

    @classmethod
    def of(cls, name: str, number: int, kept: models.ModelVersion) -> Model:
        """Return a version of ours under the names of Hopsworks."""
        framework = next((tag.removeprefix(_FRAMEWORK) for tag in kept.tags if tag.startswith(_FRAMEWORK)), "PYTHON")
        model = cls(
            name,
            number,
            framework,
            training_metrics=kept.metrics,
            description=kept.description,
            input_example=kept.example,
        )
        model._kept = kept
        return model

    def __repr__(self) -> str:
        return f"Model(name: {self.name!r}, version: {self.version!r})"

    @property
    def kept(self) -> models.ModelVersion:
        """The version of ours.

        Raises:
            InvalidInputError: If it was not saved.
        """
        if self._kept is None:
            raise InvalidInputError(f"The model {self.name} was not saved yet: save(path) does it.")
        return self._kept

    @property
    def id(self) -> str:
        """What names it."""
        return f"{self.name}_{self.version}"

    @property
    def model_path(self) -> str:
        """Its folder, without the version, as Hopsworks calls it."""
        return f"/Projects/{project_name()}/Models/{self.name}"

    @property
    def version_path(self) -> str:
        """Its folder, as Hopsworks calls it."""
        return f"{self.model_path}/{self.version}"

    @property
    def model_files_path(self) -> str:
        """Where its files really are."""
        return str(self.kept.folder() / "model")

    @formerly(f"{_MODEL}.save")
    def save(self, model_path: str | os.PathLike[str], *args: Any, **more: Any) -> Model:
        """Keep a file or folder as this model, and return it with its version."""
        made_from = []
        view = self._feature_view
        if view is not None:
            made_from.append(Thing("view", view.view.name, str(view.view.version)))
            version = self.training_dataset_version or view.training_dataset_version
            if version:
                made_from.append(Thing("dataset", f"{view.name}_{view.version}", str(version)))
        self.version, self._kept = numbering.register(
            self.name,
            self.version,
            files=os.fspath(model_path),
            metrics=self.training_metrics,
            description=self.description,
            example=_example(self.input_example),
            signature=self.model_schema.signature() if self.model_schema else None,
            made_from=made_from,
            tags={_FRAMEWORK.rstrip("="): self.framework},
        )
        return self

    @formerly(f"{_MODEL}.download")
    def download(self, local_path: str | os.PathLike[str] | None = None) -> str:
        """Copy its files to a folder of this machine, and return that."""
        target = Path(local_path) if local_path is not None else Path(tempfile.mkdtemp(prefix=f"{self.kept.name}-"))
        shutil.copytree(self.kept.folder() / "model", target, dirs_exist_ok=True)
        return str(target)

    @formerly(f"{_MODEL}.deploy")
    def deploy(
        self,
        name: str | None = None,
        description: str | None = None,
        artifact_version: Any = None,
        serving_tool: str | None = None,
        script_file: str | None = None,
        config_file: str | None = None,
        resources: Any = None,
        inference_logger: Any = None,
        inference_batcher: Any = None,
        transformer: Any = None,
        api_protocol: str | None = "REST",
        environment: str | None = None,
        **more: Any,
    ) -> Deployment:
        """Define a deployment; `start` serves it.

        Raises:
            InvalidInputError: If it cannot be served like this.
        """
        refuse_transformer(transformer)
        _ = self.kept
        called = name or "".join(letter for letter in self.name if letter.isalnum())
        instances = getattr(resources, "num_instances", None) or 1
        server = "TENSORFLOW" if self.framework == "TENSORFLOW" else "PYTHON"
        served = servings.define(
            called, model=self.name, number=self.version, server=server, script=script_file or "", instances=instances
        )
        return Deployment(served)

    def get_feature_view(self, init: bool = True, online: bool | None = None) -> Any:
        """Return the feature view that it was trained on, ready for look-ups."""
        if self._feature_view is not None:
            return self._feature_view
        sources = {one.kind: (one.name, one.version) for one in self.kept.sources}
        if "view" not in sources:
            raise InvalidInputError(
                f"{self.name} was saved without a feature view: create_model(…, feature_view=view)."
            )
        name, version = sources["view"]
        view = load("cargobike.compat.hsfs.feature_view:view_of")(name, int(version))
        if init and "dataset" in sources:
            view.init_serving(int(sources["dataset"][1]))
        return view

    @formerly(f"{_MODEL}.delete")
    def delete(self) -> None:
        """Delete its files; what was known of it stays, and its number is not given again."""
        models.remove(self.kept.reference)

    def set_tag(self, name: str, value: Any) -> None:
        """Add a word to find it by."""
        self.kept.tag(f"{name}={value}")

    add_tag = set_tag

    def get_tags(self) -> dict[str, str]:
        """Return the words that `set_tag` added."""
        pairs = (tag.partition("=") for tag in self.kept.refresh().tags if "=" in tag)
        return {name: value for name, _, value in pairs if f"{name}=" != _FRAMEWORK}

    def get_url(self) -> str:
        """Return how our own commands name it."""
        return self.kept.reference


def refuse_transformer(transformer: Any) -> None:
    """Say what stands in the place of transformers."""
    if transformer is not None:
        raise InvalidInputError(
            "transformer: what is done to requests and answers belongs into class Predict, or is given as before=… and "
            "after=… to serving.deploy."
        )


def _example(given: Any) -> Any:
    """Return an input example as rows."""
    if given is None:
        return None
    if isinstance(given, Mapping) and not any(isinstance(value, list | tuple) for value in given.values()):
        return [dict(given)]
    if hasattr(given, "to_frame"):
        return [given.tolist()]
    return given
