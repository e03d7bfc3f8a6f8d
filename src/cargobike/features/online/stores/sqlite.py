"""Newest rows in a SQLite file on this host, the default: nothing to install, nothing to run.

Readers see the state after a whole materialization, also while the next one is being written (SQLite's WAL).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from cargobike.core.errors import StoreError
from cargobike.features.online.stores.keys import is_number
from cargobike.features.online.stores.store import TIMEOUT_S, State, decode_state, encode_state

_MAPPED_BYTES: Final = 1 << 34
_AT_ONCE: Final = 500
_ONE: Final = "SELECT value FROM rows WHERE key = ?"
_PUT: Final = "INSERT OR REPLACE INTO rows VALUES (?, ?, ?)"
_PUT_IF_NEWER: Final = (
    "INSERT INTO rows VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET time = excluded.time, value = excluded.value "
    "WHERE excluded.time >= time"
)


class SqliteStore:
    """Keeps the newest rows of a group in one file.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def reader(self) -> SqliteReader:
        """Open the file for look-ups in this thread."""
        if not self.path.exists():
            raise StoreError(
                f"{self.path} is not there: the group was never materialized. Call group.materialize() first."
            )
        return SqliteReader(self.path)

    @contextmanager
    def writing(self, key: Sequence[str]) -> Iterator[SqliteWriter]:
        """Change the file; made if it is not there."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=TIMEOUT_S)) as connection:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=NORMAL")
                connection.execute(
                    "PRAGMA secure_delete=ON"
                )  # what was deleted is overwritten: people must be forgotten
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                raise StoreError(
                    f"{self.path} is being written by another process, or cannot be written: {error}."
                ) from error
            try:
                connection.execute("CREATE TABLE IF NOT EXISTS state (one INTEGER PRIMARY KEY, value BLOB NOT NULL)")
                connection.execute(f"CREATE TABLE IF NOT EXISTS rows {_columns(key)}")
                writer = SqliteWriter(connection, key)
                yield writer
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            if writer.has_removed:  # and so is what the log of changes still has of it, unless a reader needs that
                connection.execute("PRAGMA busy_timeout=0")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def drop(self) -> None:
        """Forget all rows, if there is a file."""
        if not self.path.exists():
            return
        with self.writing(()) as writer:
            writer.forget()


class SqliteReader:
    """Finds packed rows in a file.

    Args:
        path: The file, which is there.
    """

    def __init__(self, path: Path) -> None:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=TIMEOUT_S)
        connection.execute(f"PRAGMA mmap_size={_MAPPED_BYTES}")
        connection.execute("PRAGMA query_only=1")
        self._connection = connection
        self.get: Callable[[Any], bytes | None] = _getter(connection)

    def get_all(self, keys: Sequence[Any]) -> dict[Any, bytes]:
        """Return the rows of those keys that have one."""
        rows: dict[Any, bytes] = {}
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            rows.update(self._connection.execute(f"SELECT key, value FROM rows WHERE key IN ({marks})", some))
        if len(rows) < len(keys):
            _check(self._connection)
        return rows

    def state(self) -> State | None:
        """Return what the file holds."""
        return _state(self._connection)

    def count(self) -> int:
        """Return how many keys have a row."""
        return int(self._connection.execute("SELECT count(*) FROM rows").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class SqliteWriter:
    """Changes a file inside a transaction.

    Args:
        connection: The file, in the transaction.
        key: Types of the key.
    """

    def __init__(self, connection: sqlite3.Connection, key: Sequence[str]) -> None:
        self._connection = connection
        self._key = key
        self.has_removed = False

    def state(self) -> State | None:
        """Return what the file holds before the change."""
        return _state(self._connection)

    def clear(self) -> None:
        """Forget all rows; the table is made anew, since the key may have another type now."""
        self._connection.execute("DROP TABLE rows")
        self._connection.execute(f"CREATE TABLE rows {_columns(self._key)}")

    def put(self, keys: Sequence[Any], times: Sequence[int], rows: Sequence[bytes], *, if_newer: bool = False) -> None:
        """Write rows."""
        self._connection.executemany(_PUT_IF_NEWER if if_newer else _PUT, zip(keys, times, rows, strict=True))

    def remove(self, keys: Sequence[Any]) -> None:
        """Forget the rows of keys."""
        self.has_removed = True
        self._connection.executemany("DELETE FROM rows WHERE key = ?", ((key,) for key in keys))

    def forget(self) -> None:
        """Forget all rows, and that there were any."""
        self.has_removed = True
        self._connection.execute("DELETE FROM rows")
        self._connection.execute("DELETE FROM state")

    def finish(self, state: State) -> None:
        """Say what the file holds after the change."""
        self._connection.execute("INSERT OR REPLACE INTO state VALUES (1, ?)", (encode_state(state),))


def _getter(connection: sqlite3.Connection) -> Callable[[Any], bytes | None]:
    """Return what finds one row: a closure, since this is called a hundred thousand times in a second."""
    execute = connection.execute

    def get(key: Any) -> bytes | None:
        row = execute(_ONE, (key,)).fetchone()
        if row is None:
            _check(connection)
            return None
        return row[0]  # type: ignore[no-any-return]

    return get


def _check(connection: sqlite3.Connection) -> None:
    """Refuse to call a key missing if the whole group is.

    Raises:
        StoreError: If nothing of the group is looked up here any more.
    """
    if connection.execute("SELECT 1 FROM state").fetchone() is None:
        raise StoreError("This group is not looked up here any more, or never was: open the view again.")


def _state(connection: sqlite3.Connection) -> State | None:
    row = connection.execute("SELECT value FROM state").fetchone()
    return None if row is None else decode_state(row[0])


def _columns(key: Sequence[str]) -> str:
    if is_number(key):
        return "(key INTEGER PRIMARY KEY, time INTEGER NOT NULL, value BLOB NOT NULL)"
    return "(key PRIMARY KEY NOT NULL, time INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID"
