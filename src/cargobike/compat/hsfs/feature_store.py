"""The feature store of a project under the names of Hopsworks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cargobike import features as feature_room
from cargobike.compat.hsfs.constructor.query import Query
from cargobike.compat.hsfs.feature_group import FeatureGroup
from cargobike.compat.hsfs.feature_view import FeatureView
from cargobike.compat.hsfs.frames import ROW, give, read_names
from cargobike.compat.hsfs.kept_views import make_view, versions_of
from cargobike.compat.hsfs.training_dataset import TrainingDataset, find_dataset
from cargobike.compat.hsfs.transformation_function import BUILTIN, Chosen, known_udf
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError, NotFoundError, nearest
from cargobike.features.definition import WRITTEN_AT
from cargobike.features.groups.rows.incoming import arrow_of

_STORE = "hsfs.feature_store.FeatureStore"


class FeatureStore:
    """The groups and views of the project in use.

    Args:
        name: What it is called.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.id = name

    def __repr__(self) -> str:
        return f"FeatureStore({self.name!r})"

    # -- groups ------------------------------------------------------------------------------------------------------

    @formerly(f"{_STORE}.get_or_create_feature_group")
    def get_or_create_feature_group(self, name: str, version: int = 1, *args: Any, **said: Any) -> FeatureGroup:
        """Return a group; one that is not there is made by the first rows that are inserted."""
        found = self._find(name, version)
        return found if found is not None else self._defined(name, version, *args, **said)

    @formerly(f"{_STORE}.create_feature_group")
    def create_feature_group(self, name: str, version: int | None = None, *args: Any, **said: Any) -> FeatureGroup:
        """Return a group that is made by the first rows that are inserted, or by `save`.

        Args:
            name: Its name.
            version: Its version; by default the next one.
            args: The description.
            said: `primary_key`, `event_time`, `online_enabled`, `features`, `ttl`; the rest means nothing here.
        """
        if version is None:
            known = self.get_feature_groups(name)
            version = max((group.version for group in known), default=0) + 1
        elif self._find(name, version) is not None:
            raise InvalidInputError(
                f"There is a feature group {name!r} of version {version}; get_or_create_feature_group returns it."
            )
        return self._defined(name, version, *args, **said)

    @formerly(f"{_STORE}.get_feature_group")
    def get_feature_group(self, name: str, version: int | None = None) -> FeatureGroup:
        """Return a group, by default its version 1.

        Raises:
            NotFoundError: If there is none.
        """
        return FeatureGroup.of(feature_room.group(name, 1 if version is None else version))

    def get_feature_groups(self, name: str | None = None) -> list[FeatureGroup]:
        """Return all groups, or all versions of one."""
        newest = [group for group in feature_room.list_groups() if name in {None, group.name}]
        found = []
        for group in newest:
            for version in range(1, group.version + 1):
                try:
                    found.append(FeatureGroup.of(feature_room.group(group.name, version)))
                except NotFoundError:
                    continue  # versions may have gaps
        return found

    def _find(self, name: str, version: int) -> FeatureGroup | None:
        try:
            return FeatureGroup.of(feature_room.group(name, version))
        except NotFoundError:
            return None

    def _defined(
        self,
        name: str,
        version: int,
        description: str = "",
        online_enabled: bool = False,
        time_travel_format: str | None = None,
        partition_key: Any = None,
        primary_key: Any = None,
        hudi_precombine_key: Any = None,
        features: Sequence[Any] | None = None,
        statistics_config: Any = None,
        event_time: Any = None,
        stream: bool | None = None,
        expectation_suite: Any = None,
        *,
        ttl: Any = None,
        embedding_index: Any = None,
        transformation_functions: Any = None,
        **told: Any,
    ) -> FeatureGroup:
        if embedding_index is not None:
            raise InvalidInputError(
                "embedding_index: nearest neighbours are not searched here. Groups keep embeddings as lists; search "
                "them with a library for vectors."
            )
        if transformation_functions:
            raise InvalidInputError(
                "transformation_functions of a group: compute such features before they are inserted, or on demand in "
                "a view."
            )
        if expectation_suite is not None:
            raise InvalidInputError(
                "expectation_suite: say what must be true of rows with features.create_group(…, expectations=[…])."
            )
        times = read_names(event_time)
        return FeatureGroup(
            name,
            version,
            read_names(primary_key),
            times[0] if times else "",
            online_enabled,
            description or "",
            schema=features or (),
            ttl=ttl.total_seconds() if hasattr(ttl, "total_seconds") else ttl,
            told=told,
        )

    # -- views -------------------------------------------------------------------------------------------------------

    @formerly(f"{_STORE}.create_feature_view")
    def create_feature_view(
        self,
        name: str,
        query: Query,
        version: int | None = None,
        description: str = "",
        labels: Sequence[str] | None = None,
        inference_helper_columns: Sequence[str] | None = None,
        training_helper_columns: Sequence[str] | None = None,
        transformation_functions: Any = None,
        **told: Any,
    ) -> FeatureView:
        """Say what a model takes, and return it as a feature view.

        Raises:
            InvalidInputError: If the version is there, or something is not in the query; lists all mistakes.
        """
        taken = {kept.version for _, kept in versions_of(name)}
        version = max(taken, default=0) + 1 if version is None else version
        if version in taken:
            raise InvalidInputError(
                f"There is a feature view {name!r} of version {version} already; get_or_create_feature_view returns it."
            )
        if inference_helper_columns or training_helper_columns:
            raise InvalidInputError(
                "Helper columns are not kept apart: select them like features, and leave them out before you train."
            )
        chosen = _chosen(transformation_functions)
        make_view(name, version, query.asked, read_names(labels), chosen, description or "")
        return self.get_feature_view(name, version)

    @formerly(f"{_STORE}.get_or_create_feature_view")
    def get_or_create_feature_view(
        self, name: str, query: Query | None = None, version: int = 1, *args: Any, **said: Any
    ) -> FeatureView:
        """Return a feature view; one that is not there is made."""
        for view, kept in versions_of(name):
            if kept.version == version:
                return FeatureView(view, kept)
        if query is None:
            raise InvalidInputError(f"There is no feature view {name!r} of version {version}; give query=… to make it.")
        return self.create_feature_view(name, query, version, *args, **said)

    @formerly(f"{_STORE}.get_feature_view")
    def get_feature_view(self, name: str, version: int | None = None) -> FeatureView:
        """Return a feature view, by default its version 1.

        Raises:
            NotFoundError: If there is none.
        """
        wanted = 1 if version is None else version
        versions = []
        for view, kept in versions_of(name):
            if kept.version == wanted:
                return FeatureView(view, kept)
            versions.append(str(kept.version))
        names = sorted({one.name for one in feature_room.list_views()})
        has = f"it has the versions {', '.join(sorted(versions))}" if versions else f"there is no {name!r}"
        raise NotFoundError(
            f"There is no feature view {name!r} of version {wanted}: {has}.{'' if versions else nearest(name, names)}"
        )

    def get_feature_views(self, name: str) -> list[FeatureView]:
        """Return all versions of a feature view."""
        return [FeatureView(view, kept) for view, kept in versions_of(name)][::-1]

    def get_transformation_function(self, name: str, version: int | None = None) -> Any:
        """Return a transformation: a built-in one, or a function that this process made with `@hopsworks.udf`."""
        found = BUILTIN.get(name) or known_udf(name)
        if found is None:
            raise NotFoundError(
                f"There is no transformation {name!r}; there are {', '.join(BUILTIN)}.{nearest(name, BUILTIN)}"
            )
        return found

    # -- the rest ----------------------------------------------------------------------------------------------------

    def sql(self, query: str, dataframe_type: str = "default", online: bool = False, read_options: Any = None) -> Any:
        """Return what a query in SQL over the groups gives; `teams_1` is version 1 of `teams`."""
        table, _ = arrow_of(query, table_named)
        hidden = [name for name in (ROW, WRITTEN_AT) if name in table.column_names]
        return give(dataframe_type, lambda: table.drop_columns(hidden))

    def get_training_dataset(self, name: str, version: int | None = None) -> TrainingDataset:
        """Return a training dataset that `create_training_dataset(…).save(query)` wrote, by default its version 1."""
        return find_dataset(name, version)

    @formerly(f"{_STORE}.create_training_dataset")
    def create_training_dataset(
        self,
        name: str,
        version: int | None = None,
        description: str = "",
        data_format: str = "tfrecords",
        *,
        splits: Mapping[str, float] | None = None,
        seed: int | None = None,
        label: Any = None,
        **told: Any,
    ) -> TrainingDataset:
        """Return a training dataset that `save(query)` writes, as hsfs 2 did; newer scripts make a feature view."""
        if version is None:
            version = max((kept.version for _, kept in versions_of(name)), default=0) + 1
        return TrainingDataset(name, version, data_format, splits, seed, read_names(label), description)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("get_", "create_")) and name.split("_", 1)[1] in _ELSEWHERE:
            return _refusal(name)
        raise AttributeError(f"a feature store has no {name!r}")


_ELSEWHERE = {
    "external_feature_group": 'groups hold their rows; insert("SELECT …") takes them from files and queries',
    "external_feature_groups": 'groups hold their rows; insert("SELECT …") takes them from files and queries',
    "on_demand_feature_group": 'groups hold their rows; insert("SELECT …") takes them from files and queries',
    "spine_group": "give your own rows: view.training_data(labels)",
    "or_create_spine_group": "give your own rows: view.training_data(labels)",
    "storage_connector": "paths and addresses of data are given where it is read: data.open(url), insert(url)",
    "data_source": "paths and addresses of data are given where it is read: data.open(url), insert(url)",
    "feature_monitoring": "monitoring.watch(group) watches groups",
}


def _refusal(name: str) -> Any:
    def refuse(*args: Any, **said: Any) -> Any:
        raise InvalidInputError(f"{name} is not there: {_ELSEWHERE[name.split('_', 1)[1]]}.")

    return refuse


def table_named(name: str) -> Any:
    """Return the rows of a group that SQL names: `teams_1`, or `teams` for the newest version."""
    base, _, version = name.rpartition("_")
    for called, number in ((base, int(version)) if version.isdecimal() else ("", 0), (name, None)):
        try:
            return feature_room.group(called, number).dataset()
        except NotFoundError:
            continue
    return None


def _chosen(given: Any) -> list[Chosen]:
    """Return transformations that were given as a list, or, as before 4.0, as a dict by feature."""
    if isinstance(given, dict):
        return [what if isinstance(what, Chosen) else what(feature) for feature, what in given.items()]
    listed = list(given) if isinstance(given, list | tuple) else [given] if given is not None else []
    return [what if isinstance(what, Chosen) else what() for what in listed]
