"""The database of an index, opened for the tables of one product; by default a SQLite file in the project."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import NullPool, StaticPool

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.store.index.catch_up import catch_up, clear, compare, forget
from cargobike.store.index.sqlite_file import BEFORE_PRODUCTS, PRODUCTS, check_mark, claim, discard, only_one
from cargobike.store.index.tables import BYTES_AT_ONCE, Row, Tables

BUSY_TIMEOUT_S: Final = 30.0
_BYTES_PER_JOURNAL: Final = 4096  # what opening one and updating its rows costs, counted as bytes read
_WRITES: Final = "cargobike_writes"

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

_meta = sa.Table(
    PRODUCTS,
    sa.MetaData(),
    sa.Column("product", sa.String(40), primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("tables", sa.Text, nullable=False),
)
"""Which version of its tables each product has in a file, and their names."""


class Database:
    """A SQL database, given by its SQLAlchemy URL, that holds the tables of products.

    Guarantees: everything in it follows from journals, so it may be deleted at any time; `sync` catches up with what
    the journals of the product have gained, and may run in several processes at once; tables of another version are
    made anew, those of other products are left alone. A file that is damaged is made anew; one that does not carry
    our mark is not touched.

    Only statements of SQLAlchemy Core that every database has are used; what is special to SQLite
    (write-ahead log, lock mode, a damaged file) is in `_connect_sqlite`, `_start_over` and `sqlite_file.py`, what is
    special to PostgreSQL in `PostgresDatabase`.

    Args:
        project: Whose journals to read.
        tables: Whose tables they become.
        url: The database.
        key: Names the project in a database that serves several; rows of others are neither seen nor touched.
        before_sync: Called before journals are looked at, to copy them here from shared storage.
    """

    def __init__(
        self,
        project: ProjectFolder,
        tables: Tables,
        url: str | sa.URL,
        *,
        key: str = "",
        before_sync: Callable[[ProjectFolder], None] | None = None,
    ) -> None:
        self.project = project
        self.tables = tables
        self.key = key
        self._before_sync = before_sync
        self._starting_over = 0  # the thread that has locked the folder of the file
        self._url = sa.make_url(url)
        self._file = _file_of(self._url) if self._is_sqlite else None
        self._turns = threading.RLock() if self._is_sqlite and self._file is None else contextlib.nullcontext()
        self._engine = self._connect()
        try:
            self._sound(self._prepare)
        except BaseException:
            self.close()
            raise

    @property
    def _is_sqlite(self) -> bool:
        return self._url.get_backend_name() == "sqlite"

    def sync(self) -> None:
        """Catch up with all journals of the product in the project."""
        if self._before_sync is not None:
            self._before_sync(self.project)
        self._sound(self._sync)

    def follow(self, folder: Path) -> None:
        """Catch up with one journal of the product, given by its folder."""
        self._sound(lambda: self._catch_up([folder]))

    def rebuild(self) -> None:
        """Forget everything and read all journals anew."""
        self._sound(self._clear)
        self.sync()

    def rows(self, query: sa.Select[Any]) -> list[Row]:
        """Return the rows that a query finds."""

        def read() -> list[Row]:
            with self._engine.connect() as connection:
                return list(connection.execute(query).mappings())

        return self._sound(read)

    def name_of(self, table: str) -> str:
        """Return the name of a table as a query has to write it."""
        return table

    def select(self, query: str, parameters: Mapping[str, Any]) -> list[Row]:
        """Return the rows that a query in plain SQL finds; parameters are written `:name` in it."""

        def read() -> list[Row]:
            with self._engine.connect() as connection:
                return list(connection.execute(sa.text(query), dict(parameters)).mappings())

        return self._sound(read)

    def close(self) -> None:
        """Close all connections; may be called twice."""
        self._engine.dispose()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _connect(self) -> sa.Engine:
        # One connection for a database in memory, which vanishes with it and which threads use in turns; none kept for
        # a file.
        pool = NullPool if self._file else StaticPool
        arguments = {"timeout": BUSY_TIMEOUT_S, "check_same_thread": self._file is not None}
        engine = sa.create_engine(self._url, poolclass=pool, connect_args=arguments)
        if self._file is not None:
            sa.event.listen(engine, "do_connect", self._claim)
            sa.event.listen(engine, "connect", lambda connection, _: check_mark(connection))
        sa.event.listen(engine, "connect", _connect_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _claim(self, *connecting: object) -> None:
        if self._file is not None:
            is_locked = self._starting_over == threading.get_ident()
            claim(self._file, is_in_project=self._file == self.project.index, is_locked=is_locked)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """Open a transaction that no other writer can interleave with."""
        with self._engine.connect().execution_options(**{_WRITES: True}) as connection, connection.begin():
            yield connection

    def _sound(self, action: Callable[[], _T]) -> _T:
        """Do something with the database; if its file turns out to be damaged, start over and do it again."""
        try:
            with self._turns:
                return action()
        except sa.exc.DatabaseError as error:
            if self._file is None or not _is_damage(error):
                raise StoreError(f"The index {self._url} cannot be used: {error.orig}.") from error
            return self._start_over(self._file, action)

    def _start_over(self, file: Path, action: Callable[[], _T]) -> _T:
        with only_one(file.parent):
            self._starting_over = threading.get_ident()
            try:
                return self._start_over_alone(file, action)
            finally:
                self._starting_over = 0

    def _start_over_alone(self, file: Path, action: Callable[[], _T]) -> _T:
        try:
            return action()  # another process was quicker
        except sa.exc.DatabaseError as error:
            reason = error
        if _is_missing(reason):
            try:  # a process that made the file anew did it without the tables of this product
                self._prepare()
                self._sync()
                return action()
            except sa.exc.DatabaseError as error:
                reason = error
        self._engine.dispose()
        if discard(file):
            _log.warning("The index %s is damaged (%s); reading all journals anew.", file, reason.orig)
        self._engine = self._connect()
        self._prepare()
        self._sync()
        return action()

    def _prepare(self) -> None:
        """Make the tables, anew if they are of another version."""
        with self._engine.connect() as connection:
            if _version(connection, self.tables.product) == self.tables.version:
                return
        with self._writing() as connection:
            if _version(connection, self.tables.product) == self.tables.version:
                return  # another process was quicker
            metadata = sa.MetaData()
            metadata.reflect(connection)
            metadata.drop_all(connection, tables=self._outdated(connection, metadata))
            _meta.create(connection, checkfirst=True)
            self.tables.main.metadata.create_all(connection, tables=list(self.tables.owners))
            connection.execute(_meta.delete().where(_meta.c.product == self.tables.product))
            names = " ".join(table.name for table in self.tables.owners)
            row = {"product": self.tables.product, "version": self.tables.version, "tables": names}
            connection.execute(_meta.insert().values(row))

    def _outdated(self, connection: sa.Connection, metadata: sa.MetaData) -> list[sa.Table]:
        """Return the tables that the product had before, also in a file that does not name products yet."""
        if _meta.name not in metadata.tables:
            return [table for name, table in metadata.tables.items() if name in BEFORE_PRODUCTS]
        query = sa.select(_meta.c.tables).where(_meta.c.product == self.tables.product)
        names = {*str(connection.execute(query).scalar() or "").split(), *(table.name for table in self.tables.owners)}
        return [table for name, table in metadata.tables.items() if name in names]

    def _clear(self) -> None:
        with self._writing() as connection:
            clear(connection, self.tables, self.key)

    def _sync(self) -> None:
        """Catch up in transactions of moderate size, so that other processes that sync need not wait for long."""
        with self._engine.connect() as connection:
            changed, gone = compare(connection, self.tables, self.project, self.key)
        if gone:
            with self._writing() as connection:
                forget(connection, self.tables, self.key, gone)
        self._catch_up(changed)

    def _catch_up(self, changed: list[Path]) -> None:
        while changed:
            with self._writing() as connection:
                budget = BYTES_AT_ONCE
                while changed and budget > 0:
                    read_bytes, is_complete = catch_up(connection, self.tables, changed[-1], self.key)
                    budget -= read_bytes + _BYTES_PER_JOURNAL
                    if is_complete:
                        changed.pop()


def sqlite_url(file: Path | None) -> sa.URL:
    """Make the address of a SQLite file, or of a database in memory.

    Not by writing the path behind `sqlite:///`: what looks like an escape or an option in it would be taken for one.
    """
    return sa.URL.create("sqlite", database=None if file is None else str(file))


def _file_of(url: sa.URL) -> Path | None:
    """Return the file that a URL of SQLite names, `None` for a database in memory."""
    if url.drivername not in {"sqlite", "sqlite+pysqlite"} or url.query or url.host:
        raise InvalidInputError(
            f"{url.render_as_string()} is no file for an index; write sqlite:////absolute/path, without options."
        )
    return None if url.database in {None, "", ":memory:"} else Path(str(url.database)).absolute()


def _is_damage(error: sa.exc.DatabaseError) -> bool:
    """Tell whether a file is damaged or its tables vanished, rather than busy or out of reach."""
    return not isinstance(error, sa.exc.OperationalError) or _is_missing(error)


def _is_missing(error: sa.exc.DatabaseError) -> bool:
    return "no such" in str(error.orig)


def _version(connection: sa.Connection, product: str) -> int | None:
    if not sa.inspect(connection).has_table(_meta.name):
        return None
    version = connection.execute(sa.select(_meta.c.version).where(_meta.c.product == product)).scalar()
    return version if isinstance(version, int) else None


def _connect_sqlite(connection: sqlite3.Connection, record: object) -> None:
    # SQLAlchemy begins transactions, not the sqlite3 module, which would begin them too late.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous=NORMAL")
    # The mode stays with the file; setting it takes a lock for which SQLite does not wait by itself.
    give_up_at = time.monotonic() + BUSY_TIMEOUT_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] not in {"wal", "memory"}:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
