"""Packs many small files into a table: small files are what HDFS and S3 are worst at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final, Literal

import pyarrow as pa

from cargobike.core.errors import InvalidInputError
from cargobike.core.registering.steps import own_step
from cargobike.data.tables.addresses import writable_address
from cargobike.data.tables.rows.incoming import Incoming
from cargobike.data.tables.rows.small_files import Folder, SmallFile, find_files, read_in_order
from cargobike.data.tables.table import Table
from cargobike.data.tables.writer import TableWriter, Told
from cargobike.store.history.environment import without_credentials

SCHEMA: Final = pa.schema([("file", pa.string()), ("label", pa.string()), ("bytes", pa.binary())])
_BYTES_AT_ONCE = 8 << 20
_ROWS_AT_ONCE = 4096

Label = Literal["folder"] | Callable[[str], str | None] | None


@own_step("data.pack", recover="cargobike.data.tables.recovering:recover_write")
def pack(
    folder: str | os.PathLike[str],
    url: str | os.PathLike[str],
    *,
    label: Label = "folder",
    threads: int = 16,
    progress: Told | None = None,
) -> Table:
    """Pack small files, such as images or texts, into the next version of a table, a row for each.

    The columns are `file` (its path below the folder), `label` and `bytes`. Rows are in the order of the paths; names
    that begin with a dot are left out.

    Args:
        folder: A folder, a glob such as `photos/*/*.jpg`, or either on a storage, `s3://bucket/photos`.
        url: A bare name, kept in the project; or a path or URL anywhere.
        label: `"folder"`: the name of the folder that the file lies in; a function from a path to a label; or `None`.
        threads: How many files are read at once.
        progress: Called with a `Progress` after each row group.

    Raises:
        NotFoundError: If there are no files.
        InvalidInputError: If files have names that are no text, or links lead out of the folder; lists them.
        StoreError: If a file cannot be read; names it.

    Example:
        >>> from pathlib import Path
        >>> from cargobike import data
        >>> for name in ("cats/tom.txt", "dogs/rex.txt"):
        ...     Path("pets", name).parent.mkdir(parents=True)
        ...     _ = Path("pets", name).write_text("fur")
        >>> data.pack("pets", "packed").read().column("label").to_pylist()
        ['cats', 'dogs']
    """
    if not (label is None or label == "folder" or callable(label)):
        raise InvalidInputError(
            f"label={label!r} was given; give 'folder', a function from a path to a label, or None."
        )
    if threads < 1:
        raise InvalidInputError(f"threads={threads} was given; at least one reads.")
    address = writable_address(url)
    place, files = find_files(folder)
    source = f"files of {without_credentials(os.fspath(folder))}"
    with TableWriter(address, source, progress, len(files)) as writer:
        writer.write(Incoming(source, _batches(place, files, label, threads), num_rows=len(files)))
        return writer.commit()


def _batches(folder: Folder, files: list[SmallFile], label: Label, threads: int) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[str, str | None, bytes]] = []
    size = 0
    for file, content in read_in_order(folder, files, threads):
        rows.append((file.path, _label(file.path, label), content))
        size += len(content)
        if size >= _BYTES_AT_ONCE or len(rows) >= _ROWS_AT_ONCE:
            yield _batch(rows)
            rows, size = [], 0
    if rows:
        yield _batch(rows)


def _batch(rows: list[tuple[str, str | None, bytes]]) -> pa.RecordBatch:
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _label(path: str, label: Label) -> str | None:
    if label == "folder":
        return path.rpartition("/")[0].rpartition("/")[2] or None
    if label is None:
        return None
    text = label(path)
    if text is not None and not isinstance(text, str):
        raise InvalidInputError(f"label gave {text!r} for {path!r}; a label is a text, or None.")
    return text
