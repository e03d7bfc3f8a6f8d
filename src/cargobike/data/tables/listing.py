"""The tables that a project keeps under names."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from cargobike.core import layout
from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.data.tables.addresses import FILE, NAME, named
from cargobike.data.tables.table import Table
from cargobike.data.tables.versions import read_version
from cargobike.store.files import project
from cargobike.store.files.remembering import ReadOnce
from cargobike.store.files.storages import storage_of

_MANIFEST = re.compile(rf"{layout.DATA}/(?P<name>{NAME.pattern})/(?P<version>[1-9][0-9]{{0,8}})/{re.escape(FILE)}")


def tables_in(folder: ProjectFolder) -> dict[str, builtins.list[int]]:
    """Return the names of the tables of a project, in order, each with the numbers of its versions."""
    names: dict[str, builtins.list[int]] = {}
    for name, version, *_ in _manifests(folder):
        names.setdefault(name, []).append(version)
    return names


def versions_in(folder: ProjectFolder, name: str = "") -> Iterator[tuple[str, int, Table | StoreError]]:
    """Yield all versions of all tables of a project, removed ones too; with the problem if one cannot be read.

    Args:
        folder: The project.
        name: Only versions of this table.
    """
    storage = storage_of(folder)
    for table, version, path, token in _manifests(folder, name):
        try:
            found = _read_before.get(storage, path, token, partial(_read, folder, table, version))
        except StoreError as error:
            yield table, version, error
            continue
        if found is not None:
            yield table, version, found


def _manifests(folder: ProjectFolder, name: str = "") -> builtins.list[tuple[str, int, str, str]]:
    """Return name, version and path of each manifest of a project, and what differs after every change of it."""
    entries = storage_of(folder).list(f"{layout.DATA}/{name}" if name else layout.DATA, deep=True)
    matches = ((entry, _MANIFEST.fullmatch(entry.path)) for entry in entries)
    return sorted(
        (match["name"], int(match["version"]), entry.path, entry.token) for entry, match in matches if match is not None
    )


_read_before: Final = ReadOnce[Table | None]()


def _read(folder: ProjectFolder, name: str, version: int) -> Table | None:
    address = named(name, folder)
    manifest = read_version(address.storage, version)
    return None if manifest is None else Table(address, manifest)


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
