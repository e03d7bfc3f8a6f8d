"""What this member can give to others: files by the root of their content, whole or still arriving, wherever they lie.

An index in SQLite, shared by the processes of a project: the daemon reads what a publisher or a getter has entered. It
holds no content. A file that has changed since it was entered is not given any more.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from cargobike.core.errors import StoreError
from cargobike.core.layout import ProjectFolder
from cargobike.sharing.hashing import num_pieces
from cargobike.sharing.places import network_folder
from cargobike.sharing.shapes import Manifest
from cargobike.store.files.storage import Storage
from cargobike.store.files.storages import open_storage

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS publications (
    publisher TEXT, name TEXT, version INTEGER, place TEXT, size INTEGER, at REAL,
    PRIMARY KEY (publisher, name, version, place));
CREATE TABLE IF NOT EXISTS files (
    root TEXT, place TEXT, path TEXT, size INTEGER, token TEXT, arriving TEXT, first INTEGER, piece_size INTEGER,
    PRIMARY KEY (root, place, path));
CREATE TABLE IF NOT EXISTS layers (root TEXT, piece_size INTEGER, hashes BLOB, PRIMARY KEY (root, piece_size));
CREATE TABLE IF NOT EXISTS pieces (
    hash BLOB, root TEXT, piece_size INTEGER, number INTEGER, PRIMARY KEY (hash, root)) WITHOUT ROWID;
"""
_WAIT_S: Final = 30.0
_OPEN_FILES: Final = 64


class Held(NamedTuple):
    """A file: the folder or storage it lies in, its path there, and, while it arrives, where is noted what is had."""

    root: str
    place: str
    path: str
    size: int
    token: str
    arriving: str
    first: int
    piece_size: int


class Publication(NamedTuple):
    """Something that this member gives to others, whole."""

    publisher: str
    name: str
    version: int
    place: str
    size: int


class Holdings:
    """The index; for several threads, and several processes."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[str, int] = OrderedDict()
        self._storages: dict[str, Storage] = {}
        try:
            self._db = sqlite3.connect(path, timeout=_WAIT_S, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise StoreError(f"What this project shares cannot be read from {path}: {error}.") from error

    @classmethod
    def of(cls, project: ProjectFolder, network: str) -> Holdings:
        """Open the holdings of a project in a network."""
        return cls(network_folder(project, network) / "holdings.sqlite")

    def add(self, manifest: Manifest, place: str | Path, layers: Mapping[str, Sequence[bytes]]) -> None:
        """Enter a publication that lies whole in a folder or on a storage.

        Args:
            manifest: What it is.
            place: The folder, or the address of the storage, that its paths are relative to.
            layers: The hashes of the pieces of each file, by its root.

        Raises:
            StoreError: If a file is not there.
        """
        place = str(place)
        rows = [
            (file.root, place, file.path, file.size, self._token(place, file.path), "", 0, 0)
            for file in manifest.files
            if file.size
        ]
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM files WHERE place = ? AND arriving != ''", (place,))
            self._db.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            self._add_layers(layers, manifest.piece_size)
            self._db.execute(
                "INSERT OR REPLACE INTO publications VALUES (?, ?, ?, ?, ?, unixepoch('subsec'))",
                (manifest.publisher, manifest.name, manifest.version, place, manifest.size),
            )

    def add_layer(self, root: str, piece_size: int, pieces: Sequence[bytes]) -> None:
        """Keep the hashes of the pieces of a file."""
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._add_layers({root: pieces}, piece_size)

    def _add_layers(self, layers: Mapping[str, Sequence[bytes]], piece_size: int) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO layers VALUES (?, ?, ?)",
            [(root, piece_size, b"".join(pieces)) for root, pieces in layers.items()],
        )
        self._db.executemany(
            "INSERT OR IGNORE INTO pieces VALUES (?, ?, ?, ?)",
            [
                (piece, root, piece_size, number)
                for root, pieces in layers.items()
                for number, piece in enumerate(pieces)
            ],
        )

    def add_arriving(
        self, place: Path, files: Sequence[tuple[str, str, int, int]], piece_size: int, noted: Path
    ) -> None:
        """Enter files that are still arriving, as `(root, path, size, first)`.

        `noted` is a file with a byte for each piece, from `first` on; it is not 0 once the piece is there.
        """
        rows = [(root, str(place), path, size, "", str(noted), first, piece_size) for root, path, size, first in files]
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM files WHERE place = ?", (str(place),))
            self._db.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def arrived(self, root: str, staging: Path, place: Path | str, path: str, size: int) -> None:
        """Note that a file has arrived whole, and was moved out of the folder in which it was put together."""
        row = (root, str(place), path, size, self._token(str(place), path), "", 0, 0)
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM files WHERE place = ? AND root = ?", (str(staging), root))
            self._db.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def is_at(self, root: str, place: str, path: str) -> bool:
        """Tell whether a file was entered as whole at a path of a place, and is there as it was."""
        return any(
            held.place == place and held.path == path and not held.arriving and self._is_unchanged(held)
            for held in self._held(root)
        )

    def forget(self, place: str | Path) -> None:
        """Give nothing any more of what lies in a place."""
        with self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM files WHERE place = ?", (str(place),))
            self._db.execute("DELETE FROM publications WHERE place = ?", (str(place),))

    def publications(self) -> list[Publication]:
        """Return what is held whole, by name and version."""
        with self._lock:
            rows = self._db.execute(
                "SELECT publisher, name, version, place, size FROM publications ORDER BY name, version"
            ).fetchall()
        return [Publication(*row) for row in rows]

    def flags(self, root: str, piece_size: int) -> bytes | bytearray | None:
        """Return a byte for each piece of a file, not 0 if it is held; `None` if none is."""
        best: bytes | None = None
        for held in self._held(root):
            count = num_pieces(held.size, piece_size)
            if not held.arriving:
                if self._is_unchanged(held):
                    return b"\1" * count
            elif held.piece_size == piece_size:
                noted = _noted(held, count)
                best = noted if best is None or noted.count(0) < best.count(0) else best
        return best

    def layer(self, root: str, piece_size: int) -> bytes | None:
        """Return the hashes of the pieces of a file, one behind the other; `None` if they are not known."""
        with self._lock:
            row = self._db.execute(
                "SELECT hashes FROM layers WHERE root = ? AND piece_size = ?", (root, piece_size)
            ).fetchone()
        return None if row is None else bytes(row[0])

    def read(self, root: str, piece_size: int, number: int) -> bytes | bytearray | None:
        """Return a piece of a file; `None` if it is not held, or its file has changed."""
        for held in self._held(root):
            offset = number * piece_size
            length = min(piece_size, held.size - offset)
            if length <= 0:
                continue
            if held.arriving:
                if held.piece_size != piece_size or not _noted(held, num_pieces(held.size, piece_size))[number]:
                    continue
            elif number % 64 == 0 and not self._is_unchanged(held):
                continue
            data = self._bytes(held, offset, length)
            if data is not None and len(data) == length:
                return data
        return None

    def find_piece(self, piece: bytes) -> bytes | bytearray | None:
        """Return the content of a piece by its hash, from any file that is held; the caller verifies it."""
        with self._lock:
            rows = self._db.execute("SELECT root, piece_size, number FROM pieces WHERE hash = ?", (piece,)).fetchall()
        for root, piece_size, number in rows:
            data = self.read(root, piece_size, number)
            if data is not None:
                return data
        return None

    def knows_piece(self, piece: bytes) -> bool:
        """Tell whether some file that was entered has a piece with this hash."""
        with self._lock:
            return self._db.execute("SELECT 1 FROM pieces WHERE hash = ? LIMIT 1", (piece,)).fetchone() is not None

    def close(self) -> None:
        """Close all files; may be called twice."""
        with self._lock:
            for fd in self._open.values():
                os.close(fd)
            self._open.clear()
            self._db.close()

    def _held(self, root: str) -> list[Held]:
        with self._lock:
            rows = self._db.execute("SELECT * FROM files WHERE root = ? ORDER BY arriving", (root,)).fetchall()
        return [Held(*row) for row in rows]

    def _bytes(self, held: Held, offset: int, length: int) -> bytes | bytearray | None:
        if "://" in held.place:
            return self._storage(held.place).read(held.path, offset, length)
        path = os.path.join(held.place, held.path)
        data = bytearray(length)
        try:
            with self._lock:
                fd = self._descriptor(path)
                fd = os.dup(fd)
        except OSError:
            return None
        try:
            count = os.preadv(fd, [data], offset)
        except OSError:
            return None
        finally:
            os.close(fd)
        return data if count == length else data[:count]

    def _descriptor(self, path: str) -> int:
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path]
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        self._open[path] = fd
        if len(self._open) > _OPEN_FILES:
            os.close(self._open.popitem(last=False)[1])
        return fd

    def _token(self, place: str, path: str) -> str:
        """Return what differs after every change of a file."""
        if "://" in place:
            entry = self._storage(place).stat(path)
            if entry is None:
                raise StoreError(f"{path} is not at {place}.")
            return entry.token
        try:
            status = os.stat(os.path.join(place, path), follow_symlinks=False)
        except OSError as error:
            raise StoreError(f"{path} in {place} cannot be read: {error.strerror}.") from error
        return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"

    def _is_unchanged(self, held: Held) -> bool:
        try:
            return self._token(held.place, held.path) == held.token
        except StoreError:
            return False

    def _storage(self, place: str) -> Storage:
        if place not in self._storages:
            self._storages[place] = open_storage(place)
        return self._storages[place]


def _noted(held: Held, count: int) -> bytes:
    """Return what is had of a file that is arriving."""
    try:
        with open(held.arriving, "rb") as file:
            file.seek(held.first)
            return file.read(count).ljust(count, b"\0").replace(b"\2", b"\0")  # 2: not verified yet
    except OSError:
        return bytes(count)
