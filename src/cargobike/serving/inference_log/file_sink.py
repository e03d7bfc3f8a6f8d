"""Keep requests in Parquet files of the project, on whatever storage it lies."""

from __future__ import annotations

import functools
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cargobike.core.errors import CargobikeError
from cargobike.serving.inference_log.columns import Columns
from cargobike.serving.inference_log.messages import Requests
from cargobike.serving.inference_log.parquet import encode
from cargobike.serving.inference_log.places import day_of, file_name, new_writer
from cargobike.serving.inference_log.sink import Counts, Entry
from cargobike.serving.inference_log.unpacking import entries_of, figures_of
from cargobike.serving.inference_log.upkeep import tidy
from cargobike.store.files.storage import Storage

MOST_BYTES: Final = 64 << 20
"""The most memory for what is converted, and not kept yet."""
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_TEND_EVERY_S: Final = 300.0
_DAY_S: Final = 86_400

_log = logging.getLogger(__name__)


class _Sealed(NamedTuple):
    """A file that is to be written; its name stays, so that a write that is tried again replaces the one before."""

    path: str
    data: bytes
    requests: int


class FileSink:
    """Writes one file for each version and day at every flush; a write that fails is tried again, ever less often."""

    def __init__(
        self, storage: Storage, folder: str, columns_of: Callable[[int], Columns], counts: Counts, keep_days: float = 0
    ) -> None:
        self._storage = storage
        self._folder = folder
        self._columns_of = columns_of
        self._counts = counts
        self._keep_days = keep_days
        self._open: dict[tuple[int, int], list[pa.RecordBatch]] = {}
        self._requests: dict[tuple[int, int], int] = {}
        self._sealed: deque[_Sealed] = deque()
        self._writer, self._files = new_writer(), 0
        self._bytes = 0
        self._told_of = 0
        self._is_failing = False
        self._pause_s = 0.0
        self._try_at = 0.0
        self._tend_at = time.monotonic() + _TEND_EVERY_S

    def put(self, entries: Sequence[Entry]) -> None:
        """Convert requests, so many at a time that memory stays bounded."""
        groups: dict[tuple[int, int], list[Entry]] = {}
        for entry in entries:
            groups.setdefault((entry[3], int(entry[1] // _DAY_S)), []).append(entry)
        for key, group in groups.items():
            columns = self._columns_of(key[0])
            for some in _pieces(group, columns.rows_at_once):
                self._keep(key, len(some), functools.partial(columns.batch, some))

    def put_packed(self, requests: Requests) -> None:
        """Convert requests all at once, unless a day ends between them."""
        days = np.unique(figures_of(requests).ats // _DAY_S)
        if len(days) > 1:
            self.put(entries_of(requests))
            return
        columns = self._columns_of(requests.version)
        self._keep((requests.version, int(days[0])), requests.count, functools.partial(columns.batch_of, requests))

    def _keep(self, key: tuple[int, int], count: int, convert: Callable[[], pa.RecordBatch]) -> None:
        if self._bytes >= MOST_BYTES:
            self._counts.lost += count
            return
        try:
            batch = convert()
        except Exception:  # noqa: BLE001 - serving goes on without a log
            self._counts.lost += count
            _log.exception("%d requests cannot be logged.", count)
            return
        self._open.setdefault(key, []).append(batch)
        self._requests[key] = self._requests.get(key, 0) + count
        self._bytes += batch.nbytes

    def flush(self) -> bool:
        """Write what there is, unless a write has just failed."""
        self._seal()
        while self._sealed and time.monotonic() >= self._try_at:
            file = self._sealed[0]
            try:
                self._storage.write(file.path, file.data)
            except (CargobikeError, OSError) as error:
                self._counts.failures += 1
                if not self._is_failing:
                    _log.warning("The inference log cannot be written, and is tried again: %s", error)
                self._is_failing = True
                self._pause_s = min(_LONGEST_PAUSE_S, max(_FIRST_PAUSE_S, 2 * self._pause_s))
                self._try_at = time.monotonic() + self._pause_s
                break
            self._sealed.popleft()
            self._bytes -= len(file.data)
            self._counts.written += file.requests
            if self._is_failing:
                self._is_failing = False
                self._pause_s = self._try_at = 0.0
                _log.warning("The inference log is written again; %d requests were dropped.", self._counts.dropped)
        return not self._sealed

    def _seal(self) -> None:
        for key, batches in self._open.items():
            rows = pa.Table.from_batches(batches).combine_chunks()  # many small pieces cost more to encode
            dropped = self._counts.dropped
            data = encode(rows, dropped - self._told_of)
            self._told_of = dropped
            span = pc.min_max(rows.column("at").cast(pa.int64())).as_py()
            self._files += 1
            name = file_name(span["min"], span["max"], key[0], self._writer, self._files)
            path = f"{self._folder}/{day_of(span['min'])}/{name}"
            self._sealed.append(_Sealed(path, data, self._requests.pop(key)))
            self._bytes += len(data) - sum(batch.nbytes for batch in batches)
        self._open = {}

    def tend(self) -> None:
        """Merge small files, and delete what is older than it is to be kept."""
        if time.monotonic() < self._tend_at:
            return
        self._tend_at = time.monotonic() + _TEND_EVERY_S
        try:
            tidy(self._storage, self._folder, keep_days=self._keep_days)
        except (CargobikeError, OSError) as error:
            self._counts.failures += 1
            _log.warning("The files of the inference log cannot be merged, which is tried again: %s", error)

    def close(self) -> None:
        """Count what could not be written."""
        self._counts.lost += sum(file.requests for file in self._sealed) + sum(self._requests.values())
        self._sealed.clear()
        self._open, self._requests, self._bytes = {}, {}, 0


def _pieces(entries: Sequence[Entry], most: int) -> Iterator[Sequence[Entry]]:
    start = rows = 0
    for place, entry in enumerate(entries):
        rows += len(entry[5] or ()) or 1
        if rows >= most:
            yield entries[start : place + 1]
            start, rows = place + 1, 0
    if start < len(entries):
        yield entries[start:]
