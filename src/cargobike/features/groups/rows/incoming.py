"""What can be inserted: frames, tables, files and queries, all turned into one Arrow table."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from cargobike.core.errors import InvalidInputError, MissingLibraryError
from cargobike.core.values.numbers import describe
from cargobike.store.files.storages import open_storage
from cargobike.store.history.environment import without_credentials

KINDS: Final = (
    "a pandas, polars or Spark DataFrame, an Arrow table, a dict of columns, a list of dicts, the path of Parquet, CSV "
    "or JSON-lines files, or a SQL query"
)
_QUERY: Final = re.compile(r"\s*(select|with|from)\s", re.IGNORECASE)
_FORMATS: Final = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json"}

_BATCH: Final = 1 << 17

TableOf = Callable[[str], Any]
"""Gives the rows that a name in a query stands for; `None` if it is not the name of a group."""


def arrow_of(source: Any, table_of: TableOf = lambda name: None) -> tuple[pa.Table, str]:
    """Return rows as an Arrow table, and what they came from.

    Args:
        source: What was given.
        table_of: Gives the rows of the groups that a query names.

    Raises:
        InvalidInputError: If it holds no rows, or cannot be read.
    """
    try:
        table, origin = _table_of(source, table_of)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(_shown(source), error) from error
    _check_names(table.column_names)
    return table, origin


def pieces_of(source: Any, table_of: TableOf, most_rows: int) -> Iterator[pa.Table] | None:
    """Return rows piece by piece, each piece of at most so many; `None` for what is in memory as a whole anyway.

    Args:
        source: What was given.
        table_of: Gives the rows of the groups that a query names.
        most_rows: How many rows a piece may have.
    """
    if isinstance(source, pa.RecordBatchReader | ds.Dataset) or (
        isinstance(source, str | os.PathLike) and type(source).__module__.partition(".")[0] != "pandas"
    ):
        return _collected(_batches_of(source, table_of), most_rows, _shown(source))
    return None


def is_query(source: object) -> bool:
    """Tell whether something is a SQL query, and no path."""
    return isinstance(source, str) and _QUERY.match(source) is not None


def origin_of(source: Any) -> str:
    """Return what rows that come piece by piece came from."""
    if isinstance(source, pa.RecordBatchReader | ds.Dataset):
        return "arrow"
    return "query" if is_query(source) else without_credentials(os.fspath(source))


def _batches_of(source: Any, table_of: TableOf) -> Iterator[pa.RecordBatch]:
    if isinstance(source, pa.RecordBatchReader):
        yield pa.RecordBatch.from_pylist([], schema=source.schema)
        yield from source
    elif isinstance(source, str) and _QUERY.match(source):
        with _answered(source, table_of) as answer:
            reader = answer.to_arrow_reader(_BATCH)
            yield pa.RecordBatch.from_pylist([], schema=reader.schema)
            yield from reader
    else:
        rows = source if isinstance(source, ds.Dataset) else _of_path(os.fspath(source))
        yield pa.RecordBatch.from_pylist([], schema=rows.schema)
        whole = isinstance(source, ds.Dataset) or not isinstance(rows.format, ds.ParquetFileFormat)
        yield from rows.to_batches(batch_size=_BATCH) if whole else _by_row_group(rows)


def _by_row_group(rows: ds.FileSystemDataset) -> Iterator[pa.RecordBatch]:
    """Read Parquet files one row group after the other: a scan of all would run ahead by up to a gigabyte."""
    options = ds.ParquetFragmentScanOptions(pre_buffer=False)
    for fragment in rows.get_fragments():
        for group in fragment.split_by_row_group(schema=rows.schema):
            yield from group.to_batches(schema=rows.schema, batch_size=_BATCH, fragment_scan_options=options)


def _collected(batches: Iterator[pa.RecordBatch], most_rows: int, shown: str) -> Iterator[pa.Table]:
    """Put batches together to pieces; there is at least one, which may be empty."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    try:
        for batch in batches:
            _check_names(batch.schema.names)
            while count + batch.num_rows > most_rows:
                room = most_rows - count
                yield pa.Table.from_batches([*waiting, batch.slice(0, room)])
                waiting, count, batch = [], 0, batch.slice(room)  # noqa: PLW2901 - the rest of it
            waiting.append(batch)
            count += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(shown, error) from error
    if waiting:
        yield pa.Table.from_batches(waiting)


def _unreadable(shown: str, error: Exception) -> Exception:
    if isinstance(error, InvalidInputError):
        return error
    said = without_credentials(" ".join(str(error).split()))[:500]
    return InvalidInputError(f"{shown} cannot be read: {said}")


def _check_names(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(f"Several columns have the name {', '.join(map(repr, twice))}; rename them.")


def _table_of(source: Any, table_of: TableOf) -> tuple[pa.Table, str]:
    module = type(source).__module__.partition(".")[0]
    if isinstance(source, pa.Table):
        return source, "arrow"
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source]), "arrow"
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all(), "arrow"
    if isinstance(source, ds.Dataset):
        return source.to_table(), "arrow"
    if module == "pandas" and hasattr(source, "columns"):
        return _of_pandas(source), "pandas"
    if module == "polars" and hasattr(source, "collect"):
        source = source.collect()
    if module == "polars" and hasattr(source, "to_arrow") and hasattr(source, "columns"):
        return source.to_arrow(), "polars"
    if module == "pyspark" and hasattr(source, "toArrow"):
        return source.toArrow(), "spark"
    if module in {"duckdb", "_duckdb"} and hasattr(source, "to_arrow_table"):
        return source.to_arrow_table(), "duckdb"
    if isinstance(source, Mapping):
        return pa.table({str(name): _column(values) for name, values in source.items()}), "dict"
    if isinstance(source, list | tuple) and all(isinstance(row, Mapping) for row in source):
        names = dict.fromkeys(str(name) for row in source for name in row)
        return pa.table({name: _column([row.get(name) for row in source]) for name in names}), "rows"
    if isinstance(source, str) and _QUERY.match(source):
        with _answered(source, table_of) as answer:
            return answer.to_arrow_table(), "query"
    if isinstance(source, str | os.PathLike):
        return _of_path(os.fspath(source)).to_table(), without_credentials(os.fspath(source))
    raise InvalidInputError(f"{describe(source)} was given as rows; give {KINDS}.")


def _of_pandas(frame: Any) -> pa.Table:
    """Return a pandas DataFrame; an index that has a name is a column like others."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    columns = {}
    for position, name in enumerate(frame.columns):
        values = frame.iloc[:, position]
        if str(name) in columns:
            raise InvalidInputError(f"Several columns have the name {str(name)!r}; rename them.")
        try:
            is_object = values.dtype.kind == "O" and not hasattr(values.dtype, "pyarrow_dtype")
            columns[str(name)] = _column(list(values)) if is_object else pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            said = " ".join(str(error).split())[:200]
            raise InvalidInputError(
                f"The values of the column {str(name)!r} are of several kinds: {said}. Make them alike."
            ) from error
    return pa.table(columns)


def _column(values: Any) -> Any:
    """Return values as an Arrow column; times of several zones become UTC."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, list | tuple):
        # pandas' word for a missing time is a datetime too, which does not equal itself.
        times = [value for value in values if isinstance(value, datetime) and value == value]  # noqa: PLR0124
        if times:
            aware = [value.tzinfo is not None for value in times]
            if any(aware) and not all(aware):
                raise InvalidInputError(
                    "Some times have a time zone and others have none, so that they cannot be put in order. Give all "
                    "of them a zone: datetime(…, tzinfo=UTC), or Series.dt.tz_localize('UTC')."
                )
            if all(aware):
                return pa.array(values, pa.timestamp("us", tz="UTC"), from_pandas=True)
    return pa.array(values, from_pandas=True)


def _of_path(path: str) -> ds.Dataset:
    """Return the rows of a file, of the files in a folder, or of those that fit a pattern, here or on a storage."""
    if "://" in path and not path.startswith("file://"):
        folder, _, name = path.rstrip("/").rpartition("/")
        storage = open_storage(folder)
        filesystem, root = storage.arrow()
        prefix = f"{root}/" if root else ""
        entry = storage.stat(name) if "*" not in name else None
        if entry is not None:
            paths = [f"{prefix}{name}"]
        else:
            pattern = re.compile(re.escape(name).replace(r"\*", "[^/]*") if "*" in name else re.escape(name) + "/[^/]*")
            listed = storage.list("" if "*" in name else name)
            paths = sorted(f"{prefix}{entry.path}" for entry in listed if pattern.fullmatch(entry.path))
    else:
        filesystem, path = None, os.path.expanduser(path.removeprefix("file://"))
        if os.path.isdir(path):
            paths = sorted(glob.glob(os.path.join(glob.escape(path), "*")))
        else:
            paths = sorted(glob.glob(path)) if glob.has_magic(path) and not os.path.exists(path) else [path]
    paths = [one for one in paths if not os.path.basename(one).startswith(("_", "."))]
    formats = {_FORMATS.get(os.path.splitext(one)[1].lower(), "") for one in paths}
    if not paths or (filesystem is None and not all(os.path.exists(one) for one in paths)):
        raise InvalidInputError(f"There is no file at {without_credentials(path)!r}; give {KINDS}.")
    if len(formats) != 1 or "" in formats:
        raise InvalidInputError(
            f"{without_credentials(path)!r} leads to files that are not all Parquet, CSV or JSON lines (.parquet, "
            ".csv, .json, .jsonl)."
        )
    form: Any = formats.pop()
    if form == "csv" and paths[0].lower().endswith(".tsv"):
        form = ds.CsvFileFormat(pa.csv.ParseOptions(delimiter="\t"))
    return ds.dataset(paths, format=form, filesystem=filesystem)


@contextmanager
def _answered(query: str, table_of: TableOf) -> Iterator[Any]:
    """Yield what DuckDB answers to a query; it may read files, and groups by their names."""
    try:
        import duckdb  # noqa: PLC0415 - optional, and only for queries
    except ImportError as error:
        words = "A query needs DuckDB, which is not installed: pip install 'cargobike[features]'"
        raise MissingLibraryError(words, name="duckdb") from error
    connection = duckdb.connect()
    try:
        connection.execute("SET TimeZone = 'UTC'")
        for name in _names_in(query, connection):
            rows = table_of(name)
            if rows is not None:
                connection.register(name, rows)
        answer = connection.sql(query)
        if answer is None:
            raise InvalidInputError("The query returns no rows; begin it with SELECT, FROM or WITH.")
        yield answer
    except duckdb.Error as error:
        said = " ".join(str(error).split())[:500]
        raise InvalidInputError(f"The query cannot be answered: {said}") from error
    finally:
        connection.close()


def _names_in(query: str, connection: Any) -> set[str]:
    """Return the names of tables in a query that the query does not define itself."""
    import duckdb  # noqa: PLC0415 - the caller has it

    try:
        names: set[str] = connection.get_table_names(query)
    except duckdb.BinderException:  # it binds the query before tables are known, and cannot do so with all windows
        tree = json.loads(connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()[0][0])
        nodes = list(_nodes_of(tree))
        names = {str(node["table_name"]) for node in nodes if node.get("type") == "BASE_TABLE"}
        names -= {str(one["key"]) for node in nodes for one in (node.get("cte_map") or {}).get("map", ())}
    return names


def _nodes_of(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects of a parsed query."""
    if isinstance(tree, dict):
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes_of(part)


def _shown(source: Any) -> str:
    return repr(without_credentials(os.fspath(source))) if isinstance(source, str | os.PathLike) else describe(source)
