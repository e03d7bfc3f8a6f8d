"""Where the results of pieces are kept until all of them are there: a call that is made again goes on from them."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from cargobike.core.errors import StoreError
from cargobike.data import casting
from cargobike.data.inferring.program import part_of

_PREFIX: Final = ".predicting-"
_LOCK: Final = "lock"
_FORGOTTEN_S: Final = 7 * 24 * 3600.0
_TRACKERS = re.compile(rb"[0-9a-f]{32}")


def digest_of(*parts: bytes | str) -> str:
    """Return a name for what is computed; of pickled classes, which cloudpickle numbers at random, without numbers."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = _TRACKERS.sub(b"", part) if isinstance(part, bytes) else part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


class Results:
    """A folder that holds what is finished of one call of `inference`, and nothing once the call has returned.

    Args:
        root: Where such folders are.
        target: What the call is about: its source and where the result goes. Folders of other calls about the same,
            whose function has been changed since, are removed.
        key: What is computed, down to the function's code.
    """

    def __init__(self, root: Path, target: str, key: str) -> None:
        self._root = root
        self._target = target
        self.folder = root / f"{_PREFIX}{target}-{key}"
        self._handle = -1

    def __enter__(self) -> Results:
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise StoreError(
                f"Another process predicts the same just now, in {self.folder}. Wait for it, or give another output_to."
            ) from None
        self._handle = handle
        for leftover in self.folder.glob(".part-*"):  # of a worker that was killed while it wrote
            leftover.unlink(missing_ok=True)
        self._sweep()
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the folder; it is removed if nothing in it is worth keeping."""
        if self._handle >= 0:
            if not any(self.folder.glob("part-*.parquet")):
                shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._handle)
            self._handle = -1

    def finished(self, numbers: Iterable[int]) -> dict[int, int]:
        """Return which pieces are finished, and how many rows each has; one that is damaged is not."""
        found = {}
        for number in numbers:
            with contextlib.suppress(OSError, pa.ArrowException):
                found[number] = pq.read_metadata(part_of(self.folder, number)).num_rows
        return found

    def schema(self, numbers: Iterable[int], common: Iterable[str]) -> pa.Schema:
        """Return the columns of all pieces: those of the source as they are, predicted ones so that all fit."""
        schemas = [pq.read_schema(part_of(self.folder, number)) for number in numbers]
        kept = set(common)
        fields = [field for field in schemas[0] if field.name in kept]
        predicted = [pa.schema([field for field in schema if field.name not in kept]) for schema in schemas]
        return pa.schema([*fields, *casting.common_schema(predicted)])

    def batches(self, numbers: Iterable[int], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield all rows in the order of the pieces."""
        for number in numbers:
            table = pq.read_table(part_of(self.folder, number))
            missing = [field for field in schema if field.name not in table.schema.names]
            for field in missing:
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
            yield from table.select(schema.names).cast(schema).to_batches()

    def clear(self) -> None:
        """Remove everything, because the result is elsewhere now."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what earlier calls have left that will not be made again."""
        for folder in self._root.glob(f"{_PREFIX}*"):
            is_same = folder.name.startswith(f"{_PREFIX}{self._target}-")
            with contextlib.suppress(OSError):
                if folder == self.folder or not (is_same or time.time() - folder.stat().st_mtime > _FORGOTTEN_S):
                    continue
                handle = os.open(folder / _LOCK, os.O_RDWR)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(handle)
