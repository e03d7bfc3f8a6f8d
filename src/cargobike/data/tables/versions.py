"""The versions of a table: finding the newest, reading one, adding the next."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cargobike.core.errors import NotFoundError, StoreError
from cargobike.data.tables.addresses import Address, path_of
from cargobike.data.tables.manifest import Manifest, decode_manifest
from cargobike.store.assets.manifests import encode_manifest
from cargobike.store.assets.numbering import create_next, newest_number
from cargobike.store.files.storage import Storage


def latest(storage: Storage) -> int:
    """Return the number of the newest version, removed or not; 0 if there is none."""
    return newest_number(storage, path_of)


def read_version(storage: Storage, version: int) -> Manifest | None:
    """Return the manifest of a version; `None` if there is no such version.

    Raises:
        StoreError: If its manifest cannot be understood.
    """
    data = storage.read(path_of(version))
    if data is None:
        return None
    manifest = decode_manifest(data, f"{storage}/{path_of(version)}")
    if manifest.version != version:
        raise StoreError(f"{storage}/{path_of(version)} says that it is version {manifest.version}.")
    return manifest


def all_versions(storage: Storage) -> Iterator[Manifest]:
    """Yield the manifests of all versions, the oldest first."""
    version = 1
    while (manifest := read_version(storage, version)) is not None:
        yield manifest
        version += 1


def find_version(address: Address, version: int | None = None) -> Manifest:
    """Return a version of a table that is there, by default the newest that was not removed.

    Raises:
        NotFoundError: If there is none.
    """
    newest = latest(address.storage)
    if not newest:
        raise NotFoundError(f"There is no table at {address.storage}.", wanted=address.name)
    if version is not None:
        manifest = read_version(address.storage, version) if 0 < version <= newest else None
        if manifest is None:
            raise NotFoundError(
                f"The table {address.name} has no version {version}; it has 1 to {newest}.",
                wanted=f"{address.name}:{version}",
                nearest=[f"{address.name}:{newest}"],
            )
        if manifest.removed_at is not None:
            raise NotFoundError(f"Version {version} of the table {address.name} was removed.", wanted=address.name)
        return manifest
    for number in range(newest, 0, -1):
        manifest = read_version(address.storage, number)
        if manifest is not None and manifest.removed_at is None:
            return manifest
    raise NotFoundError(f"All {newest} versions of the table {address.name} were removed.", wanted=address.name)


def commit(storage: Storage, manifest: Manifest, first: int) -> Manifest:
    """Make a manifest visible as the next version, and return it with the number that it got.

    Args:
        storage: The table's place.
        manifest: What it holds.
        first: The number to try first; all numbers below it are taken.
    """
    version = create_next(storage, path_of, lambda number: encode_manifest(_numbered(manifest, number)), first)
    return _numbered(manifest, version)


def _numbered(manifest: Manifest, version: int) -> Manifest:
    return msgspec.structs.replace(manifest, version=version)
