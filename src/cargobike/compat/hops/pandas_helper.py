"""`hops.pandas_helper`: tables in the project's files, read in place."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cargobike.compat.hops.translating.files import ProjectFiles
from cargobike.compat.noticing import formerly

__all__ = ["read_csv", "read_excel", "read_json", "read_parquet", "write_csv", "write_json", "write_parquet"]


@formerly("hops.pandas_helper.read_csv")
def read_csv(hdfs_path: str, **kwargs: Any) -> Any:
    """Return what `pandas.read_csv` does; with `chunksize` a part at a time is read."""
    return pd.read_csv(_reader(hdfs_path), **_compressed(hdfs_path, kwargs))


@formerly("hops.pandas_helper.read_json")
def read_json(hdfs_path: str, **kwargs: Any) -> Any:
    """Return what `pandas.read_json` does."""
    return pd.read_json(_reader(hdfs_path), **_compressed(hdfs_path, kwargs))


@formerly("hops.pandas_helper.read_excel")
def read_excel(hdfs_path: str, **kwargs: Any) -> Any:
    """Return what `pandas.read_excel` does."""
    return pd.read_excel(_reader(hdfs_path), **kwargs)


@formerly("hops.pandas_helper.read_parquet")
def read_parquet(hdfs_path: str, **kwargs: Any) -> Any:
    """Return what `pandas.read_parquet` does, of a file or a folder; only `columns` and `filters` that fit are read."""
    files = ProjectFiles()
    item = files.find(hdfs_path)
    system, root = files.storage.arrow()
    inner = "/".join(filter(None, [root, item.path]))
    return pd.read_parquet(inner, filesystem=system, **kwargs)


@formerly("hops.pandas_helper.write_csv")
def write_csv(hdfs_path: str, dataframe: Any, **kwargs: Any) -> None:
    """Write a frame as CSV."""
    with _writer(hdfs_path) as file:
        dataframe.to_csv(file, **_compressed(hdfs_path, kwargs))


@formerly("hops.pandas_helper.write_json")
def write_json(hdfs_path: str, dataframe: Any, **kwargs: Any) -> None:
    """Write a frame as JSON."""
    with _writer(hdfs_path) as file:
        dataframe.to_json(file, **_compressed(hdfs_path, kwargs))


@formerly("hops.pandas_helper.write_parquet")
def write_parquet(hdfs_path: str, dataframe: Any, **kwargs: Any) -> None:
    """Write a frame as Parquet."""
    with _writer(hdfs_path) as file:
        dataframe.to_parquet(file, **kwargs)


def _reader(path: str) -> Any:
    files = ProjectFiles()
    return files.open_read(files.inner(path))


def _writer(path: str) -> Any:
    files = ProjectFiles()
    return files.open_write(files.inner(path))


def _compressed(path: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with the compression that a name means: pandas infers it from paths only."""
    endings = {".gz": "gzip", ".bz2": "bz2", ".zip": "zip", ".xz": "xz", ".zst": "zstd"}
    kind = next((kind for ending, kind in endings.items() if str(path).endswith(ending)), None)
    return given if kind is None else {"compression": kind, **given}
