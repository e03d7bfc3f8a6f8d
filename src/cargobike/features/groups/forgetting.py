"""Remove a group: its definition, its rows, what is kept of them for look-ups."""

from __future__ import annotations

from cargobike.features.groups.definitions import table_folder
from cargobike.features.groups.finding import group
from cargobike.features.groups.naming import FOLDER
from cargobike.features.online.stores.choosing import is_materialized, store_of
from cargobike.store.files import project
from cargobike.store.files.storages import storage_of


def remove_group(name: str, version: int | None = None) -> None:
    """Delete a version of a group with all its rows, also those of the past; views of it find nothing any more.

    Args:
        name: Its name.
        version: The version; by default the newest.

    Raises:
        NotFoundError: If there is none.
    """
    definition = group(name, version).refresh()
    storage = storage_of(project.current())
    if definition.online or is_materialized(definition, storage):
        store_of(definition, storage).drop()
    beginning = f"{FOLDER}/{definition.name}.v{definition.version}."
    storage.delete(*(entry.path for entry in storage.list(FOLDER) if entry.path.startswith(beginning)))
    storage.delete(table_folder(definition))
