"""The index in a SQL database; by default a SQLite file in the project."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.pool import NullPool, StaticPool

from cargobike.core.errors import NotFoundError, StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.core.records import ExperimentState, TrialState
from cargobike.experiments.index.catch_up import BYTES_AT_ONCE, catch_up, compare, forget
from cargobike.experiments.index.index import (
    EVERYWHERE,
    ExperimentRow,
    ExperimentSort,
    Index,
    TrialRow,
    TrialSort,
    Where,
)
from cargobike.experiments.index.tables import (
    SCHEMA_VERSION,
    experiment_row,
    experiments,
    meta,
    metadata,
    trial_row,
    trials,
)

BUSY_TIMEOUT_S: Final = 30.0
_BYTES_PER_EXPERIMENT: Final = 4096  # what opening and updating one costs, counted as bytes read
_WRITES: Final = "cargobike_writes"

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
Row = Mapping[Any, Any]


class SqlIndex(Index):
    """An `Index` in a SQL database, given by its SQLAlchemy URL.

    Only statements of SQLAlchemy Core that every database has are used; what is special to SQLite
    (write-ahead log, lock mode, a damaged file) is in `_connect_sqlite` and `_start_over`, what is special to
    PostgreSQL in `PostgresIndex`.

    Args:
        project: Whose journals to read.
        url: The database.
        key: Names the project in a database that serves several; rows of others are neither seen nor touched.
        before_sync: Is called before journals are looked at, to bring them here from where they lie.
    """

    def __init__(
        self,
        project: ProjectFolder,
        url: str,
        *,
        key: str = "",
        before_sync: Callable[[ProjectFolder], None] | None = None,
    ) -> None:
        self.project = project
        self._before_sync = before_sync
        self.key = key
        self._url = sa.make_url(url)
        self._file = Path(self._url.database) if self._url.database and self._is_sqlite else None
        self._engine = self._connect()
        self._sound(self._prepare)

    @property
    def _is_sqlite(self) -> bool:
        return self._url.get_backend_name() == "sqlite"

    def sync(self) -> None:
        """Catch up with all journals of the project."""
        if self._before_sync is not None:
            self._before_sync(self.project)
        self._sound(self._sync)

    def rebuild(self) -> None:
        """Forget everything and read all journals anew."""
        self._sound(self._clear)
        self.sync()

    def experiments(
        self,
        *,
        states: Sequence[ExperimentState] = (),
        where: Where = EVERYWHERE,
        sort: ExperimentSort = "started",
        descending: bool = True,
        limit: int | None = None,
    ) -> list[ExperimentRow]:
        """Return experiments, the newest first unless asked otherwise; those without the key come last."""
        table = experiments.c
        key: sa.ColumnElement[Any] = {
            "started": table.started_at,
            "name": table.name,
            "state": table.state,
            "best": table.best_value,
            "duration": sa.func.coalesce(table.ended_at, table.last_at) - table.started_at,
            "trials": sum((table[state.value] for state in TrialState), sa.literal(0)),
        }[sort]
        query = sa.select(experiments).where(table.project == self.key)
        query = query.order_by(
            key.is_(None), key.desc() if descending else key.asc(), table.started_at.desc(), table.id.desc()
        )
        if states:
            query = query.where(table.state.in_([state.value for state in states]))
        query = query.where(*_conditions(where))
        return [experiment_row(row) for row in self._rows(query.limit(limit))]

    def experiment(self, experiment_id: str) -> ExperimentRow:
        """Return one experiment by its full id; raises `NotFoundError`."""
        mine = sa.and_(experiments.c.project == self.key, experiments.c.id == experiment_id)
        rows = self._rows(sa.select(experiments).where(mine))
        if not rows:
            raise NotFoundError(f"There is no experiment {experiment_id!r} in {self.project.root}.")
        return experiment_row(rows[0])

    def trials(
        self,
        experiment_id: str,
        *,
        states: Sequence[TrialState] = (),
        sort: TrialSort = "number",
        limit: int | None = None,
    ) -> list[TrialRow]:
        """Return trials of one experiment; `sort="best"` puts the best first, whatever the direction."""
        table = trials.c
        query = sa.select(trials).where(table.project == self.key, table.experiment_id == experiment_id)
        if states:
            query = query.where(table.state.in_([state.value for state in states]))
        if sort == "best":
            upward = self.experiment(experiment_id).header.direction == "max"
            query = query.order_by(table.value.is_(None), table.value.desc() if upward else table.value.asc())
        elif sort == "duration":
            spent = table.ended_at - table.started_at
            query = query.order_by(spent.is_(None), spent.desc())
        elif sort == "ended":
            query = query.order_by(table.ended_at.is_(None), table.ended_at.asc())
        return [trial_row(row) for row in self._rows(query.order_by(table.number.asc()).limit(limit))]

    def scores(self, experiment_id: str) -> list[tuple[int, float]]:
        """Return `(number, value)` of the trials with a finite value, in the order in which they ended."""
        table = trials.c
        query = sa.select(table.number, table.value).where(
            table.project == self.key, table.experiment_id == experiment_id, table.value.is_not(None)
        )
        rows = self._rows(query.order_by(table.ended_at.asc(), table.number.asc()))
        return [(row["number"], row["value"]) for row in rows]

    def names(self) -> list[tuple[str, str]]:
        """Return `(id, name)` of all experiments, the newest first."""
        table = experiments.c
        query = sa.select(table.id, table.name).where(table.project == self.key)
        query = query.order_by(table.started_at.desc(), table.id.desc())
        return [(row["id"], row["name"]) for row in self._rows(query)]

    def close(self) -> None:
        """Give back connections; may be called twice."""
        self._engine.dispose()

    def _connect(self) -> sa.Engine:
        # One connection for a database in memory, which vanishes with it; none kept for a file.
        pool = NullPool if self._file else StaticPool
        engine = sa.create_engine(self._url, poolclass=pool, connect_args={"timeout": BUSY_TIMEOUT_S})
        sa.event.listen(engine, "connect", _connect_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """Open a transaction that no other writer can interleave with."""
        with self._engine.connect().execution_options(**{_WRITES: True}) as connection, connection.begin():
            yield connection

    def _rows(self, query: sa.Select[Any]) -> list[Row]:
        def read() -> list[Row]:
            with self._engine.connect() as connection:
                return list(connection.execute(query).mappings())

        return self._sound(read)

    def _sound(self, action: Callable[[], _T]) -> _T:
        """Do something with the database; if its file turns out to be damaged, start over and do it again."""
        try:
            return action()
        except sa.exc.DatabaseError as error:
            if self._file is None or not _is_damage(error):
                raise StoreError(f"The index {self._url} cannot be used: {error.orig}.") from error
            return self._start_over(self._file, action)

    def _start_over(self, file: Path, action: Callable[[], _T]) -> _T:
        with _only_one(file.parent):
            try:
                return action()  # somebody else was quicker
            except sa.exc.DatabaseError as error:
                _log.warning("The index %s is damaged (%s); reading all journals anew.", file, error.orig)
            self._engine.dispose()
            for suffix in ("", "-wal", "-shm"):
                file.with_name(file.name + suffix).unlink(missing_ok=True)
            self._engine = self._connect()
            self._prepare()
            self._sync()
            return action()

    def _prepare(self) -> None:
        """Make the tables, anew if they are of another version."""
        with self._engine.connect() as connection:
            if _version(connection) == SCHEMA_VERSION:
                return
        with self._writing() as connection:
            if _version(connection) == SCHEMA_VERSION:
                return  # somebody else was quicker
            found = sa.MetaData()
            found.reflect(connection)
            found.drop_all(connection)
            metadata.create_all(connection)
            connection.execute(meta.insert().values(name="schema_version", value=str(SCHEMA_VERSION)))

    def _clear(self) -> None:
        with self._writing() as connection:
            connection.execute(trials.delete().where(trials.c.project == self.key))
            connection.execute(experiments.delete().where(experiments.c.project == self.key))

    def _sync(self) -> None:
        """Catch up in transactions of moderate size, so that others who sync need not wait for long."""
        with self._engine.connect() as connection:
            changed, gone = compare(connection, self.project, self.key)
        if gone:
            with self._writing() as connection:
                forget(connection, self.key, gone)
        while changed:
            with self._writing() as connection:
                budget = BYTES_AT_ONCE
                while changed and budget > 0:
                    read_bytes, is_complete = catch_up(connection, changed[-1], self.key)
                    budget -= read_bytes + _BYTES_PER_EXPERIMENT
                    if is_complete:
                        changed.pop()


def _conditions(where: Where) -> list[sa.ColumnElement[bool]]:
    table = experiments.c
    found: list[sa.ColumnElement[bool]] = []
    if where.name:
        pattern = where.name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        is_pattern = "*" in pattern or "?" in pattern
        pattern = pattern.replace("*", "%").replace("?", "_") if is_pattern else f"%{pattern}%"
        found.append(table.name.ilike(pattern, escape="\\"))
    for tag in where.tags:
        found.append(table.tags.contains(msgspec.json.encode(tag).decode(), autoescape=True))
    if where.user:
        found.append(table.user == where.user)
    if where.since is not None:
        found.append(table.started_at >= where.since)
    if where.until is not None:
        found.append(table.started_at < where.until)
    return found


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Let one process at a time pass, by a lock on a folder."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _is_damage(error: sa.exc.DatabaseError) -> bool:
    """Tell a damaged file, or one whose tables vanished, from one that is merely busy or out of reach."""
    return not isinstance(error, sa.exc.OperationalError) or "no such" in str(error.orig)


def _version(connection: sa.Connection) -> int | None:
    if not sa.inspect(connection).has_table(meta.name):
        return None
    found = connection.execute(sa.select(meta.c.value).where(meta.c.name == "schema_version")).scalar()
    return int(found) if found and str(found).isdigit() else None


def _connect_sqlite(connection: sqlite3.Connection, record: object) -> None:
    # SQLAlchemy is to say when a transaction begins, not the sqlite3 module, which would begin it too late.
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
