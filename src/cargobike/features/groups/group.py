"""A feature group: rows about things, each true since its event time, written and read by all users of a project."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds

from cargobike.core.errors import InvalidInputError, StoreError, nearest
from cargobike.core.registering.steps import Kept, own_step
from cargobike.core.registering.tracing import Thing
from cargobike.core.values.times import Seconds, read_seconds
from cargobike.features.definition import WRITTEN_AT, Definition
from cargobike.features.delta.actions import Add
from cargobike.features.delta.log import Log
from cargobike.features.groups.changing import changes_between
from cargobike.features.groups.choices import Moment, read_choice
from cargobike.features.groups.columns import schema_of
from cargobike.features.groups.commits import Commit, commit_of, commit_with
from cargobike.features.groups.definitions import newest_revision, revise, table_folder
from cargobike.features.groups.files import MOST_ROWS, KeysOfFiles, read_rows, read_state
from cargobike.features.groups.inserting import Insertion
from cargobike.features.groups.origins import Named, Stated, Tracked, remember_origins
from cargobike.features.groups.piecewise import insert_pieces
from cargobike.features.groups.reading import Standstill, dataset_of, snapshot_at
from cargobike.features.groups.removing import Deletion, read_keys
from cargobike.features.groups.rows.expecting import Check
from cargobike.features.groups.rows.fitting import Columns
from cargobike.features.groups.rows.incoming import arrow_of, origin_of, pieces_of
from cargobike.features.groups.rows.matching import Duplicates
from cargobike.features.groups.rows.preparing import Rules, needs_all_rows, prepare
from cargobike.features.groups.rows.quarantine import bad_ones, forget, put_aside, quarantined_rows
from cargobike.features.groups.upkeep import Compaction, vacuum
from cargobike.features.online.materializing import Materialized, materialize
from cargobike.features.online.stores.choosing import is_materialized, read_online, store_of
from cargobike.features.online.verifying import Verification, verify
from cargobike.features.statistics.report import Statistics
from cargobike.features.statistics.states import make_state, merge_states
from cargobike.store.files.storage import Storage
from cargobike.store.history.environment import without_credentials


class Group:
    """A feature group of a project; made by `create_group` and `group`.

    Guarantees: a commit is there as a whole or not at all, also if its process is killed. Of several processes that
    insert at the same time each gets its own commit, and no row is lost. There is one row for each key and event time.

    Args:
        definition: What it is.
        storage: The storage of its project.
        find_rows: Gives what a name in a query stands for: rows of other groups and of tables.
    """

    def __init__(
        self, definition: Definition, storage: Storage, find_rows: Callable[[str], Named | None] = lambda name: None
    ) -> None:
        self._definition = definition
        self._storage = storage
        self._find_rows = find_rows
        self.log = Log(storage, table_folder(definition))
        """Its commits, as they lie on the storage; internal."""
        self._keys = KeysOfFiles()
        self._origins: set[Thing] = set()

    def __repr__(self) -> str:
        return f"<Group {self.name!r}, version {self.version}, at {without_credentials(self.url)}>"

    @property
    def definition(self) -> Definition:
        """What it is."""
        return self._definition

    @property
    def name(self) -> str:
        """Its name."""
        return self._definition.name

    @property
    def version(self) -> int:
        """The version of its definition."""
        return self._definition.version

    def kept_as(self) -> Kept:
        """Return what a pipeline keeps of it."""
        return Kept("group", f"{self.name}:{self.version}")

    @property
    def url(self) -> str:
        """Where its rows lie: a Delta table that other programs can read."""
        return f"{self._storage.url}/{self.log.folder}"

    @property
    def commit(self) -> int:
        """The number of its newest commit; -1 if nothing was inserted yet."""
        return self.log.newest().version

    @property
    def table_id(self) -> str:
        """The id of its table; empty if nothing was inserted yet. Internal."""
        meta = self.log.newest().meta
        return "" if meta is None else meta.id

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
        return self.log.newest().rows

    @property
    def schema(self) -> pa.Schema:
        """Names and types of its columns."""
        return schema_of(self._definition, with_written_at=False)

    # -- writing -----------------------------------------------------------------------------------------------------

    @own_step("group.insert", recover="cargobike.features.recovering:recover_insert")
    def insert(
        self,
        source: Any,
        *,
        duplicates: Duplicates = "refuse",
        new_columns: Literal["refuse", "add"] = "refuse",
        missing_columns: Literal["refuse", "null"] = "refuse",
        bad_rows: Literal["refuse", "quarantine"] = "refuse",
        expectations: Sequence[Check] = (),
        made_from: Sequence[Stated] = (),
        message: str = "",
    ) -> Commit:
        """Insert rows; one that has the key and event time of a row that is there replaces it.

        Args:
            source: A pandas, polars or Spark DataFrame, an Arrow table, a dict of columns, a list of dicts, the path of
                Parquet, CSV or JSON-lines files, or a SQL query, in which groups and tables of the project can be
                named.
            duplicates: Which counts of rows with the same key and event time in `source`, if they differ.
            new_columns: Whether columns that the group lacks are added to it.
            missing_columns: Whether features that `source` lacks are null.
            bad_rows: What to do if rows lack a key or event time, or break an expectation: refuse all rows, or put the
                bad ones aside, where `quarantined` returns them.
            expectations: More than those of the group, also functions from an Arrow table to truths.
            made_from: What the rows were computed from, for lineage, such as the table that was read; files, and what a
                query names, are known without it.
            message: What to remember about the commit.

        Returns:
            The commit: its number, and how many rows were new, replaced others or were there already.

        Raises:
            InvalidInputError: If the rows do not fit; nothing was written then.
        """
        rules = Rules(
            duplicates=read_choice("duplicates", duplicates, Duplicates),
            columns=Columns(
                read_choice("new_columns", new_columns, Literal["refuse", "add"]),
                read_choice("missing_columns", missing_columns, Literal["refuse", "null"]),
            ),
            bad_rows=read_choice("bad_rows", bad_rows, Literal["refuse", "quarantine"]),
            expectations=tuple(expectations),
        )
        tracked = Tracked(self._find_rows, source, made_from)
        pieces = pieces_of(source, tracked.rows_of, MOST_ROWS)
        if pieces is None:
            table, origin = arrow_of(source, tracked.rows_of)
        else:
            origin, table, following = origin_of(source), next(pieces), next(pieces, None)
            if following is not None and not any(map(needs_all_rows, (*self._definition.expectations, *expectations))):
                commit = Commit(operation="insert", source=origin, message=str(message))
                tables = itertools.chain([table, following], pieces)
                del table, following  # not to be kept beside those that come after them
                return self._insert_pieces(tables, rules, commit, tracked)
            if following is not None:
                table = pa.concat_tables([table, following, *pieces])
        commit = Commit(operation="insert", source=origin, message=str(message))
        if not table.num_rows:
            return msgspec.structs.replace(commit, number=self.commit)
        ready = prepare(self._storage, self._definition, table, rules)
        self._definition = ready.definition
        if ready.bad:
            name, aside = put_aside(self.log, bad_ones(ready.all_rows, ready.bad))
            commit = msgspec.structs.replace(commit, quarantine=name, quarantined=aside)
        insertion = Insertion(self.log, ready.definition, ready.rows, self._keys, commit)
        commit = commit_with(self.log, ready.definition, insertion)[1]
        remember_origins(self._storage, ready.definition, tracked.things, commit.number, self._origins)
        if ready.definition.online:
            self._bring_online(commit)
        return commit

    def _insert_pieces(self, tables: Iterator[pa.Table], rules: Rules, commit: Commit, tracked: Tracked) -> Commit:
        self._definition, made = insert_pieces(
            self.log, self._definition, tables, rules, keys=self._keys, commit=commit
        )
        remember_origins(self._storage, self._definition, tracked.things, made.number, self._origins)
        if self._definition.online:
            self._bring_online(made)
        return made

    def _bring_online(self, commit: Commit) -> None:
        """Make look-ups see a commit; an error says that it was made all the same."""
        try:
            self.materialize()
        except StoreError as error:
            raise StoreError(
                f"Commit {commit.number} of the group {self.name!r} was made, but look-ups do not see it yet: {error} "
                "Call group.materialize() when that works again."
            ) from error

    @own_step("group.delete")
    def delete(self, keys: Any, *, message: str = "") -> Commit:
        """Delete all rows of keys, at all times, also those in quarantine; `vacuum` deletes them from the past too.

        Args:
            keys: One key or a list of keys; or, for keys of several columns, a dict, a list of dicts, or a frame.
            message: What to remember about the commit.

        Raises:
            InvalidInputError: If they do not fit the key of the group.
        """
        self.refresh()
        if not self._definition.key_types:
            return Commit(operation="delete")
        wanted = read_keys(keys, self._definition)
        deletion = Deletion(self.log, self._definition, wanted, str(message))
        _, commit = commit_with(self.log, self._definition, deletion)
        forget(self.log, lambda rows: wanted.partners(rows)[0])
        if commit.number >= 0 and (self._definition.online or is_materialized(self._definition, self._storage)):
            self._bring_online(commit)
        return msgspec.structs.replace(commit, operation="delete")

    @own_step("group.materialize")
    def materialize(self) -> Materialized:
        """Make look-ups see the newest rows; does only what changed since the last time.

        Look-ups on this host, or, if the group lies on a Redis server, on all hosts.

        A group with `online=True` does it after each insert and delete. Look-ups work meanwhile.

        Returns:
            The commit that look-ups see now, how many rows were written, how many keys removed.

        Raises:
            InvalidInputError: If nothing was inserted yet.
            StoreError: If the store cannot be written, or another process is writing it for more than a minute.
        """
        now = Standstill(self.log, self.refresh(), self.log.newest())
        return materialize(now, store_of(self._definition, self._storage))

    def verify(self, sample: int | None = None) -> Verification:
        """Compare look-ups with the newest rows, as they were when they were materialized.

        Args:
            sample: How many keys to compare, drawn at random; by default all.

        Raises:
            StoreError: If the group was never materialized.
        """
        return verify(self, store_of(self._definition, self._storage), sample)

    def compact(self) -> Commit:
        """Put small files together, ordered by key and time; no row changes, and reading gets faster."""
        self.refresh()
        _, commit = commit_with(self.log, self._definition, Compaction(self.log, self._definition))
        return msgspec.structs.replace(commit, operation="compact")

    def vacuum(self, older_than: Seconds = "7d") -> int:
        """Delete files that no state of a recent time needs; time travel goes no further back then.

        Args:
            older_than: How much of the past can still be read, such as `"30d"`; 0 for nothing but the present, so that
                what was deleted is really gone.

        Returns:
            How many files were deleted.
        """
        seconds = read_seconds("older_than", older_than, may_be_zero=True)
        self.refresh()
        return 0 if seconds is None else vacuum(self.log, self._definition, seconds)[1]

    def update(
        self,
        *,
        description: str | None = None,
        tags: Sequence[str] | None = None,
        owner: str | None = None,
        online: bool | str | None = None,
    ) -> Definition:
        """Change words about the group, or where it is looked up; what it is changes only with a new version.

        Args:
            description: What it holds.
            tags: Words to find it by.
            owner: Who answers for it.
            online: As in `create_group`. Rows are forgotten where they were looked up before, and views that are open
                must be opened again.
        """
        before = self.refresh()
        words: dict[str, Any] = {"description": description, "owner": owner}
        words["tags"] = None if tags is None else tuple(tags)
        if online is not None:
            words["online"], words["online_store"] = read_online(online)
        changes = {name: value for name, value in words.items() if value is not None}
        self._definition = revise(
            self._storage, self._definition, lambda newest: msgspec.structs.replace(newest, **changes)
        )
        if online and self.commit >= 0:
            self.materialize()
        moved = (before.online, before.online_store) != (self._definition.online, self._definition.online_store)
        if online is not None and moved and (not online or before.online_store != self._definition.online_store):
            store_of(before, self._storage).drop()
        return self._definition

    def refresh(self) -> Definition:
        """Read the definition again, in case that another process has changed it."""
        self._definition = newest_revision(self._storage, self._definition)
        return self._definition

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, as_of: Moment | None = None, *, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows, in no order that is promised.

        Args:
            as_of: As they were after a commit (its number) or at a time; by default as they are.
            columns: Only these; `"_written_at"` is when a row was written.

        Raises:
            NotFoundError: If there was no such commit, or its files were deleted since.
        """
        self.refresh()
        names = self.schema.names if columns is None else list(columns)
        known = [*self.schema.names, WRITTEN_AT]
        if unknown := [name for name in names if name not in known]:
            mistakes = [f"there is no column {name!r}.{nearest(name, known)}" for name in unknown]
            raise InvalidInputError(f"The group {self.name!r} has the columns {', '.join(known)}.", mistakes)
        snapshot = snapshot_at(self.log, as_of, self._definition)
        return dataset_of(self.log, snapshot, self._definition).to_table(columns=names)

    def dataset(self, commit: int | None = None) -> ds.Dataset:
        """Return the rows after a commit as a dataset of Arrow, with the column `_written_at`."""
        self.refresh()
        return dataset_of(self.log, snapshot_at(self.log, commit, self._definition), self._definition)

    def history(self) -> list[Commit]:
        """Return all commits, the newest first."""
        return [commit_of(version, actions) for version, actions in self.log.commits()]

    def changes(self, since: Moment, until: Moment | None = None) -> pa.Table:
        """Return what changed after a commit or time, up to another one.

        Returns:
            Rows with the columns of the group, `_written_at`, and `_change`: `insert`, `update` or `delete`.
        """
        self.refresh()
        before, after = (snapshot_at(self.log, moment, self._definition) for moment in (since, until))
        if before.version > after.version:
            raise InvalidInputError(f"since ({before.version}) must not be later than until ({after.version}).")
        return changes_between(self.log, before, after, self._definition)

    def quarantined(self) -> pa.Table:
        """Return the rows that were put aside, the oldest first, with the reason of each in `_reason`."""
        return quarantined_rows(self.log)

    def statistics(self, as_of: Moment | None = None) -> Statistics:
        """Return statistics of the rows: merged from what each insert has kept with its rows, without reading them."""
        self.refresh()
        snapshot = snapshot_at(self.log, as_of, self._definition)
        return self._statistics(list(snapshot.files.values()), snapshot.version)

    def statistics_of(self, commit: int) -> Statistics:
        """Return statistics of the rows that one commit wrote."""
        snapshot_at(self.log, commit, self._definition)
        actions = self.log.actions(commit)
        own = set(commit_of(commit, actions).files)
        return self._statistics([one for one in actions if isinstance(one, Add) and one.path in own], commit)

    def _statistics(self, files: list[Add], commit: int) -> Statistics:
        states = []
        for file in files:
            state = read_state(self._storage, self.log.folder, file)
            if state is None:  # another program has written this file
                rows = read_rows(self._storage, self.log.folder, file, self._definition)
                state = make_state(rows.drop_columns([WRITTEN_AT]), without=self._definition.key)
            states.append(state)
        state = merge_states(states or [make_state(self.schema.empty_table())])
        return Statistics(self.name, self.version, commit, state)
