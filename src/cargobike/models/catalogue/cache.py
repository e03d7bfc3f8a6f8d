"""What was read of models before, in an SQLite file of the project: derived, and may be deleted at any time.

Manifests and facts never change and have no gaps, so a cache that knows the first so many is right about them for ever;
only a project that was deleted and made anew is another one. That shows in the token of the file in `models/_names`.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

_VERSION: Final = 1
_BUSY_S: Final = 5.0
_MARK: Final = 0x62696B65  # "bike": a file of another program is never touched
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS models (
    name TEXT NOT NULL, born TEXT NOT NULL, versions INTEGER NOT NULL, facts INTEGER NOT NULL, state BLOB NOT NULL,
    PRIMARY KEY (name, born)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS versions (
    name TEXT NOT NULL, born TEXT NOT NULL, version INTEGER NOT NULL, summary BLOB NOT NULL,
    PRIMARY KEY (name, born, version)
) WITHOUT ROWID;
"""

_log = logging.getLogger(__name__)
T = TypeVar("T")


class Known(NamedTuple):
    """How much of a model was read: so many versions, and a state of so many facts."""

    versions: int
    facts: int
    state: bytes


class News(NamedTuple):
    """What was read of a model beyond what was known: all in all, and the summaries of its new versions."""

    name: str
    born: str
    known: Known
    summaries: list[tuple[int, bytes]]


class Cache:
    """What was read of the models of a project; every method raises `sqlite3.Error` if the file cannot be used.

    Args:
        file: The SQLite file; `None` for one in memory.
    """

    def __init__(self, file: Path | None) -> None:
        self._connection = sqlite3.connect(file or ":memory:", timeout=_BUSY_S)
        try:
            self._prepare()
        except sqlite3.Error:
            self._connection.close()
            raise

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def known(self) -> dict[tuple[str, str], Known]:
        """Return how much is known of every model, by name and token."""
        rows = self._connection.execute("SELECT name, born, versions, facts, state FROM models")
        return {(name, born): Known(versions, facts, state) for name, born, versions, facts, state in rows}

    def known_of(self, name: str, born: str) -> Known | None:
        """Return how much is known of one model."""
        query = "SELECT versions, facts, state FROM models WHERE name = ? AND born = ?"
        row = self._connection.execute(query, (name, born)).fetchone()
        return None if row is None else Known(*row)

    def last_summaries(self) -> dict[tuple[str, str], tuple[int, bytes]]:
        """Return the last version of every model and its encoded summary, by name and token, removed or not."""
        rows = self._connection.execute(
            "SELECT name, born, version, summary FROM models JOIN versions USING (name, born) WHERE version = versions"
        )
        return {(name, born): (version, summary) for name, born, version, summary in rows}

    def summaries(self, name: str, born: str, first: int = 1) -> list[tuple[int, bytes]]:
        """Return the versions of a model from a number on, each with its encoded summary, the oldest first."""
        query = "SELECT version, summary FROM versions WHERE name = ? AND born = ? AND version >= ? ORDER BY version"
        return self._connection.execute(query, (name, born, first)).fetchall()

    def all_summaries(self) -> dict[tuple[str, str], list[bytes]]:
        """Return the encoded summaries of all versions of all models, by name and token, the oldest first."""
        found: dict[tuple[str, str], list[bytes]] = {}
        query = "SELECT name, born, summary FROM versions ORDER BY name, born, version"
        for name, born, summary in self._connection.execute(query):
            found.setdefault((name, born), []).append(summary)
        return found

    def summary(self, name: str, born: str, version: int) -> bytes | None:
        """Return the encoded summary of one version."""
        query = "SELECT summary FROM versions WHERE name = ? AND born = ? AND version = ?"
        row = self._connection.execute(query, (name, born, version)).fetchone()
        return None if row is None else row[0]

    def add(self, news: Iterable[News]) -> None:
        """Add what was read of models; what other processes added meanwhile stays."""
        with self._connection:
            for name, born, known, summaries in news:
                self._connection.execute("DELETE FROM models WHERE name = ? AND born <> ?", (name, born))
                self._connection.execute("DELETE FROM versions WHERE name = ? AND born <> ?", (name, born))
                self._connection.executemany(
                    "INSERT OR REPLACE INTO versions VALUES (?, ?, ?, ?)",
                    [(name, born, version, summary) for version, summary in summaries],
                )
                self._connection.execute(
                    "INSERT INTO models VALUES (?, ?, ?, ?, ?) ON CONFLICT (name, born) DO UPDATE SET "
                    "versions = max(versions, excluded.versions), "
                    "state = CASE WHEN excluded.facts > facts THEN excluded.state ELSE state END, "
                    "facts = max(facts, excluded.facts)",
                    (name, born, *known),
                )

    def _prepare(self) -> None:
        """Make the tables of a new file; one of another program, or of another version of ours, is not used."""
        mark, version, tables = (
            self._connection.execute(query).fetchone()[0]
            for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
        )
        if (mark, version) == (_MARK, _VERSION):
            return
        if tables:
            raise sqlite3.DatabaseError("it was not made by this version of Cargobike")
        with self._connection:
            self._connection.executescript(
                f"PRAGMA application_id = {_MARK}; PRAGMA user_version = {_VERSION};{_TABLES}"
            )


def with_cache(file: Path, action: Callable[[Cache], T]) -> T:
    """Do something with the cache in a file; with one in memory where the file cannot be used.

    Nothing is lost by that but time: what is known is read from the storage again. A folder that is not there is not
    made, and a file that is damaged is deleted.
    """
    if file.parent.is_dir():
        try:
            with Cache(file) as cache:
                return action(cache)
        except sqlite3.Error as error:
            _log.debug("%s is not used: %s", file, error)
            if "malformed" in str(error):
                with contextlib.suppress(OSError):
                    file.unlink()
    with Cache(None) as cache:
        return action(cache)
