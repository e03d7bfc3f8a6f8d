"""Checkpoints of a Delta log: the whole state in one Parquet file, so that a reader need not follow every commit."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from cargobike.core.errors import StoreError
from cargobike.features.delta.actions import Add, MetaData, Protocol, checked, log_path
from cargobike.store.files.in_memory import in_memory
from cargobike.store.files.storage import Storage

LAST: Final = "_last_checkpoint"

_TEXTS: Final = pa.map_(pa.string(), pa.string())
_SCHEMA: Final = pa.schema(
    [
        (
            "protocol",
            pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())]),
        ),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", _TEXTS),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _TEXTS),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                ]
            ),
        ),
    ]
)


class LastCheckpoint(msgspec.Struct, frozen=True, rename="camel"):
    """Where the newest checkpoint is."""

    version: int
    size: int = 0
    parts: int | None = None


def write_checkpoint(storage: Storage, place: str, version: int, files: list[Add], meta: MetaData | None) -> None:
    """Write the state after a commit; readers work without it, so a writer that dies here has lost nothing."""
    assert meta is not None
    described = msgspec.to_builtins(meta)
    described["format"]["options"] = []
    described["configuration"] = list(meta.configuration.items())
    rows: list[dict[str, Any]] = [{"protocol": msgspec.to_builtins(Protocol())}, {"metaData": described}]
    for file in files:
        added = msgspec.to_builtins(file)
        added.update(path=log_path(file.path), partitionValues=list(file.partition_values.items()), dataChange=False)
        rows.append({"add": added})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), sink)
    storage.write(_path(place, version), sink.getvalue().to_pybytes())
    storage.write(f"{place}/{LAST}", msgspec.json.encode({"version": version, "size": len(rows)}))


def newest_checkpoint(storage: Storage, place: str) -> int | None:
    """Return the commit of the newest checkpoint; `None` if there is none that is read here."""
    data = storage.read(f"{place}/{LAST}")
    if data is None:
        return None
    try:
        last = msgspec.json.decode(data, type=LastCheckpoint)
    except msgspec.DecodeError:
        return None  # it is only a hint: the commits themselves are all there
    return last.version if last.parts is None and last.version >= 0 else None


def read_checkpoint(storage: Storage, place: str, version: int) -> tuple[list[Add], MetaData] | None:
    """Return files and description of the table after a commit; `None` if there is no such checkpoint.

    Raises:
        StoreError: If it cannot be understood.
    """
    path = _path(place, version)
    data = storage.read(path)
    if data is None:
        return None
    where = f"{storage}/{path}"
    try:
        table = pq.read_table(in_memory(data))
        adds = [checked(_add(row), where) for row in _rows(table, "add")]
        metas = [_meta(row) for row in _rows(table, "metaData")]
        for row in _rows(table, "protocol"):
            checked(Protocol(min_reader_version=row["minReaderVersion"]), where)
    except (pa.ArrowException, KeyError, TypeError, msgspec.ValidationError) as error:
        raise StoreError(f"{where} is no checkpoint of a Delta table: {error}.") from error
    if len(metas) != 1:
        raise StoreError(f"{where} is no checkpoint of a Delta table: it describes {len(metas)} tables.")
    return [add for add in adds if isinstance(add, Add)], metas[0]


def _rows(table: Any, name: str) -> list[dict[str, Any]]:
    return [row for row in table.column(name).to_pylist() if row is not None]


def _add(row: dict[str, Any]) -> Add:
    return Add(path=row["path"], size=row["size"], modification_time=row["modificationTime"], stats=row["stats"])


def _meta(row: dict[str, Any]) -> MetaData:
    return MetaData(
        id=row["id"],
        name=row["name"],
        description=row.get("description"),
        schema_string=row["schemaString"],
        partition_columns=list(row.get("partitionColumns") or []),
        configuration=dict(row.get("configuration") or {}),
        created_time=row.get("createdTime"),
    )


def _path(place: str, version: int) -> str:
    return f"{place}/{version:020d}.checkpoint.parquet"
