"""The tables of a catalogue, and how its file is opened."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from cargobike.core.errors import StoreError

_VERSION: Final = 1
_WAIT_S: Final = 30.0
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS records (
    publisher TEXT NOT NULL, sequence INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL, signature BLOB NOT NULL,
    PRIMARY KEY (publisher, sequence)
);
CREATE TABLE IF NOT EXISTS publishers (
    publisher TEXT PRIMARY KEY, whole INTEGER NOT NULL DEFAULT 0, records INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0, head TEXT NOT NULL, last INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS standings (
    publisher TEXT PRIMARY KEY, standing TEXT NOT NULL DEFAULT '', alias TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY, publisher TEXT NOT NULL, head TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL,
    sequence INTEGER NOT NULL, kind TEXT NOT NULL, size INTEGER NOT NULL, withdrawn INTEGER NOT NULL DEFAULT 0,
    shown BLOB NOT NULL, UNIQUE (publisher, name, version)
);
CREATE INDEX IF NOT EXISTS entries_by_name ON entries (name, head, version);
CREATE INDEX IF NOT EXISTS entries_by_head ON entries (head);
CREATE TABLE IF NOT EXISTS tags (tag TEXT NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (tag, entry)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS columns (
    name TEXT NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (name, entry)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS roots (root TEXT NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (root, entry)) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    name, tags, columns, description, tokenize = "unicode61 remove_diacritics 2", prefix = '2 3'
);
CREATE TABLE IF NOT EXISTS opinions (
    author TEXT NOT NULL, about TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, sequence INTEGER NOT NULL,
    rating INTEGER NOT NULL, text TEXT NOT NULL, created TEXT NOT NULL, PRIMARY KEY (about, name, version, author)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS withdrawals (
    publisher TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, sequence INTEGER NOT NULL,
    PRIMARY KEY (publisher, name, version, sequence)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


def open_tables(path: Path, network: str) -> sqlite3.Connection:
    """Open the file of a catalogue, made if it is new.

    Raises:
        StoreError: If it cannot be opened, is damaged, of another network, or of a newer Cargobike.
    """
    try:
        connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise StoreError(f"The catalogue {path} cannot be opened: {error}.") from error
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise StoreError(f"The catalogue {path} was written by a newer Cargobike; update this one.")
        if version < _VERSION:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _TABLES.split(";\n"):
                connection.execute(statement)
            connection.execute("INSERT OR IGNORE INTO about VALUES ('network', ?)", (network,))
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute("COMMIT")
        of = connection.execute("SELECT value FROM about WHERE key = 'network'").fetchone()
        if of != (network,):
            raise StoreError(f"The catalogue {path} is one of the network {of and of[0]!r}, not of {network!r}.")
    except sqlite3.Error as error:
        connection.close()
        raise StoreError(
            f"The catalogue {path} cannot be read: {error}. It can be removed: what others have published comes again "
            f"from them."
        ) from error
    except BaseException:
        connection.close()
        raise
    return connection
