"""The functions that open files of other formats, for users who have to say more than a path.

A path alone can be given to `Loader`, `write` and `launch(data=…)`; what it is, is seen from its name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from cargobike.data.sources.csv import open_csv
from cargobike.data.sources.delta import open_delta
from cargobike.data.sources.files import Paths
from cargobike.data.sources.json_lines import open_json_lines
from cargobike.data.sources.mistakes import OnError
from cargobike.data.sources.source import Source
from cargobike.data.sources.tar import open_webdataset
from cargobike.data.sources.tfrecord import open_tfrecord


def csv(
    paths: Paths,
    *,
    schema: Mapping[str, object] | None = None,
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
    on_error: OnError = "raise",
) -> Source:
    """Open CSV files, as text in UTF-8, compressed by gzip or not.

    Files are looked through once when they are opened, to find where records end; values in quotes may hold newlines.
    Types are inferred from the first megabyte of up to 16 files, and held: a value that does not fit later on is an
    error that names file and line.

    Args:
        paths: One path, glob, folder or address, or several.
        schema: The types of some columns, such as `{"id": "int64", "name": "string"}`, or Arrow's types.
        delimiter: What is between values; by default a comma, or a tab for `.tsv`.
        header: Whether the first line names the columns, or their names.
        on_error: `"skip"` leaves out records that cannot be read: all are parsed when the files are opened, and
            `source.skips` says how many were left out and where.

    Raises:
        NotFoundError: If there are no such files.
        InvalidInputError: If something given cannot be used, or headers differ.
    """
    return open_csv(paths, schema=schema, delimiter=delimiter, header=header, on_error=on_error)


def json_lines(paths: Paths, *, schema: Mapping[str, object] | None = None, on_error: OnError = "raise") -> Source:
    """Open files with one JSON object per line, compressed by gzip or not.

    Columns are inferred and held as those of CSV files are. A field that an object lacks is null; one that no object
    at the beginning had is an error, unless it is in the schema.

    Args:
        paths: One path, glob, folder or address, or several.
        schema: The types of some columns, by name or as Arrow's types.
        on_error: `"skip"` leaves out lines that cannot be read, and counts them in `source.skips`.

    Raises:
        NotFoundError: If there are no such files.
        InvalidInputError: If something given cannot be used, or columns do not fit together.
    """
    return open_json_lines(paths, schema=schema, on_error=on_error)


def tfrecord(paths: Paths, *, schema: Mapping[str, object] | None = None, on_error: OnError = "raise") -> Source:
    """Open TFRecord files of `tf.train.Example`; TensorFlow is not needed. Every checksum is checked.

    A feature that has one value in each record becomes a column, one that always has as many numbers a tensor, any
    other a list.

    Args:
        paths: One path, glob, folder or address, or several.
        schema: What some features become: the type of one value such as `"string"`, `("uint8", (28, 28))` for a tensor
            (also for one that lies there as bytes), or `"list"`.
        on_error: `"skip"` leaves out records that are broken or do not fit, and counts them in `source.skips`.

    Raises:
        NotFoundError: If there are no such files.
        InvalidInputError: If a file is broken, or something given cannot be used.
    """
    return open_tfrecord(paths, schema=schema, on_error=on_error)


def webdataset(paths: Paths, *, decode: Mapping[str, str] | None = None, on_error: OnError = "raise") -> Source:
    """Open WebDataset tar files: members side by side that share a key are one row.

    Columns are called as the parts of a sample end, such as `jpg` or `seg.npy`, and `__key__`. Parts `cls` become whole
    numbers, `txt` text, `json` what they hold, `npy` tensors, and all others bytes. Nothing is ever unpickled.

    Args:
        paths: One path, glob, folder or address, or several.
        decode: How some parts are decoded: `"bytes"`, `"text"`, `"int"`, `"json"` or `"npy"`.
        on_error: `"skip"` leaves out samples that cannot be read, and counts them in `source.skips`.

    Raises:
        NotFoundError: If there are no such files.
        InvalidInputError: If a file is broken, or something given cannot be used.
    """
    return open_webdataset(paths, decode=decode, on_error=on_error)


def delta(url: str | os.PathLike[str], *, version: int | None = None) -> Source:
    """Open a Delta table, at a version or as it is now.

    Args:
        url: Its folder, a path or an address.
        version: Which version; by default the newest. Workers that get the source read the same one.

    Raises:
        NotFoundError: If there is no such table or version.
        InvalidInputError: If it uses deletion vectors or column mapping; says what to do.
        MissingLibraryError: If `deltalake` is not installed.
    """
    return open_delta(url, version=version)
