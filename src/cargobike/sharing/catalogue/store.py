"""The catalogue of one network: what was signed, verified before it is kept, and given to other members on demand.

Members replicate it by asking each other for what they lack (`newest`, `since`, `add`). Order comes from sequence
numbers, which publishers sign; clocks have no say in anything.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

from cargobike.core.errors import StoreError
from cargobike.sharing.catalogue import finding, keeping, standing
from cargobike.sharing.catalogue.entry import Entry, Opinion, Question, Standing
from cargobike.sharing.catalogue.tables import open_tables
from cargobike.sharing.identity.keys import Identity
from cargobike.sharing.records import Manifest, Note, Signed, sign, verify

_AT_ONCE_BYTES: Final = 4 * 1024 * 1024


class Catalogue:
    """What was published in one network. May be used by several threads, and by several processes at once.

    Args:
        path: Its file; made if it is new.
        network: The name of the network.
        members: The keys that may publish, for networks that are a list of keys; all if left out.

    Raises:
        StoreError: If the file cannot be used.
    """

    def __init__(self, path: Path, network: str, *, members: frozenset[str] | None = None) -> None:
        self.path, self.network, self.members = path, network, members
        self._connection = open_tables(path, network)
        self._lock = threading.RLock()

    def close(self) -> None:
        """Close its file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Catalogue:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def add(self, signed: Signed) -> bool:
        """Keep what a publisher has signed, after it was verified.

        Returns:
            Whether it is new here. Records of blocked publishers, and what was signed with a key after that key was
            replaced, are not kept.

        Raises:
            RecordError: If it is forged, malformed, unsafe, of another network, too large or too much.
        """
        record = verify(signed, self.network)
        with self._changing() as connection:
            return keeping.keep(connection, signed, record, self.members)

    def append(self, identity: Identity, make: Callable[[int], Manifest | Note], *, least: int = 1) -> Manifest | Note:
        """Sign something as the next record of a publisher, and keep it; no number is given twice or left out.

        Args:
            identity: Who signs.
            make: Makes the record from its sequence number.
            least: The smallest number it may get, if more is known of the publisher than is here.
        """
        with self._changing() as connection:
            last = connection.execute(
                "SELECT max(sequence) FROM records WHERE publisher = ?", (identity.publisher,)
            ).fetchone()[0]
            record = make(max((last or 0) + 1, least))
            if not keeping.keep(connection, sign(record, identity), record, self.members):
                raise StoreError(
                    f"The key {identity.publisher} was replaced or is blocked in the network {self.network!r}, and "
                    f"cannot publish there."
                )
            return record

    def newest(self) -> dict[str, int]:
        """Return up to which number everything of each publisher is here, for other members to compare."""
        return dict(self._rows("SELECT publisher, whole FROM publishers"))

    def since(
        self, publisher: str, sequence: int, limit: int = 100, *, most_bytes: int = _AT_ONCE_BYTES
    ) -> list[Signed]:
        """Return what a publisher has signed after a number, in order: at most `limit`, about `most_bytes`."""
        records: list[Signed] = []
        size = 0
        rows = self._rows(
            "SELECT kind, body, signature FROM records WHERE publisher = ? AND sequence > ? ORDER BY sequence LIMIT ?",
            (publisher, sequence, limit),
        )
        for kind, body, signature in rows:
            size += len(body)
            if records and size > most_bytes:
                break
            records.append(Signed(kind=kind, body=body, publisher=publisher, signature=signature))
        return records

    def find(self, question: Question) -> list[Entry]:
        """Return what fits a question: trusted publishers first, then the best fit, then the newest here."""
        with self._reading() as connection:
            return finding.find(connection, self.network, question)

    def count(self) -> int:
        """Return how many versions of publications are here."""
        return int(self._rows("SELECT count(*) FROM entries")[0][0])

    def entry(self, name: str, publisher: str = "", version: int | None = None) -> Entry:
        """Return one publication; its newest version that was not withdrawn, if none is named.

        Raises:
            NotFoundError: If there is none.
            InvalidInputError: If several publishers have one of that name, and not exactly one of them is trusted.
        """
        with self._reading() as connection:
            return finding.entry(connection, self.network, name, publisher, version)

    def newest_version(self, name: str, publisher: str) -> Entry | None:
        """Return the newest version of a publication, also if it was withdrawn; `None` if there is none."""
        with self._reading() as connection:
            return finding.newest_version(connection, self.network, name, publisher)

    def manifest(self, entry: Entry) -> Manifest:
        """Return the whole manifest of an entry."""
        rows = self._rows(
            "SELECT kind, body, signature FROM records WHERE publisher = ? AND sequence = ?",
            (entry.publisher, entry.sequence),
        )
        kind, body, signature = rows[0]
        record = verify(Signed(kind=kind, body=body, publisher=entry.publisher, signature=signature), self.network)
        assert isinstance(record, Manifest)
        return record

    def opinions(self, entry: Entry) -> list[Opinion]:
        """Return what members think of a publication, all its versions."""
        with self._reading() as connection:
            return finding.opinions(connection, entry)

    def holders_of(self, root: str) -> list[Entry]:
        """Return the publications that have a file with this root."""
        with self._reading() as connection:
            return finding.with_root(connection, self.network, root)

    def trust(self, publisher: str, alias: str = "") -> str:
        """Trust a publisher, and return the key; its publications are listed first, and found by name alone."""
        return self._stand(publisher, "trusted", alias)

    def mute(self, publisher: str) -> str:
        """Leave a publisher out of what is found; its records are still given to other members."""
        return self._stand(publisher, "muted")

    def block(self, publisher: str) -> str:
        """Keep nothing of a publisher and give nothing of it to others; also of the keys that replaced this one."""
        return self._stand(publisher, "blocked")

    def forget(self, publisher: str) -> str:
        """Think nothing in particular of a publisher again."""
        return self._stand(publisher, "")

    def standings(self) -> dict[str, tuple[str, str]]:
        """Return what this project thinks of publishers: trusted, muted or blocked, and what it calls them."""
        return {key: (word, alias) for key, word, alias in self._rows("SELECT * FROM standings ORDER BY publisher")}

    def is_blocked(self, publisher: str) -> bool:
        """Tell whether nothing is to be taken from a publisher."""
        with self._reading() as connection:
            return standing.is_blocked(connection, publisher)

    def head(self, publisher: str) -> str:
        """Return the key that a publisher signs with now: the last of those that replaced each other."""
        with self._reading() as connection:
            return standing.head_of(connection, publisher)

    def _stand(self, publisher: str, word: Standing, alias: str = "") -> str:
        with self._changing() as connection:
            key = finding.publisher_key(connection, publisher)
            standing.stand(connection, key, word, alias)
            if word == "blocked":
                for one in standing.chain_of(connection, key):
                    keeping.drop_records(connection, one, above=0)
            return key

    def _rows(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple]:  # type: ignore[type-arg]
        with self._reading() as connection:
            return connection.execute(statement, values).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise StoreError(f"The catalogue {self.path} cannot be read: {error}.") from error

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield self._connection
                    self._connection.execute("COMMIT")
                except BaseException:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise StoreError(f"The catalogue {self.path} cannot be written: {error}.") from error
