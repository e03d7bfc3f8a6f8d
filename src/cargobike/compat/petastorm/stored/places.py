"""Where a data set is: addresses as petastorm took them, and the files at them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs

from cargobike.compat.petastorm.errors import NoDataAvailableError, PetastormMetadataError
from cargobike.core.errors import InvalidInputError, NotFoundError
from cargobike.data.sources.listing import File, files_of, is_address
from cargobike.data.sources.parquet import ParquetSource
from cargobike.data.sources.partitions import PartitionedSource
from cargobike.storage import open_storage
from cargobike.store.history.environment import without_credentials

_SUFFIXES: Final = (".parquet", ".pq", ".parq")


class Place:
    """The folder of a data set, on any storage or on a file system of the user's.

    Args:
        url: Its address, `file:///…`, `s3://…`, `hdfs://…`, or a path.
        filesystem: A file system of Arrow's or fsspec's that the address is a path on.
        storage_options: What to give to fsspec, which then opens the address.
    """

    def __init__(self, url: str, filesystem: Any = None, storage_options: dict[str, Any] | None = None) -> None:
        self.url = normalize_dir_url(url)
        self.shown = without_credentials(self.url)
        self._system: Any = None
        if storage_options and filesystem is None:
            import fsspec  # noqa: PLC0415 - only for who gives options of its

            filesystem, self._root = fsspec.core.url_to_fs(self.url, **storage_options)
            self._system = pafs.PyFileSystem(pafs.FSSpecHandler(filesystem))
        elif filesystem is not None:
            is_arrow = isinstance(filesystem, pafs.FileSystem)
            self._system = filesystem if is_arrow else pafs.PyFileSystem(pafs.FSSpecHandler(filesystem))
            parts = urlsplit(self.url)
            self._root = unquote(parts.path if parts.scheme in ("file", "hdfs", "") else parts.netloc + parts.path)
        else:
            self._path = unquote(urlsplit(self.url).path) if self.url.startswith("file://") else self.url

    def read(self, name: str, largest: int) -> bytes | None:
        """Return what a file of the data set holds; `None` if there is none."""
        if self._system is None:
            storage = open_storage(self._path)
            entry = storage.stat(name)
            if entry is None:
                return None
            if entry.size > largest:
                raise PetastormMetadataError(f"{self.shown}/{name} has {entry.size:,} bytes, which is too much.")
            return storage.read(name)
        path = f"{self._root}/{name}"
        if self._system.get_file_info(path).type != pafs.FileType.File:
            return None
        with self._system.open_input_file(path) as file:
            return bytes(file.read(largest))

    def write(self, name: str, data: bytes) -> None:
        """Write a file of the data set."""
        if self._system is None:
            open_storage(self._path).write(name, data)
            return
        with self._system.open_output_stream(f"{self._root}/{name}") as file:
            file.write(data)

    def delete(self, name: str) -> None:
        """Delete a file of the data set, if it is there."""
        if self._system is None:
            open_storage(self._path).delete(name)
        elif self._system.get_file_info(f"{self._root}/{name}").type == pafs.FileType.File:
            self._system.delete_file(f"{self._root}/{name}")

    def files(self) -> list[File]:
        """Return the Parquet files of the data set, in the order of their paths.

        Raises:
            NotFoundError: If there are none.
        """
        if self._system is not None:
            return self._listed()
        try:
            return files_of(self._path, _SUFFIXES)
        except NotFoundError:
            return files_of(self._path, ("",))  # petastorm took files by any name

    def _listed(self) -> list[File]:
        info = self._system.get_file_info(self._root)
        if info.type == pafs.FileType.File:
            found, base = [info], os.path.dirname(self._root)
        else:
            selector = pafs.FileSelector(self._root, recursive=True, allow_not_found=True)
            found, base = self._system.get_file_info(selector), self._root
        base = base.strip("/")
        files = [
            File(self._system, each.path, relative, each.path, each.size or 0, each.mtime_ns or 0, self.shown)
            for each in found
            if each.type == pafs.FileType.File
            and not _is_hidden(relative := each.path.strip("/").removeprefix(base).strip("/"))
        ]
        if not files:
            raise NotFoundError(f"There are no files at {self.shown}.", wanted=self.shown)
        return sorted(files, key=lambda file: file.relative)


def open_places(places: Sequence[Place]) -> PartitionedSource:
    """Open the row groups of all files at some places.

    Raises:
        NotFoundError: If there are no files.
        NoDataAvailableError: If there are no rows.
    """
    files = [file for place in places for file in place.files()]
    shown = places[0].shown if len(places) == 1 else f"{places[0].shown} and {len(places) - 1} more"
    source = PartitionedSource(ParquetSource(files, shown))
    if not source.groups:
        raise NoDataAvailableError(f"{shown} has no rows.")
    return source


def places_of(given: Any, filesystem: Any, storage_options: dict[str, Any] | None) -> list[Place]:
    """Return the places that one address or several name.

    Raises:
        InvalidInputError: If something else was given.
    """
    urls = [given] if isinstance(given, str | os.PathLike) else list(given) if isinstance(given, list | tuple) else []
    if not urls or not all(isinstance(url, str | os.PathLike) for url in urls):
        raise InvalidInputError(
            f"dataset_url={given!r:.120} was given; give an address such as 'file:///data/set' or 's3://bucket/set', "
            "or a list of addresses of files."
        )
    return [Place(os.fspath(url), filesystem, storage_options) for url in urls]


def normalize_dir_url(dataset_url: str) -> str:
    """Return an address without slashes at its end; a path of this machine from its root on."""
    text = dataset_url.rstrip("/") or "/"
    return text if is_address(text) or text.startswith("file:") else os.path.abspath(os.path.expanduser(text))


def _is_hidden(relative: str) -> bool:
    return any(name.startswith((".", "_")) or name.endswith(".crc") for name in relative.split("/"))
