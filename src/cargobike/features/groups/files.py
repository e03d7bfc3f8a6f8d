"""The files of a group: Parquet, with the state of their statistics in the footer: both live and die together."""

from __future__ import annotations

import re
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cargobike.core.errors import StoreError
from cargobike.features.definition import WRITTEN_AT, Definition
from cargobike.features.delta.actions import Add, FileStatistics
from cargobike.features.delta.log import now_ms
from cargobike.features.groups.columns import identity_of, schema_of
from cargobike.features.hashing import Hashes, hash_rows
from cargobike.features.statistics.states import TableState, make_state
from cargobike.store.files.in_memory import in_memory
from cargobike.store.files.storage import Storage

STATE: Final = b"cargobike.statistics"
MOST_ROWS: Final = 1 << 20
"""Most rows in one file: more rows would make a change of one of them costly."""

_NAME: Final = re.compile(r"part-([0-9a-f]{12})-[0-9a-f]{16}\.parquet")
_ROW_GROUP: Final = 1 << 17
_SMALL_BYTES: Final = 1 << 20
"""A file of so few bytes is read whole, with one request, not in parts: a storage may be far away."""
_MOST_HASHES: Final = 1 << 24


def write_files(storage: Storage, folder: str, rows: pa.Table, definition: Definition, *, changed: bool) -> list[Add]:
    """Write rows into new files, which belong to the group once a commit names them.

    Args:
        storage: Where.
        folder: The folder of the group.
        rows: With exactly the columns of the group.
        definition: The group.
        changed: Whether the rows are new, not only moved from other files.
    """
    return [
        _write_file(storage, folder, rows.slice(start, MOST_ROWS), definition, changed=changed)
        for start in range(0, rows.num_rows, MOST_ROWS)
    ]


def _write_file(storage: Storage, folder: str, rows: pa.Table, definition: Definition, *, changed: bool) -> Add:
    sink = pa.BufferOutputStream()
    texts = [field.name for field in rows.schema if not pa.types.is_primitive(field.type)]
    with (
        ThreadPoolExecutor(1, "statistics") as beside,
        pq.ParquetWriter(sink, rows.schema, use_dictionary=texts or False, store_schema=False) as writer,
    ):
        state = beside.submit(make_state, rows.drop_columns([WRITTEN_AT]), without=definition.key)
        writer.write_table(rows, row_group_size=_ROW_GROUP)
        writer.add_key_value_metadata({STATE: msgspec.msgpack.encode(state.result()).hex().encode()})
    data = sink.getvalue()
    path = new_name()
    storage.write(f"{folder}/{path}", data.to_pybytes())
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    if definition.event_time and rows.num_rows:
        times = pc.min_max(rows.column(definition.event_time).cast(pa.int64())).as_py()
        # Whole milliseconds, as other programs write them, rounded outwards.
        low[definition.event_time] = _milliseconds(times["min"] // 1000)
        high[definition.event_time] = _milliseconds(-(-times["max"] // 1000))
    stats = FileStatistics(num_records=rows.num_rows, min_values=low, max_values=high)
    return Add(
        path=path,
        size=data.size,
        modification_time=now_ms(),
        data_change=changed,
        stats=msgspec.json.encode(stats).decode(),
    )


def new_name() -> str:
    """Return a name for a new file, which says when it was made."""
    return f"part-{now_ms():012x}-{token_hex(8)}.parquet"


def time_of_name(name: str) -> float | None:
    """Return when a file with such a name was made, in seconds since 1970; `None` if it is not one of ours."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1], 16) / 1000


def read_rows(
    storage: Storage, folder: str, file: Add, definition: Definition, columns: list[str] | None = None
) -> pa.Table:
    """Return rows of a file; columns that the group got later are null.

    Raises:
        StoreError: If the file is gone or damaged.
    """
    schema = schema_of(definition)
    names = schema.names if columns is None else columns
    with _opened(storage, folder, file) as opened:
        there = [name for name in names if name in opened.schema_arrow.names]
        table = opened.read(columns=there)
    arrays = [
        table.column(name).cast(schema.field(name).type)
        if name in there
        else pa.nulls(table.num_rows, schema.field(name).type)
        for name in names
    ]
    return pa.table(arrays, schema=pa.schema([schema.field(name) for name in names]))


def read_state(storage: Storage, folder: str, file: Add) -> TableState | None:
    """Return the state of the statistics of a file; `None` if another program wrote it."""
    with _opened(storage, folder, file) as opened:
        packed = (opened.metadata.metadata or {}).get(STATE)
    if packed is None:
        return None
    try:
        return msgspec.msgpack.decode(bytes.fromhex(packed.decode()), type=TableState)
    except (ValueError, msgspec.DecodeError) as error:
        raise StoreError(f"The statistics in {storage}/{folder}/{file.path} cannot be read: {error}.") from error


def _opened(storage: Storage, folder: str, file: Add) -> pq.ParquetFile:
    try:
        if 0 < file.size <= _SMALL_BYTES:
            data = storage.read(f"{folder}/{file.path}")
            if data is None:
                raise FileNotFoundError("there is no such file")
            return pq.ParquetFile(in_memory(data))
        filesystem, root = storage.arrow()
        place = "/".join(part for part in (root, folder, file.path) if part)
        return pq.ParquetFile(filesystem.open_input_file(place))
    except (OSError, pa.ArrowException) as error:
        words = " ".join(str(error).split())[:300]
        raise StoreError(f"{storage}/{folder}/{file.path} cannot be read: {words}") from error


def _milliseconds(count: int) -> str:
    return str(np.datetime64(count, "ms")) + "Z"


@dataclass(frozen=True, slots=True)
class FileKeys:
    """The keys of a file: their hashes in order, and the row of each."""

    hashes: Hashes
    rows: npt.NDArray[np.int32]

    @classmethod
    def of(cls, hashes: Hashes) -> FileKeys:
        """Make it from the hash of each row."""
        rows = np.argsort(hashes, kind="stable")
        return cls(hashes[rows], rows.astype(np.int32))

    def by_row(self) -> Hashes:
        """Return the hash of each row, as `of` takes them."""
        hashes = np.empty_like(self.hashes)
        hashes[self.rows] = self.hashes
        return hashes

    def only(self, stays: npt.NDArray[np.bool_]) -> FileKeys:
        """Return the keys of a file with the rows of this one that stay."""
        kept = stays[self.rows]
        moved = (np.cumsum(stays) - 1).astype(np.int32)
        return FileKeys(self.hashes[kept], moved[self.rows[kept]])


class KeysOfFiles:
    """Which keys are in which file; files never change, so what was read once stays true.

    Keeps the hashes of the files that were used last, up to a fifth of a gigabyte.
    """

    def __init__(self) -> None:
        self._keys: OrderedDict[str, FileKeys] = OrderedDict()
        self._size = 0

    def get(self, storage: Storage, folder: str, file: Add, definition: Definition) -> FileKeys:
        """Return the keys and event times in a file."""
        path = file.path
        keys = self._keys.get(path)
        if keys is None:
            names = identity_of(definition)
            rows = read_rows(storage, folder, file, definition, names)
            keys = FileKeys.of(hash_rows([rows.column(name) for name in names]))
            self.put(path, keys)
        else:
            self._keys.move_to_end(path)
        return keys

    def put(self, path: str, keys: FileKeys) -> None:
        """Remember the keys of a file."""
        if path not in self._keys:
            self._keys[path] = keys
            self._size += len(keys.hashes)
        while self._size > _MOST_HASHES and len(self._keys) > 1:
            _, dropped = self._keys.popitem(last=False)
            self._size -= len(dropped.hashes)
