"""Insert more rows than should be in memory at once: written piece by piece, and committed together at the end.

Of each row only a hash of its key stays in memory. With it rows of the same key are found, in other pieces and in the
group, and only files that have such rows are read again. Files that no commit names are never seen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.features.definition import Definition
from cargobike.features.delta.actions import Add
from cargobike.features.delta.log import Log, Snapshot
from cargobike.features.groups.columns import identity_of, schema_of, with_columns
from cargobike.features.groups.commits import Commit, Plan, commit_with
from cargobike.features.groups.definitions import newest_revision
from cargobike.features.groups.files import FileKeys, KeysOfFiles, read_rows, write_files
from cargobike.features.groups.inserting import compare
from cargobike.features.groups.remaining import Remaining
from cargobike.features.groups.rows.expecting import check_expectations
from cargobike.features.groups.rows.fitting import fit, kept_types
from cargobike.features.groups.rows.matching import Mask, Wanted, look_for, repeated_rows, without_duplicates
from cargobike.features.groups.rows.preparing import Rules, check_rows, learn_types
from cargobike.features.groups.rows.quarantine import bad_ones, put_aside
from cargobike.features.groups.upkeep import UNCOMMITTED_S
from cargobike.features.hashing import Hashes, hash_rows

LONGEST_S: Final = 0.8 * UNCOMMITTED_S
"""How long rows may take to come: files that no commit names are deleted at some time."""
_PARTS: Final = 32
_WIDTH: Final = 2**64 // _PARTS


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that were written into a file, and are not committed yet.

    Attributes:
        file: The file.
        wanted: Their keys; its `rows` are empty until they are read again.
    """

    file: Add
    wanted: Wanted

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
        return len(self.wanted.hashes)


def insert_pieces(
    log: Log, definition: Definition, tables: Iterator[pa.Table], rules: Rules, *, keys: KeysOfFiles, commit: Commit
) -> tuple[Definition, Commit]:
    """Insert rows that come piece by piece, as one commit.

    Args:
        log: The log of the group.
        definition: The group.
        tables: The rows; each table has the same columns, and at most as many rows as a file.
        rules: What a user said about rows that are not as they should be; no expectation is about all rows together.
        keys: Which keys are in which file.
        commit: What is known of the commit.

    Returns:
        The group, which knows all their columns now, and the commit.

    Raises:
        InvalidInputError: If rows do not fit; nothing was written then.
    """
    incoming = _Incoming(log, newest_revision(log.storage, definition), rules)
    try:
        while (table := next(tables, None)) is not None:
            incoming.take(table)
            del table  # the next one is made before this name would be given away
        incoming.settle_duplicates()
        definition = incoming.learn()
        incoming.check_age()
        if incoming.aside:
            name, count = put_aside(log, pa.concat_tables(incoming.aside))
            commit = msgspec.structs.replace(commit, quarantine=name, quarantined=count)
    except BaseException:
        incoming.sweep(but=())
        raise
    insertion = PiecewiseInsertion(log, definition, incoming.pieces, keys, commit)
    # Whatever this raises, the commit may have been made: its files must stay. `vacuum` finds leftovers.
    _, made = commit_with(log, definition, insertion)
    incoming.sweep(but=made.files)
    return definition, made


class PiecewiseInsertion:
    """Decides what inserting pieces does to a state of a group; may be asked again about a newer state.

    Args:
        log: The log of the group.
        definition: The group.
        pieces: The rows; no two with the same key and event time.
        keys: Which keys are in which file.
        commit: What is known of the commit before its rows are counted.
    """

    def __init__(
        self, log: Log, definition: Definition, pieces: Sequence[Piece], keys: KeysOfFiles, commit: Commit
    ) -> None:
        self._log = log
        self._definition = definition
        self._pieces = pieces
        self._keys = keys
        self._commit = commit

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Write the files that the commit needs besides those of the pieces, and return what it does."""
        known: list[Mask] = [np.zeros(piece.num_rows, dtype=bool) for piece in self._pieces]
        rest = Remaining(self._log, self._definition, self._keys)
        removes: list[Add] = []
        updated = 0
        for file in snapshot.files.values():
            near = [
                number
                for number, piece in enumerate(self._pieces)
                if piece.wanted.may_be_in(file, self._definition.event_time)
            ]
            keys = self._keys.get(self._log.storage, self._log.folder, file, self._definition) if near else None
            near = [
                number
                for number in near
                if self._pieces[number].wanted.salt or (keys and self._pieces[number].wanted.any_in(keys))
            ]
            if not near or keys is None:
                continue
            old = read_rows(self._log.storage, self._log.folder, file, self._definition)
            stays = np.ones(old.num_rows, dtype=bool)
            for number in near:
                wanted = replace(
                    self._pieces[number].wanted, rows=_read(self._log, self._definition, self._pieces[number])
                )
                remaining, unchanged = compare(wanted, old, keys)
                stays &= remaining
                known[number] |= unchanged
            if not stays.all():
                updated += int(np.count_nonzero(~stays))
                removes.append(file)
                rest.add(old.filter(pa.array(stays)), keys.only(stays))
        own = [file for piece, mask in zip(self._pieces, known, strict=True) for file in self._files(piece, mask)]
        total, there = sum(piece.num_rows for piece in self._pieces), sum(int(mask.sum()) for mask in known)
        fresh = total - there
        # Another program may have written a key twice; both rows are replaced by one then.
        counts = {"inserted": max(0, fresh - updated), "updated": updated, "unchanged": there}
        commit = msgspec.structs.replace(self._commit, files=tuple(file.path for file in own), **counts)
        return Plan([*own, *rest.files()], removes, commit)

    def _files(self, piece: Piece, known: Mask) -> list[Add]:
        """Return the file of a piece, written anew if some of its rows are in the group already."""
        if not known.any():
            if not piece.wanted.salt:
                self._keys.put(
                    piece.file.path, FileKeys(piece.wanted.hashes, piece.wanted.order.astype(np.int32, copy=False))
                )
            return [piece.file]
        rows = _read(self._log, self._definition, piece).filter(pa.array(~known))
        return write_files(self._log.storage, self._log.folder, rows, self._definition, changed=True)


class _Incoming:
    """Takes tables one after the other, and writes each into a file.

    Args:
        log: The log of the group.
        definition: The group, in its newest revision.
        rules: What a user said about rows that are not as they should be.
    """

    def __init__(self, log: Log, definition: Definition, rules: Rules) -> None:
        self._log = log
        self._definition = definition
        self._rules = rules
        self._written: set[str] = set()
        self._types: dict[str, Any] = {}
        self._coming = definition
        self._count = 0
        self._now_us = time.time_ns() // 1000
        self.pieces: list[Piece] = []
        self.aside: list[pa.Table] = []

    def take(self, table: pa.Table) -> None:
        """Check rows, and write those that are good."""
        expectations = [*self._definition.expectations, *self._rules.expectations]
        if not self._types:
            self._types = kept_types(table, self._definition, self._rules.columns)
            self._coming = with_columns(self._definition, self._types)
            check_expectations(expectations, self._coming, schema_of(self._coming).names)
        rows = fit(table, self._coming, schema_of(self._coming), self._now_us)
        bad = check_rows(rows, self._coming, expectations, self._rules, self._count)
        self._count += table.num_rows
        if bad:
            self.aside.append(bad_ones(rows, bad))
            rows = rows.filter(pa.array(~np.logical_or.reduce(list(bad.values()))))
        rows = without_duplicates(rows, self._coming, self._rules.duplicates)
        self.pieces += self._write(rows)
        pa.default_memory_pool().release_unused()

    def settle_duplicates(self) -> None:
        """Leave one row of each key and event time, wherever the others are.

        Raises:
            InvalidInputError: If they differ, and it was not said which counts.
        """
        names = identity_of(self._coming)
        if not self.pieces:
            return
        twice = _in_several([piece.wanted.hashes for piece in self.pieces])
        salted = any(piece.wanted.salt for piece in self.pieces)  # rare beyond words: all rows are compared then
        if not len(twice) and not salted:
            return
        places: list[tuple[int, Any]] = []
        suspects = []
        for number, piece in enumerate(self.pieces):
            rows = _read(self._log, self._coming, piece)
            hashes = hash_rows([rows.column(name) for name in names])
            here = np.arange(len(hashes)) if salted else np.flatnonzero(np.isin(hashes, twice))
            places += [(number, place) for place in here.tolist()]
            suspects.append(rows.take(pa.array(here)))
        dropped: dict[int, list[int]] = {}
        for place in repeated_rows(pa.concat_tables(suspects), self._coming, self._rules.duplicates):
            dropped.setdefault(places[place][0], []).append(places[place][1])
        pieces: list[Piece] = []
        for number, piece in enumerate(self.pieces):
            if number in dropped:
                rows = _read(self._log, self._coming, piece)
                keep = np.ones(rows.num_rows, dtype=bool)
                keep[dropped[number]] = False
                pieces += self._write(rows.filter(pa.array(keep)))
            else:
                pieces.append(piece)
        self.pieces = pieces

    def check_age(self) -> None:
        """Refuse to commit files that `vacuum` may take for leftovers before they are.

        Raises:
            InvalidInputError: If reading the rows took too long.
        """
        if time.time_ns() // 1000 - self._now_us > LONGEST_S * 1e6:
            raise InvalidInputError(
                f"Reading these rows took longer than {LONGEST_S / 60:.0f} minutes; nothing was written. Insert them "
                "in several calls, or bring them nearer first."
            )

    def learn(self) -> Definition:
        """Write down the types of columns that are new.

        Raises:
            InvalidInputError: If another process has given them other types meanwhile.
        """
        definition = learn_types(self._log.storage, self._definition, self._types)
        own, now = schema_of(self._coming), schema_of(definition)
        if any(name not in now.names or now.field(name).type != own.field(name).type for name in own.names):
            raise InvalidInputError(
                f"Another process has changed the columns of the group {definition.name!r} while these rows were read; "
                "nothing was written. Insert them again."
            )
        return definition

    def sweep(self, but: Sequence[str]) -> None:
        """Delete the files that were written, except some."""
        names = sorted(self._written - set(but))
        self._log.storage.delete(*(f"{self._log.folder}/{name}" for name in names))

    def _write(self, rows: pa.Table) -> list[Piece]:
        pieces = []
        for file in write_files(self._log.storage, self._log.folder, rows, self._coming, changed=True):  # one, or none
            self._written.add(file.path)
            wanted = look_for(rows, identity_of(self._coming), self._coming.event_time)
            pieces.append(
                Piece(file, replace(wanted, rows=rows.schema.empty_table(), order=wanted.order.astype(np.int32)))
            )
        return pieces


def _in_several(ordered: Sequence[Hashes]) -> Hashes:
    """Return the hashes that occur in more than one array, each of which is in order; part by part, to need no room."""
    found = []
    for part in range(_PARTS):
        low, high = np.uint64(part * _WIDTH), np.uint64((part + 1) * _WIDTH - 1)
        ends = [(np.searchsorted(each, low), np.searchsorted(each, high, "right")) for each in ordered]
        some = np.sort(np.concatenate([each[first:last] for each, (first, last) in zip(ordered, ends, strict=True)]))
        found.append(some[1:][some[1:] == some[:-1]])
    return np.unique(np.concatenate(found))


def _read(log: Log, definition: Definition, piece: Piece) -> pa.Table:
    return read_rows(log.storage, log.folder, piece.file, definition)
