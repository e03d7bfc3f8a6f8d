"""Delete rows by their keys: whole things are forgotten, at all times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.core.values.numbers import describe
from cargobike.features.definition import Definition
from cargobike.features.delta.log import Log, Snapshot
from cargobike.features.delta.schemas import type_of
from cargobike.features.groups.commits import Commit, Plan
from cargobike.features.groups.files import read_rows, write_files
from cargobike.features.groups.rows.fitting import cast
from cargobike.features.groups.rows.incoming import arrow_of
from cargobike.features.groups.rows.matching import Wanted, look_for


def read_keys(keys: Any, definition: Definition) -> Wanted:
    """Return the keys that a user means.

    Args:
        keys: One key or a list of keys; or, for keys of several columns, a dict, a list of dicts, or a frame with these
            columns.
        definition: The group.

    Raises:
        InvalidInputError: If they do not fit the key of the group.
    """
    names = list(definition.key)
    if isinstance(keys, str | int | bytes) and len(names) == 1:
        keys = {names[0]: [keys]}
    elif isinstance(keys, Mapping):
        keys = {
            name: values if isinstance(values, list | tuple | np.ndarray) else [values] for name, values in keys.items()
        }
    elif isinstance(keys, list | tuple | set | np.ndarray) and not any(isinstance(one, Mapping) for one in keys):
        if len(names) != 1:
            raise InvalidInputError(
                f"The key of the group {definition.name!r} has the columns {', '.join(names)}; give dicts, such as "
                f"{dict.fromkeys(names, '…')}, or a frame with these columns."
            )
        keys = {names[0]: list(keys)}
    table, _ = arrow_of(keys)
    if missing := [name for name in names if name not in table.column_names]:
        raise InvalidInputError(
            f"The keys for the group {definition.name!r} lack {', '.join(map(repr, missing))}; "
            f"{describe(table.column_names)} was given."
        )
    columns = {}
    for name, kind in zip(names, definition.key_types, strict=True):
        column = table.column(name)
        try:
            columns[name] = cast(column, type_of(kind))
        except (pa.ArrowException, ValueError) as error:
            raise InvalidInputError(f"The key {name!r} is {kind}, and {column.type} was given.") from error
        if columns[name].null_count:
            raise InvalidInputError(f"A key for the group {definition.name!r} is null; give keys that are not.")
    return look_for(pa.table(columns).group_by(names).aggregate([]), names)


class Deletion:
    """Decides what deleting keys does to a state of a group."""

    def __init__(self, log: Log, definition: Definition, wanted: Wanted, message: str) -> None:
        self._log = log
        self._definition = definition
        self._wanted = wanted
        self._message = message

    def __call__(self, snapshot: Snapshot) -> Plan | None:
        """Rewrite the files that hold one of the keys; `None` if none does."""
        adds, removes, deleted = [], [], 0
        for file in snapshot.files.values():
            keys = read_rows(self._log.storage, self._log.folder, file, self._definition, self._wanted.names)
            found, _ = self._wanted.partners(keys)
            if not found.any():
                continue
            deleted += int(np.count_nonzero(found))
            removes.append(file)
            rest = read_rows(self._log.storage, self._log.folder, file, self._definition).filter(pa.array(~found))
            adds += write_files(self._log.storage, self._log.folder, rest, self._definition, changed=True)
        if not removes:
            return None
        return Plan(adds, removes, Commit(operation="delete", deleted=deleted, message=self._message))
