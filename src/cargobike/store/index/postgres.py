"""The index in a PostgreSQL database that a team shares: many projects, drivers, dashboards and versions of Cargobike.

The tables of a product lie in a schema named after it and their version, `cargobike_experiments_7`. A newer Cargobike
makes a schema of its own and fills it from the journals, while those that were not upgraded go on with theirs. The
comment of a schema says that it is ours; one without it is used only if it holds nothing but our tables.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import sqlalchemy as sa

from cargobike.core.errors import InvalidInputError, MissingLibraryError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.store.index.database import Database
from cargobike.store.index.tables import Tables

PATIENCE_S: Final = 30.0
_CONNECT_S: Final = 10
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0

MARK: Final = "Index of Cargobike, made from journals. May be dropped."
_GONE: Final = {"42P01", "3F000"}  # no such table, no such schema

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


def schema_of(tables: Tables) -> str:
    """Return the name of the schema that holds the tables of a product."""
    return f"cargobike_{tables.product}_{tables.version}"


class PostgresDatabase(Database):
    """A `Database` of PostgreSQL.

    Guarantees besides those of `Database`: a server that restarts is waited for, up to half a minute; tables that
    vanish are made anew; processes that sync the same project wait for each other, those of other projects do not.

    Args:
        project: Whose journals to read.
        tables: Whose tables they become.
        url: `postgresql://user@host/database`; what libpq reads (`PGPASSWORD`, `~/.pgpass`, services) works too.
        key: Names the project in the database.

    Raises:
        InvalidInputError: If it is not a URL of PostgreSQL.
        MissingLibraryError: If psycopg is not installed.
        StoreError: If the server cannot be reached.
    """

    def __init__(
        self,
        project: ProjectFolder,
        tables: Tables,
        url: str,
        *,
        key: str = "",
        before_sync: Callable[[ProjectFolder], None] | None = None,
    ) -> None:
        self._schema = schema_of(tables)
        super().__init__(project, tables, _with_driver(url), key=key, before_sync=before_sync)

    def name_of(self, table: str) -> str:
        """Return the name of a table with its schema."""
        return f"{self._schema}.{table}"

    def _connect(self) -> sa.Engine:
        try:
            engine = sa.create_engine(
                self._url,
                connect_args={"connect_timeout": _CONNECT_S, "application_name": "cargobike"},
                pool_pre_ping=True,
            )
        except ImportError as error:
            raise MissingLibraryError(
                f"An index in PostgreSQL needs psycopg ({error}). Install it: pip install 'cargobike[postgres]'",
                name="psycopg",
            ) from error
        return engine.execution_options(schema_translate_map={None: self._schema})

    def _prepare(self) -> None:
        """Make the schema and its tables; several processes may try at once, and one succeeds."""
        with self._engine.connect() as connection:
            is_ours = self._comment(connection) == MARK
            if is_ours and sa.inspect(connection).has_table(self.tables.main.name, schema=self._schema):
                return
        with self._engine.connect() as connection, connection.begin():
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_lock_number(self._schema))))
            if self._comment(connection) != MARK:
                self._check_tables(connection)
            connection.execute(sa.schema.CreateSchema(self._schema, if_not_exists=True))
            self.tables.main.metadata.create_all(connection, tables=list(self.tables.owners))
            with contextlib.suppress(sa.exc.ProgrammingError), connection.begin_nested():  # only its owner may
                connection.exec_driver_sql(f"COMMENT ON SCHEMA {self._schema} IS '{MARK}'")

    def _comment(self, connection: sa.Connection) -> str | None:
        """Return the comment of the schema, `None` if it has none or is not there."""
        query = sa.text("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = :name")
        comment = connection.execute(query, {"name": self._schema}).scalar()
        return comment if isinstance(comment, str) else None

    def _check_tables(self, connection: sa.Connection) -> None:
        """Refuse a schema that holds anything but tables with the columns of ours."""
        inspector = sa.inspect(connection)
        ours = {table.name: {column.name for column in table.columns} for table in self.tables.owners}
        others = [*inspector.get_view_names(self._schema), *inspector.get_materialized_view_names(self._schema)]
        for name in inspector.get_table_names(self._schema):
            if {column["name"] for column in inspector.get_columns(name, self._schema)} != ours.get(name):
                others.append(name)
        if others:
            raise StoreError(
                f"The schema {self._schema} of the database {self._shown_url()} was not made by Cargobike: "
                f"{others[0]!r} in it is not one of its tables. Nothing was touched. Name another database, or rename "
                "that schema."
            )

    def _shown_url(self) -> str:
        return self._url.set(drivername="postgresql").render_as_string(hide_password=True)

    def _refill(self) -> None:
        _log.warning("The tables of the index are gone; reading all journals anew.")
        self._prepare()
        self._sync()

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """Open a transaction that no other writer of this project can interleave with."""
        with self._engine.connect() as connection, connection.begin():
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_lock_number(f"{self._schema} {self.key}"))))
            yield connection

    def _sound(self, action: Callable[[], _T]) -> _T:
        """Do something with the database; what a restart of the server interrupts is done again."""
        give_up_at = time.monotonic() + PATIENCE_S
        pause_s, has_refilled = _FIRST_PAUSE_S, False
        while True:
            try:
                return action()
            except sa.exc.DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) in _GONE and not has_refilled:
                    has_refilled = True
                    self._sound(self._refill)
                    continue
                if not _may_pass(error) or time.monotonic() > give_up_at:
                    raise StoreError(f"The index {self._shown_url()} cannot be used: {_first_line(error)}") from error
                _log.info("The index is out of reach (%s); trying again.", _first_line(error))
            with contextlib.suppress(sa.exc.SQLAlchemyError):
                self._engine.dispose()
            time.sleep(pause_s)
            pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)


def _with_driver(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in {"postgresql", "postgres", "postgresql+psycopg"}:
        raise InvalidInputError(f"{scheme}:// is not an address of PostgreSQL; write postgresql://user@host/database.")
    return f"postgresql+psycopg://{rest}"


def _may_pass(error: sa.exc.DBAPIError) -> bool:
    """Tell whether a server may be restarting, rather than refusing: wrong password, no such database, no room."""
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        text = str(error.orig)
        refused = ("authentication failed", "does not exist", "no pg_hba.conf entry", "no password supplied")
        return isinstance(error, sa.exc.OperationalError) and not any(word in text for word in refused)
    return bool(error.connection_invalidated) or state[:2] in {"57", "08", "40"}


def _lock_number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)


def _first_line(error: sa.exc.DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0]
