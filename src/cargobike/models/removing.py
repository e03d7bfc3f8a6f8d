"""Removes versions: their files go, what was known of them stays, and their numbers are never given again."""

from __future__ import annotations

import shutil
import time

from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.registering.tracing import Thing, all_edges, users_of
from cargobike.core.running.accounts import user_name
from cargobike.models.catalogue.catalogue import Catalogue, Model
from cargobike.models.facts import VersionRemoved
from cargobike.models.record import files_of
from cargobike.models.writing import sweep_dead, sweep_unlisted


def deployments_of(catalogue: Catalogue, name: str, version: int) -> list[str]:
    """Return the deployments that use a version."""
    edges = users_of(catalogue.project, Thing("model", name, str(version)))
    return sorted({edge.made.name for edge in edges if edge.made.kind == "deployment"})


def remove_version(catalogue: Catalogue, name: str, version: int, reason: str = "") -> None:
    """Delete the files of a version that no alias points at and no deployment uses.

    That it is removed is a fact before anything is deleted, and can be none while an alias points at it.

    Raises:
        InvalidInputError: If it is in use; says by what.
        NotFoundError: If there is no such version, or it was removed before.
    """
    used_by = deployments_of(catalogue, name, version)
    if used_by:
        raise InvalidInputError(
            f"{name}:{version} is used by the deployment {', '.join(used_by)}. Roll that to another version, or remove "
            "it, and try again."
        )
    _remove(catalogue, name, version, reason)
    sweep_dead(catalogue, name)
    sweep_unlisted(catalogue, name)


def retain(catalogue: Catalogue, name: str, keep: int) -> list[int]:
    """Remove all but the newest versions of a model, and those that are in use; returns the numbers of the removed."""
    model, summaries = catalogue.summaries(name)
    there = [version for version, _ in summaries if version not in model.state.removed]
    older = there[: max(0, len(there) - keep)]
    if not older:
        return []
    served = {edge.source for edge in all_edges(catalogue.project) if edge.made.kind == "deployment"}
    removed = []
    for version in older:
        if model.state.aliases_of(version) or Thing("model", name, str(version)) in served:
            continue
        try:
            _remove(catalogue, name, version, f"only the newest {keep} are kept")
        except (InvalidInputError, NotFoundError):
            continue  # in use since, or gone
        removed.append(version)
    sweep_dead(catalogue, name)
    sweep_unlisted(catalogue, name)
    return removed


def _remove(catalogue: Catalogue, name: str, version: int, reason: str) -> None:
    def decide(model: Model) -> VersionRemoved:
        if not 0 < version <= model.versions:
            raise NotFoundError(
                f"The model {name} has no version {version}; it has 1 to {model.versions}.", wanted=f"{name}:{version}"
            )
        if version in model.state.removed:
            raise NotFoundError(f"{name}:{version} was removed before.", wanted=f"{name}:{version}")
        if aliases := model.state.aliases_of(version):
            raise InvalidInputError(
                f"{name}:{version} is {' and '.join(f'{name}@{alias}' for alias in aliases)}. Promote another version "
                "first, or remove the alias."
            )
        return VersionRemoved(at=time.time(), by=user_name(), version=version, reason=reason)

    catalogue.add_fact(name, decide)
    _delete_files(catalogue, name, catalogue.manifest(name, version).token)


def _delete_files(catalogue: Catalogue, name: str, token: str) -> None:
    place = files_of(name, token)
    catalogue.storage.delete(place)
    if "://" in catalogue.storage.url:
        shutil.rmtree(catalogue.project.root / place, ignore_errors=True)  # the copy on this machine
