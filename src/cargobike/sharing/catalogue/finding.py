"""Find publications in the tables of a catalogue."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from cargobike.core.errors import InvalidInputError, NotFoundError, nearest, nearest_names
from cargobike.sharing.catalogue import standing
from cargobike.sharing.catalogue.entry import Entry, Opinion, Question
from cargobike.sharing.identity.keys import PREFIX, read_key, short

_WORD: Final = re.compile(r"\w+")
_ENTRY: Final = msgspec.json.Decoder(Entry)
_LEAST_PREFIX: Final = 4
_NAMES_SHOWN: Final = 10
_WEIGHTS: Final = "bm25(words, 10.0, 5.0, 3.0, 1.0)"
"""A word in the name counts most, then in tags, columns, description."""
_NEWEST: Final = (
    "NOT EXISTS (SELECT 1 FROM entries AS newer WHERE newer.name = entries.name AND newer.head = entries.head "
    "AND newer.version > entries.version AND newer.withdrawn = 0)"
)
_NEWEST_OF_ALL: Final = _NEWEST.replace(" AND newer.withdrawn = 0", "")


def find(connection: sqlite3.Connection, network: str, question: Question) -> list[Entry]:
    """Return what fits a question; see `Catalogue.find`."""
    tables, conditions, values = ["entries"], [], []
    order = "entries.id DESC"
    words = [word for text in question.words for word in _WORD.findall(text)]
    if words:
        tables.append("words")
        conditions += ["words MATCH ?", "words.rowid = entries.id"]
        values.append(" ".join(f'"{word}"*' for word in words))
        order = f"{_WEIGHTS}, entries.id DESC"
    elif any(text.strip() for text in question.words):
        return []  # signs alone are in nothing
    for table, column, wanted in (("tags", "tag", question.tags), ("columns", "name", question.columns)):
        for one in wanted:
            conditions.append(f"entries.id IN (SELECT entry FROM {table} WHERE {column} = ?)")  # noqa: S608
            values.append(one.lower())
    if question.publisher:
        head = standing.head_of(connection, publisher_key(connection, question.publisher))
        conditions.append("entries.head = ?")
        values.append(head)
    if question.kind:
        conditions.append("entries.kind = ?")
        values.append(question.kind)
    conditions.append("entries.size >= ?")
    values.append(question.least_bytes)  # type: ignore[arg-type]
    if question.most_bytes is not None:
        conditions.append("entries.size <= ?")
        values.append(question.most_bytes)  # type: ignore[arg-type]
    if not question.hidden:
        conditions.append("entries.withdrawn = 0")
    if not question.all_versions:
        conditions.append(_NEWEST_OF_ALL if question.hidden else _NEWEST)
    known = _standings(connection)
    if not question.hidden and (left_out := [key for key, word in known.items() if word in {"muted", "blocked"}]):
        conditions.append(f"entries.head NOT IN ({', '.join('?' * len(left_out))})")
        values += left_out
    trusted = [key for key, word in known.items() if word == "trusted"]
    first = f"entries.head IN ({', '.join('?' * len(trusted))}) DESC, " if trusted else ""
    statement = (
        f"SELECT entries.id FROM {', '.join(tables)} "  # noqa: S608
        f"WHERE {' AND '.join(conditions)} ORDER BY {first}{order} LIMIT ?"
    )
    # Only numbers are sorted: what is shown of thousands that fit is not read.
    ids = connection.execute(statement, [*values, *trusted, question.limit]).fetchall()
    rows = [
        connection.execute("SELECT shown, head, withdrawn FROM entries WHERE id = ?", one).fetchone() for one in ids
    ]
    return _entries(connection, network, rows)


def entry(connection: sqlite3.Connection, network: str, name: str, publisher: str, version: int | None) -> Entry:
    """Return one publication; see `Catalogue.entry`."""
    conditions, values = "name = ?", [name]
    if publisher:
        conditions += " AND head = ?"
        values.append(standing.head_of(connection, publisher_key(connection, publisher)))
    if version is not None:
        conditions += " AND version = ?"
        values.append(version)  # type: ignore[arg-type]
    rows = connection.execute(
        f"SELECT shown, head, withdrawn FROM entries WHERE {conditions} ORDER BY withdrawn, version DESC, id",  # noqa: S608
        values,
    ).fetchall()
    if not rows:
        raise _missing(connection, network, name, publisher, version)
    return _only(_entries(connection, network, rows), name)


def newest_version(connection: sqlite3.Connection, network: str, name: str, publisher: str) -> Entry | None:
    """Return the newest version of a publication, also if it was withdrawn; `None` if there is none."""
    rows = connection.execute(
        "SELECT shown, head, withdrawn FROM entries WHERE name = ? AND head = ? ORDER BY version DESC LIMIT 1",
        (name, standing.head_of(connection, publisher)),
    ).fetchall()
    return next(iter(_entries(connection, network, rows)), None)


def _only(entries: Sequence[Entry], name: str) -> Entry:
    """Return the newest entry, of the only publisher or the only trusted one."""
    firsts = {one.head: one for one in reversed(entries)}
    candidates = [one for one in firsts.values() if one.standing not in {"muted", "blocked"}] or list(firsts.values())
    if len(candidates) > 1:
        candidates = [one for one in candidates if one.standing == "trusted"] or candidates
    if len(candidates) > 1:
        names = ", ".join(sorted(one.reference for one in candidates)[:_NAMES_SHOWN])
        raise InvalidInputError(
            f"{len(candidates)} publishers have a {name!r}: name one of {names}, or trust its publisher."
        )
    return candidates[0]


def opinions(connection: sqlite3.Connection, about: Entry) -> list[Opinion]:
    """Return what members think of a publication, those of trusted members first; muted ones are left out."""
    keys = [about.publisher, *standing.former_keys(connection, about.head or about.publisher)]
    rows = connection.execute(
        f"SELECT author, version, rating, text, created FROM opinions WHERE about IN ({', '.join('?' * len(keys))}) "  # noqa: S608
        "AND name = ? ORDER BY version DESC, author",
        [*keys, about.name],
    ).fetchall()
    found = []
    for author, version, rating, text, created in rows:
        word, alias = standing.standing_of(connection, author)
        if word not in {"muted", "blocked"}:
            opinion = Opinion(author=author, alias=alias, version=version, rating=rating, text=text, created=created)
            found.append((word != "trusted", opinion))
    return [opinion for _, opinion in sorted(found, key=lambda pair: pair[0])]


def with_root(connection: sqlite3.Connection, network: str, root: str) -> list[Entry]:
    """Return the publications that have a file with this root."""
    rows = connection.execute(
        "SELECT shown, head, withdrawn FROM entries JOIN roots ON roots.entry = entries.id WHERE root = ?", (root,)
    ).fetchall()
    return _entries(connection, network, rows)


def publisher_key(connection: sqlite3.Connection, text: str) -> str:
    """Return the key that a person means: a whole key, the beginning of one, or what the project calls a publisher.

    Raises:
        NotFoundError: If no publisher is called that.
        InvalidInputError: If several keys begin like this.
    """
    if text.startswith(PREFIX) and len(text) > len(PREFIX) + 40:
        read_key(text)
        return text
    row = connection.execute("SELECT publisher FROM standings WHERE alias = ? AND alias <> ''", (text,)).fetchone()
    if row is not None:
        return str(row[0])
    beginning = PREFIX + text.removeprefix(PREFIX)
    rows = connection.execute(
        "SELECT publisher FROM publishers WHERE substr(publisher, 1, ?) = ? UNION "
        "SELECT publisher FROM standings WHERE substr(publisher, 1, ?) = ?",
        (len(beginning), beginning) * 2,
    ).fetchall()
    keys = [str(row[0]) for row in rows] if len(beginning) >= len(PREFIX) + _LEAST_PREFIX else []
    if len(keys) == 1:
        return keys[0]
    if keys:
        raise InvalidInputError(f"{len(keys)} publishers have keys that begin with {text!r}: write more of it.")
    aliases = [row[0] for row in connection.execute("SELECT alias FROM standings WHERE alias <> ''")]
    raise NotFoundError(
        f"No publisher {text[:80]!r} is known here; write what it is called here, its key, or at least {_LEAST_PREFIX} "
        f"characters of it.{nearest(text, aliases)}",
        wanted=text,
        nearest=nearest_names(text, aliases),
    )


def _standings(connection: sqlite3.Connection) -> dict[str, str]:
    """Return what is thought of the last key of each publisher that anything is thought of."""
    known: dict[str, str] = {}
    for (publisher,) in connection.execute("SELECT publisher FROM standings").fetchall():
        head = standing.head_of(connection, publisher)
        if standing.is_blocked(connection, head):
            known[head] = "blocked"
        else:
            known[head] = standing.standing_of(connection, head)[0]
    return known


def _entries(connection: sqlite3.Connection, network: str, rows: Iterable[tuple[Any, ...]]) -> list[Entry]:
    """Return rows as entries, with what members and this project think of them."""
    thoughts: dict[str, tuple[str, str]] = {}
    entries = []
    for shown, head, withdrawn in rows:
        plain = _ENTRY.decode(shown)
        if head not in thoughts:
            thoughts[head] = standing.standing_of(connection, head)
        rating, number = _rated(connection, plain, head)
        word, alias = thoughts[head]
        entries.append(
            msgspec.structs.replace(
                plain,
                rating=rating,
                num_opinions=number,
                standing=word,
                alias=alias,
                head=head,
                is_withdrawn=bool(withdrawn),
            )
        )
    return entries


def _rated(connection: sqlite3.Connection, plain: Entry, head: str) -> tuple[float | None, int]:
    keys = sorted({plain.publisher, head})
    mean, number = connection.execute(
        f"SELECT avg(nullif(rating, 0)), count(*) FROM opinions WHERE about IN ({', '.join('?' * len(keys))}) "  # noqa: S608
        "AND name = ? AND author NOT IN (SELECT publisher FROM standings WHERE standing IN ('muted', 'blocked'))",
        [*keys, plain.name],
    ).fetchone()
    return (None if mean is None else round(mean, 2)), number


def _missing(
    connection: sqlite3.Connection, network: str, name: str, publisher: str, version: int | None
) -> NotFoundError:
    names = [row[0] for row in connection.execute("SELECT DISTINCT name FROM entries")]
    if name in names and version is not None:
        there = connection.execute("SELECT DISTINCT version FROM entries WHERE name = ? ORDER BY 1", (name,)).fetchall()
        versions = ", ".join(str(row[0]) for row in there[-_NAMES_SHOWN:])
        return NotFoundError(
            f"No version {version} of {name!r} is known in the network {network!r}; there are {versions}.", wanted=name
        )
    by = f" by {short(publisher) if publisher.startswith(PREFIX) else publisher}" if publisher else ""
    return NotFoundError(
        f"Nothing called {name!r}{by} is known in the network {network!r}.{nearest(name, names)} "
        f"`cargobike share find` lists what is; what others publish arrives while `cargobike share serve` runs.",
        wanted=name,
        nearest=nearest_names(name, names),
    )
