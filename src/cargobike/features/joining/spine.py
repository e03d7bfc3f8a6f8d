"""The spine of a join: the rows that values are looked up for, every one of which is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError

TIME: Final = pa.timestamp("us", tz="UTC")
"""How times are compared: UTC, microseconds."""


@dataclass(frozen=True, slots=True)
class Spine:
    """Rows with keys and, unless nothing has a time, a time.

    Attributes:
        table: The rows, as they are to come back.
        times: The time of each row; `None` if there is none.
    """

    table: pa.Table
    times: pa.ChunkedArray | None = None

    def __len__(self) -> int:
        return int(self.table.num_rows)


def spine_of(table: pa.Table, time: str) -> Spine:
    """Return a table as a spine, with the times of one of its columns; no column if `time` is empty.

    Raises:
        InvalidInputError: If that column holds no times.
    """
    return Spine(table, as_times(table[time], time) if time else None)


def as_times(values: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return times as they are compared: without a time zone they are UTC, finer than a microsecond is cut off.

    Raises:
        InvalidInputError: If the column holds something else.
    """
    kind = values.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        # Arrow cuts towards 1970, which would move a label before it into the future.
        ticks = pc.cast(values, pa.int64())
        cut = [pa.array(np.floor_divide(_plain(chunk), 1000), mask=_nulls(chunk)) for chunk in ticks.chunks]
        return pa.chunked_array(cut, pa.int64()).cast(TIME)
    try:
        if pa.types.is_timestamp(kind):
            unzoned = pc.cast(values, pa.timestamp(kind.unit))
            return pc.cast(pc.cast(unzoned, pa.timestamp("us")), TIME)
        if pa.types.is_date(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return pc.cast(pc.cast(values, pa.timestamp("us")), TIME)
        if pa.types.is_null(kind):
            return pc.cast(values, TIME)
    except pa.ArrowInvalid as error:
        raise InvalidInputError(
            f"The column {name!r} is to hold times, and one of its values is none: {error}. Give timestamps, dates, or "
            "text such as '2026-05-01 12:00:00', in UTC."
        ) from error
    raise InvalidInputError(
        f"The column {name!r} is to hold times, and holds {kind}. Give timestamps, dates, or text such as "
        "'2026-05-01 12:00:00', in UTC."
    )


def as_keys(values: pa.ChunkedArray, name: str, kind: pa.DataType, owner: str) -> pa.ChunkedArray:
    """Return the keys of a spine in the type that a group has for them.

    Raises:
        InvalidInputError: If a value does not fit.
    """
    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    if values.type == kind:
        return values
    try:
        if _is_text(values.type) != _is_text(kind) and not pa.types.is_null(values.type):
            raise pa.ArrowInvalid(f"{values.type} is no {kind}")
        return pc.cast(values, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError(
            f"The key {name!r} of the rows holds {values.type}, and the group {owner} has {kind} for it: {error}. Give "
            f"{kind}."
        ) from error


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _plain(chunk: pa.Array) -> np.ndarray:
    return np.asarray(pc.fill_null(chunk, 0).to_numpy(zero_copy_only=False))


def _nulls(chunk: pa.Array) -> np.ndarray:
    return np.asarray(chunk.is_null().to_numpy(zero_copy_only=False))
