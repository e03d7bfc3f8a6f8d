"""Follow an inference log in files: every row once, also where files are merged, written late, or overlap in time.

A position is the set of pieces that were read (`pieces.py`). Pieces keep their names when files are merged, so neither
a merge nor a file that comes late, nor the order in which files are found, makes a row come twice or not at all. The
set is as small as the number of processes that have written what is kept: their pieces are read in order, but for some.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from cargobike.core.errors import InvalidInputError, StoreError
from cargobike.core.registering.following import Stretch
from cargobike.serving.inference_log.columns import HEAD
from cargobike.serving.inference_log.pieces import Piece, Pieces, cut, pieces_in
from cargobike.serving.inference_log.places import Day, LogFile, list_days
from cargobike.serving.inference_log.upkeep import Merges, read_merges, visible
from cargobike.store.files.in_memory import in_memory
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import open_storage

_WHOLE_EVERY_S: Final = 60.0
"""How often all days are looked at, for what comes late; otherwise only those around now are."""
_ALWAYS: Final = datetime(9999, 12, 31, tzinfo=UTC)
_TRIES: Final = 3
_BYTES_OF_A_ROW: Final = 64
"""About what a row takes in a file, at least: to guess how many rows a file has without opening it."""


class _Position(msgspec.Struct, frozen=True):
    """What is kept between two reads."""

    files: Pieces


class _Unread(NamedTuple):
    """A file with something in it that was not read."""

    file: LogFile
    held: Pieces


class FilePiece(msgspec.Struct, frozen=True, tag="files"):
    """Pieces of the log, of one day, that any process can read, wherever they are merged to meanwhile."""

    url: str
    folder: str
    day: str
    pieces: Pieces


class FileFollower:
    """Follows the files of one log.

    Args:
        storage: Where they lie.
        folder: The folder of the log.
        clock: Tells how time passes, in seconds.
    """

    def __init__(self, storage: Storage, folder: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._storage = storage
        self._folder = folder
        self._clock = clock
        self._whole_at = -1.0
        self._listed: list[Day] | None = None
        """What the last stretch left unread; nothing is listed anew before that was read."""
        self._merges: dict[date, tuple[int, Merges]] = {}
        self._open: tuple[str, pa.Table, Sequence[Piece]] = ("", None, ())

    def read(self, position: str, most: int) -> Stretch:
        """Return the next rows; those of one stretch have types that fit each other."""
        for left in reversed(range(_TRIES)):
            seen = _read_position(position)
            try:
                return self._read(seen, most)
            except StoreError:
                self._listed = None
                if not left:  # else files were merged or deleted since they were listed
                    raise
        raise AssertionError("unreachable")

    def ahead(self, position: str, most: int) -> str:
        """Return the position behind the next rows, without reading them: whole files, as many as may hold so many."""
        seen = _read_position(position)
        rows = 0
        for unread in self._unread(self._days(is_whole=True), seen):
            if rows >= most:
                break
            rows += max(1, unread.file.size // _BYTES_OF_A_ROW)
            seen.add_all(unread.held)
        return _position(seen)

    def pieces(self, start: str, end: str) -> list[bytes]:
        """Return what lies between two positions, a piece for each file, in the order in which `read` has them."""
        seen, wanted = _read_position(start), _read_position(end)
        found = []
        for file, held in self._unread(self._days(is_whole=True), seen):
            chosen = held.both(wanted).without(seen)
            if chosen.runs:
                found.append(msgspec.json.encode(FilePiece(self._storage.url, self._folder, str(file.day), chosen)))
        return found

    def end(self) -> str:
        """Return the position behind everything that is there now."""
        seen = Pieces({})
        for unread in self._unread(self._days(is_whole=True), seen):
            seen.add_all(unread.held)
        return _position(seen)

    def close(self) -> None:
        """Forget the file that was read last."""
        self._open, self._listed = ("", None, ()), None

    def fetch(self, day: date, wanted: Pieces) -> pa.Table:
        """Return the rows of pieces of one day, all of them.

        Raises:
            StoreError: If one was deleted, or files cannot be read now.
        """
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
        for left in reversed(range(_TRIES)):
            tables, got = list[pa.Table](), Pieces({})
            try:
                for file, held in self._unread(list_days(self._storage, self._folder, midnight, midnight), Pieces({})):
                    if held.both(wanted).runs:
                        for piece, part in cut(*self._opened(file)):
                            if wanted.has(piece.writer, piece.number):
                                tables.append(part)
                                got.add(piece.writer, piece.number, piece.number)
            except StoreError:
                if not left:  # else files were merged since they were listed
                    raise
            else:
                if missing := wanted.without(got).runs:
                    raise StoreError(
                        f"{self._storage}/{self._folder}/{day} has lost rows before they were read: {missing}"
                    )
                return _joined(tables)
        raise AssertionError("unreachable")

    def _read(self, seen: Pieces, most: int) -> Stretch:
        days = self._listed
        if days is None:
            is_whole = not seen.runs or self._clock() >= self._whole_at
            days = list(self._days(is_whole=is_whole))
            if is_whole:
                self._forget_deleted(days, seen)
                self._whole_at = self._clock() + _WHOLE_EVERY_S
        unread = list(self._unread(days, seen))
        self._listed = days
        schema, tables, rows, dropped = pa.schema(HEAD), list[pa.Table](), 0, 0
        for file, _ in unread:
            table, pieces = self._opened(file)
            for piece, part in cut(table, pieces):
                if seen.has(piece.writer, piece.number):
                    continue
                try:
                    together = pa.unify_schemas([schema, part.schema])
                except (pa.ArrowInvalid, pa.ArrowTypeError):
                    if not tables:  # not even the columns that every log has
                        raise StoreError(f"{self._place(file)} is no file of an inference log.") from None
                    together = None
                if together is None or (tables and rows + part.num_rows > most):
                    return Stretch(_joined(tables), _position(seen), more=True, dropped=dropped)
                schema = together
                tables.append(part)
                rows += part.num_rows
                dropped += piece.dropped
                seen.add(piece.writer, piece.number, piece.number)
        self._listed = None
        return Stretch(_joined(tables), _position(seen), more=False, dropped=dropped)

    def _days(self, *, is_whole: bool) -> Iterator[Day]:
        since = None if is_whole else datetime.now(UTC) - timedelta(days=1)
        return list_days(self._storage, self._folder, since, _ALWAYS if is_whole else None)

    def _unread(self, days: Iterator[Day] | Sequence[Day], seen: Pieces) -> Iterator[_Unread]:
        for day in days:
            merges = self._merges_of(day)
            for file in visible(day, merges):
                held = merges.holds.get(file.name, Pieces({file.writer: [(file.number, file.number)]}))
                if not seen.holds(held):
                    yield _Unread(file, held)

    def _merges_of(self, day: Day) -> Merges:
        newest = day.merges[-1] if day.merges else 0
        number, merges = self._merges.get(day.day, (0, Merges()))
        if number != newest:
            merges = read_merges(self._storage, self._folder, day)
            self._merges[day.day] = newest, merges
        return merges

    def _forget_deleted(self, days: Sequence[Day], seen: Pieces) -> None:
        """Leave out writers of which nothing is kept any more, so that a position does not grow for ever."""
        kept = {file.writer for day in days for file in day.files}
        for day in days:
            kept.update(writer for held in self._merges_of(day).holds.values() for writer in held.runs)
        for writer in seen.runs.keys() - kept:
            del seen.runs[writer]
        for gone in self._merges.keys() - {day.day for day in days}:
            del self._merges[gone]

    def _opened(self, file: LogFile) -> tuple[pa.Table, Sequence[Piece]]:
        place = f"{self._folder}/{file.day}/{file.name}"
        if self._open[0] != place:
            data = self._storage.read(place)
            if data is None:
                raise StoreError(f"{self._place(file)} was deleted before it was read.")
            try:
                table = pq.read_table(in_memory(data))
            except (pa.ArrowException, OSError) as error:
                raise StoreError(f"{self._place(file)} is damaged, move it away to go on: {error}") from error
            pieces = pieces_in(file, table, self._place(file))
            self._open = place, table.replace_schema_metadata(), pieces
        return self._open[1], self._open[2]

    def _place(self, file: LogFile) -> str:
        return f"{self._storage}/{self._folder}/{file.day}/{file.name}"


def _joined(tables: list[pa.Table]) -> pa.Table:
    if not tables:
        return pa.schema(HEAD).empty_table()
    return pa.concat_tables(tables, promote_options="default")


def _position(seen: Pieces) -> str:
    return msgspec.json.encode(_Position(seen)).decode()


def _read_position(text: str) -> Pieces:
    if not text:
        return Pieces({})
    try:
        return msgspec.json.decode(text, type=_Position).files
    except msgspec.DecodeError as error:
        raise InvalidInputError(
            f"{text[:60]!r} is no position in an inference log in files ({error}); begin anew with an empty one."
        ) from error


def read_piece(piece: FilePiece) -> pa.Table:
    """Return the rows of one piece.

    Raises:
        StoreError: If they cannot be read now, or were deleted.
    """
    return FileFollower(open_storage(piece.url), piece.folder).fetch(date.fromisoformat(piece.day), piece.pieces)
