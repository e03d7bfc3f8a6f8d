"""Open storage by its address: a folder, S3, HDFS, what fsspec knows, and what installed packages add.

A package adds a scheme by an entry point in the group `cargobike.storage`: a function that takes an address and returns
a `Storage`, or a file system of fsspec's kind and the path on it.

```toml
[project.entry-points."cargobike.storage"]
vault = "my_package.storage:open_vault"
```
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from cargobike.core.errors import InvalidInputError, MissingLibraryError
from cargobike.core.layout import ProjectFolder
from cargobike.core.registering.registry import Registry
from cargobike.store.files.access.access import Access
from cargobike.store.files.access.any_fsspec import FsspecAccess
from cargobike.store.files.access.disk import DiskAccess
from cargobike.store.files.patient import PatientStorage
from cargobike.store.files.shared import shared_url
from cargobike.store.files.storage import Storage
from cargobike.store.history.environment import without_credentials

Opener = Callable[[str], "Storage | Access | tuple[Any, str]"]

STORAGES: Final = Registry(
    "storage",
    "cargobike.storage",
    {
        "hdfs": "cargobike.store.files.access.hdfs:HdfsAccess",
        "viewfs": "cargobike.store.files.access.hdfs:HdfsAccess",
        "s3": "cargobike.store.files.access.s3:S3Access",
        "s3a": "cargobike.store.files.access.s3:S3Access",
        "s3n": "cargobike.store.files.access.s3:S3Access",
    },
)
"""Schemes that are opened in a way of their own; all others are fsspec's."""

_EXTRAS: Final = {"hdfs_native": "hdfs", "s3fs": "s3", "fsspec": "s3", "aiobotocore": "s3"}


def open_storage(place: str | os.PathLike[str], *, timeout_s: float | None = None) -> Storage:
    """Return the storage at an address; nothing is created there.

    Args:
        place: A folder, as a path or `file://…`, or an address such as `s3://bucket/team` or `hdfs://host:9000/team`.
        timeout_s: How long to ask a storage that does not answer; by default what `CARGOBIKE_STORAGE_TIMEOUT_S` says.

    Raises:
        MissingLibraryError: If the library for it is not installed.
        InvalidInputError: If the address cannot be understood.

    Example:
        >>> storage = open_storage("memory://garden")
        >>> storage.create("plants/beans.txt", b"red")
        True
        >>> [entry.path for entry in storage.list("plants")]
        ['plants/beans.txt']
    """
    url = os.fspath(place)
    if not url:
        raise InvalidInputError(f"{place!r} names no storage; write a folder, s3://bucket/path or hdfs://host/path.")
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() in {"file", "local"}:
        root = Path(os.path.abspath(_path_of(url)))
        return PatientStorage(str(root), functools.partial(DiskAccess, root), timeout_s)
    url = url.rstrip("/")
    if not rest.strip("/") and scheme.lower() != "memory":
        raise InvalidInputError(f"{without_credentials(url)!r} names no storage; write {scheme}://host/path.")
    opener = cast("Opener | None", STORAGES.get(scheme))
    opened = _open(opener, url)  # now, so that a missing library and a wrong address are said at once
    if isinstance(opened, Storage):
        return opened
    return PatientStorage(url, functools.partial(_access_to, opener, url), timeout_s)


def storage_of(project: ProjectFolder) -> Storage:
    """Return the storage that a project lies on: its own folder, or the shared storage that the folder is a copy of."""
    return open_storage(shared_url(project) or project.root)


def _access_to(opener: Opener | None, url: str) -> Access:
    opened = _open(opener, url)
    if not isinstance(opened, Access):
        raise InvalidInputError(
            f"{without_credentials(url)} was opened as {type(opened).__name__}, which is no access."
        )
    return opened


def _open(opener: Opener | None, url: str) -> Storage | Access:
    scheme = url.partition("://")[0]
    try:
        opened = (opener or _open_with_fsspec)(url)
    except InvalidInputError:
        raise
    except ImportError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        advice = f" Install it: pip install 'cargobike[{extra}]'" if extra else ""
        words = f"{scheme}:// needs a library that is not installed: {error}.{advice}"
        raise MissingLibraryError(words, name=error.name) from error
    except ValueError as error:
        raise InvalidInputError(f"The storage {without_credentials(url)!r} cannot be opened: {error}") from error
    if isinstance(opened, Storage | Access):
        return opened
    fs, root = opened
    if type(fs).__name__ == "LocalFileSystem":
        return DiskAccess(Path(root))
    return FsspecAccess(fs, root)


def _open_with_fsspec(url: str) -> tuple[Any, str]:
    import fsspec  # noqa: PLC0415 - optional, and only for storage that is not a folder

    fs, root = fsspec.core.url_to_fs(url)
    return fs, str(root)


def _path_of(url: str) -> str:
    if url.lower().startswith("file://"):
        return unquote(urlsplit(url).path)
    return os.path.expanduser(url.partition("://")[2] if url.lower().startswith("local://") else url)
