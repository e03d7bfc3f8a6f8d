"""Find the rows of a group that have the same key and event time as rows that were given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import InvalidInputError
from cargobike.features.definition import Definition
from cargobike.features.delta.actions import Add
from cargobike.features.groups.columns import identity_of
from cargobike.features.groups.files import FileKeys
from cargobike.features.hashing import Hashes, hash_rows

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

Duplicates = Literal["refuse", "first", "last"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rows to look for: those that were given, ordered by the hash of what makes each the only one of its kind.

    Attributes:
        rows: The rows.
        names: The columns that are compared: those of the key, with the event time or without it.
        salt: The salt of the hashes, with which no two rows have the same.
        hashes: Their hashes, in order.
        order: The place in `rows` of each hash.
        times: The first and the last event time, in microseconds since 1970; `None` if times do not matter.
    """

    rows: pa.Table
    names: list[str]
    salt: int
    hashes: Hashes
    order: Places
    times: tuple[int, int] | None

    def may_be_in(self, file: Add, event_time: str) -> bool:
        """Tell from the log alone whether a file could hold one of the rows."""
        if self.times is None:
            return True
        statistics = file.statistics
        low, high = statistics.min_values.get(event_time), statistics.max_values.get(event_time)
        if not isinstance(low, str) or not isinstance(high, str):
            return True
        try:
            first, last = (np.datetime64(text.rstrip("Z"), "us").astype(np.int64) for text in (low, high))
        except ValueError:
            return True
        return bool(first <= self.times[1] and last + 1000 >= self.times[0])  # logs may round to milliseconds

    def any_in(self, keys: FileKeys) -> bool:
        """Tell whether a file may hold any of ours."""
        few, many = self.hashes, keys.hashes
        if len(few) > len(many):
            few, many = many, few
        if not len(few):
            return False
        places = np.minimum(np.searchsorted(many, few), len(many) - 1)
        return bool(np.any(many[places] == few))

    def partners(self, rows: pa.Table, keys: FileKeys | None = None) -> tuple[Mask, Places]:
        """Return which rows of a file are also among ours, and the place of the partner of each of those.

        Args:
            rows: The rows of the file.
            keys: Their keys, if these are known already.
        """
        if keys is None or self.salt:
            keys = FileKeys.of(hash_rows([rows.column(name) for name in self.names], self.salt))
        first, last = (np.searchsorted(keys.hashes, self.hashes, side) for side in ("left", "right"))
        counts = last - first
        there = np.repeat(self.order, counts)
        starts = np.repeat(first - (np.cumsum(counts) - counts), counts)
        here = keys.rows[starts + np.arange(len(there))]
        # Hashes of two keys may be equal by chance; no row may be lost to that.
        equal = np.ones(len(here), dtype=bool)
        for name in self.names:
            equal &= same_values(rows.column(name).take(pa.array(here)), self.rows.column(name).take(pa.array(there)))
        here, there = here[equal], there[equal]
        found = np.zeros(rows.num_rows, dtype=bool)
        found[here] = True
        return found, there[np.argsort(here, kind="stable")]


def look_for(rows: pa.Table, names: list[str], event_time: str = "") -> Wanted:
    """Prepare to look for rows, no two of which are equal in the columns that are compared."""
    salt = 0
    while True:
        hashes = hash_rows([rows.column(name) for name in names], salt)
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        if not np.any(ordered[1:] == ordered[:-1]):
            break
        salt += 1  # two keys have the same hash: rare beyond words, and cured by another salt
    times = None
    if event_time and event_time in names and rows.num_rows:
        extremes = pc.min_max(rows.column(event_time).cast(pa.int64())).as_py()
        times = extremes["min"], extremes["max"]
    return Wanted(rows, names, salt, ordered, order, times)


def same_values(first: Any, second: Any) -> Mask:
    """Compare two columns value by value: null equals null, and NaN equals NaN."""
    kind = first.type
    if pa.types.is_nested(kind):
        return np.array([one == other for one, other in zip(first.to_pylist(), second.to_pylist(), strict=True)], bool)
    equal = pc.fill_null(pc.equal(first, second), False)
    if first.null_count or second.null_count:
        equal = pc.or_(equal, pc.and_(pc.is_null(first), pc.is_null(second)))
    if pa.types.is_floating(kind):
        both = pc.and_(pc.is_nan(first), pc.is_nan(second))
        equal = pc.or_(equal, pc.fill_null(both, False))
    return np.asarray(
        equal.to_numpy(zero_copy_only=False) if isinstance(equal, pa.Array) else equal.to_numpy(), dtype=bool
    )


def without_duplicates(rows: pa.Table, definition: Definition, duplicates: Duplicates) -> pa.Table:
    """Return rows of which no two have the same key and event time; rows that are equal in all columns count once.

    Raises:
        InvalidInputError: If rows with the same key and event time differ, and it was not said which counts.
    """
    dropped = repeated_rows(rows, definition, duplicates)
    if not dropped:
        return rows
    keep = np.ones(rows.num_rows, dtype=bool)
    keep[dropped] = False
    return rows.filter(pa.array(keep))


def repeated_rows(rows: pa.Table, definition: Definition, duplicates: Duplicates) -> list[int]:
    """Return the places of the rows to leave out, so that no two have the same key and event time.

    Raises:
        InvalidInputError: If rows with the same key and event time differ, and it was not said which counts.
    """
    names = identity_of(definition)
    hashes = hash_rows([rows.column(name) for name in names])
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    if not np.any(ordered[1:] == ordered[:-1]):
        return []
    repeated = np.zeros(len(order), dtype=bool)
    repeated[1:] = ordered[1:] == ordered[:-1]
    repeated[:-1] |= repeated[1:]
    suspects = np.sort(order[repeated])
    kept: dict[tuple[Any, ...], int] = {}
    dropped: list[int] = []
    clashes: dict[tuple[Any, ...], int] = {}
    keys = list(zip(*(rows.column(name).take(pa.array(suspects)).to_pylist() for name in names), strict=True))
    others = [name for name in rows.column_names if name not in names]
    for place, key in zip(suspects.tolist(), keys, strict=True):
        earlier = kept.setdefault(key, place)
        if earlier == place:
            continue
        clashes[key] = clashes.get(key, 0) + (not _alike(rows, earlier, place, others))
        if duplicates == "last":
            kept[key] = place
            dropped.append(earlier)
        else:
            dropped.append(place)
    differing = [key for key, count in clashes.items() if count]
    if differing and duplicates == "refuse":
        shown = [", ".join(f"{name}={value}" for name, value in zip(names, key, strict=True)) for key in differing[:5]]
        more = [f"… and {len(differing) - 5} more"] if len(differing) > 5 else []
        raise InvalidInputError(
            f"Rows with the same {' and '.join(names)} differ, and one of each can be kept; nothing was written. Say "
            'which counts, insert(…, duplicates="last") or duplicates="first", or drop the others before.',
            [*shown, *more],
        )
    return dropped


def _alike(rows: pa.Table, first: int, second: int, names: list[str]) -> bool:
    pair = [rows.slice(place, 1).select(names) for place in (first, second)]
    return all(bool(same_values(pair[0].column(name), pair[1].column(name))[0]) for name in names)
