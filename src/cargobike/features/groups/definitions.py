"""Definitions of groups as a project keeps them: `features/<name>.v<version>.<revision>.json`, created only if absent.

All lie in one folder, so that one listing finds them; the newest revision of a version counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from cargobike.core.errors import StoreError
from cargobike.features.definition import Definition
from cargobike.features.delta.schemas import type_of
from cargobike.features.groups.naming import FOLDER, find_definitions, folder_of_rows
from cargobike.store.files.remembering import ReadOnce
from cargobike.store.files.storage import Storage

_log = logging.getLogger(__name__)

_read_before: Final = ReadOnce[Definition]()


def table_folder(definition: Definition) -> str:
    """Return where the rows of a group lie in its project."""
    return folder_of_rows(definition.name, definition.version)


def all_definitions(storage: Storage) -> list[Definition]:
    """Return the definitions of all groups of a project in all versions, by name and version.

    One that cannot be understood is named in a warning and left out: the other groups work without it.
    """
    definitions = []
    for _, (_, path, token) in sorted(find_definitions(storage).items()):
        try:
            definitions.append(_read_before.get(storage, path, token, partial(_read, storage, path)))
        except StoreError as error:
            _log.warning("A feature group is left out: %s", error)
    return definitions


def create_definition(storage: Storage, definition: Definition) -> bool:
    """Write a definition unless there is one of its version and revision; returns whether it was written."""
    return storage.create(_path(definition), msgspec.json.format(msgspec.json.encode(definition), indent=2))


def newest_revision(storage: Storage, definition: Definition) -> Definition:
    """Return the newest revision of a version of a group."""
    while True:
        following = msgspec.structs.replace(definition, revision=definition.revision + 1)
        data = storage.read(_path(following))
        if data is None:
            return definition
        definition = _decode(data, f"{storage}/{_path(following)}")


def revise(storage: Storage, definition: Definition, change: Callable[[Definition], Definition]) -> Definition:
    """Write the next revision of a definition; `change` is asked again if another process was first.

    Returns:
        The newest definition; nothing is written if `change` returned its argument.
    """
    while True:
        newest = newest_revision(storage, definition)
        changed = change(newest)
        if changed == newest:
            return newest
        changed = msgspec.structs.replace(changed, revision=newest.revision + 1)
        if create_definition(storage, changed):
            return changed


def _path(definition: Definition) -> str:
    return f"{FOLDER}/{definition.name}.v{definition.version}.{definition.revision}.json"


def _read(storage: Storage, path: str) -> Definition:
    data = storage.read(path)
    if data is None:
        raise StoreError(f"{storage}/{path} was deleted while the groups of the project were listed.")
    return _decode(data, f"{storage}/{path}")


def _decode(data: bytes, where: str) -> Definition:
    try:
        definition = msgspec.json.decode(data, type=Definition)
    except msgspec.DecodeError as error:
        raise StoreError(f"{where} is no definition of a feature group: {error}.") from error
    if f"/{_path(definition)}" not in where.replace("\\", "/"):
        raise StoreError(f"{where} describes another group: {definition.name}, version {definition.version}.")
    unknown = [kind for kind in (*definition.features.values(), *definition.key_types) if type_of(kind) is None]
    if unknown or len(definition.key_types) not in {0, len(definition.key)}:
        raise StoreError(f"{where} has types that are not known here: {', '.join(unknown) or 'too few for its key'}.")
    return definition
