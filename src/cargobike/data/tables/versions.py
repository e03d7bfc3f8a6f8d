"""The versions of a table: finding the newest, reading one, adding the next.

Versions are numbered from 1 without gaps, also of several writers at once: each tries to create the manifest of the
next number, one succeeds, the others try the number after it. So the newest is found by a few looks, without a listing.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cargobike.core.errors import NotFoundError, StoreError
from cargobike.data.tables.addresses import Address
from cargobike.data.tables.manifest import Manifest, decode_manifest, encode_manifest, path_of
from cargobike.store.files.storage import Storage

_MOST = 10**9


def latest(storage: Storage) -> int:
    """Return the number of the newest version, removed or not; 0 if there is none."""
    low, high = 0, 1
    while storage.stat(path_of(high)) is not None:
        low, high = high, high * 2
        if high > _MOST:
            raise StoreError(f"{storage} has more than {_MOST} versions, which no table has.")
    while high - low > 1:
        middle = (low + high) // 2
        if storage.stat(path_of(middle)) is not None:
            low = middle
        else:
            high = middle
    return low


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
    for version in range(first, _MOST):
        numbered = msgspec.structs.replace(manifest, version=version)
        if storage.create(path_of(version), encode_manifest(numbered)):
            return numbered
    raise StoreError(f"{storage} has more than {_MOST} versions, which no table has.")
