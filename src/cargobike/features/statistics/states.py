"""The state of a table: what its statistics are read from, made from rows once and merged with others later."""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.features.hashing import hash_values
from cargobike.features.statistics import distinct, quantiles, together

Floats = npt.NDArray[np.float64]

MOST_VALUES: Final = 64
_LONGEST: Final = 200


class ColumnState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of one column.

    Attributes:
        kind: `number`, `time`, `text`, `flag` or `other`.
        count: How many values there are, nulls not counted.
        nulls: How many are null.
        odd: How many numbers are NaN or infinite; they count as values and in nothing else.
        finite: How many numbers are in all that follows.
        low: The least number or time.
        high: The greatest.
        mean: Their mean.
        squares: The sum of their squared deviations from it.
        summary: Their quantiles, as doubles.
        different: The state of how many differ.
        common: The most frequent texts or flags, with how often they occur.
        is_cut: Whether there are more texts than these.
    """

    kind: str
    count: int = 0
    nulls: int = 0
    odd: int = 0
    finite: int = 0
    low: float | int | None = None
    high: float | int | None = None
    mean: float = 0.0
    squares: float = 0.0
    summary: bytes = b""
    different: tuple[bytes, bytes] = (b"", b"")
    common: dict[str, int] = {}
    is_cut: bool = False


class TableState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the rows of a table."""

    rows: int = 0
    columns: dict[str, ColumnState] = {}
    pairs: together.Pairs = together.Pairs()


def make_state(table: pa.Table, *, without: tuple[str, ...] = ()) -> TableState:
    """Return the state of rows.

    Args:
        table: The rows.
        without: Columns that are left out of correlations, such as keys.
    """
    columns, numbers = {}, {}
    for name in table.column_names:
        column = table.column(name)
        array = column.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
        if kind_of(array.type) in {"number", "time"}:
            columns[name], values = _number_state(array)
            if columns[name].kind == "number" and name not in without:
                numbers[name] = values
        else:
            columns[name] = _text_state(array)
    return TableState(rows=table.num_rows, columns=columns, pairs=together.compare(numbers))


def merge_states(states: list[TableState]) -> TableState:
    """Return the state of all rows together; a column that a part lacks is null there."""
    if len(states) == 1:
        return states[0]
    names = dict.fromkeys(name for state in states for name in state.columns)
    columns = {}
    for name in names:
        parts = [state.columns[name] for state in states if name in state.columns]
        absent = sum(state.rows for state in states if name not in state.columns)
        columns[name] = _merge_columns(parts, absent)
    pairs = together.merge([state.pairs for state in states if state.rows])
    return TableState(rows=sum(state.rows for state in states), columns=columns, pairs=pairs)


def kind_of(kind: Any) -> str:
    """Return what sort of statistics values of a type have."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "time"
    if pa.types.is_boolean(kind):
        return "flag"
    return "text" if pa.types.is_string(kind) else "other"


def _number_state(array: Any) -> tuple[ColumnState, Floats]:
    """Return the state of numbers or times, and the numbers, with NaN where there is none."""
    kind, count = kind_of(array.type), len(array) - array.null_count
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("us"))
    whole = array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array
    values = whole.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    finite = values[np.isfinite(values)] if array.null_count or not np.isfinite(values).all() else values
    low: Any = None
    high: Any = None
    if len(finite) and pa.types.is_integer(whole.type):
        extremes = pc.min_max(whole).as_py()
        low, high = extremes["min"], extremes["max"]
    elif len(finite):
        low, high = float(finite.min()), float(finite.max())
    with np.errstate(over="ignore"):
        mean = float(finite.mean()) if len(finite) else 0.0
        if not math.isfinite(mean):
            mean = float((finite / len(finite)).sum())
        gaps = finite - mean
        squares = float(np.dot(gaps, gaps))
    state = ColumnState(
        kind=kind,
        count=count,
        nulls=array.null_count,
        odd=count - len(finite),
        finite=len(finite),
        low=low,
        high=high,
        mean=mean,
        squares=squares,
        summary=quantiles.summarize(finite).tobytes(),
        different=distinct.count_distinct(hash_values(array.drop_null() if array.null_count else array)),
    )
    return state, values


def _text_state(array: Any) -> ColumnState:
    kind = kind_of(array.type)
    nulls, values = array.null_count, array.drop_null() if array.null_count else array
    if kind == "other":
        can_be_told_apart = pa.types.is_binary(array.type)
        different = distinct.count_distinct(hash_values(values)) if can_be_told_apart else (b"", b"")
        return ColumnState(kind=kind, count=len(values), nulls=nulls, different=different)
    if kind == "flag":
        yes = int(pc.sum(values).as_py() or 0)
        common = {word: each for word, each in (("false", len(values) - yes), ("true", yes)) if each}
        different = distinct.count_distinct(hash_values(values))
        return ColumnState(kind=kind, count=len(values), nulls=nulls, different=different, common=common)
    coded = values.dictionary_encode()
    counts = np.bincount(coded.indices.to_numpy(zero_copy_only=False), minlength=len(coded.dictionary))
    different = distinct.count_distinct(hash_values(coded.dictionary))
    most = np.argsort(-counts, kind="stable")[: 4 * MOST_VALUES]
    words = dict(zip(coded.dictionary.take(pa.array(most)).to_pylist(), counts[most].tolist(), strict=True))
    is_cut = len(coded.dictionary) > len(most)
    return ColumnState(
        kind=kind, count=len(values), nulls=nulls, different=different, **_most_common(words, is_cut=is_cut)
    )


def _most_common(words: dict[str, int], *, is_cut: bool) -> dict[str, Any]:
    """Return the most frequent words; very long ones, which no figure could show, are left out."""
    short = {word: count for word, count in words.items() if len(word) <= _LONGEST}
    chosen = sorted(short.items(), key=lambda item: (-item[1], item[0]))[:MOST_VALUES]
    return {"common": dict(chosen), "is_cut": is_cut or len(chosen) < len(words)}


def _merge_columns(parts: list[ColumnState], absent: int) -> ColumnState:
    first = parts[0]
    words: dict[str, int] = {}
    for part in parts:
        for word, count in part.common.items():
            words[word] = words.get(word, 0) + count
    common = _most_common(words, is_cut=any(part.is_cut for part in parts))
    finite, mean, squares = 0, 0.0, 0.0
    for part in parts:
        if part.finite:
            finite += part.finite
            gap = part.mean - mean
            mean += gap * (part.finite / finite)
            squares += part.squares + gap * gap * part.finite * ((finite - part.finite) / finite)
    summaries = [(part.finite, np.frombuffer(part.summary)) for part in parts]
    return ColumnState(
        kind=first.kind,
        count=sum(part.count for part in parts),
        nulls=sum(part.nulls for part in parts) + absent,
        odd=sum(part.odd for part in parts),
        finite=finite,
        low=min((part.low for part in parts if part.low is not None), default=None),
        high=max((part.high for part in parts if part.high is not None), default=None),
        mean=mean,
        squares=squares,
        summary=quantiles.merge(summaries)[1].tobytes(),
        different=distinct.merge([part.different for part in parts]),
        **common,
    )
