"""Removes versions: their files go, what was known of them stays, and their numbers are never given again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence

from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.core.registering.tracing import Thing, all_edges, users_of
from cargobike.core.running.accounts import user_name
from cargobike.models.catalogue.catalogue import Catalogue, Model
from cargobike.models.facts import VersionRemoved, VersionRestored
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
    if not used_by:
        _set_aside(catalogue, name, version, reason)
        used_by = deployments_of(catalogue, name, version)
        if used_by:
            _restore(catalogue, name, version, used_by)
    if used_by:
        raise InvalidInputError(
            f"{name}:{version} is used by the deployment {', '.join(used_by)}. Roll that to another version, or remove "
            "it, and try again."
        )
    _delete_files(catalogue, name, version)
    sweep_dead(catalogue, name)
    sweep_unlisted(catalogue, name)


def retain(catalogue: Catalogue, name: str, keep: int) -> list[int]:
    """Remove all but the newest versions of a model, and those that are in use; returns the numbers of the removed."""
    model, summaries = catalogue.summaries(name)
    there = [version for version, _ in summaries if version not in model.state.removed]
    older = there[: max(0, len(there) - keep)]
    if not older:
        return []
    served = _served(catalogue, name)
    aside = []
    for version in older:
        if model.state.aliases_of(version) or version in served:
            continue
        try:
            _set_aside(catalogue, name, version, f"only the newest {keep} are kept")
        except (InvalidInputError, NotFoundError):
            continue  # in use since, or gone
        aside.append(version)
    served = _served(catalogue, name) if aside else {}
    for version in aside:
        if version in served:
            _restore(catalogue, name, version, served[version])
        else:
            _delete_files(catalogue, name, version)
    sweep_dead(catalogue, name)
    sweep_unlisted(catalogue, name)
    return [version for version in aside if version not in served]


def _served(catalogue: Catalogue, name: str) -> dict[int, list[str]]:
    """Return the versions of a model that deployments use, and which."""
    served: dict[int, list[str]] = {}
    for edge in all_edges(catalogue.project):
        source = edge.source
        if edge.made.kind == "deployment" and (source.kind, source.name) == ("model", name) and source.version:
            served.setdefault(int(source.version), []).append(edge.made.name)
    return served


def _set_aside(catalogue: Catalogue, name: str, version: int, reason: str) -> None:
    """Make it a fact that a version is removed; its files are still there.

    A deployment writes down which version it uses before it loads one. So of a deployment that starts meanwhile, either
    it is seen by the look after this, or it finds the version removed and says so: no version is taken from under it.
    """

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


def _restore(catalogue: Catalogue, name: str, version: int, used_by: Sequence[str]) -> None:
    reason = f"the deployment {', '.join(used_by)} began to use it"
    fact = VersionRestored(at=time.time(), by=user_name(), version=version, reason=reason)
    catalogue.add_fact(name, lambda _: fact)


def _delete_files(catalogue: Catalogue, name: str, version: int) -> None:
    place = files_of(name, catalogue.manifest(name, version).token)
    catalogue.storage.delete(place)
    if "://" in catalogue.storage.url:
        shutil.rmtree(catalogue.project.root / place, ignore_errors=True)  # the copy on this machine
