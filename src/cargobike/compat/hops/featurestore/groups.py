"""Feature groups of the old feature store over ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from cargobike import features as feature_room
from cargobike.compat.hops.translating.files import project_name
from cargobike.compat.hsfs.feature_store import table_named
from cargobike.compat.hsfs.frames import (
    ROW,
    give,
    is_unique,
    read_frame,
    read_names,
    with_row_numbers,
)
from cargobike.compat.noticing import formerly
from cargobike.core.errors import InvalidInputError, NotFoundError, nearest
from cargobike.features.definition import WRITTEN_AT
from cargobike.features.groups.rows.fitting import is_key_type
from cargobike.features.groups.rows.incoming import arrow_of

_HERE: Final = "hops.featurestore"


def project_featurestore(project: str | None = None) -> str:
    """Return the name of the project's feature store."""
    return f"{project or project_name()}_featurestore".lower()


def check_store(featurestore: str | None) -> None:
    """Refuse the feature store of another project.

    Raises:
        InvalidInputError: Says how to use another project.
    """
    own = project_featurestore()
    if featurestore is not None and featurestore.lower() != own:
        raise InvalidInputError(
            f"featurestore={featurestore!r} was given; this project has {own}. Use another project with "
            "cargobike.project.use(url) before."
        )


@formerly(f"{_HERE}.create_featuregroup")
def create_featuregroup(
    df: Any,
    featuregroup: str,
    primary_key: str | Sequence[str] = (),
    description: str = "",
    featurestore: str | None = None,
    featuregroup_version: int = 1,
    jobs: Sequence[str] = (),
    descriptive_statistics: bool = True,
    feature_correlation: bool = True,
    feature_histograms: bool = True,
    cluster_analysis: bool = True,
    stat_columns: Sequence[str] | None = None,
    num_bins: int = 20,
    corr_method: str = "pearson",
    num_clusters: int = 5,
    partition_by: Sequence[str] = (),
    online: bool = False,
    online_types: Any = None,
    offline: bool = True,
) -> None:
    """Make a feature group of a frame.

    Args:
        df: A Spark, pandas or polars DataFrame, a NumPy array, a list.
        featuregroup: Its name.
        primary_key: What rows are about; by default the first column. Rows that share a key are all kept.
        description: What it holds.
        featurestore: The project's own.
        featuregroup_version: Its version.
        jobs: Means nothing here.
        descriptive_statistics: Means nothing here: statistics are always kept.
        feature_correlation: Means nothing here.
        feature_histograms: Means nothing here.
        cluster_analysis: Means nothing here: clusters are not computed.
        stat_columns: Means nothing here.
        num_bins: Means nothing here.
        corr_method: Means nothing here.
        num_clusters: Means nothing here.
        partition_by: Means nothing here.
        online: Whether the newest rows can be looked up.
        online_types: Means nothing here.
        offline: Means nothing here.

    Raises:
        InvalidInputError: If the version is there already.
    """
    check_store(featurestore)
    name = featuregroup.lower()
    if featuregroup_version in versions_of(name):
        raise InvalidInputError(
            f"There is a feature group {name!r} of version {featuregroup_version} already. Insert into it with "
            f"insert_into_featuregroup(df, {name!r}, mode='overwrite'), or make version "
            f"{get_latest_featuregroup_version(name) + 1}."
        )
    table = read_frame(df)
    key = read_names(primary_key) or _first_column(table)
    lacking = [column for column in key if column not in table.column_names]
    if lacking:
        raise InvalidInputError(
            f"primary_key={', '.join(key)} was given; the columns are {', '.join(table.column_names)}."
            f"{nearest(lacking[0], table.column_names)}"
        )
    numbered = not key or not is_unique(table, key)
    group = feature_room.create_group(
        name,
        key=[*key, ROW] if numbered else key,
        description=description,
        online=online,
        version=featuregroup_version,
    )
    group.insert(with_row_numbers(table) if numbered else table)


@formerly(f"{_HERE}.insert_into_featuregroup")
def insert_into_featuregroup(
    df: Any,
    featuregroup: str,
    featurestore: str | None = None,
    featuregroup_version: int = 1,
    mode: str = "append",
    online: bool = False,
    offline: bool = True,
    **more: Any,
) -> None:
    """Insert rows; one with the key of a row that is there replaces it.

    Args:
        df: The rows.
        featuregroup: The group.
        featurestore: The project's own.
        featuregroup_version: Its version.
        mode: `"append"`, or `"overwrite"` to delete all rows that are there.
        online: Means nothing here: the group says it.
        offline: Means nothing here.
        more: Means nothing here: statistics are always kept.
    """
    check_store(featurestore)
    if mode not in {"append", "overwrite"}:
        raise InvalidInputError(f"mode={mode!r} was given; there are 'append' and 'overwrite'.")
    group = feature_room.group(featuregroup.lower(), featuregroup_version)
    table = read_frame(df)
    if mode == "overwrite" and group.num_rows:
        group.delete(group.read(columns=list(group.definition.key)))
    if ROW in group.definition.key:
        table = with_row_numbers(table)
    group.insert(table, duplicates="last")


@formerly(f"{_HERE}.get_featuregroup")
def get_featuregroup(
    featuregroup: str,
    featurestore: str | None = None,
    featuregroup_version: int = 1,
    dataframe_type: str = "default",
    jdbc_args: Any = None,
    online: bool = False,
) -> Any:
    """Return all rows of a group: a Spark DataFrame where a session is active, else a pandas DataFrame."""
    check_store(featurestore)
    group = feature_room.group(featuregroup.lower(), featuregroup_version)
    names = [name for name in group.schema.names if name != ROW]
    return _rows([f"{group.name}:{group.version}.{name}" for name in names], names, dataframe_type)


@formerly(f"{_HERE}.get_feature")
def get_feature(
    feature: str,
    featurestore: str | None = None,
    featuregroup: str | None = None,
    featuregroup_version: int = 1,
    dataframe_type: str = "default",
    jdbc_args: Any = None,
    online: bool = False,
) -> Any:
    """Return one feature."""
    check_store(featurestore)
    name = feature if featuregroup is None else f"{featuregroup}_{featuregroup_version}.{feature}"
    return _rows([full_name(name)], [feature.lower()], dataframe_type)


@formerly(f"{_HERE}.get_features")
def get_features(
    features: Sequence[str],
    featurestore: str | None = None,
    featuregroups_version_dict: dict[str, int] | None = None,
    join_key: str | None = None,
    dataframe_type: str = "default",
    jdbc_args: Any = None,
    online: bool = False,
) -> Any:
    """Return features by name, whichever groups own them, joined by their keys, right in time.

    Args:
        features: Names such as `average_attendance`; `teams_features_1.team_budget` says which version of which group.
        featurestore: The project's own.
        featuregroups_version_dict: The groups to look in, and the version of each.
        join_key: The column that groups are joined by; by default the key that they share.
        dataframe_type: `spark`, `pandas`, `polars`, `numpy` or `python`; by default Spark where a session is active,
            else pandas.
        jdbc_args: Means nothing here.
        online: Means nothing here.

    Returns:
        A frame with the features that were named, in this order, and no others.
    """
    check_store(featurestore)
    versions = {name.lower(): version for name, version in (featuregroups_version_dict or {}).items()}
    names = [full_name(feature, versions) for feature in features]
    if join_key is not None:
        _check_join(names, join_key.lower())
    return _rows(names, [], dataframe_type)


@formerly(f"{_HERE}.sql")
def sql(query: str, featurestore: str | None = None, dataframe_type: str = "default", online: bool = False) -> Any:
    """Return what a query gives; version 1 of the group `teams` is the table `teams_1`."""
    check_store(featurestore)
    table, _ = arrow_of(query, table_named)
    return give(dataframe_type, lambda: without_numbers(table))


def full_name(feature: str, versions: dict[str, int] | None = None) -> str:
    """Return the name of a feature as we write it: `teams:1.budget` for `teams_1.budget`.

    Args:
        feature: The name.
        versions: The groups to look in, and the version of each.
    """
    group, dot, name = feature.lower().rpartition(".")
    if dot:
        base, _, number = group.rpartition("_")
        if versions and group in versions:
            return f"{group}:{versions[group]}.{name}"
        is_versioned = base and number.isdecimal() and int(number) in versions_of(base)
        return f"{base}:{number}.{name}" if is_versioned else f"{group}.{name}"
    owners = [
        f"{each}:{version}"
        for each, version in (versions or {}).items()
        if name in feature_room.group(each, version).definition.features
    ]
    if len(owners) > 1:
        choices = " or ".join(f"{owner.replace(':', '_')}.{name}" for owner in owners)
        raise InvalidInputError(f"{name!r} is in several groups; write {choices}.")
    return f"{owners[0]}.{name}" if owners else name


def versions_of(name: str) -> list[int]:
    """Return the versions of a group."""
    try:
        newest = feature_room.group(name).version
    except (NotFoundError, InvalidInputError):
        return []
    return [version for version in range(1, newest + 1) if _is_there(name, version)]


def get_latest_featuregroup_version(featuregroup: str, featurestore: str | None = None) -> int:
    """Return the newest version of a group; 0 if there is none."""
    return max(versions_of(featuregroup.lower()), default=0)


def without_numbers(table: pa.Table) -> pa.Table:
    """Return a table without what groups keep for themselves: numbers of rows, and when they were written."""
    return table.drop_columns([name for name in (ROW, WRITTEN_AT) if name in table.column_names])


def _first_column(table: pa.Table) -> list[str]:
    """Return the first column, if it can be a key."""
    return [field.name for field in table.schema][:1] if is_key_type(table.schema.field(0).type) else []


def _rows(names: list[str], columns: list[str], kind: str) -> Any:
    """Return features as a frame; only keys, which are in no group alone, need to be told from which group they are."""
    owners = {name.rpartition(".")[0] for name in names} - {""}
    wanted = set(columns)
    if len(owners) == 1 and columns:
        owner = owners.pop()
        base, _, version = owner.partition(":")
        group = feature_room.group(base, int(version) if version else None)
        if not wanted & set(group.definition.features):  # keys alone
            return give(kind, lambda: group.read(columns=columns))
    query = feature_room.get_features(names)
    return give(kind, query.to_arrow, query.to_spark)


def _check_join(names: Sequence[str], key: str) -> None:
    query = feature_room.get_features(names)
    without = [
        group.name for group in query.plan.groups if key not in {*group.definition.key, *group.definition.features}
    ]
    if without:
        raise InvalidInputError(f"join_key={key!r} was given; {', '.join(without)} has no such column.")


def _is_there(name: str, version: int) -> bool:
    try:
        feature_room.group(name, version)
    except NotFoundError:
        return False
    return True
