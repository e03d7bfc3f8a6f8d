"""Take verified records into the tables of a catalogue: entries, opinions, withdrawals, keys that are replaced."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from cargobike.sharing.catalogue import standing
from cargobike.sharing.catalogue.entry import Entry
from cargobike.sharing.identity.keys import short
from cargobike.sharing.records import Manifest, Note, RecordError, Signed

MOST_RECORDS: Final = 20_000
MOST_BYTES: Final = 256 * 1024 * 1024
"""What is kept of one publisher."""
MOST_PUBLISHERS: Final = 5_000
"""How many publishers are kept besides trusted ones: keys cost nothing, so one member could make any number of them."""


def keep(
    connection: sqlite3.Connection, signed: Signed, record: Manifest | Note, members: frozenset[str] | None
) -> bool:
    """Keep a record; tells whether it is new. Runs inside a transaction.

    Raises:
        RecordError: If the publisher may not publish here, or has published too much.
    """
    publisher = record.publisher
    if members is not None and publisher not in members:
        raise RecordError("member", f"{short(publisher)} is not on the list of this network's members")
    if standing.is_blocked(connection, publisher):
        return False
    known = connection.execute(
        "SELECT records, bytes, last FROM publishers WHERE publisher = ?", (publisher,)
    ).fetchone()
    if known is None:
        _check_room(connection, publisher)
        connection.execute("INSERT INTO publishers (publisher, head) VALUES (?, ?)", (publisher, publisher))
        known = 0, 0, None
    records, size, last = known
    if last is not None and record.sequence > last:
        return False
    if records >= MOST_RECORDS or size + len(signed.body) > MOST_BYTES:
        raise RecordError(
            "much", f"{short(publisher)} has published {records} records of {size} bytes, which is enough"
        )
    added = connection.execute(
        "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?)",
        (publisher, record.sequence, signed.kind, signed.body, signed.signature),
    ).rowcount
    if not added:
        return False
    _count(connection, publisher, len(signed.body))
    if isinstance(record, Manifest):
        _add_entry(connection, record)
    else:
        _add_note(connection, record)
    return True


def _check_room(connection: sqlite3.Connection, publisher: str) -> None:
    (number,) = connection.execute("SELECT count(*) FROM publishers").fetchone()
    if number >= MOST_PUBLISHERS and standing.standing_of(connection, publisher)[0] != "trusted":
        raise RecordError("much", f"{number} publishers are known; trust {short(publisher)} to take it as well")


def _count(connection: sqlite3.Connection, publisher: str, size: int) -> None:
    connection.execute(
        "UPDATE publishers SET records = records + 1, bytes = bytes + ? WHERE publisher = ?", (size, publisher)
    )
    # Up to which number nothing is missing: what lies behind a gap is asked for again until the gap is filled.
    (whole,) = connection.execute("SELECT whole FROM publishers WHERE publisher = ?", (publisher,)).fetchone()
    following = connection.execute(
        "SELECT sequence FROM records WHERE publisher = ? AND sequence > ? ORDER BY sequence", (publisher, whole)
    )
    for (sequence,) in following:
        if sequence != whole + 1:
            break
        whole = sequence
    connection.execute("UPDATE publishers SET whole = ? WHERE publisher = ?", (whole, publisher))


def _add_entry(connection: sqlite3.Connection, manifest: Manifest) -> None:
    """List a manifest. A version never changes: the one with the smaller sequence number counts."""
    place = manifest.publisher, manifest.name, manifest.version
    other = connection.execute(
        "SELECT id, sequence FROM entries WHERE publisher = ? AND name = ? AND version = ?", place
    ).fetchone()
    if other is not None:
        if other[1] < manifest.sequence:
            return
        drop_entries(connection, "id = ?", (other[0],))
    head = standing.head_of(connection, manifest.publisher)
    (withdrawn,) = connection.execute(
        "SELECT count(*) FROM withdrawals WHERE publisher = ? AND name = ? AND version IN (0, ?) AND sequence > ?",
        (*place, manifest.sequence),
    ).fetchone()
    entry = connection.execute(
        "INSERT INTO entries (publisher, head, name, version, sequence, kind, size, withdrawn, shown) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            manifest.publisher,
            head,
            manifest.name,
            manifest.version,
            manifest.sequence,
            manifest.kind,
            manifest.size,
            int(bool(withdrawn)),
            msgspec.json.encode(_shown(manifest)),
        ),
    ).lastrowid
    tags = sorted({tag.lower() for tag in manifest.tags})
    columns = sorted({column.name.lower() for column in manifest.columns})
    connection.executemany("INSERT INTO tags VALUES (?, ?)", [(tag, entry) for tag in tags])
    connection.executemany("INSERT INTO columns VALUES (?, ?)", [(column, entry) for column in columns])
    roots = sorted({file.root for file in manifest.files if file.root})
    connection.executemany("INSERT INTO roots VALUES (?, ?)", [(root, entry) for root in roots])
    connection.execute(
        "INSERT INTO words (rowid, name, tags, columns, description) VALUES (?, ?, ?, ?, ?)",
        (entry, manifest.name, " ".join(tags), " ".join(columns), manifest.description),
    )


def _shown(manifest: Manifest) -> Entry:
    return Entry(
        name=manifest.name,
        version=manifest.version,
        publisher=manifest.publisher,
        network=manifest.network,
        kind=manifest.kind,
        description=manifest.description,
        license=manifest.license,
        tags=manifest.tags,
        size=manifest.size,
        num_files=len(manifest.files),
        rows=manifest.rows,
        columns=tuple((column.name, column.type) for column in manifest.columns),
        created=manifest.created,
        sequence=manifest.sequence,
        web_seeds=manifest.web_seeds,
        infohash_v1=manifest.infohash_v1,
        infohash_v2=manifest.infohash_v2,
    )


def _add_note(connection: sqlite3.Connection, note: Note) -> None:
    if note.what == "opinion":
        connection.execute(
            "INSERT INTO opinions VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET sequence = "
            "excluded.sequence, rating = excluded.rating, text = excluded.text, created = excluded.created "
            "WHERE excluded.sequence > opinions.sequence",
            (note.publisher, note.about, note.name, note.version, note.sequence, note.rating, note.text, note.created),
        )
    elif note.what == "withdrawn":
        connection.execute(
            "INSERT OR IGNORE INTO withdrawals VALUES (?, ?, ?, ?)",
            (note.publisher, note.name, note.version, note.sequence),
        )
        connection.execute(
            "UPDATE entries SET withdrawn = 1 WHERE publisher = ? AND name = ? AND (version = ? OR ? = 0) "
            "AND sequence < ?",
            (note.publisher, note.name, note.version, note.version, note.sequence),
        )
    else:
        _replace_key(connection, note)


def _replace_key(connection: sqlite3.Connection, note: Note) -> None:
    """Let another key go on for a publisher, and drop what was signed with the old one afterwards."""
    old, new = note.publisher, note.successor
    if standing.head_of(connection, new) == old:
        return  # a circle has no last key
    connection.execute("UPDATE publishers SET last = ?, head = ? WHERE publisher = ?", (note.sequence, new, old))
    drop_records(connection, old, above=note.sequence)
    heads = connection.execute("SELECT publisher FROM publishers WHERE publisher <> head").fetchall()
    for (publisher,) in heads:
        connection.execute(
            "UPDATE entries SET head = ? WHERE publisher = ?", (standing.head_of(connection, publisher), publisher)
        )
    if standing.is_blocked(connection, new):
        drop_records(connection, new, above=0)


def drop_records(connection: sqlite3.Connection, publisher: str, *, above: int) -> None:
    """Drop what a publisher has signed after a number, and what came of it."""
    values = publisher, above
    drop_entries(connection, "publisher = ? AND sequence > ?", values)
    connection.execute("DELETE FROM opinions WHERE author = ? AND sequence > ?", values)
    connection.execute("DELETE FROM withdrawals WHERE publisher = ? AND sequence > ?", values)
    connection.execute("DELETE FROM records WHERE publisher = ? AND sequence > ?", values)
    if above:
        connection.execute(
            "UPDATE publishers SET whole = min(whole, ?), (records, bytes) = (SELECT count(*), "
            "coalesce(sum(length(body)), 0) FROM records WHERE publisher = publishers.publisher) WHERE publisher = ?",
            (above, publisher),
        )
    else:
        connection.execute("DELETE FROM publishers WHERE publisher = ? AND publisher = head", (publisher,))
        connection.execute("UPDATE publishers SET whole = 0, records = 0, bytes = 0 WHERE publisher = ?", (publisher,))


def drop_entries(connection: sqlite3.Connection, condition: str, values: tuple[object, ...]) -> None:
    """Drop entries, and all by which they are found."""
    ids = [row[0] for row in connection.execute(f"SELECT id FROM entries WHERE {condition}", values)]  # noqa: S608
    for table, column in (
        ("tags", "entry"),
        ("columns", "entry"),
        ("roots", "entry"),
        ("words", "rowid"),
        ("entries", "id"),
    ):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(one,) for one in ids])  # noqa: S608
