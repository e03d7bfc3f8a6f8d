"""What this project thinks of publishers, and which keys are the same publisher."""

from __future__ import annotations

import sqlite3
from typing import Final

from cargobike.core.errors import InvalidInputError
from cargobike.sharing.catalogue.entry import Standing

_LONGEST_CHAIN: Final = 100


def head_of(connection: sqlite3.Connection, publisher: str) -> str:
    """Return the last of the keys that replaced each other, from this one on."""
    return chain_of(connection, publisher)[-1]


def chain_of(connection: sqlite3.Connection, publisher: str) -> list[str]:
    """Return a key and those that replaced it, in order."""
    chain = [publisher]
    while len(chain) < _LONGEST_CHAIN:
        row = connection.execute("SELECT head FROM publishers WHERE publisher = ?", (chain[-1],)).fetchone()
        if row is None or row[0] in chain:
            break
        chain.append(row[0])
    return chain


def former_keys(connection: sqlite3.Connection, publisher: str) -> list[str]:
    """Return a key and all that it has replaced."""
    keys = [publisher]
    for key in keys:
        rows = connection.execute(
            "SELECT publisher FROM publishers WHERE head = ? AND publisher <> head", (key,)
        ).fetchall()
        keys += [row[0] for row in rows if row[0] not in keys]
        if len(keys) > _LONGEST_CHAIN:
            break
    return keys


def standing_of(connection: sqlite3.Connection, publisher: str) -> tuple[Standing, str]:
    """Return what this project thinks of a publisher, by the newest of its keys that it thinks anything of."""
    for key in former_keys(connection, publisher):
        row = connection.execute("SELECT standing, alias FROM standings WHERE publisher = ?", (key,)).fetchone()
        if row is not None and (row[0] or row[1]):
            return row[0], row[1]
    return "", ""


def is_blocked(connection: sqlite3.Connection, publisher: str) -> bool:
    """Tell whether a publisher is blocked, by this key or one that it has replaced."""
    keys = former_keys(connection, publisher)
    marks = ", ".join("?" * len(keys))
    (number,) = connection.execute(
        f"SELECT count(*) FROM standings WHERE standing = 'blocked' AND publisher IN ({marks})",  # noqa: S608
        keys,
    ).fetchone()
    return bool(number)


def stand(connection: sqlite3.Connection, publisher: str, word: Standing, alias: str) -> None:
    """Remember what this project thinks of a publisher.

    Raises:
        InvalidInputError: If another publisher is called that.
    """
    if alias:
        other = connection.execute(
            "SELECT publisher FROM standings WHERE alias = ? AND publisher <> ?", (alias, publisher)
        ).fetchone()
        if other is not None:
            raise InvalidInputError(f"{alias!r} is what {other[0]} is called here; choose another name.")
    connection.execute(
        "INSERT INTO standings VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET standing = excluded.standing, "
        "alias = CASE excluded.alias WHEN '' THEN standings.alias ELSE excluded.alias END",
        (publisher, word, alias),
    )
