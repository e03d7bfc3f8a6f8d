"""Merge the small files of an inference log, and delete the days that are too old.

A merge becomes true by one record, created only if absent: it names all merged files of a day, and which files they
stand for. Of several processes that merge at once, one gets the next number; the others' files are deleted. Files that
were replaced stay for a while, for readers that have listed them already. A process that is killed at any moment leaves
the log as it was before, or as it is after.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cargobike.core.errors import StoreError
from cargobike.serving.inference_log.parquet import dropped_in, encode
from cargobike.serving.inference_log.pieces import PIECES, Piece, Pieces, pieces_in, set_of
from cargobike.serving.inference_log.places import MERGED, MERGES, Day, LogFile, file_name, list_days, new_writer
from cargobike.store.files.in_memory import in_memory
from cargobike.store.files.storage import Storage

GRACE_S: Final = 600.0
"""How long files stay that others stand for."""
_SMALL: Final = 8 << 20
_MOST: Final = 32 << 20
_FAN_IN: Final = 16
_LATE_DAYS: Final = 2


class Merges(msgspec.Struct, frozen=True):
    """All merges of a day.

    Attributes:
        merged: The files that stand for others, by their names in the folder of the day.
        replaced: When each file that may still be there was replaced, in seconds since 1970.
        holds: The pieces in each of the files that stand for others, for readers who have read some of them.
    """

    merged: list[str] = []
    replaced: dict[str, float] = {}
    holds: dict[str, Pieces] = {}


class Tidied(msgspec.Struct, frozen=True):
    """What was done.

    Attributes:
        merged: How many files became part of others.
        written: How many files they became.
        deleted: How many files were deleted: replaced a while ago, left by a process that was killed, or too old.
        days_deleted: How many days were deleted.
    """

    merged: int = 0
    written: int = 0
    deleted: int = 0
    days_deleted: int = 0

    def plus(self, other: Tidied) -> Tidied:
        """Return the sums."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Tidied(*(one + another for one, another in pairs))


def read_merges(storage: Storage, folder: str, day: Day) -> Merges:
    """Return the merges of a day.

    Raises:
        StoreError: If the record cannot be understood, or was superseded since the day was listed.
    """
    if not day.merges:
        return Merges()
    path = _record(folder, day.day, day.merges[-1])
    data = storage.read(path)
    if data is None:
        raise StoreError(f"{storage}/{path} was deleted: a newer one has taken its place.")
    try:
        return msgspec.json.decode(data, type=Merges)
    except msgspec.DecodeError as error:
        raise StoreError(f"{storage}/{path} is damaged: {error}") from error


def visible(day: Day, merges: Merges) -> list[LogFile]:
    """Return the files that count: neither replaced by others, nor left by a merge that did not happen."""
    merged = set(merges.merged)
    return [
        file
        for file in day.files
        if file.name not in merges.replaced and (not file.name.startswith(MERGED) or file.name in merged)
    ]


def tidy(storage: Storage, folder: str, *, keep_days: float = 0, whole: bool = False) -> Tidied:
    """Merge small files, and delete what is not needed any more.

    Args:
        storage: The project's.
        folder: The folder of the log.
        keep_days: Days that ended longer ago than this are deleted; 0 keeps all.
        whole: Whether to merge all that is small, rather than what is many; days that are over are always merged whole.
    """
    now = datetime.now(UTC)
    done = Tidied()
    since = None if keep_days or whole else now - timedelta(days=1)
    for day in list_days(storage, folder, since, None):
        ended = datetime(day.day.year, day.day.month, day.day.day, tzinfo=UTC) + timedelta(days=1)
        if keep_days and now - ended > timedelta(days=keep_days):
            storage.delete(f"{folder}/{day.day}")
            step = Tidied(deleted=len(day.files), days_deleted=1)
        else:
            step = _tidy_day(storage, folder, day, whole=whole or day.day < now.date())
        done = done.plus(step)
    return done


def _tidy_day(storage: Storage, folder: str, day: Day, *, whole: bool) -> Tidied:
    merges = read_merges(storage, folder, day)
    place = f"{folder}/{day.day}"
    merged = written = 0
    plans = _plan(visible(day, merges), whole=whole)
    made = [(*_merge(storage, place, files), files) for files in plans]
    there = {file.name for file in day.files}
    old = [name for name, at in merges.replaced.items() if time.time() - at > GRACE_S]
    if made:
        gone = {file.name for _, _, files in made for file in files}
        record = Merges(
            [*(name for name in merges.merged if name not in gone), *(name for name, _, _ in made)],
            {
                **{name: at for name, at in merges.replaced.items() if name in there},
                **dict.fromkeys(sorted(gone), time.time()),
            },
            {
                **{name: held for name, held in merges.holds.items() if name not in gone},
                **{name: held for name, held, _ in made},
            },
        )
        number = (day.merges[-1] if day.merges else 0) + 1
        if not storage.create(_record(folder, day.day, number), msgspec.json.encode(record)):
            storage.delete(*(f"{place}/{name}" for name, _, _ in made))
            return Tidied()
        merged, written = len(gone), len(made)
    leftovers = _leftovers(day, merges)
    garbage = [name for name in old if name in there] + leftovers
    # The newest two records stay: a reader may have listed the one before.
    garbage += [f"{MERGES}/{number}.json" for number in day.merges[:-2]]
    if garbage:
        storage.delete(*(f"{place}/{name}" for name in garbage))
    return Tidied(merged, written, len([name for name in garbage if not name.startswith(MERGES)]))


def _leftovers(day: Day, merges: Merges) -> list[str]:
    """Return merged files that no record names: of a process that was killed, if the day is long over."""
    if (datetime.now(UTC).date() - day.day).days < _LATE_DAYS:
        return []
    named = {*merges.merged, *merges.replaced}
    return [file.name for file in day.files if file.name.startswith(MERGED) and file.name not in named]


def _plan(files: Iterable[LogFile], *, whole: bool) -> list[list[LogFile]]:
    """Choose files to merge: of one version, and of about one size, so that no row is rewritten often."""
    groups: dict[tuple[int, int], list[LogFile]] = {}
    for file in files:
        if file.size < _SMALL:
            size = 0 if whole else file.size.bit_length() // 4
            groups.setdefault((file.version, size), []).append(file)
    plans: list[list[LogFile]] = []
    for group in groups.values():
        if len(group) < (2 if whole else _FAN_IN):
            continue
        plan: list[LogFile] = []
        for file in group:
            if plan and sum(one.size for one in plan) + file.size > _MOST:
                plans.append(plan)
                plan = []
            plan.append(file)
        plans.append(plan)
    return [plan for plan in plans if len(plan) > 1]


def _merge(storage: Storage, place: str, files: Sequence[LogFile]) -> tuple[str, Pieces]:
    """Write a file with the rows of others, a piece behind the other; return its name and which pieces it holds."""
    tables: list[pa.Table] = []
    pieces: list[Piece] = []
    for file in files:
        data = storage.read(f"{place}/{file.name}")
        if data is None:
            raise StoreError(f"{storage}/{place}/{file.name} was deleted while it was merged with others.")
        table = pq.read_table(in_memory(data))
        pieces += pieces_in(file, table, f"{storage}/{place}/{file.name}")
        tables.append(table)
    rows = pa.concat_tables([table.replace_schema_metadata() for table in tables], promote_options="default")
    rows = rows.replace_schema_metadata({PIECES: msgspec.json.encode(pieces)}).combine_chunks()
    span = pc.min_max(rows.column("at").cast(pa.int64())).as_py()
    name = MERGED + file_name(span["min"], span["max"], files[0].version, new_writer())
    storage.write(f"{place}/{name}", encode(rows, sum(dropped_in(table.schema) for table in tables)))
    return name, set_of(pieces)


def _record(folder: str, day: date, number: int) -> str:
    return f"{folder}/{day}/{MERGES}/{number}.json"
