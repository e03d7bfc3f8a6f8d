"""The file that holds the newest rows of a group: SQLite, one packed row for each key.

Readers see the state after a whole materialization, also while the next one is being written (SQLite's WAL).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.features.definition import Definition
from cargobike.features.online.packing import Format
from cargobike.store.files.shared import copy_of
from cargobike.store.files.storage import Storage

TIMEOUT_S: Final = 60.0
_MAPPED_BYTES: Final = 1 << 34


class State(msgspec.Struct, frozen=True):
    """What a file holds.

    Attributes:
        commit: The commit of the group whose newest rows these are.
        number: Counts the formats that rows have had.
        format: The format of the rows.
        key: Types of the key, as Arrow writes them.
        at_us: When it was written, in microseconds since 1970; rows that become true later are not in it.
        due_us: When the next row becomes true that is not yet; `None` if there is none.
    """

    commit: int
    number: int
    format: Format
    key: tuple[str, ...]
    at_us: int
    due_us: int | None = None


def file_of(root: Path, definition: Definition) -> Path:
    """Return the file for a group; below the local folder of its project, also if that lies on shared storage."""
    return root / "features" / definition.name / f"v{definition.version}" / "online" / "rows.sqlite"


def local_root(storage: Storage) -> Path:
    """Return the folder on this host for a project: where it lies, or where the copy of a shared one does."""
    return copy_of(storage.url) if "://" in storage.url else Path(storage.url)


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a file for look-ups.

    Raises:
        StoreError: If it is not there.
    """
    if not path.exists():
        raise StoreError(f"{path} is not there: the group was never materialized. Call group.materialize() first.")
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=TIMEOUT_S)
    connection.execute(f"PRAGMA mmap_size={_MAPPED_BYTES}")
    connection.execute("PRAGMA query_only=1")
    return connection


def read_state(connection: sqlite3.Connection) -> State | None:
    """Return what a file holds; `None` if nothing was ever written."""
    row = connection.execute("SELECT value FROM state").fetchone()
    return None if row is None else msgspec.json.decode(row[0], type=State)


@contextmanager
def writing(path: Path, key: Sequence[str]) -> Iterator[sqlite3.Connection]:
    """Yield a connection that changes a file, as one change: all of it is seen at the end, or nothing.

    Args:
        path: The file; made if it is not there.
        key: Types of the key, for a new file.

    Raises:
        StoreError: If another process has been writing it for a minute.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None, timeout=TIMEOUT_S)) as connection:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise StoreError(f"{path} is being written by another process, or cannot be written: {error}.") from error
        try:
            connection.execute("CREATE TABLE IF NOT EXISTS state (one INTEGER PRIMARY KEY, value BLOB NOT NULL)")
            connection.execute(f"CREATE TABLE IF NOT EXISTS rows {_columns(key)}")
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def write_state(connection: sqlite3.Connection, state: State) -> None:
    """Write what a file holds."""
    connection.execute("INSERT OR REPLACE INTO state VALUES (1, ?)", (msgspec.json.encode(state),))


def is_number(key: Sequence[str]) -> bool:
    """Tell whether keys are single integers, which SQLite finds quickest."""
    return len(key) == 1 and key[0] in {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"}


def is_text(key: Sequence[str]) -> bool:
    """Tell whether keys are single texts."""
    return len(key) == 1 and key[0] in {"string", "large_string", "string_view"}


def pack_keys(table: pa.Table, names: Sequence[str]) -> list[Any]:
    """Return the keys of rows as the file has them."""
    kinds = [str(table.schema.field(name).type) for name in names]
    columns: list[list[Any]] = [table[name].to_pylist() for name in names]
    if is_number(kinds) or is_text(kinds):
        return columns[0]
    return [msgspec.msgpack.encode(values) for values in zip(*columns, strict=True)]


def pack_key(values: Sequence[Any], names: Sequence[str], kinds: Sequence[str]) -> Any:
    """Return one key as the file has it.

    Raises:
        InvalidInputError: If a value is of another type than the group's.
    """
    if is_number(kinds):
        try:
            return values[0].__index__()
        except AttributeError:
            raise InvalidInputError(f"{names[0]}={values[0]!r} was given; it is a whole number ({kinds[0]}).") from None
    if is_text(kinds):
        if not isinstance(values[0], str):
            raise InvalidInputError(f"{names[0]}={values[0]!r} was given; it is text.")
        return values[0]
    plain = [value.item() if hasattr(value, "item") else value for value in values]
    return msgspec.msgpack.encode(tuple(plain))


def _columns(key: Sequence[str]) -> str:
    if is_number(key):
        return "(key INTEGER PRIMARY KEY, time INTEGER NOT NULL, value BLOB NOT NULL)"
    return "(key PRIMARY KEY NOT NULL, time INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID"
