"""Removes versions of tables: their files go, what was known of them stays, and their numbers are never given again."""

from __future__ import annotations

import time

import msgspec

from cargobike.core.errors import NotFoundError
from cargobike.core.running.accounts import user_name
from cargobike.data.tables.addresses import Address, path_of
from cargobike.data.tables.claims import sweep, sweep_unlisted
from cargobike.data.tables.manifest import Manifest
from cargobike.data.tables.versions import all_versions
from cargobike.store.assets.manifests import encode_manifest


def remove_version(address: Address, version: int) -> Manifest:
    """Delete the files of a version that no other version lists; returns what is left of its manifest.

    The manifest says so first: a reader that comes in between is told that the version was removed.

    Raises:
        NotFoundError: If there is no such version.
    """
    versions = {manifest.version: manifest for manifest in all_versions(address.storage)}
    manifest = versions.pop(version, None)
    if manifest is None:
        raise NotFoundError(f"The table {address.name} has no version {version}.", wanted=f"{address.name}:{version}")
    if manifest.removed_at is None:
        manifest = msgspec.structs.replace(manifest, removed_at=time.time(), removed_by=user_name())
        address.storage.write(path_of(version), encode_manifest(manifest))
    others = {file.path for other in versions.values() if other.removed_at is None for file in other.files}
    address.storage.delete(*(file.path for file in manifest.files if file.path not in others))
    sweep(address.storage)
    sweep_unlisted(address.storage)
    return manifest
