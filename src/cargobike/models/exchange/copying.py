"""Copies a version into another project, under the same name and number: for images that serve it."""

from __future__ import annotations

import time

from cargobike.core.errors import InvalidInputError
from cargobike.core.layout import ProjectFolder
from cargobike.core.running.accounts import user_name
from cargobike.models.catalogue.catalogue import Catalogue
from cargobike.models.facts import VersionRemoved
from cargobike.models.files import local_folder
from cargobike.models.record import Manifest, files_of, path_of
from cargobike.store.assets.manifests import encode_manifest


def copy_version(catalogue: Catalogue, manifest: Manifest, project: ProjectFolder) -> None:
    """Write a version into another project.

    Numbers have no gaps, so what is known of the versions before it goes along, without their files: there they are
    removed.

    Raises:
        InvalidInputError: If that project has another model of the name.
        StoreError: If files are missing or damaged.
    """
    target, name = Catalogue(project), manifest.name
    there = target.find(name)
    known = 0 if there is None else there.versions
    if manifest.version <= known and target.manifest(name, manifest.version) != manifest:
        raise InvalidInputError(f"{project.root} has another {name}:{manifest.version}; choose another place.")
    folder = local_folder(catalogue.project, catalogue.storage, manifest)
    for entry in manifest.files:
        target.storage.write(f"{files_of(name, manifest.token)}/{entry.path}", folder / entry.path)
    target.announce(name)
    for number in range(known + 1, manifest.version + 1):
        one = manifest if number == manifest.version else catalogue.manifest(name, number)
        if not target.storage.create(path_of(name, number), encode_manifest(one)):
            raise InvalidInputError(f"Another process has written {name}:{number} to {project.root} meanwhile.")
        if number < manifest.version:
            target.add_fact(name, lambda _, number=number: _removed(number))  # type: ignore[misc]


def _removed(number: int) -> VersionRemoved:
    return VersionRemoved(at=time.time(), by=user_name(), version=number, reason="it stayed in another project")
