"""What a source holds: files, wherever they lie, and what is known of their rows."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from cargobike.core.errors import InvalidInputError
from cargobike.core.plain_files import open_plain
from cargobike.core.registering.tracing import Thing
from cargobike.sharing.checks import check_path
from cargobike.store.files.storage import Storage

_CHUNK: Final = 8 * 1024 * 1024
_PRIVATE_NAMES: Final = ("id_rsa", "id_ed25519", "credentials", "secret", "password", "token")
_PRIVATE_ENDINGS: Final = (".pem", ".key", ".kdbx", ".p12", ".env")


@dataclass(frozen=True, kw_only=True)
class Content:
    """What is to be published.

    Attributes:
        kind: What it is, as in a manifest.
        place: The folder, or the address of the storage, that paths are relative to.
        files: How each file is opened, by its path.
        rows: Its rows as loaders read them, as something to call; `None` if it has none, or they are not known.
        num_rows: How many rows there are in all, where `rows` are only a part of them.
        made_from: The thing of the project that this is, for lineage.
        web_seeds: Addresses that it came from, and that others can have it from.
        remarks: What a person should know before it is published.
    """

    kind: str
    place: str
    files: Mapping[str, Callable[[], BinaryIO]]
    rows: Callable[[], Any] | None = None
    num_rows: int | None = None
    made_from: Thing | None = None
    web_seeds: tuple[str, ...] = ()
    remarks: list[str] = field(default_factory=list)


def of_path(path: Path, *, hidden: bool) -> Content:
    """Return the content of a file or a folder of this machine; links are never followed.

    Raises:
        InvalidInputError: If there is nothing to publish.
    """
    path = path.absolute()
    if path.is_file():
        check_path(path.name)
        return Content(kind="folder", place=str(path.parent), files={path.name: _opener(path)})
    if not path.is_dir():
        raise InvalidInputError(f"There is no file or folder {str(path)!r}.")
    files, links, left_out = _walk(path, hidden=hidden)
    remarks = []
    if links:
        remarks.append(f"{links} links and special files are left out.")
    if left_out:
        remarks.append(f"{left_out} hidden files and folders are left out; --hidden takes them along.")
    if not files:
        raise InvalidInputError(f"The folder {str(path)!r} holds no files that can be published. {' '.join(remarks)}")
    suspects = [one for one in files if _may_be_private(one)]
    if suspects:
        remarks.append(f"These look like secrets: {', '.join(suspects[:5])}{' and more' if len(suspects) > 5 else ''}.")
    return Content(kind="folder", place=str(path), files={one: _opener(path / one) for one in files}, remarks=remarks)


def of_storage(storage: Storage, url: str) -> Content:
    """Return the content of an address of a storage: all files below it, hidden ones left out."""
    names = [entry.path for entry in storage.list(deep=True) if not _is_hidden(entry.path)]
    if not names:
        raise InvalidInputError(f"There are no files at {url}.")
    return Content(kind="url", place=storage.url, files={name: _stored(storage, name) for name in names})


def opened_from(storage: Storage, paths: list[str]) -> dict[str, Callable[[], BinaryIO]]:
    """Return how files of a storage are opened."""
    return {path: _stored(storage, path) for path in paths}


class StoredFile(io.RawIOBase):
    """A file of a storage, read from its beginning to its end."""

    def __init__(self, storage: Storage, path: str) -> None:
        super().__init__()
        self._storage, self._path, self._at = storage, path, 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes."""
        wanted = _CHUNK if size < 0 else size
        data = self._storage.read(self._path, self._at, wanted)
        if data is None:
            raise FileNotFoundError(2, "it is not there any more", self._path)
        self._at += len(data)
        return data


def _stored(storage: Storage, path: str) -> Callable[[], BinaryIO]:
    return lambda: StoredFile(storage, path)  # type: ignore[return-value]


def _opener(path: Path) -> Callable[[], BinaryIO]:
    return lambda: open_plain(path)


def _walk(folder: Path, *, hidden: bool) -> tuple[list[str], int, int]:
    files, links, left_out = [], 0, 0
    for root, folders, names in os.walk(folder, followlinks=False):
        inner = Path(root)
        links += sum((inner / name).is_symlink() for name in folders)
        kept = [name for name in folders if not (inner / name).is_symlink() and (hidden or not name.startswith("."))]
        left_out += sum(name.startswith(".") and name not in kept for name in folders)
        folders[:] = sorted(kept)
        for name in sorted(names):
            path = inner / name
            if not hidden and name.startswith("."):
                left_out += 1
            elif path.is_symlink() or not path.is_file():
                links += 1
            else:
                files.append(check_path(path.relative_to(folder).as_posix()))
    return files, links, left_out


def _is_hidden(path: str) -> bool:
    return any(name.startswith(".") for name in path.split("/"))


def _may_be_private(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return name.endswith(_PRIVATE_ENDINGS) or any(word in name for word in _PRIVATE_NAMES)
