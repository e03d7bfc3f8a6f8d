"""Delta tables at one version: the log says which Parquet files belong to it, and those are read in place."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from cargobike.core.errors import InvalidInputError, MissingLibraryError, NotFoundError, StoreError
from cargobike.core.origins import Origin
from cargobike.data.sources.files import fingerprint_of
from cargobike.data.sources.listing import File, is_address, open_arrow
from cargobike.data.sources.mistakes import chosen_columns
from cargobike.data.sources.parquet import ParquetSource
from cargobike.data.sources.source import Group, Source, SourceSpec
from cargobike.store.history.environment import without_credentials

_HARMLESS = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""What a table may use and still be read by the list of its files; compared without regard to case."""

_REFUSED = {
    "deletionvectors": (
        "deletion vectors, which mark rows of files as deleted. Have Spark write such files anew: "
        "REORG TABLE … APPLY (PURGE), then ALTER TABLE … DROP FEATURE deletionVectors"
    ),
    "columnmapping": (
        "column mapping: its files name columns in another way. Have Spark write the table anew without: "
        "CREATE TABLE … AS SELECT * FROM …"
    ),
}


class _Add(NamedTuple):
    """A file of the table, and the values of the columns by which it is partitioned."""

    path: str
    values: dict[str, object]


def open_delta(url: str | os.PathLike[str], *, version: int | None = None) -> DeltaSource:
    """Open a Delta table as a source of rows; see `cargobike.data.delta`.

    Raises:
        NotFoundError: If there is no such table or version.
        InvalidInputError: If the table uses what cannot be read here; says what to do.
        MissingLibraryError: If `deltalake` is not installed.
    """
    text = os.fspath(url)
    address = text.rstrip("/") if is_address(text) else os.path.abspath(os.path.expanduser(text))
    shown = without_credentials(address)
    if version is not None and (type(version) is not int or version < 0):
        raise InvalidInputError(f"version={version!r} was given; versions of a Delta table are 0, 1, 2 and so on.")
    table = _table(address, shown, version)
    _check_features(table, shown)
    schema = pa.schema(table.schema().to_arrow())
    return DeltaSource(address, table.version(), schema, _adds(table, shown))


def _table(address: str, shown: str, version: int | None) -> Any:
    try:
        from deltalake import DeltaTable  # noqa: PLC0415 - an extra
        from deltalake.exceptions import DeltaError, TableNotFoundError  # noqa: PLC0415
    except ImportError as error:
        raise MissingLibraryError(
            "Delta tables are read with deltalake, which is not installed: pip install 'cargobike[delta]'",
            name="deltalake",
        ) from error
    try:
        newest = DeltaTable(address, storage_options=_options(address))
        if version is None or version == newest.version():
            return newest
        if version > newest.version():
            raise NotFoundError(
                f"The Delta table {shown} has no version {version}; its newest is {newest.version()}.",
                wanted=version,
                nearest=[str(newest.version())],
            )
        return DeltaTable(address, version=version, storage_options=_options(address))
    except TableNotFoundError:
        hint = "" if is_address(address) or Path(address).exists() else " There is no such folder."
        raise NotFoundError(f"There is no Delta table at {shown}.{hint}", wanted=shown) from None
    except (DeltaError, OSError, ValueError) as error:
        if isinstance(error, NotFoundError):
            raise
        wanted = "" if version is None else f" at version {version}"
        words = " ".join(str(error).split())
        raise StoreError(f"The Delta table {shown}{wanted} cannot be opened: {words}") from error


def _options(address: str) -> dict[str, str] | None:
    """Return what the library needs besides the environment, which it reads itself."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if not address.startswith(("s3://", "s3a://")) or not endpoint:
        return None
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": str(endpoint.startswith("http://")).lower()}


def _check_features(table: Any, shown: str) -> None:
    used = {str(feature) for feature in table.protocol().reader_features or ()}
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mode != "none":
        used.add("columnMapping")
    elif table.protocol().min_reader_version < 3:
        used -= {"columnMapping"}
    harmless = {name.lower() for name in _HARMLESS}
    mistakes = [
        f"It uses {_REFUSED.get(name.lower(), f'{name}, which is not known here')}. "
        "Or read it with Spark, and keep what you need: data.write(df, …)."
        for name in sorted(used)
        if name.lower() not in harmless
    ]
    if mistakes:
        raise InvalidInputError(f"The Delta table {shown} cannot be read by the list of its files.", mistakes)


def _adds(table: Any, shown: str) -> list[_Add]:
    """Return the files of the table, in the order of their paths."""
    actions = pa.table(table.get_add_actions(flatten=True))
    partitions = [name for name in actions.schema.names if name.startswith("partition.")]
    adds = []
    for row in actions.select(["path", *partitions]).to_pylist():
        path = unquote(row.pop("path"))
        if is_address(path) or path.startswith("/") or ".." in path.split("/"):
            raise InvalidInputError(
                f"The Delta table {shown} names a file outside of it: {without_credentials(path)!r}. Copy the table "
                "whole: data.write(df, …)."
            )
        adds.append(_Add(path, {name.removeprefix("partition."): value for name, value in row.items()}))
    return sorted(adds, key=lambda add: add.path)


class DeltaSource(Source):
    """The row groups of the files of one version; columns that a file lacks are null, those of partitions are added."""

    def __init__(self, address: str, version: int, schema: pa.Schema, adds: Sequence[_Add]) -> None:
        self.version = version
        self.name = f"{without_credentials(address)}, version {version}"
        self.origin = Origin("file", without_credentials(address), str(version))
        self.schema = schema
        self._address = address
        files = _files(address, adds)
        self._values = {file.shown: add.values for file, add in zip(files, adds, strict=True)}
        self._sources = _sources(files, self.name)
        self._places = [
            (number, group) for number, source in enumerate(self._sources) for group in range(len(source.groups))
        ]
        self.groups: list[Group] = [self._sources[number].groups[group] for number, group in self._places]
        self.fingerprint = fingerprint_of(files, {"version": version})

    def read(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of one group, with the types that the table has at this version.

        Raises:
            StoreError: If a file is gone, was changed, or cannot be read.
        """
        names = chosen_columns(columns, self.schema) or ([] if columns is not None else self.schema.names)
        number, inner = self._places[group]
        source = self._sources[number]
        place = self.groups[group].place
        values = self._values[place.rpartition(", row group ")[0]]
        stored = [name for name in names if name in source.schema.names and name not in values]
        table = source.read(inner, stored)
        if len(self._sources) > 1:
            source.close()  # many files with different columns would be kept open
        rows = self.groups[group].rows
        arrays = []
        for name in names:
            kind = self.schema.field(name).type
            if name in stored:
                arrays.append(_cast(table.column(name), kind, f"{place}, column {name!r}"))
            else:
                arrays.append(pa.repeat(pa.scalar(values.get(name)).cast(kind), rows))
        return pa.Table.from_arrays(arrays, schema=pa.schema([self.schema.field(name) for name in names]))

    def spec(self) -> SourceSpec:
        """Return the address and the version."""
        options: dict[str, object] = {"url": self._address, "version": self.version}
        return SourceSpec(opener=f"{__name__}:reopen", options=options, fingerprint=self.fingerprint)

    def close(self) -> None:
        """Close the files that are kept open."""
        for source in self._sources:
            source.close()


def reopen(options: Mapping[str, Any]) -> DeltaSource:
    """Open the source that a spec describes."""
    return open_delta(options["url"], version=options["version"])


def _files(address: str, adds: Sequence[_Add]) -> list[File]:
    """Return the files as they are now."""
    system, root = open_arrow(address)
    try:
        found = system.get_file_info([f"{root}/{add.path}" for add in adds]) if adds else []
    except OSError as error:
        raise StoreError(f"{without_credentials(address)} cannot be read: {error}") from error
    shown = without_credentials(address)
    gone = [add.path for add, info in zip(adds, found, strict=True) if not info.is_file]
    if gone:
        raise StoreError(
            f"{len(gone)} of the {len(adds)} files of {shown} are gone, such as {gone[0]!r}. If VACUUM has removed "
            "them, open a later version."
        )
    return [
        File(system, info.path, add.path, f"{shown}/{add.path}", info.size or 0, info.mtime_ns or 0, shown)
        for add, info in zip(adds, found, strict=True)
    ]


def _sources(files: list[File], name: str) -> list[ParquetSource]:
    """Return all files as one source if their columns are the same, else each as one: columns may have been added."""
    if not files:
        return []
    try:
        return [ParquetSource(files, name)]
    except InvalidInputError:
        return [ParquetSource([file], name) for file in files]


def _cast(column: pa.ChunkedArray, kind: pa.DataType, place: str) -> pa.ChunkedArray:
    if column.type.equals(kind):
        return column
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"{place} is {column.type}, which does not fit {kind}: {error}") from None
