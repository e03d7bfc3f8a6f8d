"""Models of hops over our registry."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from cargobike import models
from cargobike.compat.hops.translating.files import ProjectFiles
from cargobike.compat.hsml import numbering
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError, NotFoundError

_HERE: Final = "hops.model"


class Metric:
    """Which values of a metric are better."""

    MAX: Final = "MAX"
    MIN: Final = "MIN"


class ModelNotFound(NotFoundError):
    """There is no such model, or no version of it has the metric."""


@formerly(f"{_HERE}.export")
def export(
    model_path: str,
    model_name: str,
    model_version: int | None = None,
    overwrite: bool = False,
    metrics: dict[str, Any] | None = None,
    description: str | None = None,
    synchronous: bool = True,
    synchronous_timeout: int = 120,
    project: str | None = None,
) -> str:
    """Keep a file or folder, of this machine or of the project, as a version of a model.

    Args:
        model_path: The file or folder.
        model_name: The model.
        model_version: The number of the version; by default the next one.
        overwrite: Whether a version of that number is replaced: the number then means the new one.
        metrics: Numbers that were measured of it.
        description: What it is.
        synchronous: Means nothing here: it is always there when this returns.
        synchronous_timeout: Means nothing here.
        project: Means nothing here.

    Returns:
        Its path, as hops calls it: `…/Models/<name>/<version>`.

    Raises:
        InvalidInputError: If the number is taken, there are no such files, or a metric is no number.
    """
    with _on_this_machine(model_path) as files:
        number, _ = numbering.register(
            model_name,
            model_version,
            overwrite=overwrite,
            files=str(files),
            metrics=metrics,
            description=description or "",
        )
    return ProjectFiles().full(f"Models/{model_name}/{number}")


@formerly(f"{_HERE}.get_best_model")
def get_best_model(name: str, metric: str, direction: str, project: str | None = None) -> dict[str, Any]:
    """Return the version with the best value of a metric: `name`, `version`, `metrics` and more.

    Raises:
        ModelNotFound: If no version has the metric.
    """
    if str(direction).upper() not in {Metric.MAX, Metric.MIN}:
        raise InvalidInputError(f"direction={direction!r} was given; there are Metric.MAX and Metric.MIN.")
    try:
        number, version = numbering.best(name, metric, direction)
    except NotFoundError as error:
        raise ModelNotFound(str(error)) from error
    return _described(name, number, version)


@formerly(f"{_HERE}.get_model")
def get_model(name: str, version: int | None = None, project: str | None = None) -> dict[str, Any]:
    """Return what is known of a version; the newest unless one is named.

    Raises:
        ModelNotFound: If there is none.
    """
    try:
        return _described(name, *numbering.find(name, version))
    except NotFoundError as error:
        raise ModelNotFound(str(error)) from error


@formerly(f"{_HERE}.download_model")
def download_model(name: str, version: int | None = None, project: str | None = None, overwrite: bool = False) -> str:
    """Copy the files of a version into a folder of the working directory, and return its path.

    Raises:
        ModelNotFound: If there is none.
        InvalidInputError: If the folder is there.
    """
    try:
        number, kept = numbering.find(name, version)
    except NotFoundError as error:
        raise ModelNotFound(str(error)) from error
    target = Path.cwd() / name / str(number)
    if target.exists():
        if not overwrite:
            raise InvalidInputError(f"{target} is there already; say overwrite=True.")
        shutil.rmtree(target)
    shutil.copytree(kept.folder() / "model", target)
    return str(target)


def _described(name: str, number: int, version: models.ModelVersion) -> dict[str, Any]:
    return {
        "name": name,
        "version": number,
        "metrics": dict(version.metrics),
        "description": version.description,
        "created": round(version.at * 1000),
        "user": version.user,
        "experimentId": version.training.experiment or None,
        "path": ProjectFiles().full(f"Models/{name}/{number}"),
    }


@contextmanager
def _on_this_machine(path: str) -> Iterator[Path]:
    """Give a file or folder of this machine or of the project as one of this machine."""
    here = Path(path)
    if here.exists():
        yield here
        return
    files = ProjectFiles()
    item = files.find(path)
    local = files.local(item.path)
    if local is not None:
        yield local
        return
    with tempfile.TemporaryDirectory(prefix="cargobike-export-") as folder:
        target = Path(folder, Path(item.path).name)
        files.download(item, target)
        yield target
