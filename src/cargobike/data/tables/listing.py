"""The tables that a project keeps under names."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator

from cargobike.core import layout
from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.data.tables.addresses import FILE, NAME, Address, named
from cargobike.data.tables.manifest import Manifest
from cargobike.data.tables.table import Table
from cargobike.data.tables.versions import read_version
from cargobike.store.files import project
from cargobike.store.files.storages import storage_of

_MANIFEST = re.compile(rf"{layout.DATA}/(?P<name>{NAME.pattern})/(?P<version>[1-9][0-9]{{0,8}})/{re.escape(FILE)}")

_MOST_KEPT = 10_000


def tables_in(folder: ProjectFolder) -> dict[str, builtins.list[int]]:
    """Return the names of the tables of a project, in order, each with the numbers of its versions."""
    names: dict[str, builtins.list[int]] = {}
    for name, version, _ in _manifests(folder):
        names.setdefault(name, []).append(version)
    return names


def versions_in(folder: ProjectFolder) -> Iterator[tuple[str, int, Table | StoreError]]:
    """Yield all versions of all tables of a project, removed ones too; with the problem if one cannot be read."""
    for name, version, token in _manifests(folder):
        address = named(name, folder)
        try:
            manifest = _read(address, version, token)
        except StoreError as error:
            yield name, version, error
            continue
        if manifest is not None:
            yield name, version, Table(address, manifest)


def _manifests(folder: ProjectFolder) -> builtins.list[tuple[str, int, str]]:
    """Return name and version of each manifest of a project, and what differs after every change of it."""
    entries = storage_of(folder).list(layout.DATA, deep=True)
    matches = ((entry, _MANIFEST.fullmatch(entry.path)) for entry in entries)
    return sorted((match["name"], int(match["version"]), entry.token) for entry, match in matches if match is not None)


_read_before: dict[tuple[str, int, str], Manifest] = {}


def _read(address: Address, version: int, token: str) -> Manifest | None:
    """Read a manifest, unless this process has read it as it is: a dashboard lists them again and again."""
    key = (address.storage.url, version, token)
    if key not in _read_before:
        manifest = read_version(address.storage, version)
        if manifest is None:
            return None
        if len(_read_before) >= _MOST_KEPT:
            _read_before.clear()
        _read_before[key] = manifest
    return _read_before.get(key)


def list() -> builtins.list[Table]:
    """Return the tables that the project keeps, by name: of each its newest version that was not removed.

    Example:
        >>> from cargobike import data
        >>> _ = data.write({"x": [1]}, "ants")
        >>> "ants" in [table.name for table in data.list()]
        True
    """
    newest: dict[str, Table] = {}
    for name, _, table in versions_in(project.current()):
        if isinstance(table, Table) and table.manifest.removed_at is None:
            newest[name] = table
    return [*newest.values()]
