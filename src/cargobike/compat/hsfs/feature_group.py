"""A feature group of Hopsworks over one of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cargobike import features as feature_room
from cargobike.compat.hsfs.constructor.filter import Logic, Place
from cargobike.compat.hsfs.constructor.query import Query, commit_at, select
from cargobike.compat.hsfs.feature import Feature, our_type
from cargobike.compat.hsfs.frames import ROW, give, read_frame, read_names, with_row_numbers, with_times
from cargobike.compat.hsfs.job import Job
from cargobike.compat.hsfs.moments import read_moment
from cargobike.compat.noticing import formerly, notice
from cargobike.core.errors import InvalidInputError, nearest

_INSERT: Final = "hsfs.feature_group.FeatureGroup.insert"


class FeatureGroup:
    """A table of features; it exists once rows were inserted, or `save` was called with a schema.

    Args:
        name: Its name.
        version: Its version.
        primary_key: The columns that say what a row is about; without any, rows are counted.
        event_time: The column that says since when a row is true.
        online_enabled: Whether its newest rows can be looked up.
        description: What it holds.
        schema: Its features, if they were listed.
        ttl: How many seconds a row stays true.
        group: Ours, if it exists.
        told: What was said that means nothing here.
    """

    def __init__(
        self,
        name: str,
        version: int,
        primary_key: Sequence[str] = (),
        event_time: str = "",
        online_enabled: bool = False,
        description: str = "",
        *,
        schema: Sequence[Feature] = (),
        ttl: Any = None,
        group: feature_room.Group | None = None,
        told: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.primary_key = [key for key in primary_key if key != ROW]
        self.event_time = event_time or None
        self.online_enabled = online_enabled
        self.description = description
        self.statistics_config: Any = None
        self.ttl = ttl
        self.told = dict(told or {})
        self._schema = list(schema)
        self._group = group

    @classmethod
    def of(cls, group: feature_room.Group) -> FeatureGroup:
        """Return a group of ours under the names of Hopsworks."""
        made = group.definition
        return cls(made.name, made.version, made.key, made.event_time, made.online, made.description, group=group)

    def __repr__(self) -> str:
        return f"FeatureGroup({self.name!r}, {self.version})"

    @property
    def group(self) -> feature_room.Group:
        """Our group.

        Raises:
            InvalidInputError: If it does not exist yet.
        """
        if self._group is None:
            raise InvalidInputError(
                f"The feature group {self.name} (version {self.version}) has no rows yet: insert(frame) makes it."
            )
        return self._group

    @property
    def id(self) -> str:
        """What names it in the project."""
        return f"{self.name}:{self.version}"

    @property
    def features(self) -> list[Feature]:
        """Its columns, in order."""
        if self._group is None:
            return self._schema
        definition = self._group.refresh()
        return [
            Feature(field.name, str(field.type), primary=field.name in definition.key, place=self._place(field.name))
            for field in self._group.schema
            if field.name != ROW
        ]

    schema = features

    def get_feature(self, name: str) -> Feature:
        """Return one of its columns, to choose rows by."""
        names = [one.name for one in self.features]
        if name not in names:
            raise InvalidInputError(
                f"{self.name} has no feature {name!r}; it has {', '.join(names)}.{nearest(name, names)}"
            )
        return next(one for one in self.features if one.name == name)

    def __getattr__(self, name: str) -> Feature:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.get_feature(name)
        except InvalidInputError as error:
            raise AttributeError(str(error)) from error

    def __getitem__(self, name: str) -> Feature:
        return self.get_feature(name)

    # -- writing -----------------------------------------------------------------------------------------------------

    @formerly(_INSERT)
    def insert(
        self,
        features: Any,
        overwrite: bool = False,
        operation: str | None = "upsert",
        storage: str | None = None,
        write_options: Any = None,
        validation_options: Any = None,
        wait: bool = False,
        **more: Any,
    ) -> tuple[Job, None]:
        """Insert rows: one with the key and event time of another replaces it. Done when this returns.

        Args:
            features: A pandas, polars or Spark DataFrame, a NumPy array or a list.
            overwrite: Whether all rows that are there are deleted before.
            operation: `"upsert"`, or `"insert"`, which is the same: there is one row for each key and event time.
            storage: Means nothing here: `online_enabled` decides.
            write_options: Means nothing here.
            validation_options: Means nothing here.
            wait: Means nothing here: it is always done.
            more: Means nothing here.

        Returns:
            A job that is done, and `None`: expectations refuse rows.
        """
        table = with_times(read_frame(features), self.event_time or "")
        if self._group is None:
            self._group = self._made()
        group = self._group
        if overwrite and group.num_rows:
            group.delete(group.read(columns=list(group.definition.key)))
        if ROW in group.definition.key:
            table = with_row_numbers(table)
        commit = group.insert(table, duplicates="last")
        return Job(f"{self.name}_{self.version}_insert", commit), None

    def save(self, features: Any = None, write_options: Any = None, validation_options: Any = None) -> Any:
        """Make the group, with rows or without."""
        notice("hsfs.feature_group.FeatureGroup.save")
        if features is not None and not (isinstance(features, list) and all(isinstance(f, Feature) for f in features)):
            return self.insert(features)
        self._schema = list(features or self._schema)
        self._group = self._made()
        return Job(f"{self.name}_{self.version}_save", None), None

    def _made(self) -> feature_room.Group:
        types = {one.name: our_type(one.type) for one in self._schema if one.type}
        from_schema = [one.name for one in self._schema if one.primary]
        types.pop(self.event_time or "", None)
        return feature_room.create_group(
            self.name,
            key=self.primary_key or from_schema or [ROW],
            event_time=self.event_time,
            schema=types or None,
            description=self.description,
            online=self.online_enabled,
            ttl=self.ttl,
            allow_future=True,
            version=self.version,
        )

    def delete_record(self, delete_df: Any, write_options: Any = None) -> None:
        """Delete all rows of keys."""
        table = read_frame(delete_df)
        self.group.delete(table.select([key for key in self.group.definition.key if key in table.column_names]))

    commit_delete_record = delete_record

    @formerly("hsfs.feature_group.FeatureGroup.delete")
    def delete(self) -> None:
        """Delete the group with all its rows, also those of the past."""
        feature_room.remove_group(self.name, self.group.version)
        self._group = None

    def update_description(self, description: str) -> FeatureGroup:
        """Change what is said of it."""
        self.group.update(description=description)
        self.description = description
        return self

    def update_feature_description(self, feature_name: str, description: str) -> FeatureGroup:
        """Change what is said of a feature: kept among the words of the group, by which it is found."""
        self.get_feature(feature_name)
        about = f"{feature_name}: {description}"
        others = [tag for tag in self.group.refresh().tags if not tag.startswith(f"{feature_name}: ")]
        self.group.update(tags=[*others, about])
        return self

    def add_tag(self, name: str, value: Any) -> None:
        """Add a word to find it by."""
        self.group.update(tags=[*self.group.refresh().tags, f"{name}={value}"])

    def get_tags(self) -> dict[str, str]:
        """Return the words that `add_tag` added."""
        pairs = (tag.partition("=") for tag in self.group.refresh().tags if "=" in tag)
        return {name: value for name, _, value in pairs}

    # -- reading -----------------------------------------------------------------------------------------------------

    @formerly("hsfs.feature_group.FeatureGroup.read")
    def read(
        self,
        wallclock_time: Any = None,
        online: bool = False,
        dataframe_type: str = "default",
        read_options: Any = None,
    ) -> Any:
        """Return all rows, as they are or as they were at a time; `online` the newest row of each key."""
        if wallclock_time is not None:
            return self._all().as_of(wallclock_time).rows(dataframe_type)
        if online:
            return give(dataframe_type, lambda: _newest(self.group))
        return self._all().rows(dataframe_type)

    def read_changes(self, start_wallclock_time: Any, end_wallclock_time: Any) -> Any:
        """Return what changed between two times; the column `_change` says how."""
        since = commit_at(self.group, start_wallclock_time)
        table = self.group.changes(since, commit_at(self.group, end_wallclock_time))
        return give("default", lambda: table.drop_columns([name for name in (ROW,) if name in table.column_names]))

    def show(self, n: int, online: bool = False) -> Any:
        """Return the first rows."""
        return self._all().show(n)

    @formerly("hsfs.feature_group.FeatureGroup.select")
    def select(self, features: Sequence[Any]) -> Query:
        """Return a query for some features."""
        names = read_names(features)
        for name in names:
            self.get_feature(name)
        return select(self.group, names)

    @formerly("hsfs.feature_group.FeatureGroup.select_all")
    def select_all(self, include_primary_key: bool = True, include_event_time: bool = True) -> Query:
        """Return a query for all columns."""
        without: set[str | None] = set() if include_primary_key else set(self.primary_key)
        without |= set() if include_event_time else {self.event_time}
        return select(self.group, [one.name for one in self.features if one.name not in without])

    def select_except(self, features: Sequence[Any] | None = None) -> Query:
        """Return a query for all columns but some."""
        without = read_names(features)
        return select(self.group, [one.name for one in self.features if one.name not in without])

    def select_features(self) -> Query:
        """Return a query for all columns that are neither key nor event time."""
        return select(self.group, list(self.group.refresh().features))

    def filter(self, f: Logic) -> Query:
        """Return a query for the rows that fit a condition."""
        return self._all().filter(f)

    def as_of(self, wallclock_time: Any = None, exclude_until: Any = None) -> Query:
        """Return a query on what it held at a time."""
        return self._all().as_of(wallclock_time, exclude_until)

    def commit_details(self, wallclock_time: Any = None, limit: int | None = None) -> dict[int, dict[str, Any]]:
        """Return what each commit did, by its time in milliseconds since 1970, the newest first."""
        until = None if wallclock_time is None else read_moment(wallclock_time)
        commits = [one for one in self.group.history() if until is None or one.time <= until]
        return {
            round(one.time.timestamp() * 1000): {
                "committedOn": f"{one.time:%Y%m%d%H%M%S}",
                "rowsInserted": one.inserted,
                "rowsUpdated": one.updated,
                "rowsDeleted": one.deleted,
            }
            for one in commits[:limit]
        }

    @formerly("hsfs.feature_group.FeatureGroup.get_statistics")
    def get_statistics(self, computation_time: Any = None, feature_names: Any = None) -> feature_room.Statistics:
        """Return statistics of its rows: ours, by column."""
        return self.group.statistics()

    def compute_statistics(self, wallclock_time: Any = None) -> feature_room.Statistics:
        """Return statistics of its rows, which are always up to date."""
        return self.group.statistics()

    def update_statistics_config(self) -> FeatureGroup:
        """Do nothing: all statistics are kept with the rows."""
        return self

    def _all(self) -> Query:
        return select(self.group, [one.name for one in self.features])

    def _place(self, name: str) -> Place:
        return Place(self.name, self.version, name)


def _newest(group: feature_room.Group) -> Any:
    table = group.read()
    definition = group.definition
    if definition.event_time:
        table = table.sort_by([(definition.event_time, "descending")])
        table = table.group_by(list(definition.key), use_threads=False).aggregate(
            [(name, "first") for name in table.column_names if name not in definition.key]
        )
        table = table.rename_columns([name.removesuffix("_first") for name in table.column_names])
    return table.select([name for name in group.schema.names if name != ROW])
