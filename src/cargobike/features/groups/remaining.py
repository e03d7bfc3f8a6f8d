"""What stays of files when some of their rows are replaced: written again, small pieces together in one file.

Groups that are fed a little at a time have many small files. A later insert that touches all of them would otherwise
leave as many small files as before, each to be opened by every reader, which takes long where a storage is far away.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from cargobike.features.definition import Definition
from cargobike.features.delta.actions import Add
from cargobike.features.delta.log import Log
from cargobike.features.groups.files import MOST_ROWS, FileKeys, KeysOfFiles, write_files

SMALL: Final = 1 << 16
"""Fewer rows than this are put together with others; larger pieces keep to themselves the times that they span."""


class Remaining:
    """Collects the rows that stay, and writes them.

    Args:
        log: The log of the group.
        definition: The group.
        keys: Which keys are in which file; told of the files that are written here.
    """

    def __init__(self, log: Log, definition: Definition, keys: KeysOfFiles) -> None:
        self._log = log
        self._definition = definition
        self._keys = keys
        self._small: list[tuple[pa.Table, FileKeys]] = []
        self._files: list[Add] = []

    def add(self, rows: pa.Table, keys: FileKeys) -> None:
        """Take the rows that stay of one file, and their keys."""
        if rows.num_rows >= SMALL:
            self._write([(rows, keys)])
            return
        if sum(len(each) for each, _ in self._small) + rows.num_rows > MOST_ROWS:
            self._write_small()
        self._small.append((rows, keys))

    def files(self) -> list[Add]:
        """Return the files that hold all of them."""
        self._write_small()
        return self._files

    def _write_small(self) -> None:
        small, self._small = self._small, []
        self._write([(rows, keys) for rows, keys in small if rows.num_rows])

    def _write(self, pieces: list[tuple[pa.Table, FileKeys]]) -> None:
        if not pieces:
            return
        rows = pa.concat_tables([each for each, _ in pieces])
        files = write_files(self._log.storage, self._log.folder, rows, self._definition, changed=True)
        if len(files) == 1:
            self._keys.put(files[0].path, FileKeys.of(np.concatenate([keys.by_row() for _, keys in pieces])))
        self._files += files
