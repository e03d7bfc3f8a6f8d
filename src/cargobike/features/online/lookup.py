"""Look-ups in one group: prepared once, then one statement and one unpacking for each key."""

from __future__ import annotations

import datetime
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from cargobike.core.errors import StoreError
from cargobike.core.running.forks import abandon_in_copies
from cargobike.features.definition import Definition
from cargobike.features.online.packing import NO_TIME, Packing, as_moment, time_of
from cargobike.features.online.stores.keys import is_number, is_text, pack_key
from cargobike.features.online.stores.store import OnlineStore, Reader, State
from cargobike.features.online.vectors import EXPIRED, MISSING, NULL, Why

_LARGEST = 2**63
Columns = dict[str, np.ndarray]
Absences = dict[str, dict[int, Why]]


class GroupLookup:
    """Finds the newest rows of one group; may be used by several threads.

    Args:
        definition: The group.
        store: Where its newest rows are.
        columns: Names in the result, and the features.
        now_s: Tells the time, in seconds since 1970.
        table_id: The group's; rows of one that had the same name before are none of it.

    Raises:
        StoreError: If the group was never materialized.
    """

    def __init__(
        self,
        definition: Definition,
        store: OnlineStore,
        columns: dict[str, str],
        now_s: Callable[[], float] = time.time,
        table_id: str = "",
    ) -> None:
        self.key = definition.key
        self.group = definition.name
        self._definition = definition
        self._store = store
        self._table_id = table_id
        self._columns = columns
        self._now_s = now_s
        self._ttl_us = None if definition.ttl_s is None else round(definition.ttl_s * 1e6)
        self._local = threading.local()
        self._abandoned: list[threading.local] = []
        abandon_in_copies(self)
        self._prepare(self._state())

    def abandon(self) -> None:
        """Open the store anew: a forked copy of a process may neither use nor close what the original has open."""
        self._abandoned.append(self._local)
        self._local = threading.local()

    def find(self, key: Sequence[Any], values: dict[str, Any]) -> dict[str, Why] | None:
        """Add the values for one key to others; returns why those that are absent are, `None` if none is.

        Args:
            key: Values of the key columns.
            values: Where to add them.
        """
        packed = key[0] if self._is_plain and type(key[0]) is self._plain else pack_key(key, self.key, self._kinds)
        try:
            row = self._local.get(packed)
        except AttributeError:
            self._open()
            return self.find(key, values)
        except (OverflowError, UnicodeEncodeError):
            return self._without(values, MISSING)  # no group has a key of more than 64 bits, or half a character
        if row is None:
            return self._without(values, MISSING)
        try:
            fixed, tail = (self._simple(row), []) if self._simple is not None else self._packing.unpack(row)
        except (struct.error, msgspec.DecodeError):
            fixed, tail = (None,), []
        if fixed[0] != self._number:  # the group got other features
            self._prepare(self._state())
            return self.find(key, values)
        if self._ttl_us is not None and self._is_old(fixed[1]):
            return self._without(values, EXPIRED)
        if self._is_one_word and not fixed[2] and self._simple is not None and not self._has_times:
            for name, place in self._places:
                values[name] = fixed[place]
            return None
        absent: dict[str, Why] = {}
        for name, feature in self._columns.items():
            values[name] = value = self._packing.value(feature, fixed, tail)
            if value is None:
                absent[name] = NULL
        return absent or None

    def event_time(self, key: Sequence[Any]) -> datetime.datetime | None:
        """Return since when the row of a key is true; `None` if there is none, or the group has no event times."""
        try:
            row = self._reader().get(pack_key(key, self.key, self._kinds))
        except (OverflowError, UnicodeEncodeError):
            return None
        time_us = NO_TIME if row is None else time_of(row)
        return None if time_us == NO_TIME else as_moment(time_us)

    def find_all(self, keys: Sequence[Sequence[Any]], columns: Columns, absences: Absences) -> None:
        """Add the columns for several keys to others, and why values are absent."""
        if self._is_plain and all(type(key[0]) is self._plain for key in keys):
            packed = [key[0] for key in keys]
        else:
            packed = [pack_key(key, self.key, self._kinds) for key in keys]
        if self._plain is int:  # no group has a key of more than 64 bits
            packed = [key if -_LARGEST <= key < _LARGEST else None for key in packed]
        try:
            found = self._reader().get_all(packed)
        except UnicodeEncodeError:  # nor one with half a character
            packed = [key if _is_whole(key) else None for key in packed]
            found = self._reader().get_all(packed)
        nothing = self._nothing
        rows = [found.get(key, nothing) for key in packed]
        absent = None
        if nothing in rows:
            absent = np.fromiter((key not in found for key in packed), dtype=np.bool_, count=len(rows))
        packing = self._packing
        if any(row[:2] != self._mark for row in rows):  # the group got other features
            self._prepare(self._state())
            self.find_all(keys, columns, absences)
            return
        heads = [row[: packing.struct.size] for row in rows] if packing.tail else rows
        fixed = np.frombuffer(b"".join(heads), packing.dtype)
        old = None
        if self._ttl_us is not None:
            old = (self._now_s() * 1e6 - fixed["time"] > self._ttl_us) & (fixed["time"] != NO_TIME)
            old = None if not old.any() else old if absent is None else old & ~absent
        tails = [packing.unpack(row)[1] for row in rows] if packing.tail else []
        nulls = fixed["nulls"] if fixed["nulls"].any() else None
        for name, feature in self._columns.items():
            columns[name] = self._values(feature, fixed, tails)
            null = None if nulls is None else self._is_null(feature, nulls)
            if absent is not None or old is not None or null is not None:
                absences[name] = _reasons(absent, old, null)

    def _values(self, feature: str, fixed: np.ndarray, tails: Sequence[Sequence[Any]]) -> np.ndarray:
        packing = self._packing
        if feature not in packing.places:
            place = packing.tail.index(feature)
            values = np.empty(len(fixed), dtype=object)
            values[:] = [tail[place] for tail in tails]
            return values
        values = fixed[f"f{packing.places[feature] - 2 - packing.words}"]
        if feature not in packing.times:
            return values
        return np.array([as_moment(int(value)) for value in values], dtype=object)

    def _is_null(self, feature: str, nulls: np.ndarray) -> np.ndarray:
        number = self._packing.names.index(feature)
        return (nulls[:, number // 64] >> np.uint64(number % 64) & np.uint64(1)).astype(np.bool_)

    def _without(self, values: dict[str, Any], why: Why) -> dict[str, Why]:
        for name in self._columns:
            values[name] = None
        return dict.fromkeys(self._columns, why)

    def _is_old(self, time_us: int) -> bool:
        return self._ttl_us is not None and time_us != NO_TIME and self._now_s() * 1e6 - time_us > self._ttl_us

    def _prepare(self, state: State) -> None:
        """Prepare for rows of a format."""
        packing = Packing(state.format, state.number)
        lacking = [feature for feature in self._columns.values() if feature not in packing.names]
        if lacking:
            raise StoreError(
                f"{', '.join(lacking)} of the group {self._definition.name} cannot be looked up yet. Call "
                "group.materialize(), which brings new features too."
            )
        self._packing, self._number, self._mark = packing, state.number, state.number.to_bytes(2, "little")
        self._kinds = state.key
        self._is_plain = is_number(state.key) or is_text(state.key)
        self._plain: type = int if is_number(state.key) else str
        self._simple = None if packing.tail else packing.struct.unpack
        self._is_one_word = packing.words == 1
        self._has_times = bool(packing.times)
        self._places = [(name, packing.places[each]) for name, each in self._columns.items() if each in packing.places]
        empty = np.zeros(1, packing.dtype)
        empty["format"] = state.number
        self._nothing = empty.tobytes() + (msgspec.msgpack.encode([None] * len(packing.tail)) if packing.tail else b"")

    def _state(self) -> State:
        state = self._reader().state()
        if state is None or (self._table_id and state.table and state.table != self._table_id):
            raise StoreError(
                f"The group {self._definition.name} was never materialized. Call group.materialize() first."
            )
        return state

    def _reader(self) -> Reader:
        try:
            return self._local.reader  # type: ignore[no-any-return]
        except AttributeError:
            return self._open()

    def _open(self) -> Reader:
        """Open the store for this thread."""
        self._local.reader = reader = self._store.reader()
        self._local.get = reader.get
        return reader

    def close(self) -> None:
        """Close what is open in this thread."""
        if hasattr(self._local, "reader"):
            self._local.reader.close()
            del self._local.reader, self._local.get


def _is_whole(text: str) -> bool:
    """Tell whether a text has no half of a character, which JSON can bring."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reasons(absent: np.ndarray | None, old: np.ndarray | None, null: np.ndarray | None) -> dict[int, Why]:
    """Return why rows have no value, by their numbers."""
    why: dict[int, Why] = {}
    reasons: list[tuple[np.ndarray | None, Why]] = [(null, NULL), (old, EXPIRED), (absent, MISSING)]
    for rows, word in reasons:
        if rows is not None:
            why.update(dict.fromkeys(np.flatnonzero(rows).tolist(), word))
    return why
