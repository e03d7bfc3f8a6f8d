"""Open whatever a user gives as a source of rows: one place that knows how each looks."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, cast

from cargobike.core.errors import InvalidInputError
from cargobike.core.origins import Origin
from cargobike.data.sources.listing import is_address
from cargobike.data.sources.memory import MemorySource, as_table
from cargobike.data.sources.parquet import parquet_at
from cargobike.data.sources.source import Source, SourceSpec
from cargobike.store.history.environment import without_credentials

TABLES: Final = "cargobike.data.sources.table:source_at"
"""A function from a name, path or address to a source if `data.write` made a table there, else to `None`."""

FORMATS: Final[dict[str, str]] = {
    **dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), "cargobike.data.sources.csv:open_csv"),
    **dict.fromkeys(
        (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz"),
        "cargobike.data.sources.json_lines:open_json_lines",
    ),
    **dict.fromkeys(
        (".tfrecord", ".tfrecords", ".tfrecord.gz", ".tfrecords.gz"), "cargobike.data.sources.tfrecord:open_tfrecord"
    ),
    **dict.fromkeys((".tar", ".tar.gz", ".tgz"), "cargobike.data.sources.tar:open_webdataset"),
}
"""How the name of a file ends, and `module:name` of a function from paths to a source."""

FOLDERS: Final[dict[str, str]] = {"_delta_log": "cargobike.data.sources.delta:open_delta"}
"""What a folder holds if it is more than its files, and `module:name` of a function from its path to a source."""

_UNDERSTOOD: Final = (
    "the name of a table, a path, glob, folder or address of Parquet, CSV, JSON-lines, TFRecord or WebDataset tar "
    "files, the folder of a Delta table, an Arrow table, a pandas or polars DataFrame, or a dict of NumPy arrays"
)


def open_source(given: object, *, on_error: str = "raise") -> Source:
    """Return a source of the rows that a user means.

    Args:
        given: A source; a path, glob, folder or address, or several; a table in memory.
        on_error: `"skip"` has formats of records leave out those that cannot be read; see `data.csv` and its like.

    Raises:
        InvalidInputError: If it is nothing that can be read.
        NotFoundError: If there is no such file.
    """
    if isinstance(given, Source):
        return given
    if isinstance(given, SourceSpec):
        return open_again(given)
    if isinstance(given, str | os.PathLike):
        return _at([os.fspath(cast("str | os.PathLike[str]", given))], on_error)
    if isinstance(given, Sequence) and given and all(isinstance(each, str | os.PathLike) for each in given):
        return _at([os.fspath(each) for each in given], on_error)
    source = getattr(given, "source", None)
    if callable(source):
        opened = source()
        if isinstance(opened, Source):
            return opened
    table = as_table(given)
    if table is None:
        raise InvalidInputError(
            f"Rows cannot be read from {type(given).__module__}.{type(given).__qualname__}; give {_UNDERSTOOD}."
        )
    return MemorySource(table)


def open_again(spec: SourceSpec) -> Source:
    """Open a source in this process that was described in another one.

    Raises:
        InvalidInputError: If its content is not what it was.
    """
    source = cast("Source", _function(spec.opener)(spec.options))
    if spec.fingerprint and source.fingerprint != spec.fingerprint:
        raise InvalidInputError(
            f"{source.name} has changed since it was opened first. Write tables with data.write to keep their versions."
        )
    return source


def origin_of(source: Source) -> Origin | None:
    """Return what a source reads; `None` if its rows are only in the memory of this process."""
    if source.origin is not None or isinstance(source, MemorySource):
        return source.origin
    return Origin("file", without_credentials(source.name))


def _at(paths: list[str], on_error: str) -> Source:
    """Open files by how their names look."""
    table = _function(TABLES)(paths[0]) if len(paths) == 1 else None
    if table is not None:
        return cast("Source", table)
    looks = {_look(path) for path in paths}
    if len(looks) > 1:
        raise InvalidInputError(f"These files are of different kinds: {', '.join(paths)}. Give files of one kind.")
    (look,) = looks
    if look in FOLDERS and len(paths) == 1:
        return cast("Source", _function(FOLDERS[look])(paths[0]))
    if look in FORMATS:
        return cast("Source", _function(FORMATS[look])(paths, on_error=on_error))
    return parquet_at([path if is_address(path) else os.path.abspath(os.path.expanduser(path)) for path in paths])


def _look(path: str) -> str:
    """Return which kind of thing a path looks like: a key of one of the tables, or nothing for Parquet."""
    if not is_address(path):
        folder = Path(path).expanduser()
        if folder.is_dir():
            inside = next((name for name in FOLDERS if (folder / name).exists()), "")
            return inside or _most_common(folder)
    plain = path.partition("?")[0].rstrip("/")
    return next((suffix for suffix in FORMATS if plain.endswith(suffix)), "")


def _most_common(folder: Path) -> str:
    """Return how the first file in a folder ends that is of a known kind."""
    for path in sorted(folder.iterdir()):
        suffix = next((suffix for suffix in FORMATS if path.name.endswith(suffix)), "")
        if suffix or path.name.endswith((".parquet", ".pq")):
            return suffix
    return ""


def _function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    return cast("Callable[..., Any]", getattr(importlib.import_module(module), attribute))
