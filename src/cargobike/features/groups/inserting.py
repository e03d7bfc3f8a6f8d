"""Insert rows into a group: one commit, in which a row replaces the one with the same key and event time."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from cargobike.features.definition import WRITTEN_AT, Definition
from cargobike.features.delta.actions import Add
from cargobike.features.delta.log import Log, Snapshot
from cargobike.features.groups.columns import identity_of
from cargobike.features.groups.commits import Commit, Plan
from cargobike.features.groups.files import FileKeys, KeysOfFiles, read_rows, write_files
from cargobike.features.groups.remaining import Remaining
from cargobike.features.groups.rows.matching import Mask, Wanted, look_for, same_values


class Insertion:
    """Decides what inserting rows does to a state of a group; may be asked again about a newer state.

    Args:
        log: The log of the group.
        definition: The group.
        rows: With exactly its columns; no two with the same key and event time.
        keys: Which keys are in which file.
        commit: What is known of the commit before its rows are counted.
    """

    def __init__(self, log: Log, definition: Definition, rows: pa.Table, keys: KeysOfFiles, commit: Commit) -> None:
        self._log = log
        self._definition = definition
        self._rows = rows
        self._keys = keys
        self._commit = commit
        self._wanted = look_for(rows, identity_of(definition), definition.event_time)
        self._written: tuple[bytes, list[Add]] | None = None

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Write the files that the commit needs, and return what it does."""
        is_known = np.zeros(self._rows.num_rows, dtype=bool)
        updated = 0
        remaining = Remaining(self._log, self._definition, self._keys)
        removes: list[Add] = []
        for file in snapshot.files.values():
            if not self._wanted.may_be_in(file, self._definition.event_time):
                continue
            keys = self._keys.get(self._log.storage, self._log.folder, file, self._definition)
            if not self._wanted.salt and not self._wanted.any_in(keys):
                continue
            old = read_rows(self._log.storage, self._log.folder, file, self._definition)
            stays, unchanged = compare(self._wanted, old, keys)
            is_known |= unchanged
            if not stays.all():
                updated += int(np.count_nonzero(~stays))
                removes.append(file)
                remaining.add(old.filter(pa.array(stays)), keys.only(stays))
        fresh = int(np.count_nonzero(~is_known))
        # Another program may have written a key twice; both rows are replaced by one then.
        counts = {"inserted": max(0, fresh - updated), "updated": updated, "unchanged": self._rows.num_rows - fresh}
        own = self._new_files(is_known)
        commit = msgspec.structs.replace(self._commit, files=tuple(file.path for file in own), **counts)
        return Plan([*own, *remaining.files()], removes, commit)

    def _new_files(self, is_known: Mask) -> list[Add]:
        """Write our rows, unless that was done for an earlier state and the same rows."""
        which = is_known.tobytes()
        if self._written is None or self._written[0] != which:
            rows = self._rows.filter(pa.array(~is_known)) if is_known.any() else self._rows
            files = write_files(self._log.storage, self._log.folder, rows, self._definition, changed=True)
            self._written = which, files
            if len(files) == 1 and not self._wanted.salt and not is_known.any():
                self._keys.put(files[0].path, FileKeys(self._wanted.hashes, self._wanted.order.astype(np.int32)))
        return self._written[1]


def compare(wanted: Wanted, old: pa.Table, keys: FileKeys) -> tuple[Mask, Mask]:
    """Return which rows of a file stay, and which of the wanted ones were there already, with the same values.

    Args:
        wanted: The rows that are inserted.
        old: The rows of the file.
        keys: Their keys.
    """
    found, partners = wanted.partners(old, keys)
    here, ours = old.filter(pa.array(found)), wanted.rows.take(pa.array(partners))
    same = np.ones(len(partners), dtype=bool)
    for name in old.column_names:
        if name != WRITTEN_AT and name not in wanted.names:
            same &= same_values(here.column(name), ours.column(name))
    is_known = np.zeros(wanted.rows.num_rows, dtype=bool)
    is_known[partners[same]] = True
    goes = found.copy()
    goes[found] = ~same
    return ~goes, is_known
