"""Finds what a step of a pipeline had done to models when its process was killed."""

from __future__ import annotations

from typing import Any

from cargobike.core.errors import NotFoundError
from cargobike.core.layout import ProjectFolder
from cargobike.core.values.packed_numbers import unpack_number
from cargobike.models.catalogue.catalogue import Catalogue
from cargobike.models.catalogue.summary import decode_summary
from cargobike.models.facts import AliasMoved
from cargobike.models.naming import check_name, read_reference
from cargobike.models.promotion.promoting import Promotion
from cargobike.models.version import ModelVersion
from cargobike.store.files import project as projects


def recover_register(token: str, project: ProjectFolder, name: str, *_: Any, **said: Any) -> ModelVersion | None:
    """Return the version that a step registered."""
    return made_by(token, name, said.get("project") or project)


def made_by(step: str, name: str, project: ProjectFolder | None = None) -> ModelVersion | None:
    """Return the version of a model that a step of a pipeline registered, the newest of several."""
    catalogue = Catalogue(project if project is not None else projects.current())
    model = catalogue.find(check_name(name))
    if model is None or not model.versions:
        return None
    model, summaries = catalogue.summaries(name)
    for version, data in reversed(summaries):
        if decode_summary(data).step == step:
            return ModelVersion(catalogue, model, version, summary=data)
    return None


def recover_promote(
    token: str, project: ProjectFolder, version: ModelVersion, alias: str, *_: Any, **__: Any
) -> Promotion | None:
    """Return the promotion that a step has made."""
    for move in reversed(Catalogue(project).model(version.name).state.moves):
        if isinstance(move, AliasMoved) and move.step == token and move.alias == alias:
            figures = {name: None if value is None else unpack_number(value) for name, value in move.figures.items()}
            return Promotion(alias, move.version, move.before, figures, move.remark)
    return None


def open_version(reference: str, project: ProjectFolder) -> ModelVersion:
    """Return a version of any project: `digits:3`; also one whose files were removed since.

    Raises:
        NotFoundError: If there is none.
    """
    catalogue = Catalogue(project)
    model, version = catalogue.resolve(read_reference(reference))
    if not 0 < version <= model.versions:
        raise NotFoundError(f"There is no {reference} any more.", wanted=reference)
    return ModelVersion(catalogue, model, version)
